/* For sched_getcpu and RUSAGE_THREAD, where there are such. */
#define _GNU_SOURCE
#include "races.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* Keep the compiler from turning the loop into one addition. It is no instruction. */
#define COMPILER_BARRIER() __asm__ volatile("" ::: "memory")

static long global_counter;
static _Atomic long atomic_counter;
static pthread_mutex_t counter_lock = PTHREAD_MUTEX_INITIALIZER;

/* [unsafe] */
API long unsafe_increment(int iterations) {
    for (int i = 0; i < iterations; i++) {
        long seen = global_counter; /* read */
        COMPILER_BARRIER();
        global_counter = seen + 1; /* write: what others wrote meanwhile is lost */
        COMPILER_BARRIER();
    }
    return global_counter;
}
/* [/unsafe] */

/* [mutex] */
API long mutex_increment(int iterations) {
    long seen = 0;
    for (int i = 0; i < iterations; i++) {
        pthread_mutex_lock(&counter_lock);
        seen = ++global_counter;
        pthread_mutex_unlock(&counter_lock);
    }
    return seen;
}
/* [/mutex] */

/* [mutex_once] */
API long mutex_once_increment(int iterations) {
    pthread_mutex_lock(&counter_lock); /* the talk's: once, around the whole loop */
    for (int i = 0; i < iterations; i++) {
        global_counter++;
    }
    long seen = global_counter;
    pthread_mutex_unlock(&counter_lock);
    return seen;
}
/* [/mutex_once] */

/* [atomic] */
API long atomic_increment(int iterations) {
    long seen = 0;
    for (int i = 0; i < iterations; i++) {
        seen = atomic_fetch_add_explicit(&atomic_counter, 1, memory_order_relaxed) + 1; /* it orders nothing else */
    }
    return seen;
}
/* [/atomic] */

static atomic_int inside, awake, gate;
static _Atomic int64_t deadline_ns;

API void counter_reset(void) {
    global_counter = 0;
    atomic_counter = 0;
    inside = 0;
    awake = 0;
    gate = 0;
    deadline_ns = 0;
}

API long counter_value(void) { return global_counter + atomic_counter; }

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void spin_ns(int64_t duration) {
    for (int64_t end = now_ns() + duration; now_ns() < end;) {
    }
}

static void sleep_us(long duration) {
    if (duration > 0) {
        struct timespec rest = {duration / 1000000, duration % 1000000 * 1000};
        while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
        }
    }
}

static int current_core(void) {
#ifdef __linux__
    return sched_getcpu();
#else
    return -1;
#endif
}

/* How often the system took the core from this thread, so far; 0 where it does not say. */
static long times_preempted(void) {
#ifdef RUSAGE_THREAD
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
#else
    return 0;
#endif
}

/* [together] */
/* All `parties` threads are to be in this very call at the same time. First they nap, and leave the cores to whoever is still
 * to come. Then all wake up, and the last one opens the gate. Nobody waits for ever: if the caller keeps the GIL, no other
 * thread can come in. The first one sets the end of all waiting. */
static int all_inside(int parties, int64_t patience_ns) {
    int64_t unset = 0;
    atomic_compare_exchange_strong(&deadline_ns, &unset, now_ns() + patience_ns);
    inside++;
    while (inside < parties) {
        if (now_ns() > deadline_ns) {
            return 0;
        }
        sleep_us(100);
    }
    if (atomic_fetch_add(&awake, 1) == parties - 1) {
        gate = 1;
    }
    for (int tries = 0; !gate && now_ns() < deadline_ns; tries++) {
        if (tries > 1000) {
            sched_yield(); /* more threads than cores */
        }
    }
    return gate;
}

/* One thread's part: meet the others, then work, and note when and where. */
static long work_together(long (*increment)(int), int iterations, int parties, int64_t patience_ns, Visit *visit) {
    visit->met = all_inside(parties, patience_ns);
    visit->preempted = -times_preempted();
    visit->first_core = current_core();
    visit->begin_ns = now_ns();
    long seen = increment(iterations);
    visit->end_ns = now_ns();
    visit->last_core = current_core();
    visit->preempted += times_preempted();
    inside--;
    return seen;
}

API long unsafe_together(int iterations, int parties, int64_t patience_ns, Visit *visit) {
    return work_together(unsafe_increment, iterations, parties, patience_ns, visit);
}
/* [/together] */

API long mutex_together(int iterations, int parties, int64_t patience_ns, Visit *visit) {
    return work_together(mutex_increment, iterations, parties, patience_ns, visit);
}

API long atomic_together(int iterations, int parties, int64_t patience_ns, Visit *visit) {
    return work_together(atomic_increment, iterations, parties, patience_ns, visit);
}

static long balance;
static _Atomic long atomic_balance;
static pthread_mutex_t bank_lock = PTHREAD_MUTEX_INITIALIZER;

API void bank_open(long dollars) {
    balance = dollars;
    atomic_balance = dollars;
}

/* Each way of withdrawing keeps one of the two up to date; the lower one is that. */
API long bank_balance(void) { return balance < atomic_balance ? balance : atomic_balance; }

/* [withdraw] */
API int unsafe_withdraw(long amount, long window_us) {
    long seen = balance; /* check */
    if (seen < amount) {
        return 0;
    }
    sleep_us(window_us);
    COMPILER_BARRIER();
    balance = seen - amount; /* act, on what was true then */
    return 1;
}
/* [/withdraw] */

/* [as_run] */
/* The talk's: it checks, reads again, and writes what it read then. */
API int reread_withdraw(long amount) {
    if (balance < amount) {
        return 0;
    }
    sleep_us(100);
    long seen = balance;
    sleep_us(50);
    COMPILER_BARRIER();
    balance = seen - amount;
    return 1;
}

/* Its fast bank: between reading and writing so many turns of a loop that does nothing. */
API int unsafe_withdraw_window(long amount, long iterations) {
    long seen = balance;
    if (seen < amount) {
        return 0;
    }
    for (long i = 0; i < iterations; i++) {
        COMPILER_BARRIER();
    }
    COMPILER_BARRIER();
    balance = seen - amount;
    return 1;
}
/* [/as_run] */

/* [safe_withdraw] */
API int safe_withdraw(long amount, long window_us) {
    pthread_mutex_lock(&bank_lock); /* check and act are one step for all others */
    int paid = unsafe_withdraw(amount, window_us);
    pthread_mutex_unlock(&bank_lock);
    return paid;
}
/* [/safe_withdraw] */

/* [atomic_withdraw] */
API int atomic_withdraw(long amount, long window_us) {
    long seen = atomic_load(&atomic_balance); /* no data race, and wrong all the same */
    if (seen < amount) {
        return 0;
    }
    sleep_us(window_us);
    atomic_store(&atomic_balance, seen - amount);
    return 1;
}
/* [/atomic_withdraw] */

/* [exchange_withdraw] */
API int exchange_withdraw(long amount, long window_us) {
    long seen = atomic_load(&atomic_balance);
    do {
        if (seen < amount) {
            return 0;
        }
        sleep_us(window_us);
    } while (!atomic_compare_exchange_weak(&atomic_balance, &seen, seen - amount)); /* act only if still true */
    return 1;
}
/* [/exchange_withdraw] */

static atomic_int waiting, generation;

/* [meet] */
API void meet(int parties) {
    int mine = generation;
    if (atomic_fetch_add(&waiting, 1) == parties - 1) {
        waiting = 0;
        generation++;
        return;
    }
    for (int tries = 0; generation == mine; tries++) {
        if (tries > 1000) {
            sched_yield(); /* more threads than cores: let the last one come */
        }
    }
}
/* [/meet] */

/* [double_payments] */
/* Two threads call this. In each round there is money for one; both come at a random moment within `spread_ns`.
 * Returns in how many rounds this thread was paid; more than `rounds` together is money made from nothing. */
API long double_payments(int rounds, long window_ns, long spread_ns, unsigned seed) {
    static long purse;
    long paid = 0;
    for (int i = 0; i < rounds; i++) {
        purse = 1;
        meet(2);
        spin_ns((int64_t)((double)rand_r(&seed) / RAND_MAX * spread_ns));
        long seen = *(volatile long *)&purse;
        if (seen >= 1) {
            spin_ns(window_ns);
            *(volatile long *)&purse = seen - 1;
            paid++;
        }
        meet(2);
    }
    return paid;
}
/* [/double_payments] */

enum { ENTRIES = 4096 };
static double *tables[SLOTS];
static atomic_int built;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static double *build_table(void) {
    double *table = malloc(ENTRIES * sizeof *table);
    if (table == NULL) {
        abort();
    }
    for (int i = 0; i < ENTRIES; i++) {
        table[i] = 1.0 / (1 + i);
    }
    built++;
    return table;
}

/* [lazy] */
API const void *lazy_unsafe(int slot) {
    if (tables[slot] == NULL) {
        tables[slot] = build_table(); /* two may come here: two tables, one is lost */
    }
    return tables[slot];
}
/* [/lazy] */

API const void *lazy_locked(int slot) {
    pthread_mutex_lock(&table_lock);
    const void *table = lazy_unsafe(slot);
    pthread_mutex_unlock(&table_lock);
    return table;
}

API int tables_built(void) { return built; }

/* [describe] */
API void describe_into(long n, char *text, int size) { snprintf(text, size, "%ld %ld %ld %ld", n, n, n, n); }

API const char *describe_shared(long n) {
    static char text[100];
    describe_into(n, text, sizeof text);
    return text; /* the next call writes over it, from any thread */
}
/* [/describe] */

API const char *describe_thread_local(long n) {
    static _Thread_local char text[100];
    describe_into(n, text, sizeof text);
    return text;
}

static int global_reason;
static _Thread_local int own_reason;

API void fail_global(int code) { global_reason = code; }
API int why_global(void) { return global_reason; }
API void fail_thread_local(int code) { own_reason = code; }
API int why_thread_local(void) { return own_reason; }
API void fail_errno(int code) { errno = code; }

static long message;
static int flag;
static atomic_int raised;

API void publish_plain(long value) {
    message = value;
    COMPILER_BARRIER();
    flag = 1;
}

API long read_plain(void) { return flag ? message : 0; }

/* [publish] */
API void publish_release(long value) {
    message = value;
    atomic_store_explicit(&raised, 1, memory_order_release); /* whoever sees 1 sees the message too */
}

API long read_acquire(void) { return atomic_load_explicit(&raised, memory_order_acquire) ? message : 0; }
/* [/publish] */
