//! Runs executables, one after another, each within a time and an amount of output.
//!
//! A [`Runner`] keeps a temporary folder for the file that it executes, so that a run costs a write, a process and two
//! threads. Two threads of this process must not write and start programs at the same time: the child of the one would
//! hold the other's file open for writing while it is being executed ("text file busy"); a lock prevents it.
//!
//! **in**: the bytes of an executable, input, limits. **out**: what the process has shown. Cost: a process.

use super::shown::{Ended, Shown};
use crate::emit::output::{self, TemporaryFolder};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How far a process may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// How long it may run.
    pub time: Duration,
    /// How much it may print, in bytes.
    pub output: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { time: Duration::from_secs(10), output: 16 << 20 }
    }
}

/// Held while an executable is written and started.
static STARTING: Mutex<()> = Mutex::new(());

/// Runs executables.
pub struct Runner {
    folder: TemporaryFolder,
}

impl Runner {
    /// Makes a folder to run in.
    pub fn new() -> io::Result<Runner> {
        Ok(Runner { folder: TemporaryFolder::new()? })
    }

    /// The folder, for what else a caller wants to put there.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs an executable that is in memory.
    pub fn run(&self, executable: &[u8], input: &[u8], bounds: &Bounds) -> io::Result<Shown> {
        let path = self.folder.path().join("program");
        let input = self.input(input)?;
        let child = {
            let _lock = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
            output::write_atomically(&path, executable, output::EXECUTABLE)?;
            start(&mut Command::new(&path), input)?
        };
        watch(child, bounds)
    }

    /// Runs a command with this input.
    pub fn run_command(&self, command: &mut Command, input: &[u8], bounds: &Bounds) -> io::Result<Shown> {
        let input = self.input(input)?;
        let child = {
            let _lock = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
            start(command, input)?
        };
        watch(child, bounds)
    }

    fn input(&self, input: &[u8]) -> io::Result<Stdio> {
        if input.is_empty() {
            return Ok(Stdio::null());
        }
        let path: PathBuf = self.folder.path().join("input");
        File::create(&path)?.write_all(input)?;
        Ok(File::open(&path)?.into())
    }
}

/// How often a start is tried again while the file counts as being written.
const TRIES: u32 = 200;

/// Starts the program. Where another thread starts a process at the moment that the file is written, that process has the
/// file open for an instant, and the system refuses to run it ("text file busy"): then it is tried again.
fn start(command: &mut Command, input: Stdio) -> io::Result<Child> {
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    for _ in 1..TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(5));
            }
            started => return started,
        }
    }
    command.spawn()
}

/// Reads what the process shows until it ends, its time is over, or it has printed too much.
fn watch(mut child: Child, bounds: &Bounds) -> io::Result<Shown> {
    let mut stdout = child.stdout.take().expect("standard output is a pipe");
    let mut stderr = child.stderr.take().expect("standard error is a pipe");
    let child = Mutex::new(child);
    let kill = || {
        let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have ended just now.
        let _ = child.kill();
    };
    let (done, waiting) = channel::<()>();
    let (output, errors, late) = std::thread::scope(|scope| {
        let kill = &kill;
        let watchdog = scope.spawn(move || match waiting.recv_timeout(bounds.time) {
            Err(RecvTimeoutError::Timeout) => {
                kill();
                true
            }
            Ok(()) | Err(RecvTimeoutError::Disconnected) => false,
        });
        let errors = scope.spawn(move || {
            let mut errors = Vec::new();
            stderr.read_to_end(&mut errors).map(|_| errors)
        });
        let mut output = Vec::new();
        let read = (&mut stdout).take(bounds.output as u64 + 1).read_to_end(&mut output);
        if output.len() > bounds.output {
            kill();
        }
        let errors = errors.join().expect("reading does not panic");
        drop(done);
        let late = watchdog.join().expect("waiting does not panic");
        (read.map(|_| output), errors, late)
    });
    let (mut output, errors) = (output?, errors?);
    let status = child.into_inner().unwrap_or_else(PoisonError::into_inner).wait()?;
    if output.len() > bounds.output {
        output.truncate(bounds.output);
        return Ok(Shown { output, end: Ended::Cut("output") });
    }
    if late {
        return Ok(Shown { output, end: Ended::Cut("time") });
    }
    let status = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
    Ok(Shown::of_process(output, &errors, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, input: &str, bounds: &Bounds) -> Shown {
        let runner = Runner::new().expect("a folder");
        runner.run_command(Command::new("sh").args(["-c", script]), input.as_bytes(), bounds).expect("sh starts")
    }

    #[test]
    fn shows_what_processes_do() {
        let bounds = Bounds::default();
        assert_eq!(sh("cat", "12\n", &bounds), Shown { output: b"12\n".to_vec(), end: Ended::Normal });
        assert_eq!(sh("kill -SEGV $$", "", &bounds).end, Ended::Error("ended by signal 11; \"\"".to_string()));
        assert_eq!(sh("exit 3", "", &bounds).end, Ended::Error("exit status 3; \"\"".to_string()));
    }

    #[test]
    fn bounds_hold() {
        let short = Bounds { time: Duration::from_millis(300), output: 1000 };
        assert_eq!(sh("exec sleep 20", "", &short).end, Ended::Cut("time"));
        let shown = sh("exec yes", "", &short);
        assert_eq!((shown.output.len(), shown.end), (1000, Ended::Cut("output")));
    }
}
