/* Two threads on one variant of races.c, for ThreadSanitizer and helgrind: `stress VARIANT`. No Python here. */
#include "../library/races.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { LOOPS = 200 };

static void unsafe_counter(int thread) { unsafe_increment(LOOPS); }
static void mutex_counter(int thread) { mutex_increment(LOOPS); }
static void atomic_counter(int thread) { atomic_increment(LOOPS); }

static void withdraw(int (*way)(long, long)) {
    for (int i = 0; i < LOOPS; i++) {
        way(1, 0);
    }
}
static void unsafe_bank(int thread) { withdraw(unsafe_withdraw); }
static void safe_bank(int thread) { withdraw(safe_withdraw); }
static void atomic_bank(int thread) { withdraw(atomic_withdraw); }
static void exchange_bank(int thread) { withdraw(exchange_withdraw); }

static void unsafe_lazy(int thread) { lazy_unsafe(0); }
static void locked_lazy(int thread) { lazy_locked(0); }

static void shared_buffer(int thread) { describe_shared(thread); }
static void own_buffer(int thread) { describe_thread_local(thread); }

static void global_error(int thread) { fail_global(thread + why_global()); }
static void own_error(int thread) { fail_thread_local(thread + why_thread_local()); }

static void plain_publication(int thread) { thread ? publish_plain(42) : (void)read_plain(); }
static void release_publication(int thread) { thread ? publish_release(42) : (void)read_acquire(); }

static const struct {
    const char *name;
    void (*run)(int thread);
} variants[] = {
    {"counter, unsafe", unsafe_counter},
    {"counter, mutex", mutex_counter},
    {"counter, atomic", atomic_counter},
    {"bank, unsafe", unsafe_bank},
    {"bank, mutex", safe_bank},
    {"bank, atomic load and store", atomic_bank},
    {"bank, compare and exchange", exchange_bank},
    {"lazy table, unsafe", unsafe_lazy},
    {"lazy table, mutex", locked_lazy},
    {"output buffer, shared", shared_buffer},
    {"output buffer, thread-local", own_buffer},
    {"last error, global", global_error},
    {"last error, thread-local", own_error},
    {"publication, plain flag", plain_publication},
    {"publication, release and acquire", release_publication},
};

struct job {
    void (*run)(int thread);
    int thread;
};

static void *start(void *argument) {
    struct job *job = argument;
    job->run(job->thread);
    return NULL;
}

int main(int argc, char **argv) {
    for (unsigned i = 0; argc == 2 && i < sizeof variants / sizeof *variants; i++) {
        if (strcmp(variants[i].name, argv[1]) == 0) {
            pthread_t threads[2];
            struct job jobs[2];
            bank_open(1000);
            for (int t = 0; t < 2; t++) {
                jobs[t] = (struct job){variants[i].run, t};
                pthread_create(&threads[t], NULL, start, &jobs[t]);
            }
            for (int t = 0; t < 2; t++) {
                pthread_join(threads[t], NULL);
            }
            return 0;
        }
    }
    fprintf(stderr, "usage: stress VARIANT\n");
    return 2;
}
