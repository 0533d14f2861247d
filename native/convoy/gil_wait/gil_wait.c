/* An echo server's loop that notes when it asks for the GIL, and when it has it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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
        if (received == 0) {
            return waits;
        }
        if (received < 0 || send(sock, &byte, 1, 0) != 1) { /* one byte: this does not block */
            Py_DECREF(waits);
            return PyErr_SetFromErrno(PyExc_OSError);
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

/* [forced] */
static atomic_int asking;
static long turns; /* of the thread that asks; whoever has the GIL may read it */

/* Ask for the GIL, have it for a moment, again: for ever. */
static PyObject *
ask(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    for (;;) {
        PyThreadState *state = PyEval_SaveThread();
        usleep(20);
        asking = 1;
        PyEval_RestoreThread(state);
        asking = 0;
        turns++;
    }
    Py_UNREACHABLE();
}

/* Was it demanded that this thread let go? The bit that the evaluation loop looks at. */
static int
demanded(PyThreadState *state)
{
    return __atomic_load_n(&state->eval_breaker, __ATOMIC_RELAXED) & 1;
}

/* let_go(times, on_demand): let go of the GIL while another thread waits for it, and ask for it at once, as the evaluation loop does
   on demand; returns after how many times the other thread had it first. */
static PyObject *
let_go(PyObject *Py_UNUSED(module), PyObject *args)
{
    int times, on_demand;
    if (!PyArg_ParseTuple(args, "ii", &times, &on_demand)) {
        return NULL;
    }
    long other_first = 0;
    PyThreadState *state = PyThreadState_Get();
    for (int done = 0; done < times;) {
        while (!asking) {
        }
        long long from = now_ns();
        while (on_demand ? !demanded(state) : now_ns() < from + 100000) { /* 100 µs: until it waits in fact */
        }
        if (!on_demand && demanded(state)) { /* too late: let it have the GIL, and do not count that */
            PyEval_RestoreThread(PyEval_SaveThread());
            continue;
        }
        long before = turns;
        PyEval_RestoreThread(PyEval_SaveThread());
        other_first += turns != before;
        done++;
    }
    return PyLong_FromLong(other_first);
}
/* [/forced] */

static PyMethodDef methods[] = {
    {"ask", ask, METH_NOARGS, "ask(): ask for the GIL, again and again."},
    {"let_go", let_go, METH_VARARGS, "let_go(times, on_demand): after how many releases another thread had the GIL first."},
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
