//! What the command line does to its own process: becoming the compiled program, dying of a closed pipe, and asking about
//! FIFOs. The only door to `libc`.
//!
//! `atlc run` puts the executable into an anonymous file in memory and executes that in its own place. So the program
//! has atlc's standard input and output, gets the signals that are sent to it, and its exit status or signal is atlc's,
//! with nothing to pass on and no file to clean up.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Replaces this process by the program; comes back only with the error that prevented it.
pub fn become_program(executable: &[u8], name: &OsStr, arguments: &[OsString]) -> io::Error {
    match anonymous_file(executable) {
        Ok(file) => {
            // The path leads to the open file, which closes itself when the program starts.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            Command::new(path).arg0(name).args(arguments).exec()
        }
        Err(error) => error,
    }
}

fn anonymous_file(bytes: &[u8]) -> io::Result<File> {
    // SAFETY: the name is a NUL-terminated string; the call has no other preconditions.
    let descriptor = unsafe { libc::memfd_create(c"atlas-program".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else has it.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(bytes)?;
    Ok(file)
}

/// Ends the process as a closed pipe ends other tools: by the signal, without a word. (Rust programs start with the
/// signal ignored and get an error from the write instead.)
pub fn die_of_broken_pipe() {
    // SAFETY: both calls concern only the disposition of this signal, for which the process has no handler.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::raise(libc::SIGPIPE);
    }
}

/// Does anybody read the FIFO? Without a reader, opening it for writing would wait.
pub fn has_reader(fifo: &Path) -> bool {
    OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(fifo).is_ok()
}
