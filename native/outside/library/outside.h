/* Threads that Python did not make, and what they call. Plain C: no Python in it. */
#ifndef OUTSIDE_H
#define OUTSIDE_H

#include <stdint.h>
#include <time.h>

/* A plain library, for ctypes, exports its functions: its Makefile says so. In a binding's module they are hidden. */
#ifdef outside_EXPORTS
#define OUTSIDE_API __attribute__((visibility("default")))
#else
#define OUTSIDE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

static inline int64_t now_ns(void) { /* of CLOCK_MONOTONIC */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* [functions] */
typedef void (*callback_type)(void *data);
typedef void (*run_type)(void *what);
typedef void (*keep_type)(run_type run, void *what);

/* Each of `threads` new threads calls callback(data) so many times; ns[thread * calls + call] is how long that took. Where `keep` is
   not NULL, a thread calls keep(run, what) once, and that has to call run(what): it is what stays around all its callbacks. Returns
   0, or the error of pthread_create. */
OUTSIDE_API int call_from_threads(callback_type callback, void *data, int threads, long calls, int64_t *ns, keep_type keep);

/* A new thread sleeps, notes the time in *began (ns of CLOCK_MONOTONIC), and calls callback(data). NULL: no thread. */
OUTSIDE_API void *answer_later(callback_type callback, void *data, long sleep_us, int64_t *began);
OUTSIDE_API void wait_for_answer(void *answer); /* ends what answer_later began */
OUTSIDE_API void answer_here(long sleep_us, int64_t *began); /* the same in the calling thread, without a callback */
OUTSIDE_API void ring(void *eventfd); /* a callback without Python: adds one to the eventfd of this number */
/* [/functions] */

#ifdef __cplusplus
}
#endif

#endif
