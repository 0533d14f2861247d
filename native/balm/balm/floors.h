/* Loops that do a part of the work of making these strings and nothing else: the bytes, and a look at each head. */
#ifndef BALM_FLOORS_H
#define BALM_FLOORS_H

#include "makers.h"

/* Runs the floor of that name over the lines of a text, all of them ASCII; the bytes that it writes. -1 and an exception if there is
 * no memory or no such floor. */
Py_ssize_t run_floor(const char *name, const Request *request);
/* Once for a process: see makers.h. */
int floors_across_forks(void);

#endif
