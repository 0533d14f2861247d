//! The talk's experiment: native threads that allocate, started by a call from Python.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;

use pyo3::prelude::*;

static ALIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// [run]
/// Allocate in `threads` new threads; each drops its block and ends.
///
/// meet: no thread drops its block before all threads of this call have theirs.
fn run(threads: usize, bytes: usize, touch: bool, meet: bool) {
    let all = Arc::new(Barrier::new(if meet { threads } else { 1 }));
    let running: Vec<_> = (0..threads)
        .map(|_| {
            let all = all.clone();
            thread::spawn(move || {
                PEAK.fetch_max(ALIVE.fetch_add(1, SeqCst) + 1, SeqCst);
                let mut block: Vec<u8> = Vec::with_capacity(bytes);
                if touch {
                    block.resize(bytes, 1);
                }
                black_box(&block); // or the optimiser takes the block away
                all.wait();
                drop(block);
                ALIVE.fetch_sub(1, SeqCst);
            })
        })
        .collect();
    for thread in running {
        thread.join().unwrap();
    }
}

/// As the talk called it: the caller keeps the GIL until all threads have ended.
#[pyfunction]
fn run_arena_test(threads: usize, bytes: usize, touch: bool, meet: bool) {
    run(threads, bytes, touch, meet)
}

/// The same with the thread state detached, so that other Python threads go on.
#[pyfunction]
fn run_arena_test_detached(py: Python<'_>, threads: usize, bytes: usize, touch: bool, meet: bool) {
    py.detach(|| run(threads, bytes, touch, meet))
}
// [/run]

/// The largest number of native threads that were alive at once so far.
#[pyfunction]
fn peak_threads() -> usize {
    PEAK.load(SeqCst)
}

#[pymodule(gil_used = false)]
mod arena_poc {
    #[pymodule_export]
    use super::{peak_threads, run_arena_test, run_arena_test_detached};
}
