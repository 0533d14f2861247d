/* A small machine: a program is a list of operations, and each operation is a function. */
#include "machine.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "operations.h"

Failure failure;

long run(long value, const unsigned char *program, long length) {
    for (long at = 0; at < length; at++) {
        value = operations[program[at]](value);
    }
    return value;
}

int main(int argc, char **argv) {
    enum { LENGTH = 64 * OPERATIONS, ROUNDS = 20, TURNS = 25 };
    static unsigned char program[LENGTH];
    double best = 0;
    long value = 1;
    for (long i = 0; i < LENGTH; i++) {
        program[i] = i % OPERATIONS;
    }
    int turns = argc == 2 && !strcmp(argv[1], "once") ? 1 : TURNS;
    for (int turn = 0; turn < turns; turn++) {
        struct timespec began, ended;
        clock_gettime(CLOCK_MONOTONIC, &began);
        for (int round = 0; round < ROUNDS; round++) {
            value = run(value, program, LENGTH);
        }
        clock_gettime(CLOCK_MONOTONIC, &ended);
        double ns = ((ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec)) / ROUNDS / LENGTH;
        best = turn == 0 || ns < best ? ns : best;
    }
    printf("%.4f ns an operation\n", best);
    return failure.number || value < 0;
}
