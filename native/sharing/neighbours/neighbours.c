/* Numbers that lie side by side in memory, and loops that write, read and count them: who is slowed by whom? */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* [row] */
/* An object with so many numbers behind its head, in which its count lies. */
typedef struct {
    PyObject_VAR_HEAD
    /* volatile: the compiler must not turn a million steps into one. */
    volatile int64_t slots[];
} Row;
/* [/row] */

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

typedef void piece(Row *row, Py_ssize_t slot, int64_t loops);

/* [pieces] */
static void plain(Row *row, Py_ssize_t slot, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        row->slots[slot]++;
    }
}

static void relaxed(Row *row, Py_ssize_t slot, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        __atomic_fetch_add(&row->slots[slot], 1, __ATOMIC_RELAXED);
    }
}

static void read_slot(Row *row, Py_ssize_t slot, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        (void)row->slots[slot];
    }
}

static void count(PyObject *thing, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        Py_INCREF(thing);
        __asm__ volatile("" ::: "memory"); /* or the two would cancel */
        Py_DECREF(thing);
        __asm__ volatile("" ::: "memory");
    }
}
/* [/pieces] */

static const struct {
    const char *name;
    piece *run;
} pieces[] = {{"plain", plain}, {"relaxed atomic", relaxed}, {"read", read_slot}};

typedef struct {
    PyTypeObject *row;
} module_state;

static module_state *state_of(PyObject *module) { return PyModule_GetState(module); }

/* run(piece, row, slot, loops) -> ns: time one piece in the calling thread. */
static PyObject *py_run(PyObject *module, PyObject *args) {
    const char *name;
    Row *row;
    Py_ssize_t slot;
    long long loops;
    if (!PyArg_ParseTuple(args, "sO!nL", &name, state_of(module)->row, &row, &slot, &loops)) {
        return NULL;
    }
    if (slot < 0 || slot >= Py_SIZE(row)) {
        PyErr_SetString(PyExc_IndexError, "the row has no such slot");
        return NULL;
    }
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        if (strcmp(pieces[i].name, name) == 0) {
            int64_t started = now_ns();
            pieces[i].run(row, slot, loops);
            return PyLong_FromLongLong(now_ns() - started);
        }
    }
    PyErr_Format(PyExc_ValueError, "there is no piece %s", name);
    return NULL;
}

/* count(x, loops) -> ns: take references to any object, and give them back. */
static PyObject *py_count(PyObject *module, PyObject *args) {
    PyObject *thing;
    long long loops;
    if (!PyArg_ParseTuple(args, "OL", &thing, &loops)) {
        return NULL;
    }
    int64_t started = now_ns();
    count(thing, loops);
    return PyLong_FromLongLong(now_ns() - started);
}

/* [per thread] */
/* counted_per_thread(x) -> bool: has this type, or this code object, a number under which each thread counts it? */
static PyObject *py_counted_per_thread(PyObject *module, PyObject *thing) {
#if defined(Py_GIL_DISABLED) && PY_VERSION_HEX >= 0x030E0000
    if (PyCode_Check(thing)) {
        return PyBool_FromLong(((PyCodeObject *)thing)->_co_unique_id > 0);
    }
    if (PyType_Check(thing) && PyType_HasFeature((PyTypeObject *)thing, Py_TPFLAGS_HEAPTYPE)) {
        return PyBool_FromLong(((PyHeapTypeObject *)thing)->unique_id > 0);
    }
#endif
    Py_RETURN_FALSE;
}
/* [/per thread] */

/* Row(n): n zeros. */
static PyObject *row_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "n", &n)) {
        return NULL;
    }
    if (n < 1 || n > 1 << 20) {
        PyErr_SetString(PyExc_ValueError, "a row has between one number and a million");
        return NULL;
    }
    return type->tp_alloc(type, n);
}

static Py_ssize_t row_length(PyObject *self) { return Py_SIZE(self); }

static PyObject *row_item(PyObject *self, Py_ssize_t slot) {
    if (slot < 0 || slot >= Py_SIZE(self)) {
        PyErr_SetString(PyExc_IndexError, "the row has no such slot");
        return NULL;
    }
    return PyLong_FromLongLong(((Row *)self)->slots[slot]);
}

/* No tp_dealloc: CPython's own gives the type back in the same count from which it was taken. */
static PyType_Slot row_slots[] = {
    {Py_tp_new, row_new},
    {Py_sq_length, row_length},
    {Py_sq_item, row_item},
    {0, NULL},
};

static PyType_Spec row_spec = {"neighbours.Row", sizeof(Row), sizeof(int64_t), Py_TPFLAGS_DEFAULT, row_slots};

static PyMethodDef methods[] = {
    {"run", py_run, METH_VARARGS, NULL},
    {"count", py_count, METH_VARARGS, NULL},
    {"counted_per_thread", py_counted_per_thread, METH_O, NULL},
    {NULL},
};

static int module_exec(PyObject *module) {
    PyTypeObject **type = &state_of(module)->row;
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &row_spec, NULL);
    return *type ? PyModule_AddObjectRef(module, "Row", (PyObject *)*type) : -1;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    Py_VISIT(state_of(module)->row);
    return 0;
}

static int module_clear(PyObject *module) {
    Py_CLEAR(state_of(module)->row);
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
    .m_name = "neighbours",
    .m_size = sizeof(module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit_neighbours(void) { return PyModuleDef_Init(&definition); }
