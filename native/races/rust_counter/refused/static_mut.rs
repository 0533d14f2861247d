//! A global counter as in C. The compiler refuses it: `rustc --edition 2024 --crate-type lib static_mut.rs`.

static mut COUNTER: i64 = 0;

pub fn increment() {
    COUNTER += 1;
}
