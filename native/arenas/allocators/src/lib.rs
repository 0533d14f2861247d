//! Nothing: this crate makes cargo build three allocators. See build.rs.
