#include "floors.h"

#include <pthread.h>

/* [floor] */
enum { NEAR = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Nobody ever gets one of these as an object. */
static PyUnicodeObject *heads;
static PyObject **items;
static Py_ssize_t capacity;
HELD_ACROSS_FORKS(floors, &lock)

/* The bytes of the shortest strings over other memory, and of a tuple's places. */
static void write_bytes(const Request *request, Py_ssize_t from, Py_ssize_t count) {
    Kind kind = {&PyUnicode_Type, this_thread(), sizeof(*heads), NULL};
    make_views(request, items, from, count, heads, kind);
}

/* As many, but all heads in the same few cache lines: what the others cost shows in the difference. */
static void write_near(const Request *request) {
    for (Py_ssize_t from = 0; from < request->count; from += NEAR) {
        write_bytes(request, from, request->count - from < NEAR ? request->count - from : NEAR);
    }
}

/* What ending a string asks for: is this reference the last one? -1 if it is not. */
static int look_at_each(Py_ssize_t count) {
    uintptr_t thread = this_thread();
    for (PyUnicodeObject *str = heads; str < heads + count; str++) {
        if (!only_reference((PyObject *)str, thread)) {
            return -1;
        }
    }
    return 0;
}

/* As many bytes with as few instructions as the C library knows how. */
static void write_memory(Py_ssize_t count) {
    memset(heads, 1, count * sizeof(*heads));
    memset(items, 1, count * sizeof(*items));
}

/* [/floor] */

/* The memory stays: what is measured is writing, not asking for it. Heads begin with a cache line, as those of pages do. */
static int reserve(Py_ssize_t count) {
    if (count > capacity) {
        capacity = 0;
        free(heads);
        free(items);
        heads = aligned_alloc(64, (count * sizeof(*heads) + 63) / 64 * 64);
        items = malloc(count * sizeof(*items));
        if (!heads || !items) {
            PyErr_NoMemory();
            return -1;
        }
        capacity = count;
    }
    return 0;
}

/* One of those that write heads; -1 if there is no such one. */
static int write_heads(const char *name, const Request *request) {
    Py_ssize_t count = request->count;
    if (!strcmp(name, "memory")) {
        write_memory(count);
    } else if (!strcmp(name, "near")) {
        write_near(request);
    } else if (!strcmp(name, "bytes")) {
        write_bytes(request, 0, count);
    } else if (!strcmp(name, "bytes and drop")) {
        write_bytes(request, 0, count);
        return look_at_each(count);
    } else {
        return -1;
    }
    return 0;
}

Py_ssize_t run_floor(const char *name, const Request *request) {
    Py_ssize_t count = request->count;
    pthread_mutex_lock(&lock);
    int reserved = reserve(count) == 0, failed = !reserved || write_heads(name, request);
    pthread_mutex_unlock(&lock);
    if (failed && reserved) {
        PyErr_Format(PyExc_ValueError, "no such floor: %s", name);
    }
    return failed ? -1 : count * (Py_ssize_t)(sizeof(*heads) + sizeof(*items));
}
