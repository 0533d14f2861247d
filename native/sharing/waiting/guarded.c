/* A number, the locks that may protect it, and who waits for whom. */
#include "waiting.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "standard.h"

/* ---- a number, and the locks that may protect it ---- */

typedef struct {
    PyObject_HEAD
    /* volatile: the compiler must read and write it where the source does. */
    volatile int64_t value;
    PyMutex mutex;
    pthread_mutex_t posix;
    pthread_mutex_t recursive;
    void *standard;
    /* How many threads have come. */
    int arrived;
    char apart[128];
} Guarded;

/* Waits, detached, until so many threads are here; returns the moment that lies `ns` after that. */
static int64_t all_here(Guarded *one, int threads, int64_t ns) {
    Py_BEGIN_ALLOW_THREADS
    __atomic_fetch_add(&one->arrived, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&one->arrived, __ATOMIC_SEQ_CST) < threads) {
        sched_yield();
    }
    Py_END_ALLOW_THREADS
    return now_ns() + ns;
}

static PyObject *guarded_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Guarded *self = (Guarded *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&self->posix, NULL);
    pthread_mutex_init(&self->recursive, &recursive);
    pthread_mutexattr_destroy(&recursive);
    self->standard = standard_new();
    if (self->standard == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void guarded_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Guarded *guarded = (Guarded *)self;
    pthread_mutex_destroy(&guarded->posix);
    pthread_mutex_destroy(&guarded->recursive);
    standard_delete(guarded->standard);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *guarded_value(PyObject *self, void *closure) {
    return PyLong_FromLongLong(((Guarded *)self)->value);
}

static PyGetSetDef guarded_getset[] = {{"value", guarded_value}, {NULL}};

static PyType_Slot guarded_slots[] = {
    {Py_tp_new, guarded_new},
    {Py_tp_dealloc, guarded_dealloc},
    {Py_tp_getset, guarded_getset},
    {0, NULL},
};

PyType_Spec guarded_spec = {"sharing_waiting.Guarded", sizeof(Guarded), 0, Py_TPFLAGS_DEFAULT, guarded_slots};

/* ---- a section within a section ---- */

enum { HELD = 2000 };

/* [nested] */
static void nested(Guarded *outer, Guarded *inner) {
    Py_BEGIN_CRITICAL_SECTION(outer);
    int64_t read = outer->value;
    Py_BEGIN_CRITICAL_SECTION(inner);
    inner->value++;
    Py_END_CRITICAL_SECTION();
    outer->value = read + 1;
    Py_END_CRITICAL_SECTION();
}
/* [/nested] */

/* [both] */
static void both(Guarded *outer, Guarded *inner) {
    Py_BEGIN_CRITICAL_SECTION2(outer, inner);
    int64_t read = outer->value;
    inner->value++;
    outer->value = read + 1;
    Py_END_CRITICAL_SECTION2();
}
/* [/both] */

/* [bare] */
static void bare_mutex(Guarded *outer, Guarded *inner) {
    PyMutex_Lock(&outer->mutex);
    int64_t read = outer->value;
    Py_BEGIN_CRITICAL_SECTION(inner);
    inner->value++;
    Py_END_CRITICAL_SECTION();
    outer->value = read + 1;
    PyMutex_Unlock(&outer->mutex);
}
/* [/bare] */

static void lock_posix(pthread_mutex_t *mutex) {
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(mutex);
    Py_END_ALLOW_THREADS
}

static void posix_mutex(Guarded *outer, Guarded *inner) {
    lock_posix(&outer->posix);
    int64_t read = outer->value;
    Py_BEGIN_CRITICAL_SECTION(inner);
    inner->value++;
    Py_END_CRITICAL_SECTION();
    outer->value = read + 1;
    pthread_mutex_unlock(&outer->posix);
}

/* The third thread: it changes what the outer lock protects, under that lock. */
static void in_section(Guarded *outer, Guarded *inner) {
    Py_BEGIN_CRITICAL_SECTION(outer);
    outer->value++;
    Py_END_CRITICAL_SECTION();
}

static void in_mutex(Guarded *outer, Guarded *inner) {
    PyMutex_Lock(&outer->mutex);
    outer->value++;
    PyMutex_Unlock(&outer->mutex);
}

static void in_posix(Guarded *outer, Guarded *inner) {
    lock_posix(&outer->posix);
    outer->value++;
    pthread_mutex_unlock(&outer->posix);
}

/* The second thread: it is in the way of who wants the inner lock. */
static void in_the_way(Guarded *outer, Guarded *inner) {
    Py_BEGIN_CRITICAL_SECTION(inner);
    work(HELD);
    inner->value++;
    Py_END_CRITICAL_SECTION();
}

typedef void update(Guarded *outer, Guarded *inner);

static const struct {
    const char *name;
    update *run;
} updates[] = {
    {"nested", nested},           {"both at once", both},   {"PyMutex outside", bare_mutex},
    {"POSIX outside", posix_mutex}, {"section", in_section}, {"PyMutex", in_mutex},
    {"POSIX", in_posix},          {"in the way", in_the_way},
};

/* Once so many threads are here: updates for `ns`; returns how often. Now and then it sleeps, so that two on one core
   take turns; but for the one in the way, which has a core. */
PyObject *py_update(PyObject *module, PyObject *args) {
    const char *name;
    PyObject *outer, *inner;
    long long ns;
    int threads;
    PyTypeObject *type = state_of(module)->guarded;
    if (!PyArg_ParseTuple(args, "sO!O!iL", &name, type, &outer, type, &inner, &threads, &ns)) {
        return NULL;
    }
    struct timespec pause = {0, 20000};
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        if (strcmp(updates[i].name, name) == 0) {
            int64_t done = 0, until = all_here((Guarded *)outer, threads, ns);
            while (now_ns() < until) {
                for (int more = 0; more < 50; more++, done++) {
                    updates[i].run((Guarded *)outer, (Guarded *)inner);
                }
                Py_BEGIN_ALLOW_THREADS
                if (updates[i].run != in_the_way) {
                    nanosleep(&pause, NULL);
                }
                Py_END_ALLOW_THREADS
            }
            return PyLong_FromLongLong(done);
        }
    }
    return PyErr_Format(PyExc_ValueError, "no update %s", name);
}

/* ns of a lock taken twice by one thread. */
PyObject *py_twice(PyObject *module, PyObject *args) {
    PyObject *object;
    int recursive;
    long long loops;
    if (!PyArg_ParseTuple(args, "O!pL", state_of(module)->guarded, &object, &recursive, &loops)) {
        return NULL;
    }
    Guarded *one = (Guarded *)object;
    int64_t started = now_ns();
    if (recursive) {
        for (int64_t i = 0; i < loops; i++) {
            pthread_mutex_lock(&one->recursive);
            pthread_mutex_lock(&one->recursive);
            one->value++;
            pthread_mutex_unlock(&one->recursive);
            pthread_mutex_unlock(&one->recursive);
        }
    } else {
        /* [twice] */
        for (int64_t i = 0; i < loops; i++) {
            Py_BEGIN_CRITICAL_SECTION(one);
            Py_BEGIN_CRITICAL_SECTION(one);
            one->value++;
            Py_END_CRITICAL_SECTION();
            Py_END_CRITICAL_SECTION();
        }
        /* [/twice] */
    }
    return PyFloat_FromDouble((double)(now_ns() - started) / (double)loops);
}

/* ---- fairness ---- */

enum { OCTAVES = 48, STEPS = 16 };

typedef struct {
    int64_t takes, longest, bins[OCTAVES * STEPS];
} Waits;

/* Sixteen bins for each doubling, so that a quantile is known to a sixteenth. */
static void note(Waits *waits, int64_t ns) {
    waits->takes++;
    waits->longest = ns > waits->longest ? ns : waits->longest;
    ns = ns < STEPS ? STEPS : ns;
    int octave = 63 - __builtin_clzll((unsigned long long)ns);
    int bin = (octave - 4) * STEPS + (int)((ns >> (octave - 4)) - STEPS);
    waits->bins[bin < OCTAVES * STEPS ? bin : OCTAVES * STEPS - 1]++;
}

/* The wait that one take in a thousand exceeds. */
static int64_t rare(const Waits *waits) {
    int64_t left = waits->takes / 1000;
    for (int bin = OCTAVES * STEPS - 1; bin >= 0; bin--) {
        if ((left -= waits->bins[bin]) < 0) {
            return (int64_t)(STEPS + bin % STEPS) << (bin / STEPS);
        }
    }
    return 0;
}

/* What the holder of the lock does: -1 if the call of Python failed. */
static int hold(Guarded *one, int64_t held, PyObject *call) {
    one->value++;
    work(held);
    if (call == Py_None) {
        return 0;
    }
    PyObject *answer = PyObject_CallNoArgs(call);
    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

/* Once so many threads are here: takes a lock in a loop for `ns`, and holds it for so many rounds of work, and for a
   call of Python if there is one. Returns how often, the longest wait, and the one that one take in a thousand
   exceeds, in ns. Who takes a lock that Python does not know is detached while it waits. */
PyObject *py_take(PyObject *module, PyObject *args) {
    const char *name;
    PyObject *object, *call;
    long long ns, held;
    int threads;
    PyTypeObject *type = state_of(module)->guarded;
    if (!PyArg_ParseTuple(args, "sO!iLLO", &name, type, &object, &threads, &ns, &held, &call)) {
        return NULL;
    }
    Guarded *one = (Guarded *)object;
    int posix = strcmp(name, "pthread mutex") == 0, standard = strcmp(name, "std::mutex") == 0;
    int section = strcmp(name, "critical section") == 0;
    Waits waits = {0};
    int failed = 0;
    int64_t until = all_here(one, threads, ns), before = now_ns();
    while (before < until && !failed) {
        if (section) {
            Py_BEGIN_CRITICAL_SECTION(one);
            note(&waits, now_ns() - before);
            failed = hold(one, held, call);
            Py_END_CRITICAL_SECTION();
        } else {
            if (posix || standard) {
                Py_BEGIN_ALLOW_THREADS
                if (posix) {
                    pthread_mutex_lock(&one->posix);
                } else {
                    standard_lock(one->standard);
                }
                Py_END_ALLOW_THREADS
            } else {
                PyMutex_Lock(&one->mutex);
            }
            note(&waits, now_ns() - before);
            failed = hold(one, held, call);
            if (posix) {
                pthread_mutex_unlock(&one->posix);
            } else if (standard) {
                standard_unlock(one->standard);
            } else {
                PyMutex_Unlock(&one->mutex);
            }
        }
        before = now_ns();
    }
    return failed ? NULL : Py_BuildValue("LLL", waits.takes, waits.longest, rare(&waits));
}
