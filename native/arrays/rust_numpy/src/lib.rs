//! Arrays in and out through rust-numpy: a borrow of an array of NumPy, which no safe Rust code can write to meanwhile.

use numpy::ndarray::ArrayView1;
use numpy::{AsSliceError, PyArray1, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

mod library {
    use std::ffi::{c_long, c_void};

    unsafe extern "C" {
        pub fn ends(values: *const c_void, n: usize) -> f64;
        pub fn weigh(values: *const c_void, n: usize) -> f64;
        pub safe fn r#where(values: *const c_void) -> usize;
        pub safe fn make(n: usize) -> *mut f64;
        pub fn give_back(values: *mut c_void);
        pub safe fn held() -> c_long;
    }
}

// [in]
// Of an array in Fortran order there is a slice, too.
fn doubles<'a>(x: &'a PyReadonlyArrayDyn<'_, f64>) -> Result<&'a [f64], AsSliceError> {
    if x.is_c_contiguous() { x.as_slice() } else { Err(AsSliceError) }
}

#[pyfunction]
fn ends(x: PyReadonlyArrayDyn<'_, f64>) -> PyResult<f64> {
    let values = doubles(&x)?;
    // SAFETY: the slice is there as long as x is borrowed.
    Ok(unsafe { library::ends(values.as_ptr().cast(), values.len()) })
}
// [/in]

#[pyfunction]
fn look(x: PyReadonlyArrayDyn<'_, f64>) -> PyResult<(usize, f64)> {
    let values = doubles(&x)?;
    let address = values.as_ptr().cast();
    // SAFETY: as above.
    Ok((library::r#where(address), unsafe { library::weigh(address, values.len()) }))
}

// [out]
#[pyclass(frozen)]
struct Owner(*mut f64);

// SAFETY: nobody reads through it; it gives back what it owns, once.
unsafe impl Send for Owner {}
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: it comes from `make`, and the arrays that use it keep this object alive.
        unsafe { library::give_back(self.0.cast()) }
    }
}

#[pyfunction]
fn make(py: Python<'_>, n: usize) -> PyResult<Bound<'_, PyArray1<f64>>> {
    let values = library::make(n);
    if values.is_null() {
        return Err(PyMemoryError::new_err(()));
    }
    let owner = Bound::new(py, Owner(values))?;
    // SAFETY: n doubles lie there until the owner ends.
    Ok(unsafe { PyArray1::borrow_from_array(&ArrayView1::from_shape_ptr(n, values), owner.into_any()) })
}
// [/out]

#[pyfunction]
fn held() -> i64 {
    library::held().into()
}

#[pymodule(gil_used = false)]
mod arrays_rust_numpy {
    #[pymodule_export]
    use super::{ends, held, look, make};
}
