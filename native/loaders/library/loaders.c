/* The native side of the chapter on loaders: functions that do as little as a
 * function can do, so that what remains is the way across. */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#define API __attribute__((visibility("default")))

/* [noop] */
API int noop(void)
{
    return 0;
}
/* [/noop] */

/* [declared] */
API int add_one(int value)
{
    /* Of an unsigned number, which may overflow. */
    return (int)((unsigned)value + 1u);
}

API double halve(double value)
{
    return value / 2;
}

API int first_byte(const char *text)
{
    return (unsigned char)text[0];
}
/* [/declared] */

/* [sleep_ms] */
/* Block the calling thread without using the CPU. Knows nothing of Python. */
API int sleep_ms(int milliseconds)
{
    struct timespec rest = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
    /* A signal cuts it short, and it says what is left; any other error would come again for ever. */
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
    return 0;
}
/* [/sleep_ms] */

/* [handshake] */
static atomic_int waiting;
static atomic_int ready;

/* Has a thread entered wait_for_announcement()? */
API int is_waiting(void)
{
    return waiting;
}

/* Wait until another thread has called announce(), at most `milliseconds`.
 * Returns 1 if it has, 0 if the time ran out (which is a deadlock with a limit). */
API int wait_for_announcement(int milliseconds)
{
    waiting = 1;
    for (int waited = 0; waited < milliseconds && !ready; waited++) {
        sleep_ms(1);
    }
    return ready;
}

API int announce(void)
{
    return ready = 1;
}
/* [/handshake] */
