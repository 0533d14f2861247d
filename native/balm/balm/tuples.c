#include "tuples.h"

#include "makers.h"

#include <pthread.h>

/* [tuple] */
typedef struct Spare {
    struct Spare *next;
    Py_ssize_t capacity;
    char gc_head[GC_HEAD_BYTES];
    PyTupleObject tuple;
} Spare;

_Static_assert(offsetof(Spare, tuple) == offsetof(Spare, gc_head) + GC_HEAD_BYTES, "PyGC_Head");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Spare *spare;
HELD_ACROSS_FORKS(tuples, &lock)
static PyTypeObject *known[2];

void tuples_know(PyTypeObject *page_views, PyTypeObject *copied_page_views) {
    known[0] = page_views;
    known[1] = copied_page_views;
}

PyObject *tuple_new(Py_ssize_t count, PyTypeObject *type) {
    pthread_mutex_lock(&lock);
    Spare **link = &spare;
    while (*link && ((*link)->capacity < count || (*link)->capacity > 2 * count + 16)) {
        link = &(*link)->next;
    }
    Spare *found = *link;
    if (found) {
        *link = found->next;
    }
    pthread_mutex_unlock(&lock);
    if (!found) {
        if (!(found = calloc(1, sizeof(Spare) + count * sizeof(PyObject *)))) {
            return NULL;
        }
        found->capacity = count;
    }
    memset(found->gc_head, 0, GC_HEAD_BYTES);
    PyTupleObject *tuple = &found->tuple;
    set_head((PyObject *)tuple, type, this_thread());
    tuple->ob_base.ob_size = count;
#if PY_VERSION_HEX >= 0x030E0000
    tuple->ob_hash = -1;
#endif
    memset(tuple->ob_item, 0, count * sizeof(PyObject *));
    return (PyObject *)tuple;
}

void tuple_dealloc(PyObject *op) {
    PyTupleObject *tuple = (PyTupleObject *)op;
    uintptr_t thread = this_thread();
    PyObject *first = NULL; /* of a run of dead strings in one page */
    uint32_t run = 0;
    for (Py_ssize_t i = 0; i < Py_SIZE(op); i++) {
        PyObject *item = tuple->ob_item[i];
        if (!item || (Py_TYPE(item) != known[0] && Py_TYPE(item) != known[1]) || !only_reference(item, thread)) {
            Py_XDECREF(item);
            continue;
        }
        set_dead(item);
        ASAN_POISON_MEMORY_REGION(item, sizeof(PyUnicodeObject));
        if (run && !same_page(first, item)) {
            page_views_dead(first, run, thread);
            run = 0;
        }
        first = item;
        run++;
    }
    if (run) {
        page_views_dead(first, run, thread);
    }
    Spare *dead = (Spare *)((char *)op - offsetof(Spare, tuple));
    pthread_mutex_lock(&lock);
    dead->next = spare;
    spare = dead;
    pthread_mutex_unlock(&lock);
}
/* [/tuple] */
