/* Strings in pages that belong to a thread: no lock, no atomic operation, and no pointer from a string to its page. */
#include "makers.h"

#include <pthread.h>

enum { PAGE_BYTES = 64 * 1024, LOOKED_AT = 8 };

/* [page] */
typedef struct Page {
    struct Page *next;        /* of the same thread, or of those that ended */
    struct Page *made_next;   /* of the same text */
    size_t number;            /* of the tuple whose first page it is; 0: it is no first one */
    void *queue;              /* of the thread that may make strings in it; NULL: of none */
    Buffer *buffer;
    uintptr_t owner;          /* the thread that may make strings in it; 0: none */
    uint32_t used;            /* strings made since the page was last empty */
    uint32_t freed;           /* of those, ended by the owner, or under the GIL */
    uint32_t freed_elsewhere; /* ended by other threads of a free-threaded build */
} Page;

enum { FIRST = 128, VIEWS_A_PAGE = (PAGE_BYTES - FIRST) / sizeof(PyUnicodeObject) };
_Static_assert(sizeof(Page) <= FIRST, "Page");

/* Pages lie at multiples of their size. */
static inline Page *page_of(PyObject *op) { return (Page *)((uintptr_t)op & ~(uintptr_t)(PAGE_BYTES - 1)); }
static inline PyUnicodeObject *first_of(Page *page) { return (PyUnicodeObject *)((char *)page + FIRST); }
/* [/page] */
/* A thread's pages, the oldest first: those that it ends at once, and those that it writes again. When it ends, others may have them. */
typedef struct {
    Page *oldest, *newest;
} Queue;

static _Thread_local Queue mine, written_again;
static Queue orphans;
/* Tuples of this thread that were dropped, and at whose strings nobody has looked since: the older first, each a list of pages. */
enum { TUPLES_IN_LIMBO = 2 };
static _Thread_local Page *limbo[TUPLES_IN_LIMBO];
/* Pages of such tuples whose threads ended. */
static Page *left_behind;
static pthread_mutex_t orphans_lock = PTHREAD_MUTEX_INITIALIZER;
HELD_ACROSS_FORKS(pages, &orphans_lock)
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_end;

/* The first page of the tuple that is in limbo for longest, by itself. */
static Page *take_from_limbo(void) {
    Page *page = limbo[0];
    if (page) {
        limbo[0] = page->made_next;
        page->made_next = NULL;
    }
    if (!limbo[0]) {
        limbo[0] = limbo[1];
        limbo[1] = NULL;
    }
    return page;
}

static void append(Queue *queue, Page *page) {
    page->next = NULL;
    if (queue->oldest) {
        queue->newest->next = page;
    } else {
        queue->oldest = page;
    }
    queue->newest = page;
}

static Page *take_oldest(Queue *queue) {
    Page *page = queue->oldest;
    if (page) {
        queue->oldest = page->next;
    }
    return page;
}

static int is_empty(Page *page) {
    return __atomic_load_n(&page->freed, __ATOMIC_ACQUIRE)
           + __atomic_load_n(&page->freed_elsewhere, __ATOMIC_ACQUIRE) == page->used;
}

/* What other threads ended last still holds the text: they must not look at a page that they have just given away.
   The counts come first: with the GIL, a thread that ends without it may stand here while another one, with it, ends the last
   string, drops the text and then stores the count. Whoever reads that count sees that the text is gone. */
static void drop_buffer_if_empty(Page *page) {
    if (is_empty(page) && page->buffer) {
        buffer_drop(page->buffer, 1);
        page->buffer = NULL;
    }
}

static void orphan_pages(void *unused) {
    pthread_mutex_lock(&orphans_lock);
    for (Page *page; (page = take_oldest(&mine)) || (page = take_oldest(&written_again));) {
        drop_buffer_if_empty(page);
        __atomic_store_n(&page->owner, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&page->queue, NULL, __ATOMIC_RELAXED);
        append(&orphans, page);
    }
    /* To end strings, a thread must be attached: another one will. */
    for (Page *page; (page = take_from_limbo());) {
        page->made_next = left_behind;
        __atomic_store_n(&left_behind, page, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&orphans_lock);
}

static void prepare(void) { pthread_key_create(&at_end, orphan_pages); }

/* [empty] */
/* An empty page: one of our oldest, else one of a thread that ended, else a new one. */
static Page *find_empty(Queue *queue) {
    for (int i = 0; i < LOOKED_AT; i++) {
        Page *page = take_oldest(queue);
        if (!page || is_empty(page)) {
            return page;
        }
        append(queue, page);
    }
    return NULL;
}
/* [/empty] */

static Page *acquire(Queue *queue, uintptr_t thread) {
    Page *page = find_empty(queue);
    if (!page) {
        pthread_once(&once, prepare);
        pthread_setspecific(at_end, &mine);
        pthread_mutex_lock(&orphans_lock);
        page = find_empty(&orphans);
        pthread_mutex_unlock(&orphans_lock);
    }
    if (!page) {
        page = aligned_alloc(PAGE_BYTES, PAGE_BYTES);
        if (!page) {
            return NULL;
        }
        memset(page, 0, PAGE_BYTES);
    }
    drop_buffer_if_empty(page);
    page->number = page->used = page->freed = page->freed_elsewhere = 0;
    __atomic_store_n(&page->owner, thread, __ATOMIC_RELAXED);
    __atomic_store_n(&page->queue, queue, __ATOMIC_RELAXED);
    append(queue, page);
    return page;
}

/* [make] */
/* Strings of the next lines, of which `left` are ours to make, in an empty page; NULL if there is no memory. */
static Page *fill_page(Queue *queue, Request *request, PyObject **items, Py_ssize_t *line, Py_ssize_t left, Kind kind) {
    Page *page = acquire(queue, kind.thread);
    if (page) {
        page->buffer = request->buffer;
        page->used = left < VIEWS_A_PAGE ? left : VIEWS_A_PAGE;
        request->used++;
        *line = make_views(request, items, *line, page->used, first_of(page), kind);
    }
    return page;
}

int make_pages(Request *request, PyObject **items, PyTypeObject *const *types) {
    Kind kind = {types[PAGE_VIEW], this_thread(), sizeof(PyUnicodeObject), NULL};
    Py_ssize_t line = 0;
    for (Py_ssize_t left = request->ascii_count; left;) {
        Page *page = fill_page(&mine, request, items, &line, left, kind);
        if (!page) {
            return -1;
        }
        page->made_next = request->made;
        request->made = page;
        left -= page->used;
    }
    return 0;
}
/* [/make] */

static void views_dead(Page *page, uint32_t count, uintptr_t thread) {
#ifdef Py_GIL_DISABLED
    uintptr_t owner = __atomic_load_n(&page->owner, __ATOMIC_RELAXED);
    if (owner == 0) {
        /* Nobody may take an orphan while we hold the lock. */
        pthread_mutex_lock(&orphans_lock);
        __atomic_fetch_add(&page->freed_elsewhere, count, __ATOMIC_ACQ_REL);
        if (__atomic_load_n(&page->owner, __ATOMIC_RELAXED) == 0) {
            drop_buffer_if_empty(page);
        }
        pthread_mutex_unlock(&orphans_lock);
        return;
    }
    if (owner != thread) {
        /* From here on its owner may use the page again: look at it no more. */
        __atomic_fetch_add(&page->freed_elsewhere, count, __ATOMIC_ACQ_REL);
        return;
    }
    uint32_t elsewhere = __atomic_load_n(&page->freed_elsewhere, __ATOMIC_ACQUIRE);
#else
    uint32_t elsewhere = 0;
#endif
    uint32_t freed = page->freed + count;
    if (freed + elsewhere == page->used) {
        buffer_drop(page->buffer, 1);
        page->buffer = NULL;
    }
    __atomic_store_n(&page->freed, freed, __ATOMIC_RELEASE);
}

void page_view_dealloc(PyObject *op) {
    ASAN_POISON_MEMORY_REGION(op, sizeof(PyUnicodeObject));
    views_dead(page_of(op), 1, this_thread());
}

/* [end] */
void end_pages(void *made) {
    uintptr_t thread = this_thread();
    for (Page *page = made, *next; page; page = next) {
        next = page->made_next; /* an empty page may be another text's at once */
        /* The tuple held all of its strings. */
        PyObject *first = (PyObject *)first_of(page);
        uint32_t ended = end_each(first, page->used, sizeof(PyUnicodeObject), thread);
        if (ended) {
            views_dead(page, ended, thread);
        }
    }
}
/* [/end] */

/* [one pass] */
/* The strings of a page in limbo become those of the next lines. NULL if there is no such page. One of which somebody has a string, or that
 * does not fit, is ended as `end_pages` does it, with what was written into it; and the next one is tried.
 * stand: do the places hold these strings already? So it is with the same tuple, as long as one page follows the other as before. */
static Page *fill_again(Request *request, PyObject **items, Py_ssize_t line, Py_ssize_t left, Kind kind, int *stand) {
    for (Page *page; (page = take_from_limbo()); *stand = 0) {
        PyUnicodeObject *first = first_of(page);
        if (page->number) {
            *stand = line == 0 && page->number == request->held;
            page->number = 0;
        }
        if (page->used <= left && Py_TYPE(first) == kind.type
            && make_again(request, *stand ? NULL : items, line, page->used, first)) {
            buffer_drop(page->buffer, 1);
            page->buffer = request->buffer;
            request->used++;
            return page;
        }
        end_pages(page);
    }
    return NULL;
}

int make_one_pass(Request *request, PyObject **items, PyTypeObject *const *types) {
    static size_t numbers;
    Kind kind = {types[PAGE_VIEW], this_thread(), sizeof(PyUnicodeObject), NULL};
    /* Detached, we may drop no text and nobody's string. */
    int again = request->attached && request->ascii_count == request->count;
    Py_ssize_t line = 0;
    Page *made = NULL, **end = &made;
    int stand = 0;
    for (Py_ssize_t left = request->ascii_count; left;) {
        Page *page = again ? fill_again(request, items, line, left, kind, &stand) : NULL;
        if (page) {
            line += page->used;
        } else if (!(page = fill_page(&written_again, request, items, &line, left, kind))) {
            return -1;
        }
        *end = page;
        end = &page->made_next;
        *end = NULL;
        request->made = made;
        left -= page->used;
    }
    if (again && made) {
        made->number = request->holds = count_add(&numbers, 1);
    }
    return 0;
}

void sweep(void) {
    for (Page *page; (page = take_from_limbo());) {
        end_pages(page);
    }
    if (__atomic_load_n(&left_behind, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(&orphans_lock);
        Page *pages = left_behind;
        __atomic_store_n(&left_behind, NULL, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&orphans_lock);
        end_pages(pages);
    }
}

/* The tuple is dropped: its reference to each string is now the pages', and nobody looks whether it is the last one. That is for the next
 * tuple to see, or for `sweep`. Another thread's strings end at once, and those of a large text that nobody else needs. */
void end_one_pass(void *made) {
    Page *first = made;
    Buffer *buffer = first->buffer;
    int large = buffer->bytes > LARGE_TEXT && !__atomic_load_n(&buffer->has_text, __ATOMIC_RELAXED);
    if (large || __atomic_load_n(&first->queue, __ATOMIC_RELAXED) != &written_again) {
        end_pages(first);
        return;
    }
    if (limbo[TUPLES_IN_LIMBO - 1] || __atomic_load_n(&left_behind, __ATOMIC_RELAXED)) {
        sweep();
    }
    limbo[limbo[0] != NULL] = first;
}
/* [/one pass] */
