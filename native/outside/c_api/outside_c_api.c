/* The way in that the C API has: PyGILState_Ensure and Release. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "outside.h"

/* [enter] */
static void enter(void *callback) {
    PyGILState_STATE state = PyGILState_Ensure();
    if (callback != Py_None) { /* None: in and out again, and nothing else */
        PyObject *result = PyObject_CallNoArgs(callback);
        if (!result) {
            PyErr_WriteUnraisable(callback);
        }
        Py_XDECREF(result);
    }
    PyGILState_Release(state);
}
/* [/enter] */

/* [keep] */
static void keep(run_type run, void *what) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_BEGIN_ALLOW_THREADS
    run(what);
    Py_END_ALLOW_THREADS
    PyGILState_Release(state);
}
/* [/keep] */

/* call_from_thread(callback, threads, calls, kept) -> ns of each call */
static PyObject *call_from_thread(PyObject *module, PyObject *args) {
    PyObject *callback;
    int threads, kept, error;
    long calls;
    if (!PyArg_ParseTuple(args, "Oilp", &callback, &threads, &calls, &kept)) {
        return NULL;
    }
    int64_t *ns = PyMem_Calloc((size_t)threads * (size_t)calls, sizeof *ns);
    if (!ns) {
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    error = call_from_threads(enter, callback, threads, calls, ns, kept ? keep : NULL);
    Py_END_ALLOW_THREADS
    PyObject *list = NULL;
    if (error) {
        errno = error;
        PyErr_SetFromErrno(PyExc_OSError);
    } else {
        list = PyList_New(threads * calls);
    }
    for (Py_ssize_t i = 0; list && i < threads * calls; i++) {
        PyObject *item = PyLong_FromLongLong(ns[i]);
        if (!item) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, item);
    }
    PyMem_Free(ns);
    return list;
}

/* make_states(n): so many thread states more, which nobody uses. They stay until the interpreter ends. */
static PyObject *make_states(PyObject *module, PyObject *number) {
    for (long left = PyLong_AsLong(number); left > 0; left--) {
        if (!PyThreadState_New(PyInterpreterState_Get())) {
            return PyErr_NoMemory();
        }
    }
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"call_from_thread", call_from_thread, METH_VARARGS, NULL},
    {"make_states", make_states, METH_O, NULL},
    {NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "outside_c_api",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_outside_c_api(void) { return PyModuleDef_Init(&definition); }
