// What leaves a C++ function that C calls: an exception, or a thread that is told to end. Nothing here knows of Python.
#include <pthread.h>
#include <stdexcept>

#define API extern "C" __attribute__((visibility("default")))

using Function = void (*)();

/* [throws] */
API void throws() { throw std::runtime_error("out of C++"); }

// The compiler sees it, and warns: noexcept lets nothing out.
API void throws_noexcept() noexcept { throws(); }

API int caught_inside() noexcept {
    try {
        throws();
    } catch (...) {
        return 1;
    }
    return 0;
}

// One that stands around: 1 if something came out of `function`.
API int caught_outside(Function function) {
    try {
        function();
    } catch (...) {
        return 1;
    }
    return 0;
}
/* [/throws] */

/* What a callback returned, as C sees it; -1 stands for "nothing was written". */
API int called_back(int (*callback)()) {
    int answer = -1;
    answer = callback();
    return answer;
}

namespace {

/* [leave] */
struct Noted {
    int *destroyed;
    ~Noted() { *destroyed = 1; }
};

void plain(Function leave, int *destroyed) {
    Noted noted{destroyed};
    leave();
}

void guarded(Function leave, int *destroyed) noexcept { plain(leave, destroyed); }
/* [/leave] */

struct Leaving {
    Function leave;
    int is_noexcept, destroyed;
};

void *run(void *data) {
    auto *leaving = static_cast<Leaving *>(data);
    (leaving->is_noexcept ? guarded : plain)(leaving->leave, &leaving->destroyed);
    return nullptr;
}

} // namespace

// A thread of C++ calls `leave`, which ends it. Did the destructor run that lay on its stack? -1: no thread was to be had.
API int leave_thread(Function leave, int is_noexcept) {
    Leaving leaving{leave, is_noexcept, 0};
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run, &leaving)) {
        return -1;
    }
    pthread_join(thread, nullptr);
    return leaving.destroyed;
}
