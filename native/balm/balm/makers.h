/* The ways to make the strings of a text. Each fills `items[i]` for every ASCII line, and leaves the others alone.
 *
 * A maker may run detached, that is without the GIL: it calls nothing of CPython. `type` is the type that its strings
 * get. -1 if there is no memory; what was made until then is in `items`.
 */
#ifndef BALM_MAKERS_H
#define BALM_MAKERS_H

#include "buffer.h"

typedef struct {
    Buffer *buffer; /* kept once for each ASCII line before; afterwards `used` of these references belong to strings */
    const Line *lines;
    Py_ssize_t count, ascii_count;
    size_t used;
    int attached; /* does the maker run with a thread state? */
    size_t held, holds; /* the number of the tuple whose strings the places held before, and hold now; 0: of none */
    void *made; /* by makers that have an ender: what it needs; NULL as long as there are no strings */
} Request;

typedef int maker(Request *request, PyObject **items, PyTypeObject *const *types);
/* Take away one reference to each string of a request, those that the tuple held. */
typedef void ender(void *made);

/* [eight] */
/* What the strings of one piece of memory share. */
typedef struct {
    PyTypeObject *type;
    uintptr_t thread;
    size_t bytes; /* from one to the next */
    void *owner;  /* what stands behind each head; NULL: nothing does */
} Kind;

/* Strings of `count` ASCII lines from `first` on, and their places. All heads before all places, as memory takes stores that lie
 * side by side at once. */
static inline void set_views(char *first, PyObject **items, const Line *lines, int count, const char *text, Kind kind) {
    for (int i = 0; i < count; i++) {
        PyUnicodeObject *str = (PyUnicodeObject *)(first + i * kind.bytes);
        set_view(str, kind.type, kind.thread, text + lines[i].offset, lines[i].length);
        if (kind.owner) {
            *(void **)(str + 1) = kind.owner;
        }
    }
    for (int i = 0; i < count; i++) {
        items[i] = (PyObject *)(first + i * kind.bytes);
    }
}

/* The next `count` strings of a text, eight at once if all of its lines are ASCII. `line` is where to begin; returns where to go on. */
static inline Py_ssize_t make_views(const Request *request, PyObject **items, Py_ssize_t line, size_t count, void *memory,
                                    Kind kind) {
    const char *text = request->buffer->data;
    char *next = memory, *end = next + count * kind.bytes;
    ASAN_UNPOISON_MEMORY_REGION(next, count * kind.bytes);
    if (request->ascii_count == request->count) {
        for (; next + 8 * kind.bytes <= end; next += 8 * kind.bytes, line += 8) {
            set_views(next, items + line, request->lines + line, 8, text, kind);
        }
    }
    for (; next < end; line++) {
        if (request->lines[line].ascii) {
            set_views(next, items + line, request->lines + line, 1, text, kind);
            next += kind.bytes;
        }
    }
    return line;
}
/* [/eight] */

/* `count` strings that nobody has become those of other lines: all are looked at before one is written. 0 if somebody has one.
 * items: NULL if their places hold them already. */
static inline int set_again(PyUnicodeObject *str, PyObject **items, const Line *lines, int count, const char *text) {
    /* [again] */
    uintptr_t all = 0;
    for (int i = 0; i < count; i++) {
        all |= references((PyObject *)&str[i]);
    }
    if (all != 1) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        set_text(&str[i], text + lines[i].offset, lines[i].length);
    }
    /* [/again] */
    for (int i = 0; items && i < count; i++) {
        items[i] = (PyObject *)&str[i];
    }
    return 1;
}

/* The next `count` strings of a text that is ASCII throughout, in heads that this thread filled in for an older one: eight at once, in
 * one pass over them. 0 as soon as somebody has one of these; all before it are strings of this text by then. */
static inline int make_again(const Request *request, PyObject **items, Py_ssize_t line, size_t count, PyUnicodeObject *str) {
    const char *text = request->buffer->data;
    PyUnicodeObject *end = str + count;
    for (; str < end; line += 8, str += 8) {
        int left = end - str < 8 ? end - str : 8;
        PyObject **places = items ? items + line : NULL;
        int made = left == 8 ? set_again(str, places, request->lines + line, 8, text)
                             : set_again(str, places, request->lines + line, left, text);
        if (!made) {
            return 0;
        }
    }
    return 1;
}

/* Layouts of strings: each has a type of its own, as each is ended in its own way. */
enum {
    POOLED_VIEW,
    POOLED_COMPACT,
    BLOCK_VIEW,
    PAGE_VIEW,
#ifndef Py_GIL_DISABLED
    WRITTEN_POOLED,
    WRITTEN_BLOCK,
#endif
    LAYOUTS
};

maker make_pooled, make_compact, make_block, make_pages, make_one_pass;
ender end_block, end_pages, end_one_pass;
void pooled_view_dealloc(PyObject *op);
void pooled_compact_dealloc(PyObject *op);
void block_view_dealloc(PyObject *op);
void page_view_dealloc(PyObject *op);
#ifndef Py_GIL_DISABLED
/* As the original has them, for texts that are ASCII throughout. */
maker make_pooled_as_written, make_block_as_written;
ender end_one_by_one;
void pooled_as_written_dealloc(PyObject *op);
void block_as_written_dealloc(PyObject *op);
int nodes_across_forks(void), written_across_forks(void);
#endif

/* A fork copies a lock that another thread holds, and in the child nobody lets go of it: so whoever forks holds it. */
#define HELD_ACROSS_FORKS(name, lock)                                        \
    static void name##_hold(void) { pthread_mutex_lock(lock); }              \
    static void name##_let_go(void) { pthread_mutex_unlock(lock); }          \
    int name##_across_forks(void) { return pthread_atfork(name##_hold, name##_let_go, name##_let_go); }

/* A text of more bytes than this is not kept for strings that nobody has. */
enum { LARGE_TEXT = 1 << 20 };
/* End the strings of all tuples that this thread dropped, or threads that ended. By an attached thread. */
void sweep(void);

/* Each once for a process, before the first string; not 0: no memory. */
int views_across_forks(void), compacts_across_forks(void), blocks_across_forks(void), pages_across_forks(void);

#endif
