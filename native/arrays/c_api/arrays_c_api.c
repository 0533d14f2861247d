/* Arrays in and out by the buffer protocol alone: no NumPy, and no tool. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "arrays.h"

/* [in] */
static int doubles_of(PyObject *object, Py_buffer *view)
{
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return -1;
    if (view->format != NULL && strcmp(view->format, "d") == 0)
        return 0;
    PyErr_Format(PyExc_TypeError, "doubles are needed, not %s",
                 view->format ? view->format : "bytes");
    PyBuffer_Release(view);
    return -1;
}
/* [/in] */

static PyObject *call_ends(PyObject *module, PyObject *object)
{
    Py_buffer view;
    if (doubles_of(object, &view) < 0)
        return NULL;
    double sum = ends(view.buf, (size_t)(view.len / view.itemsize));
    PyBuffer_Release(&view);
    return PyFloat_FromDouble(sum);
}

static PyObject *look(PyObject *module, PyObject *object)
{
    Py_buffer view;
    if (doubles_of(object, &view) < 0)
        return NULL;
    double sum = weigh(view.buf, (size_t)(view.len / view.itemsize));
    unsigned long long address = where(view.buf);
    PyBuffer_Release(&view);
    return Py_BuildValue("Kd", address, sum);
}

/* [out] */
typedef struct {
    PyObject_HEAD
    double *values;
    Py_ssize_t n;
} Doubles;

static int get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    Doubles *self = (Doubles *)object;
    Py_ssize_t bytes = self->n * (Py_ssize_t)sizeof(double);
    if (PyBuffer_FillInfo(view, object, self->values, bytes, 0, flags) < 0)
        return -1;
    view->itemsize = sizeof(double);
    view->format = flags & PyBUF_FORMAT ? "d" : NULL;
    view->shape = flags & PyBUF_ND ? &self->n : NULL;
    return 0;
}

static void dealloc(PyObject *object)
{
    give_back(((Doubles *)object)->values);
    PyObject_Free(object);
}
/* [/out] */

static PyBufferProcs buffer = {.bf_getbuffer = get_buffer};
static PyTypeObject type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "arrays_c_api.Doubles",
    .tp_basicsize = sizeof(Doubles),
    .tp_dealloc = dealloc,
    .tp_as_buffer = &buffer,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

static PyObject *call_make(PyObject *module, PyObject *count)
{
    size_t n = PyLong_AsSize_t(count);
    if (n == (size_t)-1 && PyErr_Occurred())
        return NULL;
    double *values = make(n);
    if (values == NULL)
        return PyErr_NoMemory();
    Doubles *self = PyObject_New(Doubles, &type);
    if (self == NULL) {
        give_back(values);
        return NULL;
    }
    self->values = values;
    self->n = (Py_ssize_t)n;
    return (PyObject *)self;
}

static PyObject *call_held(PyObject *module, PyObject *unused)
{
    return PyLong_FromLong(held());
}

static PyMethodDef methods[] = {
    {"ends", call_ends, METH_O, NULL},
    {"look", look, METH_O, NULL},
    {"make", call_make, METH_O, NULL},
    {"held", call_held, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int exec(PyObject *module)
{
    return PyType_Ready(&type);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, exec}, {Py_mod_gil, Py_MOD_GIL_NOT_USED}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "arrays_c_api",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_arrays_c_api(void)
{
    return PyModuleDef_Init(&definition);
}
