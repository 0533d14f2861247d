/* The remedies: one C loop each, around one increment or one read. */
#ifndef REMEDIES_H
#define REMEDIES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

/* The object whose critical section is entered. */
typedef struct {
    PyObject_HEAD
    long value;
} Guarded;

typedef struct {
    const char *name;
    void (*run)(Guarded *guarded, int64_t loops);
    long (*total)(Guarded *guarded); /* increments done since the module was loaded; NULL for reads */
} Remedy;

extern const Remedy remedies[];
extern const int remedies_count;

/* Pairs of numbers that must agree: write `loops` of them; how many of `loops` reads saw two that did not? */
typedef struct {
    const char *name;
    int64_t (*read)(int64_t loops);
    void (*write)(int64_t loops);
} Way;

const Way *find_way(const char *name); /* NULL: there is none of that name */

#endif
