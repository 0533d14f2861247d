// How many threads are inside at once, and were at most. To be included once.
#pragma once
#include <stdatomic.h>

static atomic_int now_inside, most_inside;
// Plain: the lock that is tried has to guard it, or ThreadSanitizer reports it.
static long entered;

static void enter(void) {
    entered++;
    int now = atomic_fetch_add(&now_inside, 1) + 1, most = atomic_load(&most_inside);
    while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now)) {
    }
}

static void leave(void) { atomic_fetch_sub(&now_inside, 1); }
