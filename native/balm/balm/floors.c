#include "floors.h"

#include <pthread.h>

/* [floor] */
enum { NEAR = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Nobody ever gets one of these as an object. */
static PyUnicodeObject *heads;
/* These stand as strings do for which the next text comes: with one reference. */
static PyUnicodeObject *standing;
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

/* One pass over strings that stand, as their places do: the count of each is looked at, and what another line changes is written. `near`
 * of them, over and over, for the others. -1 if somebody has one. */
static int write_again(const Request *request, Py_ssize_t near) {
    for (Py_ssize_t from = 0; from < request->count; from += near) {
        Py_ssize_t count = request->count - from < near ? request->count - from : near;
        if (!make_again(request, NULL, from, count, standing)) {
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
static int reserve(const Request *request) {
    Py_ssize_t count = request->count, bytes = (count * sizeof(*heads) + 63) / 64 * 64;
    if (count > capacity) {
        capacity = 0;
        free(heads);
        free(standing);
        free(items);
        heads = aligned_alloc(64, bytes);
        standing = aligned_alloc(64, bytes);
        items = malloc(count * sizeof(*items));
        if (!heads || !standing || !items) {
            PyErr_NoMemory();
            return -1;
        }
        make_views(request, items, 0, count, standing, (Kind){&PyUnicode_Type, this_thread(), sizeof(*heads), NULL});
        capacity = count;
    }
    return 0;
}

/* Bytes of a head and its place; and of what another line changes: length, hash, UTF-8 length, UTF-8, data. */
enum { WHOLE = sizeof(PyUnicodeObject) + sizeof(PyObject *), CHANGED = 5 * sizeof(void *) };

/* One of those that write heads: the bytes that it writes for each; -1 if there is no such one. */
static Py_ssize_t write_heads(const char *name, const Request *request) {
    Py_ssize_t count = request->count;
    if (!strcmp(name, "memory")) {
        write_memory(count);
    } else if (!strcmp(name, "near")) {
        write_near(request);
    } else if (!strcmp(name, "bytes")) {
        write_bytes(request, 0, count);
    } else if (!strcmp(name, "bytes and drop")) {
        write_bytes(request, 0, count);
        return look_at_each(count) ? -1 : WHOLE;
    } else if (!strcmp(name, "one pass")) {
        return write_again(request, count) ? -1 : CHANGED;
    } else if (!strcmp(name, "one pass, near")) {
        return write_again(request, NEAR) ? -1 : CHANGED;
    } else {
        return -1;
    }
    return WHOLE;
}

Py_ssize_t run_floor(const char *name, const Request *request) {
    pthread_mutex_lock(&lock);
    int reserved = reserve(request) == 0;
    Py_ssize_t bytes = reserved ? write_heads(name, request) : -1;
    pthread_mutex_unlock(&lock);
    if (reserved && bytes < 0) {
        PyErr_Format(PyExc_ValueError, "no such floor: %s", name);
    }
    return bytes < 0 ? -1 : request->count * bytes;
}
