/* What is read while others change it, calls that stay attached, and cycles through C. */
#include "waiting.h"

/* ---- buffers ---- */

/* Takes the only object of a list and reads its bytes twice, `ms` apart and detached. keep: it holds the Py_buffer
   meanwhile; else it keeps the bare pointer. Returns how many bytes changed. */
/* [read] */
static PyObject *py_read_twice(PyObject *module, PyObject *args) {
    PyObject *list, *object;
    int keep, ms;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "O!pi", &PyList_Type, &list, &keep, &ms)) {
        return NULL;
    }
    if ((object = PyObject_CallMethod(list, "pop", NULL)) == NULL) {
        return NULL;
    }
    int failed = PyObject_GetBuffer(object, &view, PyBUF_SIMPLE);
    Py_DECREF(object);
    if (failed) {
        return NULL;
    }
    const volatile unsigned char *bytes = view.buf;
    Py_ssize_t length = view.len, changed = 0;
    unsigned char first = bytes[0];
    if (!keep) {
        PyBuffer_Release(&view);
    }
    struct timespec apart = {ms / 1000, ms % 1000 * 1000000L};
    Py_BEGIN_ALLOW_THREADS
    nanosleep(&apart, NULL);
    for (Py_ssize_t i = 0; i < length; i++) {
        changed += bytes[i] != first;
    }
    Py_END_ALLOW_THREADS
    if (keep) {
        PyBuffer_Release(&view);
    }
    return PyLong_FromSsize_t(changed);
}
/* [/read] */

/* Adds one to a number of an array so many times, detached. */
/* [add] */
static PyObject *py_add(PyObject *module, PyObject *args) {
    PyObject *object;
    Py_ssize_t index;
    long long loops;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "OLn", &object, &loops, &index)) {
        return NULL;
    }
    if (PyObject_GetBuffer(object, &view, PyBUF_WRITABLE)) {
        return NULL;
    }
    if (index < 0 || (index + 1) * (Py_ssize_t)sizeof(int64_t) > view.len) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_IndexError, "beyond the array");
        return NULL;
    }
    volatile int64_t *number = (int64_t *)view.buf + index;
    Py_BEGIN_ALLOW_THREADS
    for (int64_t i = 0; i < loops; i++) {
        *number = *number + 1;
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}
/* [/add] */

/* Looks twice at the float in place 0 of a list, until a moment. A float never changes; where it does, it was freed
   and made anew under a reference that was only borrowed. Returns how often it did. */
/* [borrow] */
static PyObject *py_borrow(PyObject *module, PyObject *args) {
    PyObject *list;
    int strong;
    long long until;
    if (!PyArg_ParseTuple(args, "O!pL", &PyList_Type, &list, &strong, &until)) {
        return NULL;
    }
    int64_t changed = 0;
    while (now_ns() < until) {
        PyObject *item = strong ? PyList_GetItemRef(list, 0) : PyList_GetItem(list, 0);
        if (item == NULL) {
            return NULL;
        }
        double first = ((volatile PyFloatObject *)item)->ob_fval;
        work(300);
        changed += first != ((volatile PyFloatObject *)item)->ob_fval;
        if (strong) {
            Py_DECREF(item);
        }
        Py_BEGIN_ALLOW_THREADS
        Py_END_ALLOW_THREADS
    }
    return PyLong_FromLongLong(changed);
}
/* [/borrow] */

/* ---- calls that stay attached ---- */

/* Works for so many ns, attached or detached; returns the ns until it is back, attached. */
/* [stay] */
static PyObject *py_stay(PyObject *module, PyObject *args) {
    long long ns;
    int attached;
    if (!PyArg_ParseTuple(args, "Lp", &ns, &attached)) {
        return NULL;
    }
    int64_t started = now_ns();
    PyThreadState *state = attached ? NULL : PyEval_SaveThread();
    while (now_ns() - started < ns) {
    }
    if (!attached) {
        PyEval_RestoreThread(state);
    }
    return PyLong_FromLongLong(now_ns() - started);
}
/* [/stay] */

/* ---- cycles through C ---- */

typedef struct {
    PyObject_HEAD
    PyObject *callable;
} Holder;

static int64_t alive;

static PyObject *holder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Holder *self = (Holder *)type->tp_alloc(type, 0);
    if (self != NULL) {
        __atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED);
    }
    return (PyObject *)self;
}

static PyObject *holder_hold(PyObject *self, PyObject *callable) {
    PyObject *old;
    Py_BEGIN_CRITICAL_SECTION(self);
    old = ((Holder *)self)->callable;
    ((Holder *)self)->callable = Py_NewRef(callable);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

/* [cycle] */
static int holder_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Holder *)self)->callable);
    return 0;
}

static int holder_clear(PyObject *self) {
    Py_CLEAR(((Holder *)self)->callable);
    return 0;
}
/* [/cycle] */

static void holder_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (PyType_IS_GC(type)) {
        PyObject_GC_UnTrack(self);
    }
    holder_clear(self);
    __atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef holder_methods[] = {{"hold", holder_hold, METH_O, NULL}, {NULL}};

static PyType_Slot plain_slots[] = {
    {Py_tp_new, holder_new},
    {Py_tp_dealloc, holder_dealloc},
    {Py_tp_methods, holder_methods},
    {0, NULL},
};

static PyType_Slot traversed_slots[] = {
    {Py_tp_new, holder_new},
    {Py_tp_dealloc, holder_dealloc},
    {Py_tp_methods, holder_methods},
    {Py_tp_traverse, holder_traverse},
    {Py_tp_clear, holder_clear},
    {0, NULL},
};

static PyType_Spec plain_spec = {"sharing_waiting.Plain", sizeof(Holder), 0, Py_TPFLAGS_DEFAULT, plain_slots};
static PyType_Spec traversed_spec = {
    "sharing_waiting.Traversed", sizeof(Holder), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, traversed_slots,
};

static PyObject *py_alive(PyObject *module, PyObject *none) {
    return PyLong_FromLongLong(__atomic_load_n(&alive, __ATOMIC_RELAXED));
}

static PyMethodDef methods[] = {
    {"update", py_update, METH_VARARGS, NULL},
    {"twice", py_twice, METH_VARARGS, NULL},
    {"take", py_take, METH_VARARGS, NULL},
    {"read_twice", py_read_twice, METH_VARARGS, NULL},
    {"add", py_add, METH_VARARGS, NULL},
    {"borrow", py_borrow, METH_VARARGS, NULL},
    {"stay", py_stay, METH_VARARGS, NULL},
    {"alive", py_alive, METH_NOARGS, NULL},
    {NULL},
};

static int add_type(PyObject *module, PyTypeObject **type, PyType_Spec *spec) {
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *type == NULL ? -1 : PyModule_AddType(module, *type);
}

static int module_exec(PyObject *module) {
    module_state *state = state_of(module);
    if (add_type(module, &state->guarded, &guarded_spec) || add_type(module, &state->plain, &plain_spec)) {
        return -1;
    }
    return add_type(module, &state->traversed, &traversed_spec);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    Py_VISIT(state_of(module)->guarded);
    Py_VISIT(state_of(module)->plain);
    Py_VISIT(state_of(module)->traversed);
    return 0;
}

static int module_clear(PyObject *module) {
    Py_CLEAR(state_of(module)->guarded);
    Py_CLEAR(state_of(module)->plain);
    Py_CLEAR(state_of(module)->traversed);
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
    .m_name = "sharing_waiting",
    .m_size = sizeof(module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit_sharing_waiting(void) { return PyModuleDef_Init(&definition); }
