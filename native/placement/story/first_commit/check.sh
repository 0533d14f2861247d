#!/bin/sh
# For `git bisect run`: is this commit fast? $1: the limit, in ns for each operation.
make -s clean machine || exit 125
took=$(./machine | cut -d' ' -f1)
if awk "BEGIN { exit !($took < $1) }"; then
    echo "good: $took ns < $1 ns"
    exit 0
fi
echo "BAD: $took ns >= $1 ns"
exit 1
