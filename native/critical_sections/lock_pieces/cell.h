/* An object with a number in it, and every lock that may protect the number. */
#ifndef CELL_H
#define CELL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdint.h>

typedef struct {
    PyObject_HEAD
    /* volatile: the compiler must not turn a million increments into one addition. */
    volatile int64_t value;
    PyMutex mutex;
    pthread_mutex_t pthread_mutex;
    /* The next object begins in a cache line of its own; 128 bytes, as processors fetch lines in pairs. */
    char apart[128];
} Cell;

void inlined_critical_section(Cell *cell, int64_t loops);

#endif
