#include "caveats.h"

#include "tuples.h"

/* [layout] */
/* Bytes from the start of the object, as the compiler of this build lays them out; of the bits of a string's state,
 * the mask. What a forgery has to know. */
static PyObject *layout(PyObject *module, PyObject *unused) {
    PyASCIIObject kind = {0}, compact = {0}, ascii = {0};
    kind.state.kind = PyUnicode_1BYTE_KIND;
    compact.state.compact = 1;
    ascii.state.ascii = 1;
    unsigned int bits[3];
    const PyASCIIObject *of[3] = {&kind, &compact, &ascii};
    for (int i = 0; i < 3; i++) {
        memcpy(&bits[i], &of[i]->state, sizeof(bits[i]));
    }
#ifdef Py_GIL_DISABLED
    size_t count = offsetof(PyObject, ob_ref_local);
#else
    size_t count = offsetof(PyObject, ob_refcnt);
#endif
#if PY_VERSION_HEX >= 0x030E0000
    PyObject *hash_of_tuple = PyLong_FromSize_t(offsetof(PyTupleObject, ob_hash));
#else
    PyObject *hash_of_tuple = Py_NewRef(Py_None);
#endif
    return Py_BuildValue(
        "{sn sn sn sn sn sn sI sI sI sn sn sn sn sn sN sn sn}",
        "PyObject, reference count", count,
        "PyObject, ob_type", offsetof(PyObject, ob_type),
        "PyObject, size", sizeof(PyObject),
        "PyASCIIObject, length", offsetof(PyASCIIObject, length),
        "PyASCIIObject, hash", offsetof(PyASCIIObject, hash),
        "PyASCIIObject, state", offsetof(PyASCIIObject, state),
        "state, one byte a character", bits[0],
        "state, compact", bits[1],
        "state, ascii", bits[2],
        "PyASCIIObject, size", sizeof(PyASCIIObject),
        "PyCompactUnicodeObject, utf8_length", offsetof(PyCompactUnicodeObject, utf8_length),
        "PyCompactUnicodeObject, utf8", offsetof(PyCompactUnicodeObject, utf8),
        "PyUnicodeObject, data", offsetof(PyUnicodeObject, data),
        "PyUnicodeObject, size", sizeof(PyUnicodeObject),
        "PyTupleObject, ob_hash", hash_of_tuple,
        "PyTupleObject, ob_item", offsetof(PyTupleObject, ob_item),
        "before a tuple, for the garbage collector", (Py_ssize_t)GC_HEAD_BYTES);
}
/* [/layout] */

/* [foreign list] */
/* Places for items, in memory of ours. Free-threaded builds look for the number of places right before them. */
typedef struct {
    Py_ssize_t room;
    PyObject *items[];
} Places;

typedef struct {
    char gc_head[GC_HEAD_BYTES]; /* zero: not tracked */
    PyListObject list;
    Places first;
} ForeignList;

/* The items of `list` move to `room` places of ours. What held them before is kept for good. */
static int move(PyListObject *list, Places *to, Py_ssize_t room) {
    if (!to) {
        return -1;
    }
    to->room = room;
    memcpy(to->items, list->ob_item, Py_SIZE(list) * sizeof(PyObject *));
    list->ob_item = to->items;
    list->allocated = room;
    return 0;
}

/* An append that knows whose memory it is. */
static PyObject *own_append(PyObject *op, PyObject *item) {
    PyListObject *list = (PyListObject *)op;
    Py_ssize_t size = Py_SIZE(list), room = 2 * size;
    if (size == list->allocated && move(list, calloc(1, sizeof(Places) + room * sizeof(PyObject *)), room)) {
        return PyErr_NoMemory();
    }
    list->ob_item[size] = Py_NewRef(item);
    Py_SET_SIZE(list, size + 1);
    Py_RETURN_NONE;
}

static PyMethodDef own_methods[] = {{"append", own_append, METH_O, NULL}, {NULL}};

static void keep_forever(PyObject *op) {}

/* As it is, and with an append of its own. */
static PyTypeObject list_types[2];

/* The items stand behind the list, as the text of a string would: nothing of it comes from CPython's allocator. */
static PyObject *foreign_list(PyObject *module, PyObject *args) {
    PyObject *items;
    Py_ssize_t room;
    int appends;
    if (!PyArg_ParseTuple(args, "O!np", &PyTuple_Type, &items, &room, &appends)) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    if (room < count || !count) {
        PyErr_SetString(PyExc_ValueError, "room must be for at least as many items, and there must be some");
        return NULL;
    }
    ForeignList *made = calloc(1, sizeof(ForeignList) + room * sizeof(PyObject *));
    if (!made) {
        return PyErr_NoMemory();
    }
    set_head((PyObject *)&made->list, &list_types[appends], this_thread());
    made->list.ob_item = made->first.items;
    made->list.allocated = made->first.room = room;
    for (Py_ssize_t i = 0; i < count; i++) {
        made->first.items[i] = Py_NewRef(PyTuple_GET_ITEM(items, i));
    }
    Py_SET_SIZE(&made->list, count);
    return (PyObject *)&made->list;
}
/* [/foreign list] */

static PyMethodDef functions[] = {
    {"layout", layout, METH_NOARGS, "Where CPython keeps what a forgery has to fill in, in this build."},
    {"foreign_list", foreign_list, METH_VARARGS,
     "foreign_list(items, room, appends)\n\nA list of the items of a tuple, with `room` places in memory that CPython did not allocate.\n"
     "appends: its type has an append of its own. It is never freed."},
    {NULL},
};

int caveats_exec(PyObject *module) {
    static int made;
    for (int i = 0; !made && i < 2; i++) {
        list_types[i] = (PyTypeObject){
            PyVarObject_HEAD_INIT(NULL, 0).tp_name = i ? "balm.ForeignListThatAppends" : "balm.ForeignList",
            .tp_base = &PyList_Type,
            .tp_dealloc = keep_forever,
            .tp_methods = i ? own_methods : NULL,
            .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
            .tp_doc = "Its items are in memory that CPython did not allocate. A demonstration: do not ship it.",
        };
        if (PyType_Ready(&list_types[i]) < 0) {
            return -1;
        }
    }
    made = 1;
    return PyModule_AddFunctions(module, functions);
}
