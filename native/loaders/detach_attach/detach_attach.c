/* Detach the thread state and attach it again, and nothing else: what CDLL does
 * around every call and PyDLL does not. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *
cycle(PyObject *Py_UNUSED(module), PyObject *arg)
{
    long loops = PyLong_AsLong(arg);
    if (loops == -1 && PyErr_Occurred()) {
        return NULL;
    }
    for (long i = 0; i < loops; i++) {
        /* [cycle] */
        PyThreadState *state = PyEval_SaveThread(); /* detach */
        PyEval_RestoreThread(state);                /* attach */
        /* [/cycle] */
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"cycle", cycle, METH_O, "cycle(loops): detach and attach the thread state `loops` times."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED}, /* without this line a t-build turns its GIL back on */
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "detach_attach", .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC
PyInit_detach_attach(void)
{
    return PyModuleDef_Init(&definition);
}
