//! Compiles the C library into the module.

fn main() {
    println!("cargo:rerun-if-changed=../library");
    cc::Build::new().file("../library/outside.c").opt_level(3).compile("outside");
}
