//! The same module with another class, as PyO3's guide advises for free threading: frozen, with a lock of Rust's own. An atomic in its
//! place would leave nothing for the C++ class to do.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::cpp;

#[pyclass(frozen)]
struct Counter(Mutex<cxx::UniquePtr<cpp::Counter>>);

#[pymethods]
impl Counter {
    #[new]
    #[pyo3(signature = (start, /))]
    fn new(start: i64) -> Self {
        Counter(Mutex::new(cpp::make_counter(start)))
    }

    /// Whoever waits detaches meanwhile, so that whoever holds the lock may wait for the interpreter.
    #[pyo3(signature = (n, /))]
    fn add(&self, py: Python<'_>, n: i64) -> i64 {
        self.0.lock_py_attached(py).unwrap().pin_mut().add(n)
    }

    /// There is no way around the lock.
    #[pyo3(signature = (n, /))]
    fn add_unlocked(&self, py: Python<'_>, n: i64) -> i64 {
        self.add(py, n)
    }

    fn value(&self, py: Python<'_>) -> i64 {
        self.0.lock_py_attached(py).unwrap().value()
    }
}

#[pymodule(gil_used = false)]
pub mod frozen {
    #[pymodule_export]
    use super::Counter;
    #[pymodule_export]
    use crate::{add_five, add_one, answer, apply, apply_detached, callback, checksum, code_points, dot, ends, halve, make_bytes};
    #[pymodule_export]
    use crate::{Point, motto, noop, noop_detached, root, scale, sleep_ms, sum_list, sum_sequence, work};
}
