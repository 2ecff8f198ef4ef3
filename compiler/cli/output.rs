//! Writing to files and to the standard streams, with errors in sentences; and whether two paths name one file, so that
//! the source is never overwritten.

use super::process;
use crate::emit::output;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Writes a file; `executable` makes it one. Errors are sentences that name the file.
pub fn write_file(path: &Path, bytes: &[u8], executable: bool) -> Result<(), String> {
    // Opening a FIFO that nobody reads would wait forever.
    if fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo()) && !process::has_reader(path) {
        return Err(format!("cannot write `{}`: it is a FIFO that nobody reads", path.display()));
    }
    let mode = if executable { output::EXECUTABLE } else { output::PLAIN };
    output::write_atomically(path, bytes, mode)
        .map_err(|error| format!("cannot write `{}`: {}", path.display(), describe(&error)))
}

/// Do both paths name one file, by whatever links? False if either is missing.
pub fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => a.is_file() && a.dev() == b.dev() && a.ino() == b.ino(),
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

/// The name that a path will have once it is written: its folder resolved.
pub fn resolved(path: &Path) -> PathBuf {
    if let Ok(path) = fs::canonicalize(path) {
        return path;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        (Ok(_) | Err(_), Some(_) | None) => path.to_path_buf(),
    }
}

/// The system's words for an error, without its number.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// Writes to standard output, at once. A reader that has gone is an [`io::ErrorKind::BrokenPipe`].
pub fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Writes to standard error; that nobody reads it is no reason to fail.
pub fn write_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Makes a folder with those above it.
pub fn make_folder(path: &Path) -> Result<(), String> {
    if path.exists() && !path.is_dir() {
        return Err(format!("cannot write into `{}`: it is not a directory", path.display()));
    }
    fs::create_dir_all(path).map_err(|error| format!("cannot make `{}`: {}", path.display(), describe(&error)))
}
