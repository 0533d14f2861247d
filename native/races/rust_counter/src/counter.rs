//! Counters that the Rust compiler lets threads share. Not all of them count right.
//!
//! `cfg(loom)` exchanges the standard library's atomics for loom's, which try every interleaving.

#[cfg(loom)]
use loom::sync::{
    atomic::{AtomicI64, Ordering},
    Mutex,
};
#[cfg(not(loom))]
use std::sync::{
    atomic::{AtomicI64, Ordering},
    Mutex,
};

pub trait Counter: Send + Sync {
    /// Add one.
    fn add(&self);
    fn value(&self) -> i64;
}

// [load_then_store]
/// No `unsafe`, no data race, no error from the compiler. It loses updates.
pub struct LoadThenStore(pub AtomicI64);

impl Counter for LoadThenStore {
    fn add(&self) {
        let seen = self.0.load(Ordering::SeqCst);
        self.0.store(seen + 1, Ordering::SeqCst);
    }
    // [/load_then_store]

    fn value(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

// [fetch_add]
pub struct FetchAdd(pub AtomicI64);

impl Counter for FetchAdd {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    // [/fetch_add]

    fn value(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

pub struct Locked(pub Mutex<i64>);

impl Counter for Locked {
    fn add(&self) {
        *self.0.lock().unwrap() += 1;
    }

    fn value(&self) -> i64 {
        *self.0.lock().unwrap()
    }
}
