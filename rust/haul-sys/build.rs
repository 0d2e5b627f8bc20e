//! Finds libhaul for the linker: in HAUL_LIB_DIR, else by pkg-config, else where the linker looks by itself.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{exit, Command, Stdio};

const NAMES: [&str; 2] = ["libhaul.so", "libhaul.a"];

fn main() {
    println!("cargo:rerun-if-env-changed=HAUL_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rerun-if-changed=build.rs");
    let folders = match env::var_os("HAUL_LIB_DIR") {
        Some(folder) => vec![given_folder(PathBuf::from(folder))],
        None => match asked_of_pkg_config() {
            Some(folders) => folders,
            None if the_linker_finds_it() => Vec::new(),
            None => fail(
                "libhaul was not found; install haul (make install), set PKG_CONFIG_PATH to the folder of its \
                 haul.pc, or set HAUL_LIB_DIR to the folder that holds libhaul.so (build/release/lib in haul's tree)",
            ),
        },
    };
    for folder in folders {
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
    println!("cargo:rustc-link-lib=haul");
}

fn given_folder(folder: PathBuf) -> PathBuf {
    if !NAMES.iter().any(|name| folder.join(name).exists()) {
        fail(&format!(
            "HAUL_LIB_DIR is {}, which holds no libhaul.so; set it to the folder that does (build/release/lib in \
             haul's tree)",
            folder.display()
        ));
    }
    folder
}

/// The folders that haul.pc names: none where the linker looks there anyway. `None`: pkg-config or haul.pc is missing.
fn asked_of_pkg_config() -> Option<Vec<PathBuf>> {
    let output = Command::new("pkg-config").args(["--libs-only-L", "haul"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output
        .status
        .success()
        .then(|| text.split_whitespace().filter_map(|word| word.strip_prefix("-L")).map(PathBuf::from).collect())
}

/// Links nothing but libhaul, as the linker's own folders are known to the linker alone.
fn the_linker_finds_it() -> bool {
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    Command::new("cc")
        .args(["-shared", "-x", "c", "/dev/null", "-lhaul", "-o"])
        .arg(Path::new(&out).join("probe.so"))
        .stderr(Stdio::null())
        .status()
        .map_or(false, |status| status.success())
}

fn fail(sentence: &str) -> ! {
    eprintln!("haul-sys: {sentence}");
    exit(1)
}
