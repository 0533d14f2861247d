#include "arrays.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_long out;

/* Some tools hand over misaligned addresses. To read a `double` there is undefined; to copy its bytes is not, and costs one load. */
static double at(const void *values, size_t i)
{
    double value;
    memcpy(&value, (const char *)values + i * sizeof value, sizeof value);
    return value;
}

double ends(const void *values, size_t n)
{
    return n ? at(values, 0) + at(values, n - 1) : 0.0;
}

double weigh(const void *values, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += (double)(i + 1) * at(values, i);
    return sum;
}

uintptr_t where(const void *values)
{
    return (uintptr_t)values;
}

double *make(size_t n)
{
    double *values = calloc(n ? n : 1, sizeof *values);
    if (values == NULL)
        return NULL;
    values[0] = values[n ? n - 1 : 0] = 1.0;
    atomic_fetch_add(&out, 1);
    return values;
}

void give_back(void *values)
{
    free(values);
    atomic_fetch_sub(&out, 1);
}

long held(void)
{
    return atomic_load(&out);
}
