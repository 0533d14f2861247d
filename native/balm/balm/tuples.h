/* A tuple that CPython did not allocate. It knows who made its strings, and has them all ended at once. */
#ifndef BALM_TUPLES_H
#define BALM_TUPLES_H

#include "makers.h"

/* What stands before an object that the garbage collector may visit (PyGC_Head). Zero: it does not. */
#ifdef Py_GIL_DISABLED
#define GC_HEAD_BYTES 0
#else
#define GC_HEAD_BYTES 16
#endif

/* A tuple of `count` places; NULL without an exception if there is no memory. Needs no thread state.
 *
 * end: what ends the strings that were made for it. ours: their type, if CPython's may stand between them, and the places are
 * empty; NULL if all are ours, and then the places must be filled. */
PyObject *tuple_new(Py_ssize_t count, PyTypeObject *type, ender *end, PyTypeObject *ours);
/* Of its memory: see Request. */
size_t tuple_held(PyObject *tuple);
/* The strings were made: see Request. From here on nobody may put another item in its place. */
void tuple_owns(PyObject *tuple, void *made, size_t holds);
void tuple_dealloc(PyObject *op);
/* Once for a process, before the first tuple: see makers.h. */
int tuples_across_forks(void);

#endif
