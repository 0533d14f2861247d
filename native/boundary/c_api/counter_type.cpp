// The C++ class as a Python type. The C++ object lies inside the Python object.
#include "counter_type.h"

#include <cstdint>
#include <new>
#include <stdexcept>

#include "counter.hpp"

namespace {

// [counter]
struct CounterObject {
    PyObject_HEAD
    Counter counter;
};

PyObject *make(PyObject *type, PyObject *const *args, Py_ssize_t number, bool keywords) {
    if (number != 1 || keywords) {
        PyErr_SetString(PyExc_TypeError, "Counter takes exactly one positional argument");
        return nullptr;
    }
    const std::int64_t start = PyLong_AsLongLong(args[0]);
    if (start == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    auto *self = PyObject_New(CounterObject, reinterpret_cast<PyTypeObject *>(type));
    if (self) {
        new (&self->counter) Counter(start);
    }
    return reinterpret_cast<PyObject *>(self);
}

// Called for Counter(start), without a tuple of arguments.
PyObject *counter_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    return make(type, args, PyVectorcall_NARGS(nargsf), kwnames && PyTuple_GET_SIZE(kwnames));
}

// Everything else that makes one, type.__call__(Counter, start) for example, comes here.
PyObject *counter_new_object(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    return make(reinterpret_cast<PyObject *>(type), &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args),
                kwargs && PyDict_GET_SIZE(kwargs));
}

void counter_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    reinterpret_cast<CounterObject *>(self)->counter.~Counter();
    PyObject_Free(self);
    Py_DECREF(type);
}

// One object may be used by many threads: the critical section of the object is its lock. With the GIL it is nothing.
PyObject *counter_add(PyObject *self, PyObject *number) {
    const std::int64_t n = PyLong_AsLongLong(number);
    if (n == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    std::int64_t value;
    Py_BEGIN_CRITICAL_SECTION(self);
    value = reinterpret_cast<CounterObject *>(self)->counter.add(n);
    Py_END_CRITICAL_SECTION();
    return PyLong_FromLongLong(value);
}
// [/counter]

// The same without it: loses additions on a free-threaded build.
PyObject *counter_add_unlocked(PyObject *self, PyObject *number) {
    const std::int64_t n = PyLong_AsLongLong(number);
    if (n == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    return PyLong_FromLongLong(reinterpret_cast<CounterObject *>(self)->counter.add(n));
}

PyObject *counter_value(PyObject *self, PyObject *) {
    std::int64_t value;
    Py_BEGIN_CRITICAL_SECTION(self);
    value = reinterpret_cast<CounterObject *>(self)->counter.value();
    Py_END_CRITICAL_SECTION();
    return PyLong_FromLongLong(value);
}

// [catch]
PyObject *counter_fail(PyObject *self, PyObject *number) {
    const int depth = PyLong_AsInt(number);
    if (depth == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    try {
        return PyLong_FromLongLong(reinterpret_cast<CounterObject *>(self)->counter.fail(depth));
    } catch (const std::domain_error &error) {
        PyErr_SetString(PyExc_ValueError, error.what());
        return nullptr;
    }
}
// [/catch]

PyMethodDef methods[] = {
    {"add", counter_add, METH_O, nullptr},
    {"add_unlocked", counter_add_unlocked, METH_O, nullptr},
    {"value", counter_value, METH_NOARGS, nullptr},
    {"fail", counter_fail, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(counter_new_object)},
#if PY_VERSION_HEX >= 0x030E0000
    {Py_tp_vectorcall, reinterpret_cast<void *>(counter_vectorcall)},
#endif
    {Py_tp_dealloc, reinterpret_cast<void *>(counter_dealloc)},
    {Py_tp_methods, methods},
    {0, nullptr},
};

PyType_Spec spec = {
    "boundary_c_api.Counter", sizeof(CounterObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots,
};

} // namespace

int counter_type_add(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, nullptr);
    if (!type) {
        return -1;
    }
#if PY_VERSION_HEX < 0x030E0000
    // Before 3.14 there is no slot for it.
    reinterpret_cast<PyTypeObject *>(type)->tp_vectorcall = counter_vectorcall;
#endif
    const int failed = PyModule_AddObjectRef(module, "Counter", type);
    Py_DECREF(type);
    return failed;
}
