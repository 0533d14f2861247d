/* The native side of the chapter on loaders: functions that do as little as a
 * function can do, so that what remains is the way across. */
#include <time.h>

#define API __attribute__((visibility("default")))

/* [noop] */
API int noop(void)
{
    return 0;
}
/* [/noop] */

/* [sleep_ms] */
/* Block the calling thread without using the CPU. Knows nothing of Python. */
API int sleep_ms(int milliseconds)
{
    struct timespec rest = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
    while (nanosleep(&rest, &rest) != 0) {
    }
    return 0;
}
/* [/sleep_ms] */
