# cython: freethreading_compatible=True, c_string_type=str, c_string_encoding=utf8
"""The objects through Cython."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t
from libcpp.map cimport map
from libcpp.memory cimport make_shared, shared_ptr, unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "objects.hpp":
    cpdef enum class Color:
        red
        green
        blue

    cdef cppclass CppShape "Shape":
        CppShape(double side)
        double side
        shared_ptr[CppShape] inner

    double c_area_of "area_of"(const CppShape &shape) except +
    unique_ptr[CppShape] c_make_shape "make_shape"(double side) except +
    double c_scaled "scaled"(double x, double by, double plus)
    const char *c_kind "kind"(int64_t x)
    const char *c_kind "kind"(double x)
    Color c_next_color "next_color"(Color color)
    double c_total "total"(const vector[double] &values)
    double c_total_by_name "total_by_name"(const map[string, double] &values)
    void c_grow "grow"(vector[double] &values) except +


# [virtual]
# Cython has no trampolines: this one is written by hand, in C++. Whoever throws while a Python exception is set passes it on.
cdef extern from *:
    """
    struct PyShape : Shape {
        PyObject *self; // the object that owns this one; null when it is gone
        PyShape(double side, PyObject *self) : Shape(side), self(self) {}
        double area() const override {
            if (!self) {
                return Shape::area();
            }
            PyObject *answer = PyObject_CallMethod(self, "area", nullptr);
            const double value = answer ? PyFloat_AsDouble(answer) : -1;
            Py_XDECREF(answer);
            if (PyErr_Occurred()) {
                throw std::runtime_error("area() failed in Python");
            }
            return value;
        }
    };
    static double own_area(const Shape &shape) { return shape.Shape::area(); }
    """
    cdef cppclass PyShape(CppShape):
        PyShape(double side, PyObject *self)
        PyObject *self
    double own_area(const CppShape &shape)


# [/virtual]


# [shape]
cdef class Shape:
    cdef shared_ptr[CppShape] shape
    cdef PyShape *override

    def __cinit__(self, double side):
        if type(self) is Shape:
            self.shape = make_shared[CppShape](side)
        else:
            self.override = new PyShape(side, <PyObject *>self)
            self.shape.reset(self.override)

    def __dealloc__(self):
        # C++ may keep the shape.
        if self.override != NULL:
            self.override.self = NULL

    def area(self):
        return own_area(self.shape.get()[0])

    @property
    def side(self):
        return self.shape.get().side

    @side.setter
    def side(self, double side):
        self.shape.get().side = side

    @property
    def inner(self):
        return wrapped(self.shape.get().inner)

    @inner.setter
    def inner(self, Shape inner):
        if inner is None:
            self.shape.get().inner.reset()
        else:
            self.shape.get().inner = inner.shape


cdef object wrapped(shared_ptr[CppShape] shape):
    """Another Python object for it: nobody keeps a list of those that there are."""
    if not shape:
        return None
    cdef Shape found = Shape.__new__(Shape, 0)
    found.shape = shape
    return found


def area_of(Shape shape not None):
    return c_area_of(shape.shape.get()[0])


def make_shape(double side):
    cdef unique_ptr[CppShape] made = c_make_shape(side)
    return wrapped(shared_ptr[CppShape](made.release()))


# [/shape]


def scaled(double x, double by=2.0, double plus=0.0):
    return c_scaled(x, by, plus)


# [overloads]
ctypedef fused Number:
    int64_t
    double


def kind(Number x):
    return c_kind(x)


# [/overloads]


def next_color(Color color):
    return c_next_color(color)


def total(vector[double] values):
    return c_total(values)


def grow_copy(vector[double] values):
    c_grow(values)


def total_by_name(map[string, double] values):
    return c_total_by_name(values)


# [opaque]
cdef class Doubles:
    cdef vector[double] values

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return self.values.size()

    def __getitem__(self, size_t index):
        if index >= self.values.size():
            raise IndexError(index)
        return self.values[index]

    def append(self, double value):
        self.values.push_back(value)


def total_of(Doubles values not None):
    return c_total(values.values)


def grow(Doubles values not None):
    c_grow(values.values)


# [/opaque]


# [cycle]
cdef class Bell:
    cdef public object listener

    def ring(self, double x):
        return x if self.listener is None else self.listener(x)


# The collector knows of every attribute that is an object.
TracedBell = Bell
# [/cycle]
