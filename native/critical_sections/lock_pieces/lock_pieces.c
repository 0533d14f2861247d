/* The pieces that replaced the GIL, one at a time, in C loops around one increment. */
#include "cell.h"

#include <string.h>
#include <time.h>

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Increments under one lock, in the arms that lock once for many. */
enum { BATCH = 100 };

typedef void piece(Cell *cell, Cell *other, int64_t loops);

/* [no lock] */
static void no_lock(Cell *cell, Cell *other, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        cell->value++;
    }
}
/* [/no lock] */

/* [atomic] */
static void atomic(Cell *cell, Cell *other, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        __atomic_fetch_add(&cell->value, 1, __ATOMIC_SEQ_CST);
    }
}
/* [/atomic] */

/* [mutex] */
static void mutex(Cell *cell, Cell *other, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        PyMutex_Lock(&cell->mutex);
        cell->value++;
        PyMutex_Unlock(&cell->mutex);
    }
}
/* [/mutex] */

static void pthread_lock(Cell *cell, Cell *other, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        pthread_mutex_lock(&cell->pthread_mutex);
        cell->value++;
        pthread_mutex_unlock(&cell->pthread_mutex);
    }
}

/* [section] */
static void critical_section(Cell *cell, Cell *other, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        Py_BEGIN_CRITICAL_SECTION(cell);
        cell->value++;
        Py_END_CRITICAL_SECTION();
    }
}
/* [/section] */

static void critical_section_of_two(Cell *cell, Cell *other, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        Py_BEGIN_CRITICAL_SECTION2(cell, other);
        cell->value++;
        Py_END_CRITICAL_SECTION2();
    }
}

/* The object is locked already, by this thread, in the section just outside. */
static void recursive_entry(Cell *cell, Cell *other, int64_t loops) {
    Py_BEGIN_CRITICAL_SECTION(cell);
    critical_section(cell, other, loops);
    Py_END_CRITICAL_SECTION();
}

static void inlined(Cell *cell, Cell *other, int64_t loops) { inlined_critical_section(cell, loops); }

/* Owned by this thread or not: that depends on who made the cell. The number is not touched. On 3.13 with the GIL, INCREF stores
   32 bits and DECREF loads 64 of them (seen in the assembly): most likely the load waits for the store, which nobody measured. */
static void reference_count(Cell *cell, Cell *other, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        Py_INCREF(cell);
        __asm__ volatile("" ::: "memory"); /* or the two would cancel */
        Py_DECREF(cell);
        __asm__ volatile("" ::: "memory"); /* and this one with the next round's first */
    }
}

/* [batch] */
static void one_lock_for_many(Cell *cell, Cell *other, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        PyMutex_Lock(&cell->mutex);
        for (int j = 0; j < BATCH; j++) {
            cell->value++;
        }
        PyMutex_Unlock(&cell->mutex);
    }
}

static void many_atomics(Cell *cell, Cell *other, int64_t loops) { atomic(cell, other, loops * BATCH); }

/* The lock-free equal of one lock for many: nobody gets in between either. */
static void one_atomic_for_many(Cell *cell, Cell *other, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        __atomic_fetch_add(&cell->value, BATCH, __ATOMIC_SEQ_CST);
    }
}
/* [/batch] */

/* [spin] */
/* Work that needs a core and nothing else: each step waits for the one before it, in a register. */
static void spin(int64_t loops) {
    uint64_t value = 1;
    for (int64_t i = 0; i < loops; i++) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        __asm__ volatile("" : "+r"(value)); /* or none of it would be done */
    }
}
/* [/spin] */

static const struct {
    const char *name;
    piece *run;
    int increments; /* per loop */
    int safe;       /* exact however many threads run it, with the GIL or without */
} pieces[] = {
    {"no lock", no_lock, 1, 0},
    {"atomic increment", atomic, 1, 1},
    {"PyMutex", mutex, 1, 1},
    {"pthread mutex", pthread_lock, 1, 1},
    {"critical section", critical_section, 1, 1},
    {"critical section, inlined", inlined, 1, 1},
    {"critical section, two objects", critical_section_of_two, 1, 1},
    {"critical section, recursive entry", recursive_entry, 1, 1},
    {"reference count", reference_count, 0, 1},
    {"100 increments under one PyMutex", one_lock_for_many, BATCH, 1},
    {"100 atomic increments", many_atomics, BATCH, 1},
    {"one atomic addition of 100", one_atomic_for_many, BATCH, 1},
};
enum { PIECES = sizeof pieces / sizeof *pieces };

typedef struct {
    PyTypeObject *cell;
} module_state;

static module_state *state_of(PyObject *module) { return PyModule_GetState(module); }

/* run(piece, cell, other, loops) -> ns: time one piece in the calling thread. */
static PyObject *py_run(PyObject *module, PyObject *args) {
    const char *name;
    PyObject *cell, *other;
    long long loops;
    PyTypeObject *type = state_of(module)->cell;
    if (!PyArg_ParseTuple(args, "sO!O!L", &name, type, &cell, type, &other, &loops)) {
        return NULL;
    }
    for (int i = 0; i < PIECES; i++) {
        if (strcmp(pieces[i].name, name) == 0) {
            int64_t started = now_ns();
            pieces[i].run((Cell *)cell, (Cell *)other, loops);
            return PyLong_FromLongLong(now_ns() - started);
        }
    }
    PyErr_Format(PyExc_ValueError, "there is no piece %s", name);
    return NULL;
}

/* spin(loops) -> ns: time the calling thread while it spins. */
static PyObject *py_spin(PyObject *module, PyObject *count) {
    long long loops = PyLong_AsLongLong(count);
    if (loops == -1 && PyErr_Occurred()) {
        return NULL;
    }
    int64_t started = now_ns();
    spin(loops);
    return PyLong_FromLongLong(now_ns() - started);
}

/* pieces() -> [(name, increments per loop, safe)] */
static PyObject *py_pieces(PyObject *module, PyObject *ignored) {
    PyObject *list = PyList_New(PIECES);
    for (int i = 0; list && i < PIECES; i++) {
        PyObject *row = Py_BuildValue("siN", pieces[i].name, pieces[i].increments, PyBool_FromLong(pieces[i].safe));
        if (!row) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, row);
    }
    return list;
}

static PyObject *cell_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Cell *cell = (Cell *)type->tp_alloc(type, 0);
    if (cell) {
        pthread_mutex_init(&cell->pthread_mutex, NULL);
    }
    return (PyObject *)cell;
}

static void cell_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    pthread_mutex_destroy(&((Cell *)self)->pthread_mutex);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *cell_value(PyObject *self, void *closure) {
    return PyLong_FromLongLong(((Cell *)self)->value);
}

static PyGetSetDef cell_getset[] = {{"value", cell_value}, {NULL}};

static PyType_Slot cell_slots[] = {
    {Py_tp_new, cell_new},
    {Py_tp_dealloc, cell_dealloc},
    {Py_tp_getset, cell_getset},
    {0, NULL},
};

static PyType_Spec cell_spec = {"lock_pieces.Cell", sizeof(Cell), 0, Py_TPFLAGS_DEFAULT, cell_slots};

static PyMethodDef methods[] = {
    {"run", py_run, METH_VARARGS, NULL},
    {"spin", py_spin, METH_O, NULL},
    {"pieces", py_pieces, METH_NOARGS, NULL},
    {NULL},
};

static int module_exec(PyObject *module) {
    PyTypeObject **type = &state_of(module)->cell;
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &cell_spec, NULL);
    return *type ? PyModule_AddObjectRef(module, "Cell", (PyObject *)*type) : -1;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    Py_VISIT(state_of(module)->cell);
    return 0;
}

static int module_clear(PyObject *module) {
    Py_CLEAR(state_of(module)->cell);
    return 0;
}

static void module_free(void *module) { module_clear(module); }

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "lock_pieces",
    .m_size = sizeof(module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit_lock_pieces(void) { return PyModuleDef_Init(&definition); }
