//! Native threads that allocate, started by a call from Python: the talk's own, and ours.

use std::fs;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;

use pyo3::prelude::*;

static ALIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// [published]
/// The talk's worker, to the letter: nobody writes to the block, and nothing hides it from the optimiser.
fn worker() {
    let mut v = Vec::<u8>::with_capacity(64 * 1024 * 1024);
    unsafe { v.set_len(64 * 1024 * 1024) }
    drop(v);
}

/// VmRSS in MiB, as the talk reads it.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// The talk's call: it keeps the GIL until all threads have ended. VmRSS before and after.
#[pyfunction]
fn run_arena_test(threads: usize) -> (f64, f64) {
    let before = resident();
    let running: Vec<_> = (0..threads).map(|_| thread::spawn(worker)).collect();
    for thread in running {
        thread.join().unwrap();
    }
    (before, resident())
}
// [/published]

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

/// Our threads under a call that keeps the GIL until all of them have ended.
#[pyfunction]
fn run_kept(threads: usize, bytes: usize, touch: bool, meet: bool) {
    run(threads, bytes, touch, meet)
}

/// The same with the thread state detached, so that other Python threads go on.
#[pyfunction]
fn run_detached(py: Python<'_>, threads: usize, bytes: usize, touch: bool, meet: bool) {
    py.detach(|| run(threads, bytes, touch, meet))
}
// [/run]

/// The largest number of native threads that were alive at once so far.
#[pyfunction]
fn peak_threads() -> usize {
    PEAK.load(SeqCst)
}

/// It says that it does without the GIL, which the talk's module did not: where its GIL is to be on, PYTHON_GIL=1 says so.
#[pymodule(gil_used = false)]
mod arena_poc {
    #[pymodule_export]
    use super::{peak_threads, run_arena_test, run_detached, run_kept};
}
