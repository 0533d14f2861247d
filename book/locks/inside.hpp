// How many threads are inside at once, and were at most.
#pragma once
#include <atomic>

inline std::atomic<int> now_inside{0}, most_inside{0};

struct Inside {
    Inside() {
        int now = ++now_inside, most = most_inside;
        while (now > most && !most_inside.compare_exchange_weak(most, now)) {
        }
    }
    ~Inside() { --now_inside; }
};
