/* Native code with state of its own: racy and safe variants of what extensions do. It knows nothing of Python. */
#ifndef RACES_H
#define RACES_H

#include <stdint.h>

#define API __attribute__((visibility("default")))

/* Counter: `iterations` increments of one global. Returns what it then reads. */
API long unsafe_increment(int iterations);
API long mutex_increment(int iterations);
API long mutex_once_increment(int iterations);
API long atomic_increment(int iterations);
API void counter_reset(void);
API long counter_value(void);

/* The same by `parties` threads that wait for each other inside of the call, at most `patience_ns` after the first came. What
 * each notes of its work: from when to when (CLOCK_MONOTONIC), on which core it began and ended (-1: not known), how often it
 * lost the core meanwhile, and whether all had come. */
typedef struct {
    int64_t begin_ns, end_ns, preempted;
    int32_t first_core, last_core, met;
} Visit;
API long unsafe_together(int iterations, int parties, int64_t patience_ns, Visit *visit);
API long mutex_together(int iterations, int parties, int64_t patience_ns, Visit *visit);
API long atomic_together(int iterations, int parties, int64_t patience_ns, Visit *visit);

/* Bank: take `amount` dollars if they are there. 1 if it was paid out. `window_us`: sleep between check and act. */
API void bank_open(long dollars);
API long bank_balance(void);
API int unsafe_withdraw(long amount, long window_us);
API int reread_withdraw(long amount);
API int unsafe_withdraw_window(long amount, long iterations);
API int safe_withdraw(long amount, long window_us);
API int atomic_withdraw(long amount, long window_us);
API int exchange_withdraw(long amount, long window_us);
API long double_payments(int rounds, long window_ns, long spread_ns, unsigned seed);

/* Lazy initialisation: a table per slot, made by the first who asks. */
enum { SLOTS = 4096 };
API const void *lazy_unsafe(int slot);
API const void *lazy_locked(int slot);
API int tables_built(void);

/* A text for a number, in a buffer that all share, in one for each thread, or in the caller's. */
API const char *describe_shared(long n);
API const char *describe_thread_local(long n);
API void describe_into(long n, char *text, int size);

/* The reason of the last failure: one for all, one for each thread, or errno, which is one for each thread too. */
API void fail_global(int code);
API int why_global(void);
API void fail_thread_local(int code);
API int why_thread_local(void);
API void fail_errno(int code);

/* Publication: write data, then raise a flag; whoever sees the flag reads the data (0 if it was not there). */
API void publish_plain(long value);
API long read_plain(void);
API void publish_release(long value);
API long read_acquire(void);

/* Wait, without Python, until `parties` threads are here. */
API void meet(int parties);

#endif
