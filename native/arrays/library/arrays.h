/* What every tool calls. Plain C: it takes an address and a length, and knows nothing of Python or of arrays. */
#ifndef ARRAYS_H
#define ARRAYS_H

#include <stddef.h>
#include <stdint.h>

/* A plain library, for ctypes to load, exports its functions: CMake defines its name with _EXPORTS. */
#ifdef arrays_EXPORTS
#define ARRAYS_API __attribute__((visibility("default")))
#else
#define ARRAYS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* [functions] */
ARRAYS_API double ends(const void *values, size_t n); /* the first of n doubles plus the last; 0 of none */
ARRAYS_API double weigh(const void *values, size_t n); /* 1 · the first + 2 · the second + …: it tells their order */
ARRAYS_API uintptr_t where(const void *values); /* the address itself */
ARRAYS_API double *make(size_t n); /* n doubles on the heap, the first and the last of them 1; NULL: no memory */
ARRAYS_API void give_back(void *values); /* ends what make began */
ARRAYS_API long held(void); /* made, and not given back */
/* [/functions] */

#ifdef __cplusplus
}
#endif

#endif
