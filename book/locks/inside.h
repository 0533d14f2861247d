// How many threads are inside at once, and were at most. To be included once.
#pragma once
#include <stdatomic.h>

// Relaxed: they are to order nothing, or ThreadSanitizer would take them for a lock.
static atomic_int now_inside, most_inside;
// Plain: the lock that is tried has to guard it, or ThreadSanitizer reports it.
static long entered;

static void enter(void) {
    entered++;
    int now = atomic_fetch_add_explicit(&now_inside, 1, memory_order_relaxed) + 1;
    int most = atomic_load_explicit(&most_inside, memory_order_relaxed);
    while (now > most && !atomic_compare_exchange_weak_explicit(&most_inside, &most, now, memory_order_relaxed,
                                                                memory_order_relaxed)) {
    }
}

static void leave(void) { atomic_fetch_sub_explicit(&now_inside, 1, memory_order_relaxed); }
