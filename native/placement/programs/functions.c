/* Many small functions with the same instructions, at a chosen distance from each other.
 *
 *   functions time SEED              ns of one call, for every distance and number of functions, in a random order
 *   functions run DISTANCE N ROUNDS  nothing but ROUNDS rounds over the first N, for cachegrind and perf
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* [functions] */
#if defined(__x86_64__)
#define BODY "leaq 1(%rdi,%rdi,4), %rdi\n ret\n"
#define BEGIN "subq $8, %rsp\n jmp *%rsi\n"
#define CALL "call "
#define END "addq $8, %rsp\n movq %rdi, %rax\n ret\n"
enum { CALL_BYTES = 5 };
#elif defined(__aarch64__)
#define BODY "add x0, x0, x0, lsl #2\n add x0, x0, #1\n ret\n"
#define BEGIN "stp x29, x30, [sp, #-16]!\n br x1\n"
#define CALL "bl "
#define END "ldp x29, x30, [sp], #16\n ret\n"
enum { CALL_BYTES = 4 };
#else
#error "no function body for this processor"
#endif

/* `count` functions, each `distance` bytes behind the one before; what lies between them is never executed. Then one direct
 * call of each, one behind the other: where the caller is entered decides how many of them are made. The caller keeps away
 * from the sets of the cache in which functions at a multiple of 4096 bytes lie. */
#define FUNCTIONS(distance, count)                                                                                     \
    int64_t caller_##distance(int64_t x, const char *entry) __asm__("caller_" #distance);                              \
    extern const char end_##distance[] __asm__("end_" #distance);                                                      \
    __asm__(".text\n .balign 8192\n functions_" #distance ":\n"                                                        \
            ".set number, 0\n .rept " #count "\n .org functions_" #distance " + number * " #distance "\n" BODY           \
            " .set number, number + 1\n .endr\n .balign 8192\n .skip 128\n"                                            \
            "caller_" #distance ":\n" BEGIN ".set number, 0\n"                                                         \
            ".rept " #count "\n" CALL "functions_" #distance " + number * " #distance "\n .set number, number + 1\n"   \
            ".endr\n end_" #distance ":\n" END);
/* [/functions] */

FUNCTIONS(16, 1024)
FUNCTIONS(64, 1024)
FUNCTIONS(128, 1024)
FUNCTIONS(256, 512)
FUNCTIONS(512, 512)
FUNCTIONS(1024, 256)
FUNCTIONS(2048, 256)
FUNCTIONS(4096, 256)
FUNCTIONS(4160, 256)
FUNCTIONS(8192, 256)

typedef struct {
    int distance, count;
    int64_t (*caller)(int64_t x, const char *entry);
    const char *end;
} Layout;

#define LAYOUT(distance, count) {distance, count, caller_##distance, end_##distance}

static const Layout layouts[] = {
    LAYOUT(16, 1024),  LAYOUT(64, 1024),  LAYOUT(128, 1024), LAYOUT(256, 512),  LAYOUT(512, 512),
    LAYOUT(1024, 256), LAYOUT(2048, 256), LAYOUT(4096, 256), LAYOUT(4160, 256), LAYOUT(8192, 256),
};
enum { LAYOUTS = sizeof(layouts) / sizeof(*layouts) };

static const int numbers[] = {1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 640, 768, 1024};
enum { NUMBERS = sizeof(numbers) / sizeof(*numbers), CALLS = 50000, TURNS = 5 };

/* [walk] */
static int64_t walk(const Layout *layout, int n, int64_t rounds) {
    int64_t x = 0;
    for (int64_t round = 0; round < rounds; round++) {
        x = layout->caller(x, layout->end - CALL_BYTES * n);
    }
    return x;
}
/* [/walk] */

static volatile int64_t sink;

static double ns_of_a_call(const Layout *layout, int n) {
    int64_t rounds = CALLS / n;
    double best = 0;
    sink = walk(layout, n, 3); /* page faults, and everything that is cold */
    for (int turn = 0; turn < TURNS; turn++) {
        struct timespec began, ended;
        clock_gettime(CLOCK_MONOTONIC, &began);
        sink = walk(layout, n, rounds);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        double ns = ((ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec)) / (rounds * n);
        if (turn == 0 || ns < best) {
            best = ns; /* what interrupts a turn makes it longer, never shorter */
        }
    }
    return best;
}

static void time_all(unsigned seed) {
    int cases[LAYOUTS * NUMBERS], count = 0;
    for (int i = 0; i < LAYOUTS * NUMBERS; i++) {
        if (numbers[i % NUMBERS] <= layouts[i / NUMBERS].count) {
            cases[count++] = i;
        }
    }
    srand(seed);
    printf("[");
    for (int left = count; left > 0; left--) {
        int at = rand() % left, chosen = cases[at];
        cases[at] = cases[left - 1];
        const Layout *layout = &layouts[chosen / NUMBERS];
        int n = numbers[chosen % NUMBERS];
        printf("%s{\"distance\": %d, \"n\": %d, \"ns\": %.4f}", left < count ? ", " : "", layout->distance, n,
               ns_of_a_call(layout, n));
    }
    printf("]\n");
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "time")) {
        time_all(strtoul(argv[2], NULL, 10));
        return 0;
    }
    for (int i = 0; argc == 5 && !strcmp(argv[1], "run") && i < LAYOUTS; i++) {
        if (layouts[i].distance == atoi(argv[2]) && atoi(argv[3]) >= 1 && atoi(argv[3]) <= layouts[i].count) {
            sink = walk(&layouts[i], atoi(argv[3]), atoll(argv[4]));
            return 0;
        }
    }
    fprintf(stderr, "usage: functions time SEED | functions run DISTANCE N ROUNDS\n");
    return 2;
}
