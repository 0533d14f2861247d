#include "boundary.h"

#include <errno.h>
#include <math.h>
#include <time.h>

void noop(void) {}

int answer(void) { return 42; }

/* Unsigned, because signed overflow is undefined in C. */
int add_one(int x) { return (int)((unsigned)x + 1u); }

int64_t add_five(int a, int b, int c, int d, int e) {
    return (int64_t)a + b + c + d + e;
}

double halve(double x) { return x / 2; }

size_t code_points(const char *utf8, size_t bytes) {
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        n += ((unsigned char)utf8[i] & 0xC0) != 0x80;
    }
    return n;
}

const char *motto(size_t *bytes) {
    static const char text[] = "mind the gap";
    *bytes = sizeof text - 1;
    return text;
}

/* FNV-1a. */
uint32_t checksum(const uint8_t *data, size_t bytes) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ data[i]) * 16777619u;
    }
    return hash;
}

void fill(uint8_t *data, size_t bytes, uint8_t value) {
    for (size_t i = 0; i < bytes; i++) {
        data[i] = value;
    }
}

double ends(const double *values, size_t n) {
    return n ? values[0] + values[n - 1] : 0;
}

int64_t sum_ints(const int *values, size_t n) {
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
    }
    return sum;
}

double dot(point p) { return p.x * p.x + p.y * p.y; }

void scale(point *p, double by) {
    p->x *= by;
    p->y *= by;
}

int apply(callback function, void *context, int x) { return function(x, context); }

int root(double x, double *result) {
    if (!(x >= 0)) {
        return EDOM;
    }
    *result = sqrt(x);
    return 0;
}

/* Each step needs the one before: no vectorisation, no closed form. */
int work(int iterations) {
    uint32_t state = 1;
    for (int i = 0; i < iterations; i++) {
        state = state * 1664525u + 1013904223u;
    }
    return (int)(state >> 25); /* a small number: its Python object exists already */
}

void sleep_ms(int milliseconds) {
    struct timespec wait = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
    while (nanosleep(&wait, &wait) == -1 && errno == EINTR) {
    }
}
