//! Links the static library of each allocator whole, as a shared object that can be preloaded, into cargo's release folder.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

// [link]
/// Allocator, the crate that builds it, the archive that it leaves, and the compiler that links it.
const ALLOCATORS: [(&str, &str, &str, &str); 3] = [
    ("jemalloc", "tikv-jemalloc-sys", "out/lib/libjemalloc_pic.a", "CC"),
    ("mimalloc", "libmimalloc-sys", "out/libmimalloc.a", "CC"),
    ("tcmalloc", "libtcmalloc-sys", "out/libtcmalloc.a", "CXX"),
];

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let builds = out.ancestors().nth(2).unwrap();
    let release = builds.parent().unwrap();
    for (name, krate, archive, compiler) in ALLOCATORS {
        let mut link = Command::new(tool(compiler));
        link.args(["-shared", "-O2", "-fPIC", "-o"]).arg(release.join(format!("lib{name}.so")));
        if name == "tcmalloc" {
            // -fno-builtin: a function named malloc must not be compiled as if it were the C library's.
            link.args(["-fno-builtin", "-x", "c", "src/tcmalloc_names.c", "-x", "none"]);
        }
        link.arg("-Wl,--whole-archive").arg(newest(builds, krate, archive));
        link.args(["-Wl,--no-whole-archive", "-pthread", "-ldl", "-lm"]);
        // What is compared is each allocator as its project builds it: no other order of its functions is linked.
        let ended = link.env_remove("FFILAB_LINKS").status().expect("no compiler to link with");
        assert!(ended.success(), "linking {name}: {ended}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/tcmalloc_names.c");
}
// [/link]

fn tool(variable: &str) -> String {
    let usual = if variable == "CC" { "cc" } else { "c++" };
    env::var(variable).unwrap_or_else(|_| usual.to_string())
}

/// The archive of a crate; the newest, if cargo built it more than once.
fn newest(builds: &Path, krate: &str, archive: &str) -> PathBuf {
    let of_crate = |folder: &PathBuf| {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        name.rsplit_once('-').is_some_and(|(before, _)| before == krate)
    };
    fs::read_dir(builds)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(of_crate)
        .map(|folder| folder.join(archive))
        .filter(|path| path.exists())
        .max_by_key(|path| path.metadata().unwrap().modified().unwrap())
        .unwrap_or_else(|| panic!("{krate} left no {archive}"))
}
