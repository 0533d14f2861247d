/* A text that many strings share: its lines, each with a NUL behind it, and a count of those who need it. */
#ifndef BALM_BUFFER_H
#define BALM_BUFFER_H

#include "layout.h"

/* [buffer] */
typedef struct {
    size_t references; /* changed by attached threads only: count_add */
    size_t bytes;
    int has_text; /* somebody may still ask its Text for strings */
    char data[];
} Buffer;

/* A line of a text. `ascii`: may we make it, or must CPython? */
typedef struct {
    Py_ssize_t offset, length;
    int ascii;
} Line;
/* [/buffer] */

Buffer *buffer_new(size_t bytes);
void buffer_keep(Buffer *buffer, size_t references);
void buffer_drop(Buffer *buffer, size_t references);
size_t buffers_alive(void);

#endif
