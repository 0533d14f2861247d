/* What both files of this module share. */
#ifndef WAITING_H
#define WAITING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <time.h>

typedef struct {
    PyTypeObject *guarded, *plain, *traversed;
} module_state;

static inline module_state *state_of(PyObject *module) { return PyModule_GetState(module); }

static inline int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline void work(int64_t rounds) {
    for (volatile int64_t i = 0; i < rounds; i++) {
    }
}

/* In guarded.c. */
extern PyType_Spec guarded_spec;
PyObject *py_update(PyObject *module, PyObject *args);
PyObject *py_twice(PyObject *module, PyObject *args);
PyObject *py_take(PyObject *module, PyObject *args);

#endif
