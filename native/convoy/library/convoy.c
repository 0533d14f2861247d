/* CPU work that knows nothing of Python: through CDLL it runs without the GIL. */
#define API __attribute__((visibility("default")))

/* [count_up_and_down] */
API long count_up_and_down(long loops) {
    volatile long n = 0;
    for (long i = 0; i < loops; i++) {
        n++;
        n--;
    }
    return n;
}
/* [/count_up_and_down] */
