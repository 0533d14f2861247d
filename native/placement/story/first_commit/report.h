/* What an operation does when its value is negative. It never happens in the benchmark. */
#ifndef REPORT_H
#define REPORT_H

#define REPORT __attribute__((noinline))

#endif
