//! Reading the source: from a file or standard input, with an error that says what is wrong with it.

use super::output::describe;
use crate::support::diagnostics::Diagnostic;
use crate::support::span::Source;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// Why there is no source.
pub enum Unreadable {
    /// A sentence about the file.
    File(String),
    /// The text is not UTF-8: where, in a source that shows the bytes as replacement characters.
    NotUtf8(Box<Source>, Box<Diagnostic>),
}

/// The text of the file; its name as the user wrote it, `<stdin>` for `-`.
pub fn read(path: &Path) -> Result<Source, Unreadable> {
    let from_stdin = path.as_os_str() == "-";
    let name = if from_stdin { "<stdin>".to_string() } else { path.display().to_string() };
    let bytes = if from_stdin { read_stdin() } else { read_file(path) };
    let bytes = bytes.map_err(|reason| Unreadable::File(format!("cannot read `{name}`: {reason}")))?;
    if bytes.len() >= u32::MAX as usize {
        return Err(Unreadable::File(format!("cannot read `{name}`: it is larger than 4 GiB")));
    }
    Source::from_bytes(name, bytes).map_err(|error| {
        let (source, diagnostic) = *error;
        Unreadable::NotUtf8(Box::new(source), Box::new(diagnostic))
    })
}

/// The bytes of a file, for a program to read.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    read_file(path).map_err(|reason| format!("cannot read `{}`: {reason}", path.display()))
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err("it is a directory".to_string()),
        Ok(metadata) if metadata.len() >= u64::from(u32::MAX) => return Err("it is larger than 4 GiB".to_string()),
        Ok(_) => {}
        Err(error) => return Err(describe(&error)),
    }
    fs::read(path).map_err(|error| describe(&error))
}

fn read_stdin() -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(u64::from(u32::MAX)).read_to_end(&mut bytes).map_err(|error| describe(&error))?;
    Ok(bytes)
}
