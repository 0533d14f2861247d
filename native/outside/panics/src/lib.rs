//! A panic on its way out of Rust, by the ABI of the function that it leaves.

use std::ffi::c_int;
use std::panic::catch_unwind;

/* [panics] */
/// Nothing unwinds out of "C": since Rust 1.81 the process is aborted here.
#[unsafe(no_mangle)]
pub extern "C" fn panics() {
    panic!("out of Rust");
}

/// It may leave this one; then somebody further up has to catch it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn panics_unwind() {
    panic!("out of Rust");
}

/// What every function that C calls should do: no panic gets as far as its end.
#[unsafe(no_mangle)]
pub extern "C" fn caught_inside() -> c_int {
    catch_unwind(|| panic!("stays in Rust")).is_err().into()
}

/// Rust that calls Rust through a pointer, and stands around it: 1 if a panic came out.
#[unsafe(no_mangle)]
pub extern "C" fn caught_outside(function: extern "C-unwind" fn()) -> c_int {
    catch_unwind(|| function()).is_err().into()
}
/* [/panics] */
