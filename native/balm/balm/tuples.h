/* A tuple that CPython did not allocate. It knows its strings, and ends those that nobody else has all at once. */
#ifndef BALM_TUPLES_H
#define BALM_TUPLES_H

#include "layout.h"

/* What stands before an object that the garbage collector may visit (PyGC_Head). Zero: it does not. */
#ifdef Py_GIL_DISABLED
#define GC_HEAD_BYTES 0
#else
#define GC_HEAD_BYTES 16
#endif

/* A tuple of `count` empty places; NULL without an exception if there is no memory. Needs no thread state. */
PyObject *tuple_new(Py_ssize_t count, PyTypeObject *type);
void tuple_dealloc(PyObject *op);
/* Once for a process, before the first tuple: see makers.h. */
int tuples_across_forks(void);
/* The type whose instances tuple_dealloc ends all at once, and the one of its copy. */
void tuples_know(PyTypeObject *page_views, PyTypeObject *copied_page_views);

#endif
