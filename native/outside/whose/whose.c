/* A thread that C made attaches: to which interpreter? */
#include <Python.h>
#include <pthread.h>

/* What the thread is to do, and the interpreter that it found; -1: none. */
typedef struct {
    PyInterpreterState *caller;
    int64_t found;
} Asked;

/* [attach] */
/* The way of most code: nobody says which interpreter is meant. */
static void *by_gilstate(void *data) {
    PyGILState_STATE state = PyGILState_Ensure();
    ((Asked *)data)->found = PyInterpreterState_GetID(PyInterpreterState_Get());
    PyGILState_Release(state);
    return NULL;
}

/* The interpreter of the caller, handed over. */
static void *by_interpreter(void *data) {
    Asked *asked = data;
    PyThreadState *state = PyThreadState_New(asked->caller);
    if (!state) {
        return NULL; /* No memory; `found` stays -1. */
    }
    PyEval_RestoreThread(state);
    asked->found = PyInterpreterState_GetID(PyInterpreterState_Get());
    PyThreadState_Clear(state);
    PyThreadState_DeleteCurrent();
    return NULL;
}
/* [/attach] */

static PyObject *ask(void *(*way)(void *)) {
    Asked asked = {PyInterpreterState_Get(), -1};
    int error;
    Py_BEGIN_ALLOW_THREADS;
    pthread_t thread;
    error = pthread_create(&thread, NULL, way, &asked);
    if (!error) {
        pthread_join(thread, NULL);
    }
    Py_END_ALLOW_THREADS;
    if (error) {
        return PyErr_Format(PyExc_OSError, "no thread was to be had: error %d", error);
    }
    return PyLong_FromLongLong(asked.found);
}

static PyObject *ensure(PyObject *module, PyObject *nothing) { return ask(by_gilstate); }

static PyObject *handed_over(PyObject *module, PyObject *nothing) { return ask(by_interpreter); }

static PyObject *mine(PyObject *module, PyObject *nothing) {
    return PyLong_FromLongLong(PyInterpreterState_GetID(PyInterpreterState_Get()));
}

static PyMethodDef methods[] = {
    {"mine", mine, METH_NOARGS, "The number of the calling interpreter."},
    {"ensure", ensure, METH_NOARGS, "That of a thread of C, attached by PyGILState_Ensure."},
    {"handed_over", handed_over, METH_NOARGS, "That of one whose state is made for the calling interpreter."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "outside_whose",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_outside_whose(void) { return PyModuleDef_Init(&definition); }
