// The C++ class as a Python type. The C++ object lies inside the Python object.
#include "counter_type.h"

#include <cstdint>
#include <new>

#include "counter.hpp"

namespace {

// [counter]
struct CounterObject {
    PyObject_HEAD
    Counter counter;
};

// Called for Counter(start), without a tuple of arguments.
PyObject *counter_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    if (PyVectorcall_NARGS(nargsf) != 1 || (kwnames && PyTuple_GET_SIZE(kwnames))) {
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

void counter_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    reinterpret_cast<CounterObject *>(self)->counter.~Counter();
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *counter_add(PyObject *self, PyObject *number) {
    const std::int64_t n = PyLong_AsLongLong(number);
    if (n == -1 && PyErr_Occurred()) {
        return nullptr;
    }
    return PyLong_FromLongLong(reinterpret_cast<CounterObject *>(self)->counter.add(n));
}
// [/counter]

PyObject *counter_value(PyObject *self, PyObject *) {
    return PyLong_FromLongLong(reinterpret_cast<CounterObject *>(self)->counter.value());
}

PyMethodDef methods[] = {
    {"add", counter_add, METH_O, nullptr},
    {"value", counter_value, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void *>(counter_dealloc)},
    {Py_tp_methods, methods},
    {0, nullptr},
};

PyType_Spec spec = {
    "boundary_c_api.Counter", sizeof(CounterObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};

} // namespace

int counter_type_add(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, nullptr);
    if (!type) {
        return -1;
    }
    // A slot for it exists only from 3.14 on.
    reinterpret_cast<PyTypeObject *>(type)->tp_vectorcall = counter_vectorcall;
    const int failed = PyModule_AddObjectRef(module, "Counter", type);
    Py_DECREF(type);
    return failed;
}
