// The boundary library through the limited API. Built in one of two ways (setup.py decides):
//   abi3   one file for every CPython with a GIL from 3.13 on;
//   abi3t  one file for every CPython from 3.15 on, with the GIL and without: Py_TARGET_ABI3T is defined, and the module is
//          exported as PEP 793 says, without a PyModuleDef.
//
// What it may not do, beside the full C API of ../c_api: look into objects of other types (a compact int, the items of a list).
// What one source for both ways may not do: know where its own struct lies in an object (abi3t), or give a type a vectorcall
// (abi3 before 3.14).
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "boundary.h"
#include "counter.hpp"

namespace {

// [section]
#ifdef Py_TARGET_ABI3T
#define BEGIN_SECTION(object) Py_BEGIN_CRITICAL_SECTION(object)
#define END_SECTION() Py_END_CRITICAL_SECTION()
#else // abi3 is for builds with the GIL only: the GIL is the lock
#define BEGIN_SECTION(object) {
#define END_SECTION() }
#endif
// [/section]

struct ModuleState {
    PyTypeObject *point;
};

PyObject *wrong_count(const char *name, int wanted, Py_ssize_t given) {
    PyErr_Format(PyExc_TypeError, "%s takes %d arguments, not %zd", name, wanted, given);
    return nullptr;
}

// [noargs]
PyObject *py_noop(PyObject *, PyObject *) {
    noop();
    Py_RETURN_NONE;
}
// [/noargs]

PyObject *py_answer(PyObject *, PyObject *) { return PyLong_FromLong(answer()); }

PyObject *py_noop_detached(PyObject *, PyObject *) {
    Py_BEGIN_ALLOW_THREADS
    noop();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

// [one]
// PyLong_AsInt is a function: here nobody reads a digit in place.
PyObject *py_add_one(PyObject *, PyObject *number) {
    const int x = PyLong_AsInt(number);
    if (x == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    return PyLong_FromLong(add_one(x));
}
// [/one]

PyObject *py_add_five(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 5) {
        return wrong_count("add_five", 5, nargs);
    }
    int x[5];
    for (int i = 0; i < 5; i++) {
        x[i] = PyLong_AsInt(args[i]);
        if (x[i] == -1 && PyErr_Occurred()) {
            return nullptr;
        }
    }
    return PyLong_FromLongLong(add_five(x[0], x[1], x[2], x[3], x[4]));
}

PyObject *py_halve(PyObject *, PyObject *number) {
    const double x = PyFloat_AsDouble(number);
    if (x == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    return PyFloat_FromDouble(halve(x));
}

// [text]
PyObject *py_code_points(PyObject *, PyObject *text) {
    Py_ssize_t size;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &size);
    if (!utf8) {
        return nullptr;
    }
    return PyLong_FromSize_t(code_points(utf8, static_cast<size_t>(size)));
}
// [/text]

PyObject *py_motto(PyObject *, PyObject *) {
    size_t size;
    const char *text = motto(&size);
    return PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(size), nullptr);
}

PyObject *py_checksum(PyObject *, PyObject *data) {
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(data, &bytes, &size) < 0) {
        return nullptr;
    }
    return PyLong_FromUnsignedLong(checksum(reinterpret_cast<uint8_t *>(bytes), static_cast<size_t>(size)));
}

// The one function that takes keywords: `size`, and `value` or 0. What was passed by name stands behind the rest.
int size_and_value(PyObject *const *args, Py_ssize_t n, PyObject *given, Py_ssize_t *size, int *value) {
    static const char *const names[] = {"size", "value"};
    PyObject *found[] = {nullptr, nullptr};
    if (n > 2) {
        PyErr_SetString(PyExc_TypeError, "make_bytes takes a size and a value");
        return -1;
    }
    std::copy(args, args + n, found);
    for (Py_ssize_t i = 0; given && i < PyTuple_Size(given); i++) {
        PyObject *name = PyTuple_GetItem(given, i);
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

PyObject *py_make_bytes(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *given) {
    Py_ssize_t size;
    int value;
    if (size_and_value(args, n, given, &size, &value) < 0) {
        return nullptr;
    }
    if (value < 0 || value > 255) {
        PyErr_SetString(PyExc_OverflowError, "a byte is needed");
        return nullptr;
    }
    if (size < 0) {
        PyErr_SetString(PyExc_ValueError, "negative size");
        return nullptr;
    }
    PyObject *result = PyBytes_FromStringAndSize(nullptr, size);
    if (result) {
        fill(reinterpret_cast<uint8_t *>(PyBytes_AsString(result)), static_cast<size_t>(size), static_cast<uint8_t>(value));
    }
    return result;
}

PyObject *py_ends(PyObject *, PyObject *values) {
    Py_buffer view;
    if (PyObject_GetBuffer(values, &view, PyBUF_ND | PyBUF_FORMAT) < 0) {
        return nullptr;
    }
    PyObject *result = nullptr;
    if (view.ndim != 1 || std::strcmp(view.format, "d") != 0) {
        PyErr_SetString(PyExc_TypeError, "a contiguous array of doubles is needed");
    } else if (view.shape[0] && reinterpret_cast<std::uintptr_t>(view.buf) % alignof(double)) {
        PyErr_SetString(PyExc_BufferError, "the doubles are not aligned");
    } else {
        result = PyFloat_FromDouble(ends(static_cast<const double *>(view.buf), static_cast<size_t>(view.shape[0])));
    }
    PyBuffer_Release(&view);
    return result;
}

// [list]
PyObject *py_sum_list(PyObject *, PyObject *values) {
    if (!PyList_Check(values)) {
        PyErr_SetString(PyExc_TypeError, "a list is needed");
        return nullptr;
    }
    Py_ssize_t i = 0, n;
    std::unique_ptr<int[]> items;
    BEGIN_SECTION(values); // let go of while an __index__ method runs
    n = PyList_Size(values);
    items.reset(new (std::nothrow) int[n ? n : 1]);
    if (!items) {
        PyErr_NoMemory();
    }
    for (; items && i < n; i++) {
        // A strong reference, or IndexError: an __index__ method may have shortened the list.
        PyObject *item = PyList_GetItemRef(values, i);
        if (!item) {
            break;
        }
        items[i] = PyLong_AsInt(item);
        Py_DECREF(item);
        if (items[i] == -1 && PyErr_Occurred()) {
            break;
        }
    }
    END_SECTION();
    return items && i == n ? PyLong_FromLongLong(sum_ints(items.get(), static_cast<size_t>(n))) : nullptr;
}
// [/list]

PyObject *py_sum_sequence(PyObject *, PyObject *values) {
    PyObject *tuple = PySequence_Tuple(values);
    if (!tuple) {
        return nullptr;
    }
    PyObject *result = nullptr;
    const Py_ssize_t n = PyTuple_Size(tuple);
    std::unique_ptr<int[]> items(new (std::nothrow) int[n ? n : 1]);
    Py_ssize_t i = 0;
    if (!items) {
        PyErr_NoMemory();
    } else {
        for (; i < n; i++) {
            items[i] = PyLong_AsInt(PyTuple_GetItem(tuple, i));
            if (items[i] == -1 && PyErr_Occurred()) {
                break;
            }
        }
        if (i == n) {
            result = PyLong_FromLongLong(sum_ints(items.get(), static_cast<size_t>(n)));
        }
    }
    Py_DECREF(tuple);
    return result;
}

// [point]
// How large the head of an object is, abi3t does not say. So the type asks for room behind it (a negative size in its spec),
// and every use asks where that room begins. No type here can be subclassed: else Py_TYPE would be the wrong one to ask.
template <typename Data> Data *data_of(PyObject *object) {
    return static_cast<Data *>(PyObject_GetTypeData(object, Py_TYPE(object)));
}

PyObject *point_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    if (PyTuple_Size(args) != 2 || (kwargs && PyDict_Size(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "Point takes exactly two positional arguments");
        return nullptr;
    }
    const double x = PyFloat_AsDouble(PyTuple_GetItem(args, 0));
    if (x == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    const double y = PyFloat_AsDouble(PyTuple_GetItem(args, 1));
    if (y == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    PyObject *self = PyObject_New(PyObject, type);
    if (self) {
        *data_of<point>(self) = {x, y};
    }
    return self;
}

PyObject *py_dot(PyObject *module, PyObject *p) {
    auto *state = static_cast<ModuleState *>(PyModule_GetState(module));
    if (!Py_IS_TYPE(p, state->point)) {
        PyErr_SetString(PyExc_TypeError, "a Point is needed");
        return nullptr;
    }
    point value;
    BEGIN_SECTION(p); // both numbers of one moment
    value = *data_of<point>(p);
    END_SECTION();
    return PyFloat_FromDouble(dot(value));
}

PyObject *py_scale(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    auto *state = static_cast<ModuleState *>(PyModule_GetState(module));
    if (nargs != 2 || !Py_IS_TYPE(args[0], state->point)) {
        PyErr_SetString(PyExc_TypeError, "a Point and a number are needed");
        return nullptr;
    }
    const double by = PyFloat_AsDouble(args[1]);
    if (by == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    BEGIN_SECTION(args[0]);
    scale(data_of<point>(args[0]), by);
    END_SECTION();
    Py_RETURN_NONE;
}
// [/point]

void point_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

// One of the two numbers, at an offset in the struct. A PyMemberDef would read it without the lock.
PyObject *point_get(PyObject *self, void *offset) {
    double value;
    BEGIN_SECTION(self);
    std::memcpy(&value, reinterpret_cast<char *>(data_of<point>(self)) + reinterpret_cast<std::size_t>(offset), sizeof value);
    END_SECTION();
    return PyFloat_FromDouble(value);
}

PyGetSetDef point_getset[] = {
    {"x", point_get, nullptr, nullptr, reinterpret_cast<void *>(offsetof(point, x))},
    {"y", point_get, nullptr, nullptr, reinterpret_cast<void *>(offsetof(point, y))},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot point_slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(point_new)},
    {Py_tp_dealloc, reinterpret_cast<void *>(point_dealloc)},
    {Py_tp_getset, point_getset},
    {0, nullptr},
};

PyType_Spec point_spec = {
    "boundary_c_api_limited.Point", -static_cast<int>(sizeof(point)), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, point_slots,
};

// [callback]
int call_back(int x, void *context) {
    PyObject *number = PyLong_FromLong(x);
    if (!number) {
        return -1;
    }
    PyObject *answer = PyObject_Vectorcall(static_cast<PyObject *>(context), &number, 1, nullptr);
    Py_DECREF(number);
    if (!answer) {
        return -1;
    }
    const int result = PyLong_AsInt(answer);
    Py_DECREF(answer);
    return result;
}

int call_back_attaching(int x, void *context) {
    const PyGILState_STATE state = PyGILState_Ensure();
    const int result = call_back(x, context);
    PyGILState_Release(state);
    return result;
}

PyObject *py_apply(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2) {
        return wrong_count("apply", 2, nargs);
    }
    const int x = PyLong_AsInt(args[1]);
    if (x == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    const int result = apply(call_back, args[0], x);
    if (result == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    return PyLong_FromLong(result);
}

PyObject *py_apply_detached(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2) {
        return wrong_count("apply_detached", 2, nargs);
    }
    int x = PyLong_AsInt(args[1]), result;
    if (x == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    Py_BEGIN_ALLOW_THREADS
    result = apply(call_back_attaching, args[0], x);
    Py_END_ALLOW_THREADS
    if (result == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    return PyLong_FromLong(result);
}
// [/callback]

PyObject *py_callback(PyObject *, PyObject *function) { return Py_NewRef(function); }

PyObject *py_root(PyObject *, PyObject *number) {
    double x = PyFloat_AsDouble(number), result;
    if (x == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    if (root(x, &result)) {
        PyErr_SetString(PyExc_ValueError, "no real root");
        return nullptr;
    }
    return PyFloat_FromDouble(result);
}

PyObject *py_work(PyObject *, PyObject *number) {
    const int iterations = PyLong_AsInt(number);
    if (iterations == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    return PyLong_FromLong(work(iterations));
}

PyObject *py_sleep_ms(PyObject *, PyObject *number) {
    const int milliseconds = PyLong_AsInt(number);
    if (milliseconds == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    Py_BEGIN_ALLOW_THREADS
    sleep_ms(milliseconds);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

// [counter]
PyObject *counter_new_object(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    if (PyTuple_Size(args) != 1 || (kwargs && PyDict_Size(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "Counter takes exactly one positional argument");
        return nullptr;
    }
    const std::int64_t start = PyLong_AsLongLong(PyTuple_GetItem(args, 0));
    if (start == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    PyObject *self = PyObject_New(PyObject, type);
    if (self) {
        new (data_of<Counter>(self)) Counter(start);
    }
    return self;
}

void counter_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    data_of<Counter>(self)->~Counter();
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *counter_add(PyObject *self, PyObject *number) {
    const std::int64_t n = PyLong_AsLongLong(number);
    if (n == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    std::int64_t sum;
    BEGIN_SECTION(self); // one object may be used by many threads
    sum = data_of<Counter>(self)->add(n);
    END_SECTION();
    return PyLong_FromLongLong(sum);
}

// Loses additions where two threads are in it and there is no GIL.
PyObject *counter_add_unlocked(PyObject *self, PyObject *number) {
    const std::int64_t n = PyLong_AsLongLong(number);
    if (n == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    return PyLong_FromLongLong(data_of<Counter>(self)->add(n));
}
// [/counter]

PyObject *counter_value(PyObject *self, PyObject *) {
    std::int64_t value;
    BEGIN_SECTION(self);
    value = data_of<Counter>(self)->value();
    END_SECTION();
    return PyLong_FromLongLong(value);
}

PyMethodDef counter_methods[] = {
    {"add", counter_add, METH_O, nullptr},
    {"add_unlocked", counter_add_unlocked, METH_O, nullptr},
    {"value", counter_value, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot counter_slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(counter_new_object)},
    {Py_tp_dealloc, reinterpret_cast<void *>(counter_dealloc)},
    {Py_tp_methods, counter_methods},
    {0, nullptr},
};

PyType_Spec counter_spec = {
    "boundary_c_api_limited.Counter", -static_cast<int>(sizeof(Counter)), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, counter_slots,
};

PyCFunction fast(PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t)) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"noop", py_noop, METH_NOARGS, nullptr},
    {"noop_detached", py_noop_detached, METH_NOARGS, nullptr},
    {"answer", py_answer, METH_NOARGS, nullptr},
    {"add_one", py_add_one, METH_O, nullptr},
    {"add_five", fast(py_add_five), METH_FASTCALL, nullptr},
    {"halve", py_halve, METH_O, nullptr},
    {"code_points", py_code_points, METH_O, nullptr},
    {"motto", py_motto, METH_NOARGS, nullptr},
    {"checksum", py_checksum, METH_O, nullptr},
    {"make_bytes", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(py_make_bytes)), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"ends", py_ends, METH_O, nullptr},
    {"sum_list", py_sum_list, METH_O, nullptr},
    {"sum_sequence", py_sum_sequence, METH_O, nullptr},
    {"dot", py_dot, METH_O, nullptr},
    {"scale", fast(py_scale), METH_FASTCALL, nullptr},
    {"callback", py_callback, METH_O, nullptr},
    {"apply", fast(py_apply), METH_FASTCALL, nullptr},
    {"apply_detached", fast(py_apply_detached), METH_FASTCALL, nullptr},
    {"root", py_root, METH_O, nullptr},
    {"work", py_work, METH_O, nullptr},
    {"sleep_ms", py_sleep_ms, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

int module_exec(PyObject *module) {
    auto *state = static_cast<ModuleState *>(PyModule_GetState(module));
    state->point = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &point_spec, nullptr));
    if (!state->point || PyModule_AddObjectRef(module, "Point", reinterpret_cast<PyObject *>(state->point)) < 0) {
        return -1;
    }
    PyObject *counter = PyType_FromModuleAndSpec(module, &counter_spec, nullptr);
    const int failed = counter ? PyModule_AddObjectRef(module, "Counter", counter) : -1;
    Py_XDECREF(counter);
    return failed;
}

int module_traverse(PyObject *module, visitproc visit, void *arg) {
    auto *state = static_cast<ModuleState *>(PyModule_GetState(module));
    Py_VISIT(state->point);
    return 0;
}

int module_clear(PyObject *module) {
    auto *state = static_cast<ModuleState *>(PyModule_GetState(module));
    Py_CLEAR(state->point);
    return 0;
}

void module_free(void *module) { module_clear(static_cast<PyObject *>(module)); }

// [slots]
#ifdef Py_TARGET_ABI3T
PyABIInfo_VAR(abi_info);

PySlot slots[] = {
    PySlot_STATIC_DATA(Py_mod_abi, &abi_info),
    PySlot_STATIC_DATA(Py_mod_name, const_cast<char *>("boundary_c_api_limited")),
    PySlot_SIZE(Py_mod_state_size, sizeof(ModuleState)),
    PySlot_STATIC_DATA(Py_mod_methods, methods),
    PySlot_FUNC(Py_mod_state_traverse, module_traverse),
    PySlot_FUNC(Py_mod_state_clear, module_clear),
    PySlot_FUNC(Py_mod_state_free, module_free),
    PySlot_FUNC(Py_mod_exec, module_exec),
    PySlot_DATA(Py_mod_gil, Py_MOD_GIL_NOT_USED),
    PySlot_DATA(Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED),
    PySlot_END,
};
#else
PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void *>(module_exec)},
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "boundary_c_api_limited", nullptr, sizeof(ModuleState), methods, slots,
    module_traverse, module_clear, module_free,
};
#endif

} // namespace

#ifdef Py_TARGET_ABI3T
PyMODEXPORT_FUNC PyModExport_boundary_c_api_limited(void) { return slots; }
#else
PyMODINIT_FUNC PyInit_boundary_c_api_limited(void) { return PyModuleDef_Init(&definition); }
#endif
// [/slots]
