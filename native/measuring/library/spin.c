/* Work of a chosen size, so that a slowdown of known size can be injected. */
#define API __attribute__((visibility("default")))

/* [loops] */
API int count_to(int iterations)
{
    int n = 0;
    for (int i = 0; i < iterations; i++) {
        n++;
    }
    return n;
}

API int spin(int iterations)
{
    for (int i = 0; i < iterations; i++) {
        __asm__ volatile("" ::: "memory"); /* keep the loop; do nothing in it */
    }
    return 0;
}
/* [/loops] */
