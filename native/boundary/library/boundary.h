/* The C functions that every binding of this corner exposes under the same names. */
#ifndef BOUNDARY_H
#define BOUNDARY_H

#include <stddef.h>
#include <stdint.h>

/* A plain library, for ctypes and cffi to load, exports its functions (CMake defines its name with _EXPORTS). Where the library is
   part of a binding's own module, each tool compiles it with hidden symbols: no call to it goes through the procedure linkage table.
   Rust's calls still read the function's address from memory; C's and C++'s are direct. */
#ifdef boundary_EXPORTS
#define BOUNDARY_API __attribute__((visibility("default")))
#else
#define BOUNDARY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* [functions] */
BOUNDARY_API void noop(void);
BOUNDARY_API int answer(void); /* 42 */
BOUNDARY_API int add_one(int x); /* INT_MAX wraps to INT_MIN */
BOUNDARY_API int64_t add_five(int a, int b, int c, int d, int e);
BOUNDARY_API double halve(double x);
BOUNDARY_API size_t code_points(const char *utf8, size_t bytes); /* of valid UTF-8 */
BOUNDARY_API const char *motto(size_t *bytes); /* UTF-8, constant */
BOUNDARY_API uint32_t checksum(const uint8_t *data, size_t bytes);
BOUNDARY_API void fill(uint8_t *data, size_t bytes, uint8_t value);
BOUNDARY_API double ends(const double *values, size_t n); /* first + last, 0 if empty */
BOUNDARY_API int64_t sum_ints(const int *values, size_t n);
/* [/functions] */

/* [point] */
typedef struct { double x, y; } point;

BOUNDARY_API double dot(point p);               /* p . p */
BOUNDARY_API void scale(point *p, double by);   /* in place */
/* [/point] */

/* [callback] */
typedef int (*callback)(int x, void *context);

BOUNDARY_API int apply(callback function, void *context, int x);
/* [/callback] */

/* [error] */
BOUNDARY_API int root(double x, double *result); /* 0, or EDOM if x is negative or NaN */
/* [/error] */

/* [work] */
BOUNDARY_API int work(int iterations);          /* about a nanosecond an iteration */
BOUNDARY_API void sleep_ms(int milliseconds);
/* [/work] */

/* [handle] */
/* The C++ class of counter.hpp, for tools that cannot see C++. */
typedef struct counter_handle counter_handle;

BOUNDARY_API counter_handle *counter_new(int64_t start);
BOUNDARY_API int64_t counter_add(counter_handle *counter, int64_t n);
BOUNDARY_API void counter_delete(counter_handle *counter);
/* [/handle] */

#ifdef __cplusplus
}
#endif
#endif
