#include "outside.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    pthread_t thread;
    callback_type callback;
    void *data;
    long calls;
    int64_t *ns;
    keep_type keep;
} job;

static void run(void *what) {
    job *one = what;
    for (long call = 0; call < one->calls; call++) {
        int64_t began = now_ns();
        one->callback(one->data);
        one->ns[call] = now_ns() - began;
    }
}

static void *work(void *what) {
    job *one = what;
    if (one->keep) {
        one->keep(run, one);
    } else {
        run(one);
    }
    return NULL;
}

int call_from_threads(callback_type callback, void *data, int threads, long calls, int64_t *ns, keep_type keep) {
    job *jobs = calloc((size_t)threads, sizeof *jobs);
    int started = 0, error = jobs ? 0 : ENOMEM;
    while (!error && started < threads) {
        job *one = &jobs[started];
        *one = (job){.callback = callback, .data = data, .calls = calls, .ns = ns + started * calls, .keep = keep};
        error = pthread_create(&one->thread, NULL, work, one);
        started += !error;
    }
    while (started > 0) {
        pthread_join(jobs[--started].thread, NULL);
    }
    free(jobs);
    return error;
}

typedef struct {
    pthread_t thread;
    callback_type callback;
    void *data;
    long sleep_us;
    int64_t *began;
} answer;

void answer_here(long sleep_us, int64_t *began) {
    struct timespec rest = {sleep_us / 1000000, sleep_us % 1000000 * 1000};
    while (nanosleep(&rest, &rest) == -1 && errno == EINTR) {
    }
    *began = now_ns();
}

static void *do_answer(void *what) {
    answer *one = what;
    answer_here(one->sleep_us, one->began);
    one->callback(one->data);
    return NULL;
}

void *answer_later(callback_type callback, void *data, long sleep_us, int64_t *began) {
    answer *one = malloc(sizeof *one);
    if (one) {
        *one = (answer){.callback = callback, .data = data, .sleep_us = sleep_us, .began = began};
        if (pthread_create(&one->thread, NULL, do_answer, one)) {
            free(one);
            one = NULL;
        }
    }
    return one;
}

void wait_for_answer(void *what) {
    answer *one = what;
    pthread_join(one->thread, NULL);
    free(one);
}

void ring(void *eventfd) {
    uint64_t one = 1;
    while (write((int)(intptr_t)eventfd, &one, sizeof one) == -1 && errno == EINTR) {
    }
}
