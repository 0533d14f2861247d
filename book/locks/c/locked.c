#include <Python.h>

#include "../inside.h"

// [lock]
static PyMutex lock;

static PyObject *report(PyObject *module, PyObject *write) {
    PyMutex_Lock(&lock);  // detaches while it waits
    enter();
    PyObject *result = PyObject_CallNoArgs(write);
    leave();
    PyMutex_Unlock(&lock);
    return result;
}
// [/lock]

static PyObject *most(PyObject *module, PyObject *nothing) { return PyLong_FromLong(atomic_load(&most_inside)); }

static PyMethodDef methods[] = {{"report", report, METH_O, NULL}, {"most_inside", most, METH_NOARGS, NULL}, {0}};
static PyModuleDef_Slot slots[] = {{Py_mod_gil, Py_MOD_GIL_NOT_USED}, {0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "locked", .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit_locked(void) { return PyModuleDef_Init(&definition); }
