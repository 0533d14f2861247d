// How many threads are inside at once, and were at most.
#pragma once
#include <atomic>

// Relaxed: they are to order nothing, or ThreadSanitizer would take them for a lock.
inline std::atomic<int> now_inside{0}, most_inside{0};
// Plain: the lock that is tried has to guard it, or ThreadSanitizer reports it.
inline long entered = 0;

struct Inside {
    Inside() {
        entered++;
        int now = now_inside.fetch_add(1, std::memory_order_relaxed) + 1, most = most_inside.load();
        while (now > most && !most_inside.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
        }
    }
    ~Inside() { now_inside.fetch_sub(1, std::memory_order_relaxed); }
};
