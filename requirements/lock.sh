#!/bin/sh
# Renew every lock: versions that are locked stay, unless --upgrade is given. Hashed requirements files carry no addresses.
set -eu
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
lock() {
    # lock PYTHON INPUT OUTPUT [--upgrade]
    python=$1 input=$2 output=$3
    shift 3
    "$uv" pip compile --quiet --no-config --no-annotate --generate-hashes --universal \
        --custom-compile-command "python3 ffilab/bootstrap.py lock" --python-version "$python" "$@" "$input" -o "$output"
}
lock 3.11 requirements/book.in requirements/book.txt "$@"
# Into the same environment, when an atlas or a fleet is first asked for: they must not want another version of anything there.
lock 3.11 requirements/atlas.in requirements/atlas.txt --constraint requirements/book.txt "$@"
lock 3.11 requirements/fleet.in requirements/fleet.txt --constraint requirements/book.txt "$@"
lock 3.11 requirements/linker.in requirements/linker.txt "$@"
lock 3.11 requirements/pip.in requirements/pip.txt "$@"
lock 3.11 requirements/types.in requirements/types.txt "$@"
for folder in kernels/kernels/*/; do
    label=$(basename "$folder" | sed 's/^cpython-//')
    lock "${label%t}" "$folder/requirements.in" "$folder/requirements.txt" "$@"
done
# A Cargo.lock names the registry of every crate; what is kept of it is all the rest.
for manifest in $(find native -name Cargo.toml -not -path '*/target/*'); do
    folder=$(dirname "$manifest")
    [ "${1-}" = --upgrade ] || [ ! -e "$folder/crates.lock" ] || continue
    # A project that takes its sources from a neighbour has none here, and cargo asks for a library.
    made=
    [ -d "$folder/src" ] || { mkdir "$folder/src" && : >"$folder/src/lib.rs" && made=yes; }
    (cd "$folder" && cargo generate-lockfile --quiet && grep -v '^source = ' Cargo.lock >crates.lock && rm Cargo.lock)
    [ -z "$made" ] || rm -r "$folder/src"
done
