#include "floors.h"

#include <pthread.h>

/* [floor] */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Nobody ever gets one of these as an object. */
static PyUnicodeObject *heads;
static PyObject **items;
static Py_ssize_t capacity;
HELD_ACROSS_FORKS(floors, &lock)

/* The bytes of the shortest strings over other memory, and of a tuple's places. */
static void write_bytes(const Request *request) {
    Kind kind = {&PyUnicode_Type, this_thread(), sizeof(*heads), NULL};
    make_views(request, items, 0, request->count, heads, kind);
}

/* What ending a string asks for: is this reference the last one? */
static Py_ssize_t look_at_each(Py_ssize_t count) {
    uintptr_t thread = this_thread();
    Py_ssize_t alone = 0;
    while (alone < count && only_reference((PyObject *)&heads[alone], thread)) {
        alone++;
    }
    return alone;
}

/* As many bytes with as few instructions as the C library knows how. */
static void write_memory(Py_ssize_t count) {
    memset(heads, 1, count * sizeof(*heads));
    memset(items, 1, count * sizeof(*items));
}

/* CPython's tuple of objects that are never freed. */
static int make_tuple(Py_ssize_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(Py_None));
    }
    Py_XDECREF(tuple);
    return tuple ? 0 : -1;
}
/* [/floor] */

/* The memory stays: what is measured is writing, not asking for it. */
static int reserve(Py_ssize_t count) {
    if (count > capacity) {
        PyUnicodeObject *more = realloc(heads, count * sizeof(*heads));
        heads = more ? more : heads;
        PyObject **more_items = realloc(items, count * sizeof(*items));
        items = more_items ? more_items : items;
        if (!more || !more_items) {
            PyErr_NoMemory();
            return -1;
        }
        capacity = count;
    }
    return 0;
}

Py_ssize_t run_floor(const char *name, const Request *request) {
    Py_ssize_t count = request->count, each = sizeof(*heads) + sizeof(*items);
    if (!strcmp(name, "tuple alone")) {
        return make_tuple(count) ? -1 : count * (Py_ssize_t)sizeof(*items);
    }
    int drop = !strcmp(name, "bytes and drop"), memory = !strcmp(name, "memory");
    if (!drop && !memory && strcmp(name, "bytes only")) {
        PyErr_Format(PyExc_ValueError, "no such floor: %s", name);
        return -1;
    }
    pthread_mutex_lock(&lock);
    int failed = reserve(count);
    if (!failed && memory) {
        write_memory(count);
    } else if (!failed) {
        write_bytes(request);
        if (drop && look_at_each(count) != count) {
            PyErr_SetString(PyExc_SystemError, "a head that was just written says something else");
            failed = -1;
        }
    }
    pthread_mutex_unlock(&lock);
    return failed ? -1 : count * each;
}
