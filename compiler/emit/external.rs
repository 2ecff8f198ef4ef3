//! Links with a linker of the user's choice, as a process of its own: `ld`, `mold`, `ld.lld`, or a C compiler as driver.
//!
//! The objects go to a temporary folder, where the linker makes the executable. Cost: a process and some files; `link` does
//! the same within this process.

use super::link::{Input, LinkError};
use super::output::TemporaryFolder;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The executable that the program `linker` (a path, or a name that is looked up in `PATH`) makes of objects.
///
/// # Errors
/// [`LinkError::External`], with what the linker said.
pub fn link_with(linker: &Path, inputs: &[Input<'_>]) -> Result<Vec<u8>, LinkError> {
    let failed = |what: &str, error: &dyn fmt::Display| LinkError::External {
        linker: linker.display().to_string(),
        message: if what.is_empty() { error.to_string() } else { format!("{what}: {error}") },
    };
    let folder = TemporaryFolder::new().map_err(|error| failed("no temporary folder", &error))?;
    let made = folder.path().join("out");
    let mut command = Command::new(linker);
    command.args(arguments(linker)).arg("-o").arg(&made);
    for (index, input) in inputs.iter().enumerate() {
        let path = folder.path().join(file_name(index, input.name));
        std::fs::write(&path, input.bytes).map_err(|error| failed("cannot write its input", &error))?;
        command.arg(path);
    }
    let result = command.stdin(Stdio::null()).output().map_err(|error| failed("it cannot be run", &error))?;
    if !result.status.success() {
        let said = String::from_utf8_lossy(if result.stderr.is_empty() { &result.stdout } else { &result.stderr });
        return Err(failed(&result.status.to_string(), &said.trim_end()));
    }
    std::fs::read(&made).map_err(|error| failed("it made no executable", &error))
}

/// What this linker must be told besides its inputs.
fn arguments(linker: &Path) -> &'static [&'static str] {
    let name = linker.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    // A version may follow the name of a compiler: gcc-14.
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if stem == "rust-lld" || stem == "lld" {
        // One program that plays several linkers must be told which.
        &["-flavor", "gnu", "-static", "-z", "noexecstack"]
    } else if ["cc", "gcc", "clang"].iter().any(|driver| stem == *driver || stem.ends_with(&format!("-{driver}"))) {
        &["-nostdlib", "-static", "-Wl,-z,noexecstack"]
    } else {
        &["-static", "-z", "noexecstack"]
    }
}

/// A file name that says in the linker's messages which input it is.
fn file_name(index: usize, name: &str) -> String {
    let base = name.rsplit('/').next().unwrap_or(name);
    let plain: String =
        base.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).take(100).collect();
    format!("{index}-{plain}.o")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_linker_gets_its_arguments() {
        let first = |path: &str| arguments(Path::new(path))[0];
        for plain in ["ld", "/usr/bin/ld.bfd", "mold", "ld.lld", "/opt/llvm-18/bin/ld.lld-18", "x86_64-linux-gnu-ld"] {
            assert_eq!(first(plain), "-static", "{plain}");
        }
        for driver in ["cc", "/usr/bin/gcc", "gcc-14", "clang", "clang-18", "x86_64-linux-gnu-gcc-12.2"] {
            assert_eq!(first(driver), "-nostdlib", "{driver}");
        }
        assert_eq!(first("rust-lld"), "-flavor");
    }

    #[test]
    fn file_names_are_plain_and_distinct() {
        assert_eq!(file_name(0, "some/dir/my prog$.atl"), "0-my_prog_.atl.o");
        assert_eq!(file_name(1, ""), "1-.o");
        assert_eq!(file_name(2, &"é".repeat(5000)).len(), 104);
    }
}
