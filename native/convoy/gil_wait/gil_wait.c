/* An echo server's loop that notes when it asks for the GIL, and when it has it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <sys/socket.h>
#include <time.h>

/* [echo] */
static long long
now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Answer every byte until the client goes; returns for each byte how many ns it took to get the GIL again. */
static PyObject *
echo(PyObject *Py_UNUSED(module), PyObject *arg)
{
    int sock = PyLong_AsInt(arg);
    PyObject *waits = sock == -1 && PyErr_Occurred() ? NULL : PyList_New(0);
    while (waits != NULL) {
        char byte;
        PyThreadState *state = PyEval_SaveThread(); /* without the GIL from here */
        ssize_t received = recv(sock, &byte, 1, 0);
        long long asked = now_ns();
        PyEval_RestoreThread(state); /* with the GIL again */
        long long granted = now_ns();
        if (received <= 0 || send(sock, &byte, 1, 0) != 1) { /* one byte: this does not block */
            return waits;
        }
        PyObject *wait = PyLong_FromLongLong(granted - asked);
        if (wait == NULL || PyList_Append(waits, wait) != 0) {
            Py_CLEAR(waits);
        }
        Py_XDECREF(wait);
    }
    return NULL;
}
/* [/echo] */

static PyMethodDef methods[] = {
    {"echo", echo, METH_O, "echo(descriptor): answer every byte; returns ns from asking for the GIL to having it."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED}, /* without this line a t-build turns its GIL back on */
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "gil_wait", .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC
PyInit_gil_wait(void)
{
    return PyModuleDef_Init(&definition);
}
