#include "remedies.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, SHARDS = 16 };
/* Keeps the compiler from doing all rounds of a loop at once. */
#define ONE_BY_ONE() __asm__ volatile("" ::: "memory")

static long unprotected;

static void no_protection(Guarded *guarded, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        unprotected++;
        ONE_BY_ONE();
    }
}

static long unprotected_total(Guarded *guarded) { return unprotected; }

static PyMutex lock;
static long locked;

static void under_mutex(Guarded *guarded, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        PyMutex_Lock(&lock);
        locked++;
        PyMutex_Unlock(&lock);
    }
}

static long locked_total(Guarded *guarded) { return locked; }

static _Atomic long atomic;

static void with_atomic(Guarded *guarded, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        atomic_fetch_add(&atomic, 1);
    }
}

static long atomic_total(Guarded *guarded) { return atomic; }

static void in_critical_section(Guarded *guarded, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        /* No lock in a build with the GIL: there, holding the GIL is the lock. */
        Py_BEGIN_CRITICAL_SECTION(guarded);
        guarded->value++;
        ONE_BY_ONE();
        Py_END_CRITICAL_SECTION();
    }
}

static long guarded_total(Guarded *guarded) { return guarded->value; }

/* [per_thread] */
typedef struct Cell {
    _Alignas(LINE) _Atomic long value; /* a cache line of its own */
    struct Cell *next;
} Cell;

static _Atomic(Cell *) cells;
static _Thread_local Cell *own;

/* A thread's own cell, made when it first counts. It outlives the thread: the total needs it. */
static Cell *own_cell(void) {
    if (own == NULL) {
        own = aligned_alloc(LINE, sizeof *own);
        if (own == NULL) {
            abort();
        }
        own->value = 0;
        own->next = cells;
        while (!atomic_compare_exchange_weak(&cells, &own->next, own)) {
        }
    }
    return own;
}

static void per_thread(Guarded *guarded, int64_t loops) {
    for (int64_t i = 0; i < loops; i++) {
        Cell *cell = own_cell();
        /* Only this thread writes here, so load and store need not be one step. They are atomic all the same, as another
         * thread may read meanwhile: a plain `value++` would be a data race in C11. Relaxed costs nothing on this path. */
        long seen = atomic_load_explicit(&cell->value, memory_order_relaxed);
        atomic_store_explicit(&cell->value, seen + 1, memory_order_relaxed);
    }
}

static long per_thread_total(Guarded *guarded) {
    long total = 0;
    for (Cell *cell = cells; cell; cell = cell->next) {
        total += cell->value;
    }
    return total;
}
/* [/per_thread] */

/* [sharded] */
static struct {
    _Alignas(LINE) _Atomic long value;
} shards[SHARDS];

static void sharded(Guarded *guarded, int64_t loops) {
    static atomic_uint threads;
    static _Thread_local unsigned shard = SHARDS;
    if (shard == SHARDS) {
        shard = threads++ % SHARDS;
    }
    for (int64_t i = 0; i < loops; i++) {
        atomic_fetch_add(&shards[shard].value, 1); /* two threads may have the same shard */
    }
}

static long sharded_total(Guarded *guarded) {
    long total = 0;
    for (int i = 0; i < SHARDS; i++) {
        total += shards[i].value;
    }
    return total;
}
/* [/sharded] */

/* A pair whose two numbers must agree. */
typedef struct Pair {
    long left, right;
    struct Pair *older;
} Pair;

static volatile Pair in_place;
static PyMutex pair_lock;

/* [snapshot] */
static Pair first;
static _Atomic(Pair *) current = &first;

/* Never changed once published. Who may free an old one? Here nobody before the process ends: in real code a
 * reference count, or an epoch, decides. Python's own immutable objects come with that. */
static void publish(long n) {
    Pair *next = malloc(sizeof *next);
    if (next == NULL) {
        abort();
    }
    *next = (Pair){n, n, atomic_load(&current)};
    atomic_store_explicit(&current, next, memory_order_release);
}
/* [/snapshot] */

static int read_in_place(void) { return in_place.left != in_place.right; }

static int read_locked(void) {
    PyMutex_Lock(&pair_lock);
    int torn = in_place.left != in_place.right;
    PyMutex_Unlock(&pair_lock);
    return torn;
}

static int read_snapshot(void) {
    const Pair *pair = atomic_load_explicit(&current, memory_order_acquire);
    return pair->left != pair->right;
}

static void write_in_place(long n) {
    in_place.left = n;
    in_place.right = n;
}

static void write_locked(long n) {
    PyMutex_Lock(&pair_lock);
    write_in_place(n);
    PyMutex_Unlock(&pair_lock);
}

/* [reads] */
/* A loop of its own for each way: nothing but the read, or the write, is in it. */
#define WAY(how, write)                                          \
    static int64_t read_##how##_often(int64_t loops) {           \
        int64_t torn = 0;                                        \
        for (int64_t i = 0; i < loops; i++) {                    \
            torn += read_##how();                                \
            ONE_BY_ONE();                                        \
        }                                                        \
        return torn;                                             \
    }                                                            \
    static void write_##how##_often(int64_t loops) {             \
        for (int64_t n = 0; n < loops; n++) {                    \
            write(n);                                            \
        }                                                        \
    }
WAY(in_place, write_in_place)
WAY(locked, write_locked)
WAY(snapshot, publish)
/* [/reads] */

static const Way ways[] = {
    {"read in place", read_in_place_often, write_in_place_often},
    {"read under a PyMutex", read_locked_often, write_locked_often},
    {"read an immutable snapshot", read_snapshot_often, write_snapshot_often},
};

const Way *find_way(const char *name) {
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].name, name) == 0) {
            return &ways[i];
        }
    }
    return NULL;
}

/* What was read has to go somewhere, or the compiler reads nothing. */
static _Atomic int64_t torn_in_all;

static void reading_in_place(Guarded *guarded, int64_t loops) { torn_in_all += read_in_place_often(loops); }
static void reading_locked(Guarded *guarded, int64_t loops) { torn_in_all += read_locked_often(loops); }
static void reading_snapshot(Guarded *guarded, int64_t loops) { torn_in_all += read_snapshot_often(loops); }

const Remedy remedies[] = {
    {"no protection", no_protection, unprotected_total},
    {"PyMutex", under_mutex, locked_total},
    {"atomic", with_atomic, atomic_total},
    {"critical section", in_critical_section, guarded_total},
    {"sharded, 16 atomics", sharded, sharded_total},
    {"per-thread state", per_thread, per_thread_total},
    {"read in place", reading_in_place, NULL},
    {"read under a PyMutex", reading_locked, NULL},
    {"read an immutable snapshot", reading_snapshot, NULL},
};
const int remedies_count = sizeof remedies / sizeof *remedies;
