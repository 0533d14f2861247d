#!/bin/sh
# Renew every lock. Hashed requirements files carry no addresses.
set -eu
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
[ -x "$uv" ] || uv=uv
lock() {
    # lock PYTHON INPUT OUTPUT [more options]
    python=$1 input=$2 output=$3
    shift 3
    "$uv" pip compile --quiet --no-config --no-annotate --generate-hashes --upgrade \
        --custom-compile-command "make lock" --python-version "$python" "$@" "$input" -o "$output"
}
lock 3.11 requirements/bootstrap.in requirements/bootstrap.txt --universal
lock 3.11 requirements/book.in requirements/book.txt --universal
lock 3.11 requirements/lab.in requirements/lab.txt --universal
for folder in kernels/kernels/*/; do
    label=$(basename "$folder" | sed 's/^cpython-//')
    lock "${label%t}" "$folder/requirements.in" "$folder/requirements.txt" --universal
done
# Build tools that a native project brings along.
for input in $(find native -name requirements.in -not -path '*/target/*'); do
    lock 3.13 "$input" "${input%.in}.txt" --universal
done
# A Cargo.lock names the registry of every crate; what is kept of it is all the rest.
for manifest in $(find native -name Cargo.toml -not -path '*/target/*'); do
    folder=$(dirname "$manifest")
    # A project that takes its sources from a neighbour has none here, and cargo asks for a library.
    made=
    [ -d "$folder/src" ] || { mkdir "$folder/src" && : >"$folder/src/lib.rs" && made=yes; }
    (cd "$folder" && cargo generate-lockfile --quiet && grep -v '^source = ' Cargo.lock >crates.lock && rm Cargo.lock)
    [ -z "$made" ] || rm -r "$folder/src"
done
