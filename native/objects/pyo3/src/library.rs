//! The Rust behind the binding: what objects.hpp is in C++, as far as Rust has it. No call to it is inlined, as none is in C++.

use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq)]
pub enum Number {
    Int(i64),
    Float(f64),
}

#[inline(never)]
pub fn scaled(x: f64, by: f64, plus: f64) -> f64 {
    x * by + plus
}

#[inline(never)]
pub fn kind(x: Number) -> &'static str {
    match x {
        Number::Int(_) => "int",
        Number::Float(_) => "float",
    }
}

#[inline(never)]
pub fn total(values: &[f64]) -> f64 {
    values.iter().sum()
}

#[inline(never)]
pub fn total_by_name(values: &BTreeMap<String, f64>) -> f64 {
    values.values().sum()
}

#[inline(never)]
pub fn grow(values: &mut Vec<f64>) {
    values.push(1.0);
}
