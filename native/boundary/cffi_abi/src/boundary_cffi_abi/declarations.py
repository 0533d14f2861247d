"""What the library declares, as its header does."""

# [declare]
DECLARATIONS = """
    void noop(void);
    int answer(void);
    int add_one(int x);
    int64_t add_five(int a, int b, int c, int d, int e);
    double halve(double x);
    size_t code_points(const char *utf8, size_t bytes);
    const char *motto(size_t *bytes);
    uint32_t checksum(const uint8_t *data, size_t bytes);
    void fill(uint8_t *data, size_t bytes, uint8_t value);
    double ends(const double *values, size_t n);
    int64_t sum_ints(const int *values, size_t n);
    typedef struct { double x, y; } point;
    double dot(point p);
    void scale(point *p, double by);
    typedef int (*callback)(int x, void *context);
    int apply(callback function, void *context, int x);
    int root(double x, double *result);
    int work(int iterations);
    void sleep_ms(int milliseconds);
    typedef struct counter_handle counter_handle;
    counter_handle *counter_new(int64_t start);
    int64_t counter_add(counter_handle *counter, int64_t n);
    void counter_delete(counter_handle *counter);
"""
# [/declare]
