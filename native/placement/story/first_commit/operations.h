/* The operations, each with the function that reports its errors. */
#include "report.h"

#define HOT

#define OPERATION(n)                                            \
    REPORT long report_##n(long value) {                        \
        failure.number = n;                                     \
        failure.value = value;                                  \
        failure.message = "operation " #n " has gone too far"; \
        return 0;                                               \
    }                                                           \
    HOT __attribute__((noinline)) long operation_##n(long value) { \
        if (value < 0) {                                        \
            return report_##n(value);                           \
        }                                                       \
        return (value + n) & 0xffff;                            \
    }

/* 128 of them: the numbers with digits from 0 to 7 from 100 on. */
#define EIGHT(of, n) of(n##0) of(n##1) of(n##2) of(n##3) of(n##4) of(n##5) of(n##6) of(n##7)
#define MANY(of, n)                                                                                 \
    EIGHT(of, n##0) EIGHT(of, n##1) EIGHT(of, n##2) EIGHT(of, n##3) EIGHT(of, n##4) EIGHT(of, n##5) \
    EIGHT(of, n##6) EIGHT(of, n##7)
#define ALL(of) MANY(of, 1) MANY(of, 2)
#define NAME(n) operation_##n,

ALL(OPERATION)

static operation *const operations[] = {ALL(NAME)};
enum { OPERATIONS = sizeof(operations) / sizeof(*operations) };
