/* How the C API attaches: PyGILState_Ensure and Release. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <sched.h>
#include <stdatomic.h>

#include "outside.h"

/* [enter] */
static void enter(void *callback) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallNoArgs(callback);
    if (!result) {
        PyErr_WriteUnraisable(callback);
    }
    Py_XDECREF(result);
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

/* Attaches and detaches so many times, and does nothing else. */
static void pass(void *number) {
    for (long left = (long)number; left > 0; left--) {
        PyGILState_Release(PyGILState_Ensure());
    }
}

/* call_from_thread(callback, threads, calls, kept) -> ns of each call. callback: a function, or the number of a pass. */
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
    long passes = PyLong_Check(callback) ? PyLong_AsLong(callback) : 0;
    Py_BEGIN_ALLOW_THREADS
    error = passes ? call_from_threads(pass, (void *)passes, threads, calls, ns, kept ? keep : NULL)
                   : call_from_threads(enter, callback, threads, calls, ns, kept ? keep : NULL);
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

typedef struct {
    int64_t end;
    long at_once; /* passes between two looks at the clock */
    atomic_long passes;
    atomic_int started;
} window;

/* Pins a thread to the core of its number, of those that it may use: the system may leave two on one core for longer than a window. */
static void pin(int number) {
#ifdef __linux__
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores)) {
        return;
    }
    number %= CPU_COUNT(&cores);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &cores) && number-- != 0) {
            CPU_CLR(core, &cores);
        }
    }
    sched_setaffinity(0, sizeof cores, &cores);
#endif
}

static void pass_until(void *what) {
    window *all = what;
    pin(atomic_fetch_add(&all->started, 1));
    do {
        pass((void *)all->at_once);
        atomic_fetch_add(&all->passes, all->at_once);
    } while (now_ns() < all->end);
}

static void stay_attached(run_type run, void *what) {
    PyGILState_STATE state = PyGILState_Ensure();
    run(what);
    PyGILState_Release(state);
}

/* attach_for(ms, threads, how) -> ns of a pass: the time by the passes of all threads. how: 0, a state is made for each pass; 1, it is kept;
   2, the thread stays attached, and each pass is nested. */
static PyObject *attach_for(PyObject *module, PyObject *args) {
    int threads, how, error;
    long ms;
    if (!PyArg_ParseTuple(args, "lii", &ms, &threads, &how)) {
        return NULL;
    }
    int64_t *ns = PyMem_Calloc((size_t)threads, sizeof *ns);
    if (!ns) {
        return PyErr_NoMemory();
    }
    keep_type around = how == 2 ? stay_attached : how ? keep : NULL;
    int64_t began = now_ns();
    window all = {.end = began + ms * 1000000, .at_once = how ? 100 : 1};
    Py_BEGIN_ALLOW_THREADS
    error = call_from_threads(pass_until, &all, threads, 1, ns, around);
    Py_END_ALLOW_THREADS
    double took = (double)(now_ns() - began);
    PyMem_Free(ns);
    if (error) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return PyFloat_FromDouble(took / (double)all.passes);
}

#if PY_VERSION_HEX >= 0x030F0000
typedef struct {
    PyInterpreterView *of;
    long passes;
} view;

/* [view] */
static void pass_by_view(void *what) {
    view *seen = what;
    for (long left = seen->passes; left > 0; left--) {
        PyThreadStateToken *token = PyThreadState_EnsureFromView(seen->of);
        if (token) { /* else Python is finalizing */
            PyThreadState_Release(token);
        }
    }
}
/* [/view] */

/* by_view(passes) -> ns of a pass, in a thread of C. */
static PyObject *by_view(PyObject *module, PyObject *passes) {
    int64_t ns;
    int error;
    view seen = {.passes = PyLong_AsLong(passes)};
    if ((seen.passes == -1 && PyErr_Occurred()) || !(seen.of = PyInterpreterView_FromCurrent())) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    error = call_from_threads(pass_by_view, &seen, 1, 1, &ns, NULL);
    Py_END_ALLOW_THREADS
    PyInterpreterView_Close(seen.of);
    if (error) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return PyFloat_FromDouble((double)ns / (double)seen.passes);
}
#endif

/* end_states(n, others) -> ns for PyThreadState_Delete, the mean of n <= 100 states. Before them in the list are `others`, which stay. */
static PyObject *end_states(PyObject *module, PyObject *args) {
    PyThreadState *ours[100];
    int n, others;
    if (!PyArg_ParseTuple(args, "ii", &n, &others)) {
        return NULL;
    }
    for (int i = 0; i < n + others; i++) { /* each new one goes to the head of the list */
        PyThreadState *state = PyThreadState_New(PyInterpreterState_Get());
        if (!state) {
            return PyErr_NoMemory();
        }
        if (i < n) {
            ours[i] = state;
            PyThreadState_Clear(state);
        }
    }
    int64_t began = now_ns();
    for (int i = n; i-- > 0;) {
        PyThreadState_Delete(ours[i]);
    }
    return PyFloat_FromDouble((double)(now_ns() - began) / n);
}

static PyMethodDef methods[] = {
    {"call_from_thread", call_from_thread, METH_VARARGS, NULL},
    {"attach_for", attach_for, METH_VARARGS, NULL},
    {"end_states", end_states, METH_VARARGS, NULL},
#if PY_VERSION_HEX >= 0x030F0000
    {"by_view", by_view, METH_O, NULL},
#endif
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
