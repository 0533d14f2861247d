//! The way in that PyO3 has: Python::attach.

use std::ffi::{c_int, c_long, c_void};

use pyo3::prelude::*;

type Callback = extern "C" fn(*mut c_void);
type Run = extern "C" fn(*mut c_void);
type Keep = extern "C" fn(Run, *mut c_void);

unsafe extern "C" {
    fn call_from_threads(
        callback: Callback,
        data: *mut c_void,
        threads: c_int,
        calls: c_long,
        ns: *mut i64,
        keep: Option<Keep>,
    ) -> c_int;
}

// [enter]
extern "C" fn enter(callback: *mut c_void) {
    Python::attach(|py| {
        // SAFETY: call_from_thread owns the callback until all threads have ended.
        let callback = unsafe { Bound::from_borrowed_ptr(py, callback.cast()) };
        if let Err(error) = callback.call0() {
            error.write_unraisable(py, Some(&callback));
        }
    });
}
// [/enter]

// [keep]
extern "C" fn keep(run: Run, what: *mut c_void) {
    // As a number: a pointer may not go where PyO3 detaches, and this one does not leave its thread.
    let what = what as usize;
    Python::attach(|py| py.detach(|| run(what as *mut c_void)));
}
// [/keep]

#[pyfunction]
fn call_from_thread(py: Python<'_>, callback: Py<PyAny>, threads: c_int, calls: c_long, kept: bool) -> PyResult<Vec<i64>> {
    let mut ns = vec![0; threads as usize * calls as usize];
    let data = callback.as_ptr() as usize;
    let kept = kept.then_some(keep as Keep);
    // SAFETY: `ns` has room for every call, and the callback lives until all threads have ended.
    let error = py.detach(|| unsafe {
        call_from_threads(enter, data as *mut c_void, threads, calls, ns.as_mut_ptr(), kept)
    });
    if error == 0 { Ok(ns) } else { Err(std::io::Error::from_raw_os_error(error).into()) }
}

#[pymodule(gil_used = false)]
mod outside_pyo3 {
    #[pymodule_export]
    use super::call_from_thread;
}
