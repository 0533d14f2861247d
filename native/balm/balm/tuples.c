#include "tuples.h"

#include <pthread.h>

/* [tuple] */
typedef struct Spare {
    struct Spare *next;
    Py_ssize_t capacity;
    void *made;
    ender *end;
    PyTypeObject *ours; /* NULL: all are */
    size_t holds;
    char gc_head[GC_HEAD_BYTES];
    PyTupleObject tuple;
} Spare;

_Static_assert(offsetof(Spare, tuple) == offsetof(Spare, gc_head) + GC_HEAD_BYTES, "PyGC_Head");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Kept for good and looked through from the first: they grow in number with the sizes that are alive at once. */
static Spare *spare;
HELD_ACROSS_FORKS(tuples, &lock)

static Spare *spare_of(PyObject *tuple) { return (Spare *)((char *)tuple - offsetof(Spare, tuple)); }

PyObject *tuple_new(Py_ssize_t count, PyTypeObject *type, ender *end, PyTypeObject *ours) {
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
    found->made = NULL;
    found->end = end;
    found->ours = ours;
    memset(found->gc_head, 0, GC_HEAD_BYTES);
    PyTupleObject *tuple = &found->tuple;
    set_head((PyObject *)tuple, type, this_thread());
    tuple->ob_base.ob_size = count;
#if PY_VERSION_HEX >= 0x030E0000
    tuple->ob_hash = -1;
#endif
    if (ours) {
        memset(tuple->ob_item, 0, count * sizeof(PyObject *));
    }
    return (PyObject *)tuple;
}

size_t tuple_held(PyObject *tuple) { return spare_of(tuple)->holds; }

void tuple_owns(PyObject *tuple, void *made, size_t holds) {
    spare_of(tuple)->made = made;
    spare_of(tuple)->holds = holds;
}

void tuple_dealloc(PyObject *op) {
    Spare *dead = spare_of(op);
    for (Py_ssize_t i = 0; dead->ours && i < Py_SIZE(op); i++) {
        PyObject *item = dead->tuple.ob_item[i];
        if (item && Py_TYPE(item) != dead->ours) {
            Py_DECREF(item);
        }
    }
    if (dead->made) {
        dead->end(dead->made);
    }
    pthread_mutex_lock(&lock);
    dead->next = spare;
    spare = dead;
    pthread_mutex_unlock(&lock);
}
/* [/tuple] */
