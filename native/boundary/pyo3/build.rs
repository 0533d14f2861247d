//! Compiles the C library and the C++ class into the module.

fn main() {
    for file in ["boundary.c", "boundary.h", "counter.cpp", "counter.hpp"] {
        println!("cargo:rerun-if-changed=../library/{file}");
    }
    println!("cargo:rerun-if-changed=src/make_counter.hpp");
    cc::Build::new().file("../library/boundary.c").opt_level(3).compile("boundary");
    cxx_build::bridge("src/lib.rs")
        .file("../library/counter.cpp")
        .include("../library")
        .include("src")
        .std("c++17")
        .flag("-fvisibility=hidden")
        .opt_level(3)
        .compile("counter");
    println!("cargo:rustc-link-lib=m");
}
