#!/bin/sh
# For `git bisect run`: is this commit fast? $1: the limit, in ns for each operation.
# Sources are compiled once. What is timed is a fresh copy, in other pages of memory.
compiled=.git/machine-$(cat Makefile ./*.[ch] | git hash-object --stdin)
if ! test -x "$compiled"; then
    make -s clean machine && mv machine "$compiled" || exit 125
fi
cp "$compiled" machine
took=$(./machine | cut -d' ' -f1)
if awk "BEGIN { exit !($took < $1) }"; then
    echo "good: $took ns < $1 ns"
    exit 0
fi
echo "BAD: $took ns >= $1 ns"
exit 1
