/* Shared state in an extension: ways to call native code, borrowed references, and the remedies. */
#include "remedies.h"

#include "../library/races.h"

#include <string.h>
#include <time.h>

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

typedef long increment(int iterations, int parties, int64_t patience_ns, Visit *visit);

static increment *find(const char *variant) {
    static const struct {
        const char *name;
        increment *run;
    } variants[] = {{"unsafe", unsafe_together}, {"mutex", mutex_together}, {"atomic", atomic_together}};
    for (unsigned i = 0; i < sizeof variants / sizeof *variants; i++) {
        if (strcmp(variants[i].name, variant) == 0) {
            return variants[i].run;
        }
    }
    PyErr_Format(PyExc_ValueError, "there is no variant %s", variant);
    return NULL;
}

/* (variant, iterations, parties, patience_ns, visit): visit is a buffer that a Visit is written to. */
static PyObject *counted(PyObject *args, int releasing) {
    const char *variant;
    int iterations, parties;
    long long patience_ns;
    Py_buffer visit;
    increment *run;
    if (!PyArg_ParseTuple(args, "siiLw*", &variant, &iterations, &parties, &patience_ns, &visit)) {
        return NULL;
    }
    if (visit.len < (Py_ssize_t)sizeof(Visit)) {
        PyErr_SetString(PyExc_ValueError, "the buffer is too small for a visit");
        PyBuffer_Release(&visit);
        return NULL;
    }
    if (!(run = find(variant))) {
        PyBuffer_Release(&visit);
        return NULL;
    }
    long seen;
    if (releasing) {
        /* [release] */
        Py_BEGIN_ALLOW_THREADS
        seen = run(iterations, parties, patience_ns, visit.buf);
        Py_END_ALLOW_THREADS
        /* [/release] */
    } else {
        seen = run(iterations, parties, patience_ns, visit.buf);
    }
    PyBuffer_Release(&visit);
    return PyLong_FromLong(seen);
}

/* The thread state stays attached, as in most extensions. */
static PyObject *increment_keeping(PyObject *module, PyObject *args) { return counted(args, 0); }

/* The thread state is detached meanwhile. */
static PyObject *increment_releasing(PyObject *module, PyObject *args) { return counted(args, 1); }

static PyObject *reset(PyObject *module, PyObject *ignored) {
    counter_reset();
    Py_RETURN_NONE;
}

static PyObject *value(PyObject *module, PyObject *ignored) { return PyLong_FromLong(counter_value()); }

/* A dispenser of tickets, each with a number of its own. */
/* [ticket] */
static PyObject *unsafe_ticket(PyObject *module, PyObject *ignored) { return PyLong_FromLong(unsafe_increment(1)); }
static PyObject *ticket(PyObject *module, PyObject *ignored) { return PyLong_FromLong(atomic_increment(1)); }
/* [/ticket] */

/* [borrowed] */
static PyObject *first_borrowed(PyObject *module, PyObject *list) {
    PyObject *item = PyList_GetItem(list, 0); /* borrowed: if another thread replaces it now, it is gone */
    return Py_XNewRef(item);
}

static PyObject *first_strong(PyObject *module, PyObject *list) { return PyList_GetItemRef(list, 0); }
/* [/borrowed] */

/* [next] */
/* -1 with an exception set if a value is no float. Exact floats only: a __float__ method is Python code, which may let go of
 * the critical section, and change the dict. */
static int sum_of(PyObject *dict, double *sum) {
    Py_ssize_t position = 0;
    PyObject *key, *number;
    *sum = 0;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "a dict is asked for");
        return -1;
    }
    while (PyDict_Next(dict, &position, &key, &number)) { /* all borrowed, and the table may be replaced */
        Py_INCREF(number); /* careful, and too late without the lock: it may be gone */
        int is_float = PyFloat_CheckExact(number);
        if (is_float) {
            *sum += PyFloat_AS_DOUBLE(number);
        }
        Py_DECREF(number);
        if (!is_float) {
            PyErr_SetString(PyExc_TypeError, "all values must be floats");
            return -1;
        }
    }
    return 0;
}

static PyObject *sum_unlocked(PyObject *module, PyObject *dict) {
    double sum;
    return sum_of(dict, &sum) < 0 ? NULL : PyFloat_FromDouble(sum);
}

static PyObject *sum_locked(PyObject *module, PyObject *dict) {
    double sum;
    int failed;
    Py_BEGIN_CRITICAL_SECTION(dict);
    failed = sum_of(dict, &sum);
    Py_END_CRITICAL_SECTION();
    return failed < 0 ? NULL : PyFloat_FromDouble(sum);
}
/* [/next] */

typedef struct {
    PyTypeObject *guarded;
} module_state;

static module_state *state_of(PyObject *module) { return PyModule_GetState(module); }

static const Remedy *find_remedy(const char *name) {
    for (int i = 0; i < remedies_count; i++) {
        if (strcmp(remedies[i].name, name) == 0) {
            return &remedies[i];
        }
    }
    PyErr_Format(PyExc_ValueError, "there is no remedy %s", name);
    return NULL;
}

/* run(remedy, guarded, loops) -> ns: time one remedy in the calling thread. */
static PyObject *run(PyObject *module, PyObject *args) {
    const char *name;
    PyObject *guarded;
    long long loops;
    const Remedy *remedy;
    if (!PyArg_ParseTuple(args, "sO!L", &name, state_of(module)->guarded, &guarded, &loops) || !(remedy = find_remedy(name))) {
        return NULL;
    }
    int64_t started = now_ns();
    remedy->run((Guarded *)guarded, loops);
    return PyLong_FromLongLong(now_ns() - started);
}

/* total(remedy, guarded) -> increments done, or None for reads. */
static PyObject *total(PyObject *module, PyObject *args) {
    const char *name;
    PyObject *guarded;
    const Remedy *remedy;
    if (!PyArg_ParseTuple(args, "sO!", &name, state_of(module)->guarded, &guarded) || !(remedy = find_remedy(name))) {
        return NULL;
    }
    return remedy->total ? PyLong_FromLong(remedy->total((Guarded *)guarded)) : Py_NewRef(Py_None);
}

/* names() -> [str] */
static PyObject *names(PyObject *module, PyObject *ignored) {
    PyObject *list = PyList_New(remedies_count);
    for (int i = 0; list && i < remedies_count; i++) {
        PyObject *name = PyUnicode_FromString(remedies[i].name);
        if (!name) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, name);
    }
    return list;
}

/* pairs(way, loops, writing) -> torn reads, or 0 after writing. The thread state is detached meanwhile. */
static PyObject *pairs(PyObject *module, PyObject *args) {
    const char *name;
    long long loops, torn = 0;
    int writing;
    const Way *way;
    if (!PyArg_ParseTuple(args, "sLp", &name, &loops, &writing)) {
        return NULL;
    }
    if (!(way = find_way(name))) {
        return PyErr_Format(PyExc_ValueError, "there is no way of reading of the name %s", name);
    }
    Py_BEGIN_ALLOW_THREADS
    if (writing) {
        way->write(loops);
    } else {
        torn = way->read(loops);
    }
    Py_END_ALLOW_THREADS
    return PyLong_FromLongLong(torn);
}

static PyType_Slot guarded_slots[] = {{0, NULL}};
static PyType_Spec guarded_spec = {
    "shared_state.Guarded", sizeof(Guarded), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, guarded_slots,
};

static PyMethodDef methods[] = {
    {"increment_keeping", increment_keeping, METH_VARARGS, NULL},
    {"increment_releasing", increment_releasing, METH_VARARGS, NULL},
    {"reset", reset, METH_NOARGS, NULL},
    {"value", value, METH_NOARGS, NULL},
    {"unsafe_ticket", unsafe_ticket, METH_NOARGS, NULL},
    {"ticket", ticket, METH_NOARGS, NULL},
    {"first_borrowed", first_borrowed, METH_O, NULL},
    {"first_strong", first_strong, METH_O, NULL},
    {"sum_unlocked", sum_unlocked, METH_O, NULL},
    {"sum_locked", sum_locked, METH_O, NULL},
    {"run", run, METH_VARARGS, NULL},
    {"total", total, METH_VARARGS, NULL},
    {"names", names, METH_NOARGS, NULL},
    {"pairs", pairs, METH_VARARGS, NULL},
    {NULL},
};

static int module_exec(PyObject *module) {
    PyTypeObject **type = &state_of(module)->guarded;
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &guarded_spec, NULL);
    return *type ? PyModule_AddObjectRef(module, "Guarded", (PyObject *)*type) : -1;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    Py_VISIT(state_of(module)->guarded);
    return 0;
}

static int module_clear(PyObject *module) {
    Py_CLEAR(state_of(module)->guarded);
    return 0;
}

static void module_free(void *module) { module_clear(module); }

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED}, /* what it races on is global */
    /* True of its remedies only. The rest is here to break, and would not with the GIL turned back on. */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "shared_state",
    .m_size = sizeof(module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit_shared_state(void) { return PyModuleDef_Init(&definition); }
