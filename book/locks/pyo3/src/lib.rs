use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

use pyo3::{prelude::*, sync::MutexExt};
use std::sync::{Mutex, PoisonError};

static LOCK: Mutex<()> = Mutex::new(());

#[pyfunction]
fn report(py: Python<'_>, write: &Bound<'_, PyAny>) -> PyResult<()> {
    // Detaches while it waits; `lock()` alone does not.
    let _guard = LOCK.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
    MOST.fetch_max(NOW.fetch_add(1, SeqCst) + 1, SeqCst);
    let written = write.call0();
    NOW.fetch_sub(1, SeqCst);
    written.map(drop)
}
// [/lock]

#[pyfunction]
fn most_inside() -> usize {
    MOST.load(SeqCst)
}

#[pymodule]
mod locked {
    #[pymodule_export]
    use super::{most_inside, report};
}
