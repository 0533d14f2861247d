/* The boundary library through Python's C API, by hand: the floor that the tools are compared with. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <string.h>

#include "boundary.h"
#include "counter_type.h"

typedef struct {
    PyTypeObject *point;
} module_state;

/* [as_int] */
/* -1 with an exception set if it does not fit. Nearly all integers are compact: one digit, read in place. */
static inline int as_int(PyObject *number) {
    if (PyLong_CheckExact(number) && PyUnstable_Long_IsCompact((PyLongObject *)number)) {
        return (int)PyUnstable_Long_CompactValue((PyLongObject *)number);
    }
    return PyLong_AsInt(number);
}
/* [/as_int] */

/* [noargs] */
static PyObject *py_noop(PyObject *self, PyObject *ignored) {
    noop();
    Py_RETURN_NONE;
}
/* [/noargs] */

static PyObject *py_answer(PyObject *self, PyObject *ignored) { return PyLong_FromLong(answer()); }

/* [detached] */
static PyObject *py_noop_detached(PyObject *self, PyObject *ignored) {
    Py_BEGIN_ALLOW_THREADS
    noop();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}
/* [/detached] */

/* [one] */
static PyObject *py_add_one(PyObject *self, PyObject *number) {
    int x = as_int(number);
    if (x == -1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromLong(add_one(x));
}
/* [/one] */

/* [fastcall] */
static PyObject *py_add_five(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    int x[5];
    if (nargs != 5) {
        PyErr_Format(PyExc_TypeError, "add_five takes 5 arguments, not %zd", nargs);
        return NULL;
    }
    for (int i = 0; i < 5; i++) {
        x[i] = as_int(args[i]);
        if (x[i] == -1 && PyErr_Occurred()) {
            return NULL;
        }
    }
    return PyLong_FromLongLong(add_five(x[0], x[1], x[2], x[3], x[4]));
}
/* [/fastcall] */

static PyObject *py_halve(PyObject *self, PyObject *number) {
    double x = PyFloat_AsDouble(number);
    if (x == -1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyFloat_FromDouble(halve(x));
}

/* [text] */
static PyObject *py_code_points(PyObject *self, PyObject *text) {
    Py_ssize_t size;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &size);
    if (!utf8) {
        return NULL;
    }
    return PyLong_FromSize_t(code_points(utf8, (size_t)size));
}
/* [/text] */

static PyObject *py_motto(PyObject *self, PyObject *ignored) {
    size_t size;
    const char *text = motto(&size);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, NULL);
}

static PyObject *py_checksum(PyObject *self, PyObject *data) {
    if (!PyBytes_Check(data)) {
        PyErr_SetString(PyExc_TypeError, "bytes are needed");
        return NULL;
    }
    return PyLong_FromUnsignedLong(checksum((uint8_t *)PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data)));
}

/* The one function that takes keywords: `size`, and `value` or 0. What was passed by name stands behind the rest. */
static int size_and_value(PyObject *const *args, Py_ssize_t n, PyObject *given, Py_ssize_t *size, int *value) {
    static const char *const names[] = {"size", "value"};
    PyObject *found[] = {NULL, NULL};
    if (n > 2) {
        PyErr_SetString(PyExc_TypeError, "make_bytes takes a size and a value");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        found[i] = args[i];
    }
    for (Py_ssize_t i = 0; given && i < PyTuple_GET_SIZE(given); i++) {
        PyObject *name = PyTuple_GET_ITEM(given, i);
        const int which = PyUnicode_EqualToUTF8(name, names[0]) ? 0 : PyUnicode_EqualToUTF8(name, names[1]) ? 1 : 2;
        if (which == 2 || found[which]) {
            PyErr_Format(PyExc_TypeError, "make_bytes does not take '%U', or has it already", name);
            return -1;
        }
        found[which] = args[n + i];
    }
    if (!found[0]) {
        PyErr_SetString(PyExc_TypeError, "make_bytes needs a size");
        return -1;
    }
    *size = PyNumber_AsSsize_t(found[0], PyExc_OverflowError);
    *value = found[1] && !PyErr_Occurred() ? PyLong_AsInt(found[1]) : 0;
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *py_make_bytes(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *given) {
    Py_ssize_t size;
    int value;
    if (size_and_value(args, n, given, &size, &value) < 0) {
        return NULL;
    }
    if (value < 0 || value > 255) {
        PyErr_SetString(PyExc_OverflowError, "a byte is needed");
        return NULL;
    }
    if (size < 0) {
        PyErr_SetString(PyExc_ValueError, "negative size");
        return NULL;
    }
    PyObject *result = PyBytes_FromStringAndSize(NULL, size);
    if (result) {
        fill((uint8_t *)PyBytes_AS_STRING(result), (size_t)size, (uint8_t)value);
    }
    return result;
}

/* [buffer] */
static PyObject *py_ends(PyObject *self, PyObject *values) {
    Py_buffer view;
    if (PyObject_GetBuffer(values, &view, PyBUF_ND | PyBUF_FORMAT) < 0) {
        return NULL;
    }
    PyObject *result = NULL;
    if (view.ndim != 1 || strcmp(view.format, "d") != 0) {
        PyErr_SetString(PyExc_TypeError, "a contiguous array of doubles is needed");
    } else if (view.shape[0] && (uintptr_t)view.buf % _Alignof(double)) {
        PyErr_SetString(PyExc_BufferError, "the doubles are not aligned");
    } else {
        result = PyFloat_FromDouble(ends(view.buf, (size_t)view.shape[0]));
    }
    PyBuffer_Release(&view);
    return result;
}
/* [/buffer] */

/* [list] */
static PyObject *py_sum_list(PyObject *self, PyObject *values) {
    if (!PyList_Check(values)) {
        PyErr_SetString(PyExc_TypeError, "a list is needed");
        return NULL;
    }
    Py_ssize_t n = PyList_GET_SIZE(values);
    int *items = PyMem_New(int, n ? n : 1);
    if (!items) {
        return PyErr_NoMemory();
    }
    PyObject *result = NULL;
    int failed = 0;
    /* Without the GIL, this keeps other threads from changing the list; with it, it is nothing. */
    Py_BEGIN_CRITICAL_SECTION(values);
    for (Py_ssize_t i = 0; i < n && !failed; i++) {
        /* An __index__ method may run here, and shorten the list. */
        if (i >= PyList_GET_SIZE(values)) {
            PyErr_SetString(PyExc_RuntimeError, "the list changed its size");
            failed = 1;
            break;
        }
        PyObject *item = Py_NewRef(PyList_GET_ITEM(values, i));
        items[i] = as_int(item);
        failed = items[i] == -1 && PyErr_Occurred();
        Py_DECREF(item);
    }
    Py_END_CRITICAL_SECTION();
    if (!failed) {
        result = PyLong_FromLongLong(sum_ints(items, (size_t)n));
    }
    PyMem_Free(items);
    return result;
}
/* [/list] */

/* Any sequence: a tuple of its items is ours alone. */
static PyObject *py_sum_sequence(PyObject *self, PyObject *values) {
    PyObject *tuple = PySequence_Tuple(values);
    if (!tuple) {
        return NULL;
    }
    PyObject *result = NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(tuple), i = 0;
    int *items = PyMem_New(int, n ? n : 1);
    if (!items) {
        PyErr_NoMemory();
    } else {
        for (; i < n; i++) {
            items[i] = as_int(PyTuple_GET_ITEM(tuple, i));
            if (items[i] == -1 && PyErr_Occurred()) {
                break;
            }
        }
        if (i == n) {
            result = PyLong_FromLongLong(sum_ints(items, (size_t)n));
        }
    }
    PyMem_Free(items);
    Py_DECREF(tuple);
    return result;
}

/* [point] */
typedef struct {
    PyObject_HEAD
    point value;
} PointObject;

static PyObject *point_make(PyObject *type, PyObject *const *args, Py_ssize_t number, int keywords) {
    if (number != 2 || keywords) {
        PyErr_SetString(PyExc_TypeError, "Point takes exactly two positional arguments");
        return NULL;
    }
    point value;
    value.x = PyFloat_AsDouble(args[0]);
    if (value.x == -1 && PyErr_Occurred()) {
        return NULL;
    }
    value.y = PyFloat_AsDouble(args[1]);
    if (value.y == -1 && PyErr_Occurred()) {
        return NULL;
    }
    PointObject *self = PyObject_New(PointObject, (PyTypeObject *)type);
    if (self) {
        self->value = value;
    }
    return (PyObject *)self;
}

/* Called for Point(x, y), without a tuple of arguments. */
static PyObject *point_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    return point_make(type, args, PyVectorcall_NARGS(nargsf), kwnames && PyTuple_GET_SIZE(kwnames));
}

/* Everything else that makes one, type.__call__(Point, x, y) for example, comes here. */
static PyObject *point_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    return point_make((PyObject *)type, &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args),
                      kwargs && PyDict_GET_SIZE(kwargs));
}

static PyObject *py_dot(PyObject *module, PyObject *p) {
    module_state *state = PyModule_GetState(module);
    if (!Py_IS_TYPE(p, state->point)) {
        PyErr_SetString(PyExc_TypeError, "a Point is needed");
        return NULL;
    }
    point value;
    Py_BEGIN_CRITICAL_SECTION(p); /* both numbers of one moment */
    value = ((PointObject *)p)->value;
    Py_END_CRITICAL_SECTION();
    return PyFloat_FromDouble(dot(value));
}

static PyObject *py_scale(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    module_state *state = PyModule_GetState(module);
    if (nargs != 2 || !Py_IS_TYPE(args[0], state->point)) {
        PyErr_SetString(PyExc_TypeError, "a Point and a number are needed");
        return NULL;
    }
    double by = PyFloat_AsDouble(args[1]);
    if (by == -1 && PyErr_Occurred()) {
        return NULL;
    }
    Py_BEGIN_CRITICAL_SECTION(args[0]);
    scale(&((PointObject *)args[0])->value, by);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}
/* [/point] */

static void point_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* One of the two numbers, at an offset in the struct. A PyMemberDef would read it without the lock. */
static PyObject *point_get(PyObject *self, void *offset) {
    double value;
    Py_BEGIN_CRITICAL_SECTION(self);
    value = *(double *)((char *)&((PointObject *)self)->value + (size_t)offset);
    Py_END_CRITICAL_SECTION();
    return PyFloat_FromDouble(value);
}

static PyGetSetDef point_getset[] = {
    {"x", point_get, NULL, NULL, (void *)offsetof(point, x)},
    {"y", point_get, NULL, NULL, (void *)offsetof(point, y)},
    {NULL},
};

static PyType_Slot point_slots[] = {
    {Py_tp_new, point_new},
#if PY_VERSION_HEX >= 0x030E0000
    {Py_tp_vectorcall, point_vectorcall},
#endif
    {Py_tp_dealloc, point_dealloc},
    {Py_tp_getset, point_getset},
    {0, NULL},
};

static PyType_Spec point_spec = {
    "boundary_c_api.Point", sizeof(PointObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, point_slots,
};

/* [callback] */
static int call_back(int x, void *context) {
    PyObject *number = PyLong_FromLong(x);
    if (!number) {
        return -1;
    }
    PyObject *answer = PyObject_CallOneArg((PyObject *)context, number);
    Py_DECREF(number);
    if (!answer) {
        return -1;
    }
    int result = as_int(answer);
    Py_DECREF(answer);
    return result;
}

static PyObject *py_apply(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2) {
        PyErr_Format(PyExc_TypeError, "apply takes 2 arguments, not %zd", nargs);
        return NULL;
    }
    int x = as_int(args[1]);
    if (x == -1 && PyErr_Occurred()) {
        return NULL;
    }
    int result = apply(call_back, args[0], x);
    if (result == -1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromLong(result);
}
/* [/callback] */

/* The same for a caller that has detached the thread state: each call attaches it, and detaches it again. */
static int call_back_attaching(int x, void *context) {
    PyGILState_STATE state = PyGILState_Ensure();
    int result = call_back(x, context);
    PyGILState_Release(state);
    return result;
}

static PyObject *py_apply_detached(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2) {
        PyErr_Format(PyExc_TypeError, "apply_detached takes 2 arguments, not %zd", nargs);
        return NULL;
    }
    int x = as_int(args[1]), result;
    if (x == -1 && PyErr_Occurred()) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    result = apply(call_back_attaching, args[0], x);
    Py_END_ALLOW_THREADS
    if (result == -1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromLong(result);
}

static PyObject *py_callback(PyObject *self, PyObject *function) { return Py_NewRef(function); }

/* [root] */
static PyObject *py_root(PyObject *self, PyObject *number) {
    double x = PyFloat_AsDouble(number), result;
    if (x == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (root(x, &result)) {
        PyErr_SetString(PyExc_ValueError, "no real root");
        return NULL;
    }
    return PyFloat_FromDouble(result);
}
/* [/root] */

static PyObject *py_work(PyObject *self, PyObject *number) {
    int iterations = as_int(number);
    if (iterations == -1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromLong(work(iterations));
}

/* work() called `loops` times from C: what it takes without a boundary. */
static PyObject *py_work_in_c(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2) {
        PyErr_Format(PyExc_TypeError, "work_in_c takes 2 arguments, not %zd", nargs);
        return NULL;
    }
    int iterations = as_int(args[0]);
    if (iterations == -1 && PyErr_Occurred()) {
        return NULL;
    }
    long long loops = PyLong_AsLongLong(args[1]);
    if (loops == -1 && PyErr_Occurred()) {
        return NULL;
    }
    int last = 0;
    for (long long i = 0; i < loops; i++) {
        last = work(iterations);
    }
    return PyLong_FromLong(last);
}

static PyObject *py_sleep_ms(PyObject *self, PyObject *number) {
    int milliseconds = as_int(number);
    if (milliseconds == -1 && PyErr_Occurred()) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    sleep_ms(milliseconds);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

#define FASTCALL(name) {#name, (PyCFunction)(void (*)(void))py_##name, METH_FASTCALL, NULL}

static PyMethodDef methods[] = {
    {"noop", py_noop, METH_NOARGS, NULL},
    {"noop_detached", py_noop_detached, METH_NOARGS, NULL},
    {"answer", py_answer, METH_NOARGS, NULL},
    {"add_one", py_add_one, METH_O, NULL},
    FASTCALL(add_five),
    {"halve", py_halve, METH_O, NULL},
    {"code_points", py_code_points, METH_O, NULL},
    {"motto", py_motto, METH_NOARGS, NULL},
    {"checksum", py_checksum, METH_O, NULL},
    {"make_bytes", (PyCFunction)(void (*)(void))py_make_bytes, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"ends", py_ends, METH_O, NULL},
    {"sum_list", py_sum_list, METH_O, NULL},
    {"sum_sequence", py_sum_sequence, METH_O, NULL},
    {"dot", py_dot, METH_O, NULL},
    FASTCALL(scale),
    {"callback", py_callback, METH_O, NULL},
    FASTCALL(apply),
    FASTCALL(apply_detached),
    {"root", py_root, METH_O, NULL},
    {"work", py_work, METH_O, NULL},
    FASTCALL(work_in_c),
    {"sleep_ms", py_sleep_ms, METH_O, NULL},
    {NULL},
};

static int module_exec(PyObject *module) {
    module_state *state = PyModule_GetState(module);
    state->point = (PyTypeObject *)PyType_FromModuleAndSpec(module, &point_spec, NULL);
    if (!state->point) {
        return -1;
    }
#if PY_VERSION_HEX < 0x030E0000
    /* Before 3.14 there is no slot for it. */
    state->point->tp_vectorcall = point_vectorcall;
#endif
    if (PyModule_AddObjectRef(module, "Point", (PyObject *)state->point) < 0) {
        return -1;
    }
    return counter_type_add(module);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    module_state *state = PyModule_GetState(module);
    Py_VISIT(state->point);
    return 0;
}

static int module_clear(PyObject *module) {
    module_state *state = PyModule_GetState(module);
    Py_CLEAR(state->point);
    return 0;
}

static void module_free(void *module) { module_clear(module); }

/* [slots] */
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED}, /* or the import turns the GIL on, for good */
    {0, NULL},
};
/* [/slots] */

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "boundary_c_api",
    .m_size = sizeof(module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit_boundary_c_api(void) { return PyModuleDef_Init(&module); }
