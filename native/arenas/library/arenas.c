/* The native side of the chapter on arenas: threads that allocate, and what the allocator says of itself. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define API __attribute__((visibility("default")))

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void touch(char *block, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 4096) {
        ((volatile char *)block)[i] = 1;
    }
}

/* Memory that the experiment itself needs. */
static void *needed(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

/* [job] */
/* What one thread does in one round: allocate, touch and free blocks of random sizes. */
typedef struct {
    int blocks;
    size_t smallest, largest;
    int keep; /* leave one small block behind, the last one allocated */
} Job;

enum { MOST_BLOCKS = 4096, SMALL = 64 };

static void work(const Job *job, unsigned *seed) {
    /* On the stack: an array from malloc would be a block of its own in what is measured. */
    char *blocks[MOST_BLOCKS];
    if (job->blocks < 0 || job->blocks > MOST_BLOCKS || job->largest < job->smallest) {
        fprintf(stderr, "a thread takes 0 to %d blocks, of sizes in order\n", MOST_BLOCKS);
        abort();
    }
    for (int i = 0; i < job->blocks; i++) {
        size_t bytes = job->smallest + (size_t)rand_r(seed) % (job->largest - job->smallest + 1);
        blocks[i] = needed(bytes);
        touch(blocks[i], bytes);
    }
    if (job->keep) {
        *(volatile char *)needed(SMALL) = 1; /* lives on, in this thread's arena */
    }
    for (int i = 0; i < job->blocks; i++) {
        free(blocks[i]);
    }
}
/* [/job] */

typedef struct {
    const Job *job;
    pthread_barrier_t *all;
    unsigned seed;
} Start;

static void *short_life(void *argument) {
    Start *start = argument;
    pthread_barrier_wait(start->all); /* nobody ends before the last one has begun: so many threads at once */
    work(start->job, &start->seed);
    return NULL;
}

/* Small stacks: what is measured is the heap. */
static int start_thread(pthread_t *thread, void *(*life)(void *), void *argument) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    int failed = pthread_create(thread, &small, life, argument);
    pthread_attr_destroy(&small);
    return failed;
}

/* [short_lived] */
/* One round of `threads` new threads, which end with it. Returns the ns that it took. */
API int64_t short_lived_round(int threads, int blocks, size_t smallest, size_t largest, int keep, unsigned seed) {
    Job job = {blocks, smallest, largest, keep};
    pthread_t *running = needed(threads * sizeof *running);
    Start *starts = needed(threads * sizeof *starts);
    pthread_barrier_t all;
    pthread_barrier_init(&all, NULL, threads);
    int64_t began = now_ns();
    for (int i = 0; i < threads; i++) {
        starts[i] = (Start){&job, &all, seed + i};
        if (start_thread(&running[i], short_life, &starts[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
    }
    int64_t took = now_ns() - began;
    pthread_barrier_destroy(&all);
    free(starts);
    free(running);
    return took;
}
/* [/short_lived] */

static struct {
    pthread_barrier_t begin, end;
    pthread_mutex_t turn;
    Job job;
    int threads, by_turns, over;
    unsigned seed;
    pthread_t *running;
} pool = {.turn = PTHREAD_MUTEX_INITIALIZER};

static void *pool_life(void *number) {
    unsigned seed = pool.seed + (unsigned)(uintptr_t)number;
    for (;;) {
        pthread_barrier_wait(&pool.begin);
        if (pool.over) {
            return NULL;
        }
        if (pool.by_turns) {
            pthread_mutex_lock(&pool.turn);
        }
        work(&pool.job, &seed);
        if (pool.by_turns) {
            pthread_mutex_unlock(&pool.turn);
        }
        pthread_barrier_wait(&pool.end);
    }
}

/* [pool] */
/* The same work by threads that stay. by_turns: one works at a time, as when requests do not overlap. */
API void pool_start(int threads, int by_turns, unsigned seed) {
    pool.threads = threads;
    pool.by_turns = by_turns;
    pool.seed = seed;
    pool.over = 0;
    pool.running = needed(threads * sizeof *pool.running);
    pthread_barrier_init(&pool.begin, NULL, threads + 1);
    pthread_barrier_init(&pool.end, NULL, threads + 1);
    for (int i = 0; i < threads; i++) {
        if (start_thread(&pool.running[i], pool_life, (void *)(uintptr_t)i) != 0) {
            abort();
        }
    }
}

API int64_t pool_round(int blocks, size_t smallest, size_t largest, int keep) {
    pool.job = (Job){blocks, smallest, largest, keep};
    int64_t began = now_ns();
    pthread_barrier_wait(&pool.begin);
    pthread_barrier_wait(&pool.end);
    return now_ns() - began;
}
/* [/pool] */

API void pool_stop(void) {
    pool.over = 1;
    pthread_barrier_wait(&pool.begin);
    for (int i = 0; i < pool.threads; i++) {
        pthread_join(pool.running[i], NULL);
    }
    free(pool.running);
}

/* [hold] */
/* One thread: `count` blocks of `bytes`, touched, then one small block above them, then all freed but the small one. */
API void allocate_and_free(int count, size_t bytes, int keep) {
    char **blocks = calloc(count, sizeof *blocks);
    for (int i = 0; i < count; i++) {
        if (blocks == NULL || (blocks[i] = malloc(bytes)) == NULL) {
            abort();
        }
        touch(blocks[i], bytes);
    }
    char *pin = NULL;
    for (int tries = 0; keep && count > 0 && (uintptr_t)pin < (uintptr_t)blocks[count - 1] && tries < 10000; tries++) {
        pin = needed(SMALL); /* the first ones may fill gaps further down */
        *(volatile char *)pin = 1;
    }
    for (int i = 0; i < count; i++) {
        free(blocks[i]);
    }
    free(blocks);
}
/* [/hold] */

static char **population;
static int populated;

/* [fork] */
/* Blocks that the parent of forked processes holds, and what its children do with them. */
API void populate(int count, size_t bytes) {
    population = needed(count * sizeof *population);
    populated = count;
    for (int i = 0; i < count; i++) {
        population[i] = needed(bytes);
        touch(population[i], bytes);
    }
}

API void free_every_other(void) {
    for (int i = 0; i < populated; i += 2) {
        free(population[i]);
    }
}
/* [/fork] */

/* [latency] */
typedef struct {
    int pairs, allocate;
    unsigned seed;
    int64_t *ns;
    pthread_barrier_t *warm;
} Latencies;

static void *time_pairs(void *argument) {
    Latencies *mine = argument;
    /* A new thread has no arena and empty caches: the first half is not timed. */
    for (int i = -mine->pairs; i < mine->pairs; i++) {
        if (i == 0) {
            pthread_barrier_wait(mine->warm);
        }
        size_t bytes = 16 + rand_r(&mine->seed) % 2000;
        int64_t began = now_ns();
        if (mine->allocate) {
            char *block = needed(bytes);
            *(volatile char *)block = 1;
            free(block);
        }
        if (i >= 0) {
            mine->ns[i] = now_ns() - began;
        }
    }
    return NULL;
}
/* [/latency] */

/* Time `pairs` of malloc and free in each thread, or of nothing, after as many untimed ones; `ns` has room for
   threads x pairs. */
API void latencies(int threads, int pairs, int64_t *ns, int allocate) {
    pthread_t *running = needed(threads * sizeof *running);
    Latencies *mine = needed(threads * sizeof *mine);
    pthread_barrier_t warm;
    pthread_barrier_init(&warm, NULL, threads);
    for (int i = 0; i < threads; i++) {
        mine[i] = (Latencies){pairs, allocate, i, ns + (size_t)i * pairs, &warm};
        if (start_thread(&running[i], time_pairs, &mine[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
    }
    pthread_barrier_destroy(&warm);
    free(mine);
    free(running);
}

#ifdef __GLIBC__
/* [report] */
/* glibc's own account of its arenas, as XML. The text is freed by the next call. */
API const char *heap_report(void) {
    static char *text;
    size_t bytes;
    free(text);
    FILE *stream = open_memstream(&text, &bytes);
    if (stream == NULL || malloc_info(0, stream) != 0 || fclose(stream) != 0) {
        abort();
    }
    return text;
}
/* [/report] */

API void trim(void) { malloc_trim(0); }
#else
API const char *heap_report(void) { return "<malloc/>"; }
API void trim(void) {}
#endif
