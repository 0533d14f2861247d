// How many threads are inside at once, and were at most.
#pragma once
#include <atomic>

inline std::atomic<int> now_inside{0}, most_inside{0};
// Plain: the lock that is tried has to guard it, or ThreadSanitizer reports it.
inline long entered = 0;

struct Inside {
    Inside() {
        entered++;
        int now = ++now_inside, most = most_inside;
        while (now > most && !most_inside.compare_exchange_weak(most, now)) {
        }
    }
    ~Inside() { --now_inside; }
};
