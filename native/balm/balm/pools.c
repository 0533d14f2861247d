/* Strings one by one from a pool with one lock: the original's first design. */
#include "makers.h"

#include <pthread.h>

enum { COMPACT_BYTES = 128, AT_ONCE = 256 };

/* [pool] */
typedef struct {
    PyUnicodeObject str;
    Buffer *buffer;
} PooledView;

/* A dead string is linked through its characters: a reader in another thread may still look at its head. */
typedef struct Dead {
    char head[sizeof(PyASCIIObject)];
    struct Dead *next;
} Dead;

typedef struct {
    pthread_mutex_t lock;
    Dead *first;
    size_t bytes; /* of one string */
} Pool;

static Pool views = {PTHREAD_MUTEX_INITIALIZER, NULL, sizeof(PooledView)};
static Pool compacts = {PTHREAD_MUTEX_INITIALIZER, NULL, COMPACT_BYTES};

HELD_ACROSS_FORKS(views, &views.lock)
HELD_ACROSS_FORKS(compacts, &compacts.lock)

/* The memory of a pool stays with it for good: a free-threaded reader may still try to take a reference. */
static int grow(Pool *pool) {
    char *memory = aligned_alloc(64, (AT_ONCE * pool->bytes + 63) / 64 * 64);
    if (!memory) {
        return -1;
    }
    memset(memory, 0, AT_ONCE * pool->bytes);
    for (int i = 0; i < AT_ONCE; i++) {
        Dead *dead = (Dead *)(memory + i * pool->bytes);
        dead->next = pool->first;
        pool->first = dead;
        ASAN_POISON_MEMORY_REGION(dead, pool->bytes);
    }
    return 0;
}

static PyObject *pop(Pool *pool) {
    pthread_mutex_lock(&pool->lock);
    Dead *dead = NULL;
    if (pool->first || grow(pool) == 0) {
        dead = pool->first;
        ASAN_UNPOISON_MEMORY_REGION(dead, pool->bytes);
        pool->first = dead->next;
    }
    pthread_mutex_unlock(&pool->lock);
    return (PyObject *)dead;
}

static void push(Pool *pool, PyObject *op) {
    Dead *dead = (Dead *)op;
    pthread_mutex_lock(&pool->lock);
    dead->next = pool->first;
    pool->first = dead;
    ASAN_POISON_MEMORY_REGION(dead, pool->bytes);
    pthread_mutex_unlock(&pool->lock);
}
/* [/pool] */

static PyObject *new_view(Request *request, const Line *line, PyTypeObject *type, uintptr_t thread) {
    PyObject *op = pop(&views);
    if (op) {
        set_view((PyUnicodeObject *)op, type, thread, request->buffer->data + line->offset, line->length);
        ((PooledView *)op)->buffer = request->buffer;
        request->used++;
    }
    return op;
}

int make_pooled(Request *request, PyObject **items, PyTypeObject *const *types) {
    uintptr_t thread = this_thread();
    for (Py_ssize_t i = 0; i < request->count; i++) {
        const Line *line = &request->lines[i];
        if (line->ascii && !(items[i] = new_view(request, line, types[POOLED_VIEW], thread))) {
            return -1;
        }
    }
    return 0;
}

void pooled_view_dealloc(PyObject *op) {
    Buffer *buffer = ((PooledView *)op)->buffer;
    push(&views, op);
    buffer_drop(buffer, 1);
}

/* Short lines are copied behind the head; long ones are views. */
int make_compact(Request *request, PyObject **items, PyTypeObject *const *types) {
    uintptr_t thread = this_thread();
    for (Py_ssize_t i = 0; i < request->count; i++) {
        const Line *line = &request->lines[i];
        if (!line->ascii) {
            continue;
        }
        if (line->length >= (Py_ssize_t)(COMPACT_BYTES - sizeof(PyASCIIObject))) {
            items[i] = new_view(request, line, types[POOLED_VIEW], thread);
        } else if ((items[i] = pop(&compacts))) {
            set_head(items[i], types[POOLED_COMPACT], thread);
            set_ascii((PyASCIIObject *)items[i], line->length, 1);
            char *data = (char *)((PyASCIIObject *)items[i] + 1);
            memcpy(data, request->buffer->data + line->offset, line->length);
            data[line->length] = 0;
        }
        if (!items[i]) {
            return -1;
        }
    }
    return 0;
}

void pooled_compact_dealloc(PyObject *op) { push(&compacts, op); }
