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
    void *made; /* by makers that have an ender: what it needs; NULL as long as there are no strings */
} Request;

typedef int maker(Request *request, PyObject **items, PyTypeObject *const *types);
/* Take away one reference to each string of a request, those that the tuple held: all at once, if they are the last. */
typedef void ender(void *made);

/* Layouts of strings: each has a type of its own, as each is ended in its own way. */
enum { POOLED_VIEW, POOLED_COMPACT, BLOCK_VIEW, PAGE_VIEW, LAYOUTS };

maker make_pooled, make_compact, make_block, make_pages;
ender end_block, end_pages;
void pooled_view_dealloc(PyObject *op);
void pooled_compact_dealloc(PyObject *op);
void block_view_dealloc(PyObject *op);
void page_view_dealloc(PyObject *op);

/* A fork copies a lock that another thread holds, and in the child nobody lets go of it: so whoever forks holds it. */
#define HELD_ACROSS_FORKS(name, lock)                                        \
    static void name##_hold(void) { pthread_mutex_lock(lock); }              \
    static void name##_let_go(void) { pthread_mutex_unlock(lock); }          \
    int name##_across_forks(void) { return pthread_atfork(name##_hold, name##_let_go, name##_let_go); }

/* Each once for a process, before the first string; not 0: no memory. */
int views_across_forks(void), compacts_across_forks(void), blocks_across_forks(void), pages_across_forks(void);

#endif
