PYO3_PYTHON="$(which python)" PYO3_BUILD_EXTENSION_MODULE=1 cargo build --release
cp "${CARGO_TARGET_DIR:-target}/release/liblocked.so" locked.so
