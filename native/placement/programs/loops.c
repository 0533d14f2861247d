/* One loop, 64 times over, each a byte further from a 64-byte boundary.
 *
 *   loops time SEED    ns of one round, for every offset, in a random order
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* [loop] */
/* Seven instructions that depend on each other as little as can be: fetching and decoding them is what counts. */
#if defined(__x86_64__)
#define PADDING ".rept offset\n nop\n .endr\n"
#define LOOP                                                                                                           \
    "1: addq $1, %rax\n addq $3, %rcx\n xorq $5, %rdx\n addq $7, %rsi\n leaq 1(%r8,%r8,2), %r8\n decq %rdi\n jnz 1b\n ret\n"
#elif defined(__aarch64__)
/* Instructions are four bytes long here, and so are the steps. */
#define PADDING ".rept offset / 4\n nop\n .endr\n"
#define LOOP                                                                                                           \
    "1: add x1, x1, #1\n add x2, x2, #3\n eor x3, x3, #4\n add x4, x4, #7\n add x5, x5, x5\n subs x0, x0, #1\n b.ne 1b\n ret\n"
#else
#error "no loop for this processor"
#endif

extern const char loops_64[] __asm__("loops_64");
__asm__(".text\n .balign 256\n loops_64:\n .set offset, 0\n .rept 64\n .balign 256\n" PADDING LOOP
        ".set offset, offset + 1\n .endr\n .balign 256\n");
/* [/loop] */

typedef void loop(int64_t);
enum { ROUNDS = 20000, TURNS = 9 };

static double ns_of_a_round(int offset) {
    loop *run = (loop *)(uintptr_t)(loops_64 + 256 * offset);
    double best = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        struct timespec began, ended;
        clock_gettime(CLOCK_MONOTONIC, &began);
        run(ROUNDS);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        double ns = ((ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec)) / ROUNDS;
        best = turn == 0 || ns < best ? ns : best;
    }
    return best;
}

int main(int argc, char **argv) {
    if (argc != 3 || strcmp(argv[1], "time")) {
        fprintf(stderr, "usage: loops time SEED\n");
        return 2;
    }
    int offsets[64];
    for (int i = 0; i < 64; i++) {
        offsets[i] = i;
    }
    srand(strtoul(argv[2], NULL, 10));
    printf("[");
    for (int left = 64; left > 0; left--) {
        int at = rand() % left, offset = offsets[at];
        offsets[at] = offsets[left - 1];
        printf("%s{\"offset\": %d, \"ns\": %.4f}", left < 64 ? ", " : "", offset, ns_of_a_round(offset));
    }
    printf("]\n");
    return 0;
}
