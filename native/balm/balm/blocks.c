/* All strings of a text in one piece of memory, which lives as long as any of them: the original's second design. */
#include "makers.h"

#include <pthread.h>

/* [block] */
typedef struct Block Block;

typedef struct {
    PyUnicodeObject str;
    Block *block;
} BlockView;

struct Block {
    Block *next;
    size_t capacity;
    size_t alive; /* changed by attached threads only: count_add */
    Buffer *buffer;
    BlockView views[];
};

/* Blocks that nobody needs, kept for good: a free-threaded reader may still look at the heads in them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block *spare;

HELD_ACROSS_FORKS(blocks, &lock)

static Block *take(size_t count) {
    pthread_mutex_lock(&lock);
    Block **link = &spare;
    while (*link && ((*link)->capacity < count || (*link)->capacity > 2 * count)) {
        link = &(*link)->next;
    }
    Block *block = *link;
    if (block) {
        *link = block->next;
    }
    pthread_mutex_unlock(&lock);
    if (!block && (block = calloc(1, sizeof(Block) + count * sizeof(BlockView)))) {
        block->capacity = count;
    }
    return block;
}

int make_block(Request *request, PyObject **items, PyTypeObject *const *types) {
    Block *block = request->ascii_count ? take(request->ascii_count) : NULL;
    if (!block) {
        return request->ascii_count ? -1 : 0;
    }
    uintptr_t thread = this_thread();
    BlockView *view = block->views;
    ASAN_UNPOISON_MEMORY_REGION(view, request->ascii_count * sizeof(BlockView));
    for (Py_ssize_t i = 0; i < request->count; i++) {
        const Line *line = &request->lines[i];
        if (line->ascii) {
            set_head((PyObject *)view, types[BLOCK_VIEW], thread);
            set_view(&view->str, request->buffer->data + line->offset, line->length);
            view->block = block;
            items[i] = (PyObject *)view++;
        }
    }
    block->alive = request->ascii_count;
    block->buffer = request->buffer;
    request->used = 1;
    return 0;
}

void block_view_dealloc(PyObject *op) {
    Block *block = ((BlockView *)op)->block;
    ASAN_POISON_MEMORY_REGION(op, sizeof(BlockView));
    if (count_add(&block->alive, -1) == 0) {
        buffer_drop(block->buffer, 1);
        pthread_mutex_lock(&lock);
        block->next = spare;
        spare = block;
        pthread_mutex_unlock(&lock);
    }
}
/* [/block] */
