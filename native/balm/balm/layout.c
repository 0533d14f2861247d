#include "layout.h"
#include "tuples.h"

/* [check] */
/* Everything of the state that has a name; what is between them is never written. */
static int same_state(const PyASCIIObject *one, const PyASCIIObject *other) {
    PyASCIIObject named;
    memset(&named, 0, sizeof(named));
    named.state.interned = -1;
    named.state.kind = -1;
    named.state.compact = 1;
    named.state.ascii = 1;
    named.state.statically_allocated = 1;
    const char *mask = (const char *)&named.state, *a = (const char *)&one->state, *b = (const char *)&other->state;
    for (size_t i = 0; i < sizeof(named.state); i++) {
        if ((a[i] ^ b[i]) & mask[i]) {
            return 0;
        }
    }
    return 1;
}

/* CPython makes a string, and so do we: all that is in it must agree. */
static int check_view(PyObject *theirs) {
    PyUnicodeObject *their = (PyUnicodeObject *)theirs, mine;
    set_view(&mine, Py_TYPE(theirs), this_thread(), PyUnicode_DATA(theirs), PyUnicode_GET_LENGTH(theirs));
    return same_state(&their->_base._base, &mine._base._base) && their->_base._base.length == mine._base._base.length
           && their->_base.utf8_length == mine._base.utf8_length && their->_base.utf8 == mine._base.utf8
           && their->data.any == mine.data.any;
}

static int check_compact(PyObject *theirs) {
    PyASCIIObject mine;
    memset(&mine, 0, sizeof(mine));
    set_head((PyObject *)&mine, &PyUnicode_Type, this_thread());
    set_ascii(&mine, PyUnicode_GET_LENGTH(theirs), 1);
    /* The head too, and the hash: this string is as new as ours. */
    return !memcmp(theirs, &mine, offsetof(PyASCIIObject, state)) && same_state((PyASCIIObject *)theirs, &mine)
           && PyUnicode_DATA(theirs) == (char *)theirs + sizeof(PyASCIIObject);
}
/* [/check] */

/* How much does CPython put before an object that its garbage collector may visit, and where are the items? */
static int check_tuple(PyObject *sys, PyObject *tuple) {
    PyObject *all = PyObject_CallMethod(sys, "getsizeof", "(O)", tuple);
    PyObject *own = all ? PyObject_CallMethod(tuple, "__sizeof__", NULL) : NULL;
    long bytes = own ? PyLong_AsLong(own) : 0;
    int known = own && PyLong_AsLong(all) - bytes == GC_HEAD_BYTES
                && bytes == (long)(offsetof(PyTupleObject, ob_item) + sizeof(PyObject *))
                && ((PyTupleObject *)tuple)->ob_item[0] == Py_None;
#if PY_VERSION_HEX >= 0x030E0000
    known = known && ((PyTupleObject *)tuple)->ob_hash == -1;
#endif
    Py_XDECREF(all);
    Py_XDECREF(own);
    return known;
}

int check_layout(void) {
    PyObject *subclass = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){}", "Probe", &PyUnicode_Type);
    PyObject *view = subclass ? PyObject_CallFunction(subclass, "s", "any text") : NULL;
    PyObject *compact = PyUnicode_New(40, 127);
    PyObject *sys = PyImport_ImportModule("sys"), *tuple = PyTuple_Pack(1, Py_None);
    int failed = -1;
    if (view && compact && sys && tuple) {
        const char *unknown = !check_view(view)          ? "subclasses of str"
                              : !check_compact(compact)  ? "str"
                              : !check_tuple(sys, tuple) ? "tuple"
                                                         : NULL;
        if (unknown && !PyErr_Occurred()) {
            PyErr_Format(PyExc_ImportError, "balm: this CPython lays out %s in another way than balm does", unknown);
        }
        failed = PyErr_Occurred() ? -1 : 0;
    }
    Py_XDECREF(tuple);
    Py_XDECREF(sys);
    Py_XDECREF(compact);
    Py_XDECREF(view);
    Py_XDECREF(subclass);
    return failed;
}
