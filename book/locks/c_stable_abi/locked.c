// With the GIL build.sh defines Py_LIMITED_API; a free-threaded build has no such form before abi3t in 3.15.
#include <Python.h>

#include "../inside.h"

// [lock]
static PyThread_type_lock lock;  // PyThread_allocate_lock(), once, before the first call

static PyObject *report(PyObject *module, PyObject *write) {
    Py_BEGIN_ALLOW_THREADS
    PyThread_acquire_lock(lock, WAIT_LOCK);
    Py_END_ALLOW_THREADS
    enter();
    PyObject *result = PyObject_CallNoArgs(write);
    leave();
    PyThread_release_lock(lock);
    return result;
}
// [/lock]

static PyObject *most(PyObject *module, PyObject *nothing) { return PyLong_FromLong(atomic_load(&most_inside)); }

static int fill(PyObject *module) {
    lock = lock ? lock : PyThread_allocate_lock();
    return lock ? 0 : -1;
}

static PyMethodDef methods[] = {{"report", report, METH_O, NULL}, {"most_inside", most, METH_NOARGS, NULL}, {0}};
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, fill},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "locked", .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit_locked(void) { return PyModuleDef_Init(&definition); }
