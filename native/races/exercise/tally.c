/* How often does each byte value occur? Written for one thread at a time. */
#include <stddef.h>

static long counts[256];

void tally(const unsigned char *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        counts[data[i]]++;
    }
}

long tally_of(int value) { return counts[value]; }
