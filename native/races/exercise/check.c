/* Stress and time a tally. Prints {"lost", "bytes", "threads", "ns_per_byte"}. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

void tally(const unsigned char *data, size_t bytes);
long tally_of(int value);

#ifdef SHORT /* for ThreadSanitizer, which is slow and needs one meeting only */
enum { THREADS = 4, CALLS = 4, BYTES = 1000 };
#else
enum { THREADS = 4, CALLS = 100, BYTES = 10000 };
#endif

static unsigned char data[BYTES];

static void *work(void *ignored) {
    for (int i = 0; i < CALLS; i++) {
        tally(data, BYTES);
    }
    return ignored;
}

int main(void) {
    for (int i = 0; i < BYTES; i++) {
        data[i] = i * i % 251;
    }
    pthread_t threads[THREADS];
    struct timespec started, ended;
    clock_gettime(CLOCK_MONOTONIC, &started);
    for (int t = 0; t < THREADS; t++) {
        pthread_create(&threads[t], NULL, work, NULL);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    long expected = (long)THREADS * CALLS * BYTES, counted = 0;
    for (int value = 0; value < 256; value++) {
        counted += tally_of(value);
    }
    double ns = (ended.tv_sec - started.tv_sec) * 1e9 + (ended.tv_nsec - started.tv_nsec);
    printf("{\"lost\": %ld, \"bytes\": %ld, \"threads\": %d, \"ns_per_byte\": %.4f}\n", expected - counted, expected,
           THREADS, ns / expected);
    return 0;
}
