/* A loop over variables on the stack and in static memory: what the size of the environment can change, as it lies
 * above the stack (after Mytkowicz et al., ASPLOS 2009). Prints ns of one round, and where the stack variable was.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* [stack] */
static volatile int64_t i, j, k;

static void work(int64_t rounds, uintptr_t *where) {
    volatile int64_t increment = 1, round = 0;
    *where = (uintptr_t)&increment;
    for (; round < rounds; round++) {
        i += increment;
        j += increment;
        k += increment;
    }
}
/* [/stack] */

enum { ROUNDS = 100000, TURNS = 9 };

int main(void) {
    uintptr_t where = 0;
    double best = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        struct timespec began, ended;
        clock_gettime(CLOCK_MONOTONIC, &began);
        work(ROUNDS, &where);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        double ns = ((ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec)) / ROUNDS;
        best = turn == 0 || ns < best ? ns : best;
    }
    printf("{\"ns\": %.4f, \"stack\": %d, \"static\": %d}\n", best, (int)(where % 4096), (int)((uintptr_t)&i % 4096));
    return 0;
}
