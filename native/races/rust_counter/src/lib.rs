//! The counters behind a C interface, for ctypes.

mod counter;

use std::sync::{atomic::AtomicI64, Mutex};

use counter::{Counter, FetchAdd, Locked, LoadThenStore};

static LOAD_THEN_STORE: LoadThenStore = LoadThenStore(AtomicI64::new(0));
static FETCH_ADD: FetchAdd = FetchAdd(AtomicI64::new(0));
static LOCKED: Locked = Locked(Mutex::new(0));

/// Adds one `iterations` times; returns what the counter then holds.
fn increment(counter: &dyn Counter, iterations: i32) -> i64 {
    for _ in 0..iterations {
        counter.add();
    }
    counter.value()
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_load_then_store(iterations: i32) -> i64 {
    increment(&LOAD_THEN_STORE, iterations)
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_fetch_add(iterations: i32) -> i64 {
    increment(&FETCH_ADD, iterations)
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_mutex(iterations: i32) -> i64 {
    increment(&LOCKED, iterations)
}
