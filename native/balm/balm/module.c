/* Strings that CPython did not allocate: a demonstration that nobody should ship. See notebooks/balm.ipynb. */
#include "caveats.h"
#include "floors.h"
#include "legitimate.h"
#include "makers.h"
#include "tuples.h"

static const char *const layout_names[LAYOUTS] = {
    "balm.PooledView", "balm.PooledCompact", "balm.BlockView", "balm.PageView",
#ifndef Py_GIL_DISABLED
    "balm.WrittenPooled", "balm.WrittenBlock",
#endif
};
static const destructor deallocators[LAYOUTS] = {
    pooled_view_dealloc, pooled_compact_dealloc, block_view_dealloc, page_view_dealloc,
#ifndef Py_GIL_DISABLED
    pooled_as_written_dealloc, block_as_written_dealloc,
#endif
};

/* Honest subtypes of str, and copies of str's own type object, as the original had them. */
static PyTypeObject subtypes[LAYOUTS], copies[LAYOUTS], tuple_type;
static PyTypeObject *types_of[2][LAYOUTS];
/* A counterfeit is never freed: it is there to be looked at once. */
static PyTypeObject counterfeit_type;

/* Pickled and copied, a string of ours becomes a real one. */
static PyObject *reduce(PyObject *self, PyObject *unused) {
    if (PyUnicode_Check(self)) {
        return Py_BuildValue("O(N)", &PyUnicode_Type, PyUnicode_Substring(self, 0, PyUnicode_GET_LENGTH(self)));
    }
    return Py_BuildValue("O(N)", &PyTuple_Type, PySequence_List(self));
}

static PyMethodDef reduce_method[] = {{"__reduce__", reduce, METH_NOARGS, NULL}, {NULL}};

static int ready(PyTypeObject *type, const char *name, PyTypeObject *base, destructor dealloc) {
    *type = (PyTypeObject){
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = name,
        .tp_base = base,
        .tp_dealloc = dealloc,
        .tp_methods = reduce_method,
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .tp_doc = "Not allocated by CPython. A demonstration: do not ship it.",
    };
    return PyType_Ready(type);
}

/* [steal] */
static void copy_type(PyTypeObject *type, destructor dealloc) {
    *type = PyUnicode_Type;
    type->tp_new = NULL;
    type->tp_free = NULL;
    type->tp_dealloc = dealloc;
}
/* [/steal] */

static void keep_forever(PyObject *op) {}

static int make_types(void) {
    static int made;
    if (made) {
        return 0;
    }
    for (int i = 0; i < LAYOUTS; i++) {
        if (ready(&subtypes[i], layout_names[i], &PyUnicode_Type, deallocators[i]) < 0) {
            return -1;
        }
        copy_type(&copies[i], deallocators[i]);
        types_of[0][i] = &subtypes[i];
        types_of[1][i] = &copies[i];
    }
    if (ready(&counterfeit_type, "balm.Counterfeit", &PyUnicode_Type, keep_forever) < 0
        || ready(&tuple_type, "balm.Tuple", &PyTuple_Type, tuple_dealloc) < 0) {
        return -1;
    }
    if (views_across_forks() || compacts_across_forks() || blocks_across_forks() || pages_across_forks()
        || tuples_across_forks() || floors_across_forks()) {
        PyErr_NoMemory();
        return -1;
    }
#ifndef Py_GIL_DISABLED
    if (nodes_across_forks() || written_across_forks()) {
        PyErr_NoMemory();
        return -1;
    }
#endif
    made = 1;
    return 0;
}

/* ---- Text ---- */

typedef struct {
    PyObject_HEAD
    Buffer *buffer;
    Line *lines;
    Py_ssize_t count, ascii_count;
} Text;

static int is_ascii(const char *text, Py_ssize_t length) {
    unsigned char all = 0;
    for (Py_ssize_t i = 0; i < length; i++) {
        all |= (unsigned char)text[i];
    }
    return all < 128;
}

/* Copy the lines, put a NUL behind each, and see which of them are ours to make. */
static int text_fill(Text *self, const char *data, Py_ssize_t size, PyObject *lengths) {
    Py_ssize_t from = 0, to = 0;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        Py_ssize_t length = PyLong_AsSsize_t(PyTuple_GET_ITEM(lengths, i));
        if (length == -1 && PyErr_Occurred()) {
            return -1;
        }
        if (length < 0 || length > size - from) {
            PyErr_Format(PyExc_ValueError, "line %zd has %zd bytes, and %zd are left", i, length, size - from);
            return -1;
        }
        char *line = self->buffer->data + to;
        memcpy(line, data + from, length);
        line[length] = 0;
        self->lines[i] = (Line){to, length, is_ascii(line, length)};
        self->ascii_count += self->lines[i].ascii;
        if (!self->lines[i].ascii) {
            PyObject *real = PyUnicode_DecodeUTF8(line, length, NULL);
            if (!real) {
                return -1;
            }
            Py_DECREF(real);
        }
        from += length;
        to += length + 1;
    }
    return 0;
}

static PyObject *text_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"data", "lengths", NULL};
    Py_buffer data;
    PyObject *lengths;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*O", names, &data, &lengths)) {
        return NULL;
    }
    Text *self = NULL;
    /* A tuple of our own: another thread may change a list while we read it. */
    if ((lengths = PySequence_Tuple(lengths))
        && (self = (Text *)type->tp_alloc(type, 0))) {
        self->count = PyTuple_GET_SIZE(lengths);
        self->buffer = buffer_new(data.len + self->count + 1);
        self->lines = PyMem_Calloc(self->count + 1, sizeof(Line));
        if (!self->buffer || !self->lines) {
            PyErr_NoMemory();
            Py_CLEAR(self);
        } else if (text_fill(self, data.buf, data.len, lengths) < 0) {
            Py_CLEAR(self);
        }
    }
    Py_XDECREF(lengths);
    PyBuffer_Release(&data);
    return (PyObject *)self;
}

static void text_dealloc(PyObject *op) {
    Text *self = (Text *)op;
    if (self->buffer) {
        __atomic_store_n(&self->buffer->has_text, 0, __ATOMIC_RELAXED);
        if (self->buffer->bytes > LARGE_TEXT) {
            sweep();
        }
        buffer_drop(self->buffer, 1);
    }
    PyMem_Free(self->lines);
    Py_TYPE(op)->tp_free(op);
}

/* [strings] */
/* A maker, and if its strings stand in a tuple of ours: their ender and their layout. */
typedef struct {
    const char *name;
    maker *make;
    ender *end;
    int layout;
    int as_written; /* by the original: its types are copies, and its text is ASCII throughout */
} Method;

static const Method methods[] = {
    {"pooled", make_pooled},
    {"compact", make_compact},
    {"block", make_block},
    {"block and tuple", make_block, end_block, BLOCK_VIEW},
    {"pages", make_pages},
    {"pages and tuple", make_pages, end_pages, PAGE_VIEW},
    {"one pass, freed later", make_one_pass, end_one_pass, PAGE_VIEW},
#ifndef Py_GIL_DISABLED
    {"pooled, as written", make_pooled_as_written, end_one_by_one, WRITTEN_POOLED, 1},
    {"block, as written", make_block_as_written, end_one_by_one, WRITTEN_BLOCK, 1},
#endif
};

/* A tuple of `count` lines from `from` on. */
static PyObject *strings_of_ours(Text *self, Py_ssize_t from, Py_ssize_t count, const Method *method,
                                 PyTypeObject *const *types, int released) {
    const Line *lines = self->lines + from;
    Py_ssize_t ascii_count = self->ascii_count == self->count ? count : 0;
    for (Py_ssize_t i = 0; self->ascii_count < self->count && i < count; i++) {
        ascii_count += lines[i].ascii;
    }
    PyTypeObject *between_others = ascii_count < count ? types[method->layout] : NULL;
    PyObject *tuple = method->end ? tuple_new(count, &tuple_type, method->end, between_others) : PyTuple_New(count);
    if (!tuple) {
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    if (!method->end) {
        /* Nobody may visit it before it is full, and strings are in no cycle. */
        PyObject_GC_UnTrack(tuple);
    }
    PyObject **items = ((PyTupleObject *)tuple)->ob_item;
    Request request = {self->buffer, lines, count, ascii_count, .attached = !released,
                       .held = method->end ? tuple_held(tuple) : 0};
    buffer_keep(self->buffer, ascii_count);
    int failed;
    if (released) {
        Py_BEGIN_ALLOW_THREADS
        failed = method->make(&request, items, types);
        Py_END_ALLOW_THREADS
    } else {
        failed = method->make(&request, items, types);
    }
    if (method->end) {
        tuple_owns(tuple, request.made, request.holds);
    }
    buffer_drop(self->buffer, ascii_count - request.used);
    if (failed) {
        PyErr_NoMemory();
    }
    /* What is not ASCII is left to CPython. */
    for (Py_ssize_t i = 0; !failed && ascii_count < count && i < count; i++) {
        if (!lines[i].ascii) {
            items[i] = legitimate_string(self->buffer, &lines[i], NULL);
            failed = !items[i];
        }
    }
    if (failed) {
        Py_CLEAR(tuple);
    }
    return tuple;
}
/* [/strings] */

/* A way by its name, one of ours; NULL and an exception if there is none for this text. */
static const Method *method_of(Text *self, const char *name) {
    for (size_t i = 0; i < Py_ARRAY_LENGTH(methods); i++) {
        if (!strcmp(name, methods[i].name) && (!methods[i].as_written || self->ascii_count == self->count)) {
            return &methods[i];
        }
    }
    PyErr_Format(PyExc_ValueError, "no such method, or not with these options: %s", name);
    return NULL;
}

static PyObject *text_strings(PyObject *op, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"method", "released", "copied_type", NULL};
    const char *name;
    int released = 0, copied = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|pp", names, &name, &released, &copied)) {
        return NULL;
    }
    Text *self = (Text *)op;
    legitimate *create = released || copied ? NULL : legitimate_of(name);
    if (create) {
        return legitimate_strings(self->buffer, self->lines, self->count, create);
    }
    const Method *method = method_of(self, name);
    PyTypeObject *const *types = method ? types_of[copied || method->as_written] : NULL;
    return method ? strings_of_ours(self, 0, self->count, method, types, released) : NULL;
}

/* [batches] */
/* The lines of a text, so many at a time: each batch is a tuple. */
typedef struct {
    PyObject_HEAD
    Text *text;
    legitimate *create; /* NULL: one of our ways */
    const Method *method;
    Py_ssize_t size, next;
} Batches;

static PyObject *batches_next(PyObject *op) {
    Batches *self = (Batches *)op;
    Text *text = self->text;
    /* Threads may share it: each line is in one batch. */
    Py_ssize_t from = __atomic_fetch_add(&self->next, self->size, __ATOMIC_RELAXED), left = text->count - from;
    if (left <= 0) {
        return NULL;
    }
    Py_ssize_t count = left < self->size ? left : self->size;
    if (self->create) {
        return legitimate_strings(text->buffer, text->lines + from, count, self->create);
    }
    return strings_of_ours(text, from, count, self->method, types_of[self->method->as_written], 0);
}
/* [/batches] */

static void batches_dealloc(PyObject *op) {
    Py_DECREF(((Batches *)op)->text);
    PyObject_Free(op);
}

static PyTypeObject batches_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "balm.Batches",
    .tp_basicsize = sizeof(Batches),
    .tp_dealloc = batches_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = batches_next,
};

static PyObject *text_batches(PyObject *op, PyObject *args) {
    Text *self = (Text *)op;
    const char *name;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "sn", &name, &size)) {
        return NULL;
    }
    if (size < 1) {
        return PyErr_Format(PyExc_ValueError, "a batch of %zd lines", size);
    }
    legitimate *create = legitimate_of(name);
    const Method *method = create ? NULL : method_of(self, name);
    Batches *made = create || method ? PyObject_New(Batches, &batches_type) : NULL;
    if (made) {
        made->text = (Text *)Py_NewRef(op);
        made->create = create;
        made->method = method;
        /* No larger than the text, so that `next` does not overflow. */
        made->size = Py_MIN(size, Py_MAX(self->count, 1));
        made->next = 0;
    }
    return (PyObject *)made;
}

static PyObject *text_floor(PyObject *op, PyObject *name) {
    Text *self = (Text *)op;
    const char *which = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (!which || self->ascii_count < self->count) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "a floor needs its name, and a text that is ASCII");
    }
    Request request = {self->buffer, self->lines, self->count, self->ascii_count};
    Py_ssize_t bytes = run_floor(which, &request);
    return bytes < 0 ? NULL : PyLong_FromSsize_t(bytes);
}

static PyMethodDef text_methods[] = {
    {"strings", (PyCFunction)(void (*)(void))text_strings, METH_VARARGS | METH_KEYWORDS,
     "strings(method, released=False, copied_type=False)\n\nA tuple of all lines.\n\n"
     "method: CPython's own are new, from string and (since 3.14) writer; ours are pooled, compact, block, pages, and\n"
     "block and tuple, pages and tuple, and one pass, freed later, whose strings are not looked at when their tuple is dropped; with a GIL also the original's, for texts of ASCII only: pooled, as written and block, as\n"
     "written. released: make them without the GIL (detached). copied_type: their type is a copy of str's type object, not a subtype of str."},
    {"batches", text_batches, METH_VARARGS,
     "batches(method, size)\n\nAn iterator over tuples of `size` lines, made in one of these ways with the GIL kept; the last may be shorter."},
    {"floor", text_floor, METH_O,
     "floor(name)\n\nA part of the work and no string: bytes, bytes and drop, near, one pass, one pass, near, memory; see floors.c. Returns the\nbytes written."},
    {NULL},
};

/* [lazy] */
/* A text is a sequence too: no strings until one is asked for, and then a real one. */
static Py_ssize_t text_length(PyObject *op) { return ((Text *)op)->count; }

static PyObject *text_item(PyObject *op, Py_ssize_t i) {
    Text *self = (Text *)op;
    if (i < 0 || i >= self->count) {
        PyErr_SetString(PyExc_IndexError, "no such line");
        return NULL;
    }
    return legitimate_string(self->buffer, &self->lines[i], legitimate_of("new"));
}
/* [/lazy] */

static PySequenceMethods text_as_sequence = {.sq_length = text_length, .sq_item = text_item};

static PyTypeObject text_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "balm.Text",
    .tp_basicsize = sizeof(Text),
    .tp_dealloc = text_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Text(data, lengths)\n\nLines of UTF-8 text, one behind the other in `data`; lengths in bytes. A sequence of str.",
    .tp_methods = text_methods,
    .tp_as_sequence = &text_as_sequence,
    .tp_new = text_new,
};

/* ---- What must not be done ---- */

/* [counterfeit] */
static PyObject *counterfeit(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"data", "length", "hash", "compact", NULL};
    const char *data;
    Py_ssize_t size, length, hash = -1;
    int compact = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y#n|np", names, &data, &size, &length, &hash, &compact)) {
        return NULL;
    }
    if (length < 0 || length > size) {
        PyErr_SetString(PyExc_ValueError, "length must lie within the data");
        return NULL;
    }
    PyUnicodeObject *str = calloc(1, sizeof(*str) + size + 1);
    if (!str) {
        return PyErr_NoMemory();
    }
    if (compact) {
        set_head((PyObject *)str, &counterfeit_type, this_thread());
        set_ascii(&str->_base._base, length, 1);
        memcpy(&str->_base._base + 1, data, size);
    } else {
        set_view(str, &counterfeit_type, this_thread(), memcpy(str + 1, data, size), length);
    }
    str->_base._base.hash = hash;
    return (PyObject *)str;
}
/* [/counterfeit] */

static PyObject *buffers(PyObject *module, PyObject *unused) { return PyLong_FromSize_t(buffers_alive()); }

/* [sweep] */
/* Also called by the garbage collector, when it begins and when it is done. */
static PyObject *sweep_now(PyObject *module, PyObject *args) {
    sweep();
    Py_RETURN_NONE;
}

/* The collector has it called, from its first import on. */
static int sweep_with_the_collector(PyObject *module) {
    static int asked;
    PyObject *gc = asked ? NULL : PyImport_ImportModule("gc");
    PyObject *callbacks = gc ? PyObject_GetAttrString(gc, "callbacks") : NULL;
    PyObject *own = callbacks ? PyObject_GetAttrString(module, "sweep") : NULL;
    asked = asked || (own && PyList_Append(callbacks, own) == 0);
    Py_XDECREF(own);
    Py_XDECREF(callbacks);
    Py_XDECREF(gc);
    return asked ? 0 : -1;
}
/* [/sweep] */

static PyMethodDef functions[] = {
    {"counterfeit", (PyCFunction)(void (*)(void))counterfeit, METH_VARARGS | METH_KEYWORDS,
     "counterfeit(data, length, hash=-1, compact=False)\n\nOne string over the first bytes of a copy of `data`, with the original's\n"
     "mistakes on demand: no NUL behind it, bytes that are not ASCII, a hash that is wrong. It is never freed."},
    {"sweep", sweep_now, METH_VARARGS,
     "sweep(*ignored)\n\nEnd the strings of tuples that this thread dropped, one pass, freed later, and of threads that ended."},
    {"buffers_alive", buffers, METH_NOARGS, "Text buffers that something still needs."},
    {NULL},
};

static int module_exec(PyObject *module) {
    if (check_layout() < 0 || make_types() < 0 || PyModule_AddType(module, &text_type) < 0
        || PyModule_AddType(module, &batches_type) < 0
        || PyModule_AddType(module, &tuple_type) < 0 || PyModule_AddType(module, &counterfeit_type) < 0
        || caveats_exec(module) < 0 || sweep_with_the_collector(module) < 0) {
        return -1;
    }
    for (int i = 0; i < LAYOUTS; i++) {
        if (PyModule_AddType(module, &subtypes[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
    /* Its types and pools belong to the process: no other interpreter may have them. */
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "balm", "Strings that CPython did not allocate. A demonstration: do not ship it.", 0,
    functions, slots,
};

PyMODINIT_FUNC PyInit_balm(void) { return PyModuleDef_Init(&definition); }
