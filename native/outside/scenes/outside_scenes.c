/* Threads of C that hold a lock, attach to Python, or queue a call, each at a moment that is set by a flag and not by luck.
 * POSIX. What they do to the process shows in how it ends: every scene runs in a child. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "outside.h"

static void sleep_ms(long ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
}

static void wait_for(atomic_int *flag) {
    while (!*flag) {
        sleep_ms(1);
    }
}

/* Start a thread that nobody joins; false, with an exception set, if there is none. */
static int start(void *(*run)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument)) {
        PyErr_SetString(PyExc_RuntimeError, "no thread");
        return 0;
    }
    pthread_detach(thread);
    return 1;
}

/* ---- who waits for a lock, and how ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static PyMutex py_mutex;
static atomic_int held, main_waits;

static int is_py_mutex(const char *way) { return !strcmp(way, "PyMutex"); }

/* [holder] */
static void *hold_and_attach(void *way) {
    is_py_mutex(way) ? PyMutex_Lock(&py_mutex) : (void)pthread_mutex_lock(&lock);
    held = 1;
    wait_for(&main_waits);
    sleep_ms(30); /* until main waits for the lock, and somebody may have stopped the world */
    PyGILState_STATE state = PyGILState_Ensure();
    PyGILState_Release(state);
    is_py_mutex(way) ? PyMutex_Unlock(&py_mutex) : (void)pthread_mutex_unlock(&lock);
    return NULL;
}
/* [/holder] */

static PyObject *hold(PyObject *Py_UNUSED(module), PyObject *way) {
    static char copy[32];
    const char *text = PyUnicode_AsUTF8(way);
    if (!text || !start(hold_and_attach, strncpy(copy, text, sizeof copy - 1))) {
        return NULL;
    }
    wait_for(&held);
    Py_RETURN_NONE;
}

/* [take] */
static PyObject *take(PyObject *Py_UNUSED(module), PyObject *argument) {
    const char *way = PyUnicode_AsUTF8(argument);
    if (!way) {
        return NULL;
    }
    main_waits = 1;
    if (is_py_mutex(way)) {
        PyMutex_Lock(&py_mutex); /* detaches while it waits */
        PyMutex_Unlock(&py_mutex);
    } else if (!strcmp(way, "attached")) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    } else {
        Py_BEGIN_ALLOW_THREADS
        pthread_mutex_lock(&lock);
        Py_END_ALLOW_THREADS
        pthread_mutex_unlock(&lock);
    }
    Py_RETURN_NONE;
}
/* [/take] */

static PyObject *when_main_waits(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing)) {
    Py_BEGIN_ALLOW_THREADS
    wait_for(&main_waits);
    sleep_ms(10);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* ---- a thread that attaches while Python shuts down ---- */

static atomic_int caller_ready, go, stop, within, arrived, unwound, refused, done, holds;
static enum { NEW, KEPT, AGAIN } manner;
static pthread_key_t key;
static pthread_t caller;

static void note_end(void *Py_UNUSED(value)) { unwound = 1; }

/* [caller] */
static void *attach_when_told(void *Py_UNUSED(argument)) {
    if (pthread_setspecific(key, &key)) { /* its destructor runs if pthread_exit ends this thread */
        abort();
    }
    if (manner == KEPT) {
        PyGILState_Ensure();
        PyEval_SaveThread(); /* detached again; the state stays */
    }
    if (holds) {
        pthread_mutex_lock(&lock);
    }
    caller_ready = 1;
    do {
        if (manner != AGAIN) {
            wait_for(&go);
        }
        arrived = within = 1;
        PyGILState_STATE state = PyGILState_Ensure();
        within = 0;
        PyGILState_Release(state);
    } while (manner == AGAIN && !stop);
    done = 1;
    if (holds) {
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
/* [/caller] */

/* Python 3.15 has guards: PEP 788. */
#if PY_VERSION_HEX >= 0x030F0000
static PyInterpreterGuard *guard;
static PyInterpreterView *view;
static int closes;

/* [guarded] */
static void *attach_guarded(void *Py_UNUSED(argument)) {
    caller_ready = 1;
    if (view) {
        wait_for(&go);
    } else {
        sleep_ms(100); /* main has come to its end meanwhile, and waits for the guard */
    }
    arrived = within = 1;
    PyThreadStateToken *token = view ? PyThreadState_EnsureFromView(view) : PyThreadState_Ensure(guard);
    within = 0;
    if (token) {
        PyThreadState_Release(token);
        done = 1;
    } else {
        refused = 1; /* finalization has begun */
    }
    if (guard && closes) {
        PyInterpreterGuard_Close(guard);
    }
    return NULL;
}
/* [/guarded] */

/* start_guarded(how): a thread with a guard that it closes, or never closes; or with a view, once when told. */
static PyObject *start_guarded(PyObject *Py_UNUSED(module), PyObject *argument) {
    const char *how = PyUnicode_AsUTF8(argument);
    if (!how) {
        return NULL;
    }
    closes = !strcmp(how, "a guard, closed");
    if (!strcmp(how, "a view")) {
        view = PyInterpreterView_FromCurrent();
    } else {
        guard = PyInterpreterGuard_FromCurrent();
    }
    if ((!view && !guard) || !start(attach_guarded, NULL)) {
        return NULL;
    }
    wait_for(&caller_ready);
    Py_RETURN_NONE;
}
#endif

/* start_caller(how, holds): with a new state or a kept one, once when told, or again and again; with the lock in its hand. */
static PyObject *start_caller(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *how;
    int with_lock;
    if (!PyArg_ParseTuple(arguments, "sp", &how, &with_lock)) {
        return NULL;
    }
    manner = !strcmp(how, "new") ? NEW : !strcmp(how, "kept") ? KEPT : AGAIN;
    holds = with_lock;
    if (pthread_key_create(&key, note_end) || pthread_create(&caller, NULL, attach_when_told, NULL)) {
        PyErr_SetString(PyExc_RuntimeError, "no thread");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    wait_for(&caller_ready);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* Let it finish, and wait for it: what an atexit function should do. */
/* [end] */
static PyObject *end_caller(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing)) {
    Py_BEGIN_ALLOW_THREADS
    stop = go = 1;
    pthread_join(caller, NULL);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}
/* [/end] */

/* Behind the interpreter's end, when the process runs its own exit handlers. */
static void tell(void) {
    stop = 1; /* a loop ends with its round, unless the thread stands still within Ensure */
    for (int ms = 0; ms < 50 && !done && !unwound && !refused; ms++) {
        sleep_ms(1);
    }
    const char *what = done ? "came through" : refused ? "refused" : unwound ? "terminated" : within ? "hangs" : arrived ? "stands elsewhere" : "did not arrive";
    printf("fate: %s\n", what);
    fflush(stdout);
}

static void let_go(void) {
    go = 1;
    sleep_ms(50);
}

static PyObject *at_exit(PyObject *Py_UNUSED(module), PyObject *late) {
    int is_late = PyObject_IsTrue(late);
    if (is_late < 0) {
        return NULL;
    }
    if (atexit(tell) || (is_late && atexit(let_go))) { /* let_go runs before tell */
        PyErr_SetString(PyExc_RuntimeError, "no exit handler");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* [teardown] */
static void in_teardown(PyObject *capsule) { /* Python is finalizing, and main is the only thread that may attach */
    Py_BEGIN_ALLOW_THREADS
    let_go();
    Py_END_ALLOW_THREADS
    if (PyCapsule_GetContext(capsule)) {
        pthread_mutex_lock(&lock); /* as a destructor of a C++ object might */
        pthread_mutex_unlock(&lock);
    }
}
/* [/teardown] */

static PyObject *at_teardown(PyObject *Py_UNUSED(module), PyObject *wants_lock) {
    PyObject *capsule = PyCapsule_New(&lock, NULL, in_teardown);
    if (capsule && PyObject_IsTrue(wants_lock)) {
        PyCapsule_SetContext(capsule, &lock);
    }
    return capsule;
}

/* ---- signals, and calls that are pending ---- */

enum { STEPS = 1000 };

/* [compute] */
/* Until when it worked; -1 if a handler raised. */
static int64_t steps(int64_t until_ns, int checks) {
    volatile uint64_t sum = 0;
    int64_t now;
    while ((now = now_ns()) < until_ns) {
        for (int i = 0; i < STEPS; i++) {
            sum += sum * 3 + 1;
        }
        if (checks && PyErr_CheckSignals()) {
            return -1;
        }
    }
    return now;
}
/* [/compute] */

/* compute(ms, how, tell=False): ns of the clock when it began and ended. tell: that it began, on standard output. */
static PyObject *compute(PyObject *Py_UNUSED(module), PyObject *arguments) {
    long ms;
    const char *how;
    int tell = 0;
    if (!PyArg_ParseTuple(arguments, "ls|p", &ms, &how, &tell)) {
        return NULL;
    }
    int64_t begun = now_ns(), until = begun + ms * 1000000, ended;
    if (tell) {
        dprintf(STDOUT_FILENO, "at the point\n");
    }
    if (!strcmp(how, "detached")) {
        Py_BEGIN_ALLOW_THREADS
        ended = steps(until, 0);
        Py_END_ALLOW_THREADS
    } else {
        ended = steps(until, !strcmp(how, "checks"));
    }
    return ended < 0 ? NULL : Py_BuildValue("LL", (long long)begun, (long long)ended);
}

/* ns of one PyErr_CheckSignals, without a signal. */
static PyObject *price_of_check(PyObject *Py_UNUSED(module), PyObject *loops) {
    long n = PyLong_AsLong(loops);
    if (n == -1 && PyErr_Occurred()) {
        return NULL;
    }
    int64_t begun = now_ns();
    for (long i = 0; i < n; i++) {
        if (PyErr_CheckSignals()) {
            return NULL;
        }
    }
    return PyFloat_FromDouble((double)(now_ns() - begun) / (double)n);
}

static _Atomic int64_t queued_ns, ran_ns;

static int note_run(void *Py_UNUSED(argument)) {
    ran_ns = now_ns();
    return 0;
}

static void *queue_one(void *ms) {
    sleep_ms((long)(intptr_t)ms);
    queued_ns = now_ns();
    Py_AddPendingCall(note_run, NULL);
    return NULL;
}

static PyObject *call_later(PyObject *Py_UNUSED(module), PyObject *argument) {
    long ms = PyLong_AsLong(argument);
    if ((ms == -1 && PyErr_Occurred()) || !start(queue_one, (void *)(intptr_t)ms)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *call_times(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing)) {
    return Py_BuildValue("LL", (long long)queued_ns, (long long)ran_ns);
}

/* ---- a lock that another thread holds at the fork ---- */

static void *hold_a_while(void *Py_UNUSED(argument)) {
    pthread_mutex_lock(&lock);
    held = 1;
    sleep_ms(100);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static PyObject *hold_for_a_while(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing)) {
    if (!start(hold_a_while, NULL)) {
        return NULL;
    }
    wait_for(&held);
    Py_RETURN_NONE;
}

/* [atfork] */
/* Waits until no other thread has it. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static PyObject *
register_handlers(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing)) {
    if (pthread_atfork(before_fork, after_fork, after_fork)) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}
/* [/atfork] */

static PyMethodDef methods[] = {
    {"hold", hold, METH_O, "A thread of C takes the lock, and lets go of it once it has attached."},
    {"take", take, METH_O, "take(way): wait for the lock, attached, detached, or of a PyMutex."},
    {"when_main_waits", when_main_waits, METH_NOARGS, "Return 10 ms after main began to wait."},
    {"start_caller", start_caller, METH_VARARGS, "start_caller(how, holds): a thread that attaches."},
#if PY_VERSION_HEX >= 0x030F0000
    {"start_guarded", start_guarded, METH_O, "start_guarded(how): a thread that attaches with a guard, or by a view."},
#endif
    {"end_caller", end_caller, METH_NOARGS, "Let it finish, and join it."},
    {"at_exit", at_exit, METH_O, "at_exit(late): say at the process's end what became of it; late: let it attach only then."},
    {"at_teardown", at_teardown, METH_O, "at_teardown(wants_lock): an object whose destructor lets it attach."},
    {"compute", compute, METH_VARARGS, "compute(ms, how, tell=False): work in C; ns of the clock at its begin and end."},
    {"price_of_check", price_of_check, METH_O, "price_of_check(loops): ns of one PyErr_CheckSignals."},
    {"call_later", call_later, METH_O, "call_later(ms): a thread of C queues a pending call."},
    {"call_times", call_times, METH_NOARGS, "ns of the clock: queued, run."},
    {"hold_for_a_while", hold_for_a_while, METH_NOARGS, "A thread of C holds the lock for 100 ms."},
    {"register_handlers", register_handlers, METH_NOARGS, "pthread_atfork for the lock."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "outside_scenes", .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC PyInit_outside_scenes(void) { return PyModuleDef_Init(&definition); }
