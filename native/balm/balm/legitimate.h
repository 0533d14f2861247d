/* What an extension does that keeps to the rules: CPython makes the strings. */
#ifndef BALM_LEGITIMATE_H
#define BALM_LEGITIMATE_H

#include "buffer.h"

/* A new string of an ASCII text. */
typedef PyObject *legitimate(const char *text, Py_ssize_t length);

/* `new`, `from string` or `writer`; NULL if there is none of that name in this version. */
legitimate *legitimate_of(const char *name);
PyObject *legitimate_string(const Buffer *buffer, const Line *line, legitimate *create);
PyObject *legitimate_strings(const Buffer *buffer, const Line *lines, Py_ssize_t count, legitimate *create);

#endif
