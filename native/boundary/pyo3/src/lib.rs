//! The boundary library through PyO3; the C++ class through PyO3, Rust and cxx.

mod frozen;

use std::ffi::{c_char, c_int, c_void};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
#[cfg(not(feature = "pyo3-0-27"))]
use pyo3::sync::critical_section::with_critical_section;
#[cfg(feature = "pyo3-0-27")]
use pyo3::sync::with_critical_section;
use pyo3::types::{PyBytes, PyList};

/// The C functions as Rust sees them.
mod library {
    use std::ffi::{c_char, c_int, c_void};

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct Point {
        pub x: f64,
        pub y: f64,
    }

    pub type Callback = extern "C" fn(c_int, *mut c_void) -> c_int;

    // [declare]
    unsafe extern "C" {
        pub safe fn noop();
        pub safe fn answer() -> c_int;
        pub safe fn add_one(x: c_int) -> c_int;
        pub safe fn add_five(a: c_int, b: c_int, c: c_int, d: c_int, e: c_int) -> i64;
        pub safe fn halve(x: f64) -> f64;
        pub fn code_points(utf8: *const c_char, bytes: usize) -> usize;
        // [/declare]
        pub fn motto(bytes: *mut usize) -> *const c_char;
        pub fn checksum(data: *const u8, bytes: usize) -> u32;
        pub fn fill(data: *mut u8, bytes: usize, value: u8);
        pub fn ends(values: *const f64, n: usize) -> f64;
        pub fn sum_ints(values: *const c_int, n: usize) -> i64;
        pub safe fn dot(p: Point) -> f64;
        pub fn scale(p: *mut Point, by: f64);
        pub fn apply(function: Callback, context: *mut c_void, x: c_int) -> c_int;
        pub fn root(x: f64, result: *mut f64) -> c_int;
        pub safe fn work(iterations: c_int) -> c_int;
        pub safe fn sleep_ms(milliseconds: c_int);
    }
}

// [cxx]
#[cxx::bridge]
mod cpp {
    unsafe extern "C++" {
        include!("make_counter.hpp");

        type Counter;
        fn make_counter(start: i64) -> UniquePtr<Counter>;
        fn add(self: Pin<&mut Counter>, n: i64) -> i64;
        fn value(&self) -> i64;
        fn fail(&self, depth: i32) -> Result<i64>; // catches what C++ throws
    }
}

// The class holds one number and no reference to a thread. PyO3 hands out one mutable borrow at a time.
unsafe impl Send for cpp::Counter {}
unsafe impl Sync for cpp::Counter {}

#[pyclass]
struct Counter(cxx::UniquePtr<cpp::Counter>);

#[pymethods]
impl Counter {
    #[new]
    #[pyo3(signature = (start, /))]
    fn new(start: i64) -> Self {
        Counter(cpp::make_counter(start))
    }

    /// One object may be used by many threads: the critical section of the object is its lock. With the GIL it is nothing.
    #[pyo3(signature = (n, /))]
    fn add(slf: &Bound<'_, Self>, n: i64) -> PyResult<i64> {
        with_critical_section(slf.as_any(), || Ok(slf.try_borrow_mut()?.0.pin_mut().add(n)))
    }

    /// Without it: PyO3's borrow flag loses no addition. A second thread that comes meanwhile gets an exception.
    #[pyo3(signature = (n, /))]
    fn add_unlocked(&mut self, n: i64) -> i64 {
        self.0.pin_mut().add(n)
    }

    fn value(slf: &Bound<'_, Self>) -> PyResult<i64> {
        with_critical_section(slf.as_any(), || Ok(slf.try_borrow()?.0.value()))
    }

    #[pyo3(signature = (depth, /))]
    fn fail(&self, depth: i32) -> PyResult<i64> {
        self.0.fail(depth).map_err(|error| PyValueError::new_err(error.what().to_owned()))
    }
}
// [/cxx]

// [call]
#[pyfunction]
fn noop() {
    library::noop()
}

#[pyfunction]
fn noop_detached(py: Python<'_>) {
    py.detach(|| library::noop())
}

#[pyfunction]
fn answer() -> i32 {
    library::answer()
}

#[pyfunction(signature = (x, /))]
fn add_one(x: i32) -> i32 {
    library::add_one(x)
}
// [/call]

#[pyfunction(signature = (a, b, c, d, e, /))]
fn add_five(a: i32, b: i32, c: i32, d: i32, e: i32) -> i64 {
    library::add_five(a, b, c, d, e)
}

#[pyfunction(signature = (x, /))]
fn halve(x: f64) -> f64 {
    library::halve(x)
}

// [text]
#[pyfunction(signature = (text, /))]
fn code_points(text: &str) -> usize {
    unsafe { library::code_points(text.as_ptr().cast::<c_char>(), text.len()) }
}
// [/text]

#[pyfunction]
fn motto() -> &'static str {
    let mut size = 0;
    // The C side promises constant UTF-8.
    unsafe {
        let text = library::motto(&mut size).cast::<u8>();
        std::str::from_utf8_unchecked(std::slice::from_raw_parts(text, size))
    }
}

#[pyfunction(signature = (data, /))]
fn checksum(data: &[u8]) -> u32 {
    unsafe { library::checksum(data.as_ptr(), data.len()) }
}

#[pyfunction(signature = (size, value = 0))] // takes keywords
fn make_bytes(py: Python<'_>, size: isize, value: u8) -> PyResult<Bound<'_, PyBytes>> {
    let size = usize::try_from(size).map_err(|_| PyValueError::new_err("negative size"))?;
    PyBytes::new_with(py, size, |data| {
        unsafe { library::fill(data.as_mut_ptr(), data.len(), value) };
        Ok(())
    })
}

// [buffer]
#[pyfunction(signature = (values, /))]
fn ends(values: PyBuffer<f64>) -> PyResult<f64> {
    if values.dimensions() != 1 || !values.is_c_contiguous() {
        return Err(PyTypeError::new_err("a contiguous array of doubles is needed"));
    }
    Ok(unsafe { library::ends(values.buf_ptr().cast::<f64>(), values.item_count()) })
}
// [/buffer]

// [list]
#[pyfunction(signature = (values, /))]
fn sum_list(values: &Bound<'_, PyList>) -> PyResult<i64> {
    // A list may change while its items are converted, a tuple may not: one lock for the copy, and none for the items.
    let items = values.to_tuple().iter_borrowed().map(|value| value.extract()).collect::<PyResult<Vec<i32>>>()?;
    Ok(unsafe { library::sum_ints(items.as_ptr(), items.len()) })
}
// [/list]

#[pyfunction(signature = (values, /))]
fn sum_sequence(values: Vec<i32>) -> i64 {
    unsafe { library::sum_ints(values.as_ptr(), values.len()) }
}

// [point]
#[pyclass]
struct Point(library::Point);

#[pymethods]
impl Point {
    #[new]
    #[pyo3(signature = (x, y, /))]
    fn new(x: f64, y: f64) -> Self {
        Point(library::Point { x, y })
    }

    // In the section that `scale` is in: else the borrow would be refused meanwhile.
    #[getter]
    fn x(slf: &Bound<'_, Self>) -> PyResult<f64> {
        with_critical_section(slf.as_any(), || Ok(slf.try_borrow()?.0.x))
    }

    #[getter]
    fn y(slf: &Bound<'_, Self>) -> PyResult<f64> {
        with_critical_section(slf.as_any(), || Ok(slf.try_borrow()?.0.y))
    }
}

#[pyfunction(signature = (p, /))]
fn dot(p: &Bound<'_, Point>) -> PyResult<f64> {
    with_critical_section(p.as_any(), || Ok(library::dot(p.try_borrow()?.0)))
}

#[pyfunction(signature = (p, by, /))]
fn scale(p: &Bound<'_, Point>, by: f64) -> PyResult<()> {
    with_critical_section(p.as_any(), || {
        unsafe { library::scale(&mut p.try_borrow_mut()?.0, by) };
        Ok(())
    })
}
// [/point]

// [callback]
struct Call<'a, 'py> {
    function: &'a Bound<'py, PyAny>,
    error: Option<PyErr>,
}

extern "C" fn call_back(x: c_int, context: *mut c_void) -> c_int {
    let call = unsafe { &mut *context.cast::<Call<'_, '_>>() };
    match call.function.call1((x,)).and_then(|answer| answer.extract()) {
        Ok(answer) => answer,
        Err(error) => {
            call.error = Some(error);
            0
        }
    }
}

#[pyfunction(signature = (function, /))]
fn callback(function: Bound<'_, PyAny>) -> Bound<'_, PyAny> {
    function
}

#[pyfunction(signature = (function, x, /))]
fn apply(function: &Bound<'_, PyAny>, x: i32) -> PyResult<i32> {
    let mut call = Call { function, error: None };
    let result = unsafe { library::apply(call_back, (&raw mut call).cast(), x) };
    call.error.map_or(Ok(result), Err)
}

/// The same for a caller that has detached the thread state: each call attaches it, and detaches it again.
struct DetachedCall {
    function: Py<PyAny>,
    error: Option<PyErr>,
}

extern "C" fn call_back_attaching(x: c_int, context: *mut c_void) -> c_int {
    let call = unsafe { &mut *context.cast::<DetachedCall>() };
    match Python::attach(|py| call.function.bind(py).call1((x,)).and_then(|answer| answer.extract())) {
        Ok(answer) => answer,
        Err(error) => {
            call.error = Some(error);
            0
        }
    }
}

struct Sendable(*mut c_void);
// SAFETY: `detach` runs its closure in this very thread, and what the pointer leads to outlives it.
unsafe impl Send for Sendable {}

#[pyfunction(signature = (function, x, /))]
fn apply_detached(py: Python<'_>, function: Py<PyAny>, x: i32) -> PyResult<i32> {
    let mut call = DetachedCall { function, error: None };
    let context = Sendable((&raw mut call).cast());
    let result = py.detach(|| {
        let context = context; // all of it, and not its pointer alone
        unsafe { library::apply(call_back_attaching, context.0, x) }
    });
    call.error.map_or(Ok(result), Err)
}
// [/callback]

// [root]
#[pyfunction(signature = (x, /))]
fn root(x: f64) -> PyResult<f64> {
    let mut result = 0.0;
    match unsafe { library::root(x, &mut result) } {
        0 => Ok(result),
        _ => Err(PyValueError::new_err("no real root")),
    }
}
// [/root]

#[pyfunction(signature = (iterations, /))]
fn work(iterations: i32) -> i32 {
    library::work(iterations)
}

#[pyfunction(signature = (milliseconds, /))]
fn sleep_ms(py: Python<'_>, milliseconds: i32) {
    py.detach(|| library::sleep_ms(milliseconds))
}

// [module]
#[pymodule(gil_used = false)]
mod boundary_pyo3 {
    #[pymodule_export]
    use super::{add_five, add_one, answer, halve, noop, noop_detached};
    // [/module]
    #[pymodule_export]
    use super::{apply, apply_detached, callback, checksum, code_points, dot, ends, make_bytes, motto, root, scale, sleep_ms};
    #[pymodule_export]
    use super::{sum_list, sum_sequence, work};
    #[pymodule_export]
    use super::{Counter, Point};
    #[pymodule_export]
    use crate::frozen::frozen;
}
