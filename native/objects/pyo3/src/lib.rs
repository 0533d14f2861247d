//! The objects through PyO3: a class of Rust, where the others have one of C++.

use std::collections::BTreeMap;

use pyo3::exceptions::PyIndexError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, intern};

mod library;

// [keywords]
#[pyfunction]
#[pyo3(signature = (x, by=2.0, plus=0.0))]
fn scaled(x: f64, by: f64, plus: f64) -> f64 {
    library::scaled(x, by, plus)
}
// [/keywords]

// [overloads]
// Rust has no overloads: the first variant that can be extracted is taken.
#[derive(FromPyObject)]
enum Number {
    Int(i64),
    Float(f64),
}

#[pyfunction]
fn kind(x: Number) -> &'static str {
    library::kind(match x {
        Number::Int(x) => library::Number::Int(x),
        Number::Float(x) => library::Number::Float(x),
    })
}
// [/overloads]

// [enum]
#[pyclass(eq, eq_int, from_py_object)]
#[derive(Clone, Copy, PartialEq)]
#[allow(non_camel_case_types)]
enum Color {
    red,
    green,
    blue,
}

#[pyfunction]
fn next_color(color: Color) -> Color {
    match color {
        Color::red => Color::green,
        Color::green => Color::blue,
        Color::blue => Color::red,
    }
}
// [/enum]

// [vector]
#[pyfunction]
fn total(values: Vec<f64>) -> f64 {
    library::total(&values)
}

#[pyfunction]
fn grow_copy(mut values: Vec<f64>) {
    library::grow(&mut values);
}

#[pyfunction]
fn total_by_name(values: BTreeMap<String, f64>) -> f64 {
    library::total_by_name(&values)
}

#[pyclass]
struct Doubles(Vec<f64>);

#[pymethods]
impl Doubles {
    #[new]
    fn new(values: Vec<f64>) -> Self {
        Doubles(values)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__(&self, index: usize) -> PyResult<f64> {
        self.0.get(index).copied().ok_or_else(|| PyIndexError::new_err(index))
    }

    fn append(&mut self, value: f64) {
        self.0.push(value);
    }
}

#[pyfunction]
fn total_of(values: &Doubles) -> f64 {
    library::total(&values.0)
}

#[pyfunction]
fn grow(values: &mut Doubles) {
    library::grow(&mut values.0);
}
// [/vector]

// [shape]
#[pyclass(subclass)]
struct Shape {
    #[pyo3(get, set)]
    side: f64,
    // What a shared_ptr is in C++: a counted reference, here to the Python object itself.
    #[pyo3(get, set)]
    inner: Option<Py<Shape>>,
}

#[pymethods]
impl Shape {
    #[new]
    fn new(side: f64) -> Self {
        Shape { side, inner: None }
    }

    fn area(&self) -> f64 {
        self.side * self.side
    }
}

/// A method of Rust cannot be overridden in Python: who wants the override asks Python for it.
#[pyfunction]
fn area_of(shape: &Bound<'_, Shape>) -> PyResult<f64> {
    shape.call_method0(intern!(shape.py(), "area"))?.extract()
}

#[pyfunction]
fn make_shape(side: f64) -> Shape {
    Shape::new(side)
}
// [/shape]

// [cycle]
fn ring(py: Python<'_>, listener: &Option<Py<PyAny>>, x: f64) -> PyResult<f64> {
    listener.as_ref().map_or(Ok(x), |listener| listener.call1(py, (x,))?.extract(py))
}

#[pyclass]
#[derive(Default)]
struct Bell {
    #[pyo3(get, set)]
    listener: Option<Py<PyAny>>,
}

#[pymethods]
impl Bell {
    #[new]
    fn new() -> Self {
        Bell::default()
    }

    fn ring(&self, py: Python<'_>, x: f64) -> PyResult<f64> {
        ring(py, &self.listener, x)
    }
}

#[pyclass]
#[derive(Default)]
struct TracedBell {
    #[pyo3(get, set)]
    listener: Option<Py<PyAny>>,
}

#[pymethods]
impl TracedBell {
    #[new]
    fn new() -> Self {
        TracedBell::default()
    }

    fn ring(&self, py: Python<'_>, x: f64) -> PyResult<f64> {
        ring(py, &self.listener, x)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.listener)
    }

    fn __clear__(&mut self) {
        self.listener = None;
    }
}
// [/cycle]

#[pymodule(gil_used = false)]
mod objects_pyo3 {
    #[pymodule_export]
    use super::{area_of, grow, grow_copy, kind, make_shape, next_color, scaled, total, total_by_name, total_of};
    #[pymodule_export]
    use super::{Bell, Color, Doubles, Shape, TracedBell};
}
