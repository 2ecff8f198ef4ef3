//! Generates the parser from `compiler/syntax/grammar.lalrpop`, and compiles the runtime to the object that `atlc` embeds.
//!
//! The runtime must link into any program with nothing but that program beside it: the only symbols that it may need are
//! the program's body and its name, and only displacements may be left to fill in (one slice index in it would pull in a
//! panic, one array of zeros a `memset`). A runtime that breaks this fails the build.

use object::elf;
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the runtime stands.
const RUNTIME: &str = "runtime";

/// The targets whose `core` the runtime can be compiled with, best first. It is the machine that compiled programs run
/// on, whatever machine the compiler runs on.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"];

/// What the program gives the runtime.
const NEEDS: [&str; 2] = ["atlas_entry", "atlas_source"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    if let Err(message) = build_parser(&out).and_then(|()| build_runtime(&out)) {
        for line in message.lines() {
            println!("cargo::error={line}");
        }
        std::process::exit(1);
    }
}

/// Makes the parser's tables from the grammar, only if the grammar has changed.
fn build_parser(out: &Path) -> Result<(), String> {
    lalrpop::Configuration::new()
        .set_in_dir("compiler")
        .set_out_dir(out)
        .emit_rerun_directives(true)
        .process()
        .map_err(|error| format!("the parser cannot be made from its grammar: {error}"))
}

/// Compiles `runtime/` to `runtime.o`.
fn build_runtime(out: &Path) -> Result<(), String> {
    println!("cargo::rerun-if-changed={RUNTIME}");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let target = installed_target(&rustc)?;
    let path = out.join("runtime.o");
    let output = Command::new(&rustc)
        .args(["--edition=2024", "--crate-name=atlas_runtime", "--crate-type=lib", "--emit=obj"])
        .args(["-Copt-level=2", "-Cpanic=abort", "-Ccodegen-units=1", "-Crelocation-model=pie", "-Cdebuginfo=0"])
        .args(["-Coverflow-checks=off", "-Cdebug-assertions=off", "-Cforce-unwind-tables=no", "-Ctarget-cpu=x86-64"])
        .arg(format!("--target={target}"))
        .arg("-o")
        .arg(&path)
        .arg(Path::new(RUNTIME).join("lib.rs"))
        .output()
        .map_err(|error| format!("cannot run {} for the runtime: {error}", rustc.display()))?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("the runtime does not compile for {target}:\n{messages}"));
    }
    for line in messages.lines() {
        println!("cargo::warning={line}");
    }
    let bytes = std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    check(&bytes).map_err(|message| format!("the runtime cannot be linked into programs: {message}"))
}

/// The first of `TARGETS` that this compiler has a standard library for.
fn installed_target(rustc: &std::ffi::OsStr) -> Result<&'static str, String> {
    for target in TARGETS {
        let output = Command::new(rustc)
            .args(["--print=target-libdir", "--target", target])
            .output()
            .map_err(|error| format!("cannot run {}: {error}", rustc.display()))?;
        let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let has_core = std::fs::read_dir(folder).is_ok_and(|files| {
            files.flatten().any(|file| {
                let name = file.file_name();
                let name = name.to_string_lossy();
                name.starts_with("libcore-") && name.ends_with(".rlib")
            })
        });
        if has_core {
            return Ok(target);
        }
    }
    Err(format!(
        "compiled programs run on x86-64 Linux, and so does their runtime, but {} has no standard library for it.\n\
         Install one: rustup target add {}",
        rustc.display(),
        TARGETS[0]
    ))
}

/// Holds that the object needs nothing else and leaves only displacements to fill in.
fn check(bytes: &[u8]) -> Result<(), String> {
    let object = object::File::parse(bytes).map_err(|error| error.to_string())?;
    for symbol in object.symbols().filter(|symbol| symbol.is_undefined()) {
        let name = symbol.name().map_err(|error| error.to_string())?;
        if !name.is_empty() && !NEEDS.contains(&name) {
            return Err(format!("it needs the symbol {name}"));
        }
    }
    for section in object.sections() {
        let name = section.name().map_err(|error| error.to_string())?;
        for (offset, relocation) in section.relocations() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                return Err(format!("{name}+{offset:#x} has a relocation that is not ELF's"));
            };
            // The one address is what C's exit calls; the dynamic loader may have to move it, which data allows.
            let allowed = matches!(r_type, elf::R_X86_64_PC32 | elf::R_X86_64_PLT32)
                || (r_type == elf::R_X86_64_64 && name == ".fini_array");
            if !allowed {
                let symbol = match relocation.target() {
                    RelocationTarget::Symbol(index) => object.symbol_by_index(index).and_then(|symbol| symbol.name()),
                    _ => Ok(""),
                };
                return Err(format!("{name}+{offset:#x} has relocation type {r_type} to {}", symbol.unwrap_or("?")));
            }
        }
    }
    Ok(())
}
