#ifndef MACHINE_H
#define MACHINE_H

/* What went wrong, if anything did. */
typedef struct {
    int number;
    long value;
    const char *message;
} Failure;

extern Failure failure;

typedef long operation(long value);

#endif
