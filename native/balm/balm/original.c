/* The original's two designs as their author wrote them (gilbench, e61a502): heads that are filled in once, and a tuple that drops
 * its strings one by one. For builds with a GIL, and for measuring only: a hash of theirs is always 0. */
#include "tuples.h"

#include <pthread.h>

#ifndef Py_GIL_DISABLED
/* [as written] */
enum { AT_ONCE = 1 << 13, PLACE = offsetof(PyASCIIObject, state) + 4 };

typedef struct {
    PyUnicodeObject str;
    Buffer *buffer;
} View;

/* Filled in once. The hash of 0 is what allows that: it is never "not known", so CPython never puts one in its place that the
 * next string in this memory would inherit. A view's place in its block stands in bytes that CPython leaves alone. */
static void fill_in(View *view, PyTypeObject *type, unsigned place) {
    set_view(&view->str, type, 0, NULL, 0);
    view->str._base._base.hash = 0;
    memcpy((char *)view + PLACE, &place, sizeof(place));
}

/* What is written for each string: five fields, and one reference. */
static PyObject *point(View *view, Buffer *buffer, const Line *line) {
    char *text = buffer->data + line->offset;
    view->buffer = buffer;
    view->str.data.any = view->str._base.utf8 = text;
    view->str._base.utf8_length = view->str._base._base.length = line->length;
    ((PyObject *)view)->ob_refcnt = 1;
    return (PyObject *)view;
}
/* [/as written] */

typedef struct Node {
    struct Node *next;
    View view;
} Node;

typedef struct Written {
    struct Written *next;
    size_t alive;
    View views[AT_ONCE];
} Written;

static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER, blocks_lock = PTHREAD_MUTEX_INITIALIZER;
static Node *nodes;
static Written *blocks;

static Node *pop(PyTypeObject *type) {
    pthread_mutex_lock(&nodes_lock);
    Node *more = nodes ? NULL : malloc(AT_ONCE * sizeof(Node));
    for (Node *node = more; more && node < more + AT_ONCE; node++) {
        fill_in(&node->view, type, 0);
        node->next = nodes;
        nodes = node;
    }
    Node *node = nodes;
    nodes = node ? node->next : NULL;
    pthread_mutex_unlock(&nodes_lock);
    return node;
}

int make_pooled_as_written(Request *request, PyObject **items, PyTypeObject *const *types) {
    for (Py_ssize_t i = 0; i < request->count; i++) {
        Node *node = pop(types[WRITTEN_POOLED]);
        if (!node) {
            return -1;
        }
        items[i] = point(&node->view, request->buffer, &request->lines[i]);
    }
    request->used = request->count;
    request->made = items;
    return 0;
}

void pooled_as_written_dealloc(PyObject *op) {
    Node *node = (Node *)((char *)op - offsetof(Node, view));
    buffer_drop(node->view.buffer, 1);
    pthread_mutex_lock(&nodes_lock);
    node->next = nodes;
    nodes = node;
    pthread_mutex_unlock(&nodes_lock);
}

int make_block_as_written(Request *request, PyObject **items, PyTypeObject *const *types) {
    if (request->count > AT_ONCE) {
        return -1;
    }
    pthread_mutex_lock(&blocks_lock);
    Written *block = blocks;
    blocks = block ? block->next : NULL;
    pthread_mutex_unlock(&blocks_lock);
    if (!block) {
        if (!(block = malloc(sizeof(Written)))) {
            return -1;
        }
        for (unsigned place = 0; place < AT_ONCE; place++) {
            fill_in(&block->views[place], types[WRITTEN_BLOCK], place);
        }
    }
    block->alive = request->count;
    for (Py_ssize_t i = 0; i < request->count; i++) {
        items[i] = point(&block->views[i], request->buffer, &request->lines[i]);
    }
    request->used = request->count;
    request->made = items;
    return 0;
}

void block_as_written_dealloc(PyObject *op) {
    View *view = (View *)op;
    unsigned place;
    memcpy(&place, (char *)op + PLACE, sizeof(place));
    Written *block = (Written *)((char *)(view - place) - offsetof(Written, views));
    buffer_drop(view->buffer, 1);
    if (--block->alive == 0) {
        pthread_mutex_lock(&blocks_lock);
        block->next = blocks;
        blocks = block;
        pthread_mutex_unlock(&blocks_lock);
    }
}

void end_one_by_one(void *made) {
    PyObject **items = made;
    Py_ssize_t count = Py_SIZE((char *)made - offsetof(PyTupleObject, ob_item));
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_DECREF(items[i]);
    }
}

_Static_assert(sizeof(((PyASCIIObject *)0)->state) == 4 && sizeof(PyASCIIObject) == PLACE + 4, "four bytes behind the state");
HELD_ACROSS_FORKS(nodes, &nodes_lock)
HELD_ACROSS_FORKS(written, &blocks_lock)
#endif
