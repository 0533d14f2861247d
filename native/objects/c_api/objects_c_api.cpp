// The objects through Python's C API, by hand. What only a library can do in a few lines is not here: see tools.toml.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>

#include "objects.hpp"

namespace {

struct State {
    PyObject *colors[3];
};

State *state_of(PyObject *module) { return static_cast<State *>(PyModule_GetState(module)); }

// -1 with an exception set if it is no number.
double as_double(PyObject *number) { return PyFloat_AsDouble(number); }

bool failed(double value) { return value == -1 && PyErr_Occurred(); }

// Nothing of C++ may pass through a frame of C. An exception of Python that is set stays.
template <typename Use> PyObject *guarded(Use use) {
    try {
        return use();
    } catch (const std::exception &error) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_RuntimeError, error.what());
        }
        return nullptr;
    }
}

// [keywords]
PyObject *py_scaled(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const char *const names[] = {"x", "by", "plus"};
    PyObject *given[3] = {};
    const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    if (nargs > 3) {
        PyErr_SetString(PyExc_TypeError, "scaled() takes at most 3 arguments");
        return nullptr;
    }
    std::copy(args, args + nargs, given);
    for (Py_ssize_t i = 0; i < keywords; i++) {
        int place = 0;
        while (place < 3 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), names[place])) {
            place++;
        }
        if (place == 3 || given[place]) {
            PyErr_Format(PyExc_TypeError, "scaled() got an unexpected argument %R", PyTuple_GET_ITEM(kwnames, i));
            return nullptr;
        }
        given[place] = args[nargs + i];
    }
    if (!given[0]) {
        PyErr_SetString(PyExc_TypeError, "scaled() needs x");
        return nullptr;
    }
    double numbers[3] = {0, 2, 0};
    for (int i = 0; i < 3; i++) {
        if (given[i] && failed(numbers[i] = as_double(given[i]))) {
            return nullptr;
        }
    }
    return PyFloat_FromDouble(scaled(numbers[0], numbers[1], numbers[2]));
}
// [/keywords]

// [overloads]
PyObject *py_kind(PyObject *, PyObject *number) {
    if (PyLong_Check(number)) {
        const long long value = PyLong_AsLongLong(number);
        return value == -1 && PyErr_Occurred() ? nullptr : PyUnicode_FromString(kind(std::int64_t(value)));
    }
    const double value = as_double(number);
    return failed(value) ? nullptr : PyUnicode_FromString(kind(value));
}
// [/overloads]

// [enum]
PyObject *py_next_color(PyObject *module, PyObject *color) {
    for (int i = 0; i < 3; i++) {
        if (state_of(module)->colors[i] == color) {
            return Py_NewRef(state_of(module)->colors[int(next_color(Color(i)))]);
        }
    }
    PyErr_SetString(PyExc_TypeError, "a Color is needed");
    return nullptr;
}

// Color = enum.Enum("Color", ["red", "green", "blue"]), numbered from 0.
int add_colors(PyObject *module) {
    static const char *const names[] = {"red", "green", "blue"};
    PyObject *base = PyImport_ImportModuleAttrString("enum", "Enum");
    PyObject *members = Py_BuildValue("{sisisi}", names[0], 0, names[1], 1, names[2], 2);
    PyObject *type = base && members ? PyObject_CallFunction(base, "sO", "Color", members) : nullptr;
    int done = type ? PyModule_AddObjectRef(module, "Color", type) : -1;
    for (int i = 0; i < 3 && !done; i++) {
        state_of(module)->colors[i] = PyObject_GetAttrString(type, names[i]);
        done = state_of(module)->colors[i] ? 0 : -1;
    }
    Py_XDECREF(base);
    Py_XDECREF(members);
    Py_XDECREF(type);
    return done;
}
// [/enum]

// [vector]
// The numbers of a list or tuple. A tuple is made of a list: that may change while its items are converted.
bool numbers_of(PyObject *values, std::vector<double> &numbers) {
    PyObject *items = PyList_Check(values) || PyTuple_Check(values) ? PySequence_Tuple(values) : nullptr;
    if (!items) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a list or tuple of numbers is needed");
        }
        return false;
    }
    bool is_good = true;
    numbers.reserve(PyTuple_GET_SIZE(items));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items) && is_good; i++) {
        numbers.push_back(as_double(PyTuple_GET_ITEM(items, i)));
        is_good = !failed(numbers.back());
    }
    Py_DECREF(items);
    return is_good;
}

PyObject *py_total(PyObject *, PyObject *values) {
    return guarded([&]() -> PyObject * {
        std::vector<double> numbers;
        return numbers_of(values, numbers) ? PyFloat_FromDouble(total(numbers)) : nullptr;
    });
}

PyObject *py_grow_copy(PyObject *, PyObject *values) {
    return guarded([&]() -> PyObject * {
        std::vector<double> numbers;
        if (!numbers_of(values, numbers)) {
            return nullptr;
        }
        grow(numbers);
        Py_RETURN_NONE;
    });
}

// A number's own conversion may change the dict: it is done in a copy.
PyObject *py_total_by_name(PyObject *, PyObject *values) {
    PyObject *items = PyDict_Check(values) ? PyDict_Items(values) : nullptr;
    if (!items) {
        PyErr_SetString(PyExc_TypeError, "a dict is needed");
        return nullptr;
    }
    PyObject *result = guarded([&]() -> PyObject * {
        std::map<std::string, double> numbers;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); i++) {
            PyObject *item = PyList_GET_ITEM(items, i);
            const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(item, 0), nullptr);
            const double value = name ? as_double(PyTuple_GET_ITEM(item, 1)) : -1;
            if (failed(value)) {
                return nullptr;
            }
            numbers.emplace(name, value);
        }
        return PyFloat_FromDouble(total_by_name(numbers));
    });
    Py_DECREF(items);
    return result;
}
// [/vector]

// [shape]
struct PyShape : Shape {
    PyObject *self; // the object that owns this one
    PyShape(double side, PyObject *self) : Shape(side), self(self) {}
    double area() const override {
        PyObject *answer = PyObject_CallMethod(self, "area", nullptr);
        const double value = answer ? as_double(answer) : -1;
        Py_XDECREF(answer);
        if (failed(value)) {
            throw std::runtime_error("area() failed in Python");
        }
        return value;
    }
};

struct ShapeObject {
    PyObject_HEAD
    Shape *shape;
};

Shape *&shape_of(PyObject *self) { return reinterpret_cast<ShapeObject *>(self)->shape; }

void shape_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    delete shape_of(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *shape_new(PyTypeObject *type, PyObject *args, PyObject *) {
    const double side = PyTuple_GET_SIZE(args) == 1 ? as_double(PyTuple_GET_ITEM(args, 0)) : -1;
    if (failed(side) || PyTuple_GET_SIZE(args) != 1) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "Shape takes exactly one positional argument");
        }
        return nullptr;
    }
    PyObject *self = type->tp_alloc(type, 0);
    if (self) {
        // A class that was derived in Python has a deallocator of its own.
        shape_of(self) = type->tp_dealloc == shape_dealloc ? new (std::nothrow) Shape(side)
                                                           : new (std::nothrow) PyShape(side, self);
        if (!shape_of(self)) {
            Py_CLEAR(self);
            return PyErr_NoMemory();
        }
    }
    return self;
}

PyObject *shape_area(PyObject *self, PyObject *) { return PyFloat_FromDouble(shape_of(self)->Shape::area()); }

PyObject *shape_side(PyObject *self, void *) { return PyFloat_FromDouble(shape_of(self)->side); }

int shape_set_side(PyObject *self, PyObject *value, void *) {
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "side cannot be deleted");
        return -1;
    }
    const double side = as_double(value);
    if (failed(side)) {
        return -1;
    }
    shape_of(self)->side = side;
    return 0;
}

PyMethodDef shape_methods[] = {{"area", shape_area, METH_NOARGS, nullptr}, {}};
PyGetSetDef shape_fields[] = {{"side", shape_side, shape_set_side, nullptr, nullptr}, {}};
PyType_Slot shape_slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(shape_new)},
    {Py_tp_dealloc, reinterpret_cast<void *>(shape_dealloc)},
    {Py_tp_methods, shape_methods},
    {Py_tp_getset, shape_fields},
    {Py_tp_token, Py_TP_USE_SPEC},
    {0, nullptr},
};
PyType_Spec shape_spec = {"objects_c_api.Shape", sizeof(ShapeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, shape_slots};

PyObject *py_area_of(PyObject *, PyObject *object) {
    if (PyType_GetBaseByToken(Py_TYPE(object), &shape_spec, nullptr) != 1) {
        PyErr_SetString(PyExc_TypeError, "a Shape is needed");
        return nullptr;
    }
    return guarded([&] { return PyFloat_FromDouble(area_of(*shape_of(object))); });
}
// [/shape]

// [cycle]
struct BellObject {
    PyObject_HEAD
    PyObject *listener;
};

PyObject *&listener_of(PyObject *self) { return reinterpret_cast<BellObject *>(self)->listener; }

PyObject *bell_ring(PyObject *self, PyObject *x) {
    PyObject *listener;
    Py_BEGIN_CRITICAL_SECTION(self); // Another thread may store another one.
    listener = Py_NewRef(listener_of(self) ? listener_of(self) : Py_None);
    Py_END_CRITICAL_SECTION();
    PyObject *answer = Py_IsNone(listener) ? Py_NewRef(x) : PyObject_CallOneArg(listener, x);
    Py_DECREF(listener);
    return answer;
}

int bell_clear(PyObject *self) {
    Py_CLEAR(listener_of(self));
    return 0;
}

int bell_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(listener_of(self));
    return 0;
}

void bell_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (PyType_IS_GC(type)) {
        PyObject_GC_UnTrack(self);
    }
    bell_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef bell_methods[] = {{"ring", bell_ring, METH_O, nullptr}, {}};
PyMemberDef bell_fields[] = {{"listener", Py_T_OBJECT_EX, offsetof(BellObject, listener), 0, nullptr}, {}};
PyType_Slot bell_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void *>(bell_dealloc)},
    {Py_tp_methods, bell_methods},
    {Py_tp_members, bell_fields},
    {0, nullptr},
};
PyType_Slot traced_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void *>(bell_dealloc)},
    {Py_tp_methods, bell_methods},
    {Py_tp_members, bell_fields},
    {Py_tp_traverse, reinterpret_cast<void *>(bell_traverse)},
    {Py_tp_clear, reinterpret_cast<void *>(bell_clear)},
    {0, nullptr},
};
PyType_Spec bell_spec = {"objects_c_api.Bell", sizeof(BellObject), 0, Py_TPFLAGS_DEFAULT, bell_slots};
PyType_Spec traced_spec = {"objects_c_api.TracedBell", sizeof(BellObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, traced_slots};
// [/cycle]

int add_type(PyObject *module, PyType_Spec *spec) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, nullptr);
    const int done = type ? PyModule_AddType(module, reinterpret_cast<PyTypeObject *>(type)) : -1;
    Py_XDECREF(type);
    return done;
}

int module_exec(PyObject *module) {
    return add_colors(module) || add_type(module, &shape_spec) || add_type(module, &bell_spec) || add_type(module, &traced_spec)
               ? -1
               : 0;
}

int module_traverse(PyObject *module, visitproc visit, void *arg) {
    for (PyObject *color : state_of(module)->colors) {
        Py_VISIT(color);
    }
    return 0;
}

int module_clear(PyObject *module) {
    for (PyObject *&color : state_of(module)->colors) {
        Py_CLEAR(color);
    }
    return 0;
}

void module_free(void *module) { module_clear(static_cast<PyObject *>(module)); }

PyMethodDef methods[] = {
    {"scaled", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(py_scaled)), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"kind", py_kind, METH_O, nullptr},
    {"next_color", py_next_color, METH_O, nullptr},
    {"total", py_total, METH_O, nullptr},
    {"grow_copy", py_grow_copy, METH_O, nullptr},
    {"total_by_name", py_total_by_name, METH_O, nullptr},
    {"area_of", py_area_of, METH_O, nullptr},
    {},
};

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void *>(module_exec)},
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "objects_c_api", nullptr, sizeof(State), methods, slots, module_traverse, module_clear, module_free,
};

} // namespace

PyMODINIT_FUNC PyInit_objects_c_api(void) { return PyModuleDef_Init(&definition); }
