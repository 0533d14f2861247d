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
    Kind kind = {types[BLOCK_VIEW], this_thread(), sizeof(BlockView), block};
    make_views(request, items, 0, request->ascii_count, block->views, kind);
    block->alive = request->ascii_count;
    block->buffer = request->buffer;
    request->used = 1;
    request->made = block;
    return 0;
}

static void views_dead(Block *block, size_t count) {
    if (count_add(&block->alive, -count) == 0) {
        buffer_drop(block->buffer, 1);
        pthread_mutex_lock(&lock);
        block->next = spare;
        spare = block;
        pthread_mutex_unlock(&lock);
    }
}

void block_view_dealloc(PyObject *op) {
    Block *block = ((BlockView *)op)->block;
    ASAN_POISON_MEMORY_REGION(op, sizeof(BlockView));
    views_dead(block, 1);
}
/* [/block] */

void end_block(void *made) {
    Block *block = made;
    size_t count = count_add(&block->alive, 0); /* the tuple held them all */
    size_t ended = end_each((PyObject *)block->views, count, sizeof(BlockView), this_thread());
    if (ended) {
        views_dead(block, ended);
    } /* else the block may be another text's already */
}
