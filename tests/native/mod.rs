//! Compiling, linking and running small native programs, for tests of the tool chain.

#![allow(dead_code, reason = "each test program uses a part of this")]

use atlc::emit::link::{Input, link};
use atlc::emit::output::{EXECUTABLE, TemporaryFolder, write_atomically};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// No program of these tests may run longer, in seconds.
pub const LIMIT: &str = "60";

/// Held while a file that will be run is open for writing, and while a process starts: a process that starts meanwhile
/// would have the file open as well for a moment, and the kernel runs no file that somebody may write.
static STARTING: Mutex<()> = Mutex::new(());

/// Does something that starts processes or writes files that will be run, while nobody else does.
pub fn alone<T>(action: impl FnOnce() -> T) -> T {
    let _guard = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    action()
}

/// Starts a process.
pub fn spawn(command: &mut Command) -> Child {
    alone(|| command.spawn()).unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display()))
}

/// Runs a process to its end, with nothing to read.
pub fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn(command).wait_with_output().unwrap()
}

/// Writes a file that will be run.
pub fn write_executable(path: &Path, bytes: &[u8]) {
    alone(|| write_atomically(path, bytes, EXECUTABLE)).unwrap();
}

/// Is the tool there? Where not, says so; in continuous integration it must be.
pub fn have(tool: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()));
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{tool} is not installed");
        println!("skipped: {tool} is not installed");
    }
    found
}

/// What C programs of these tests begin with.
pub const PRELUDE: &str = r#"
typedef unsigned char byte;
void atlrt_print_int(long value, int end);
void atlrt_print_bool(long value, int end);
void atlrt_print_str(const char *text, long bytes, int end);
long *atlrt_array_int(long length, long init, int line, int column);
byte *atlrt_array_bool(long length, long init, int line, int column);
void atlrt_free(void *array);
long atlrt_read(int line, int column);
long atlrt_eof(void);
void atlrt_trap_division(int line, int column);
void atlrt_trap_index(long index, long length, int line, int column);
void atlrt_trap_assert(int line, int column);
void atlrt_flush(void);
#ifndef HOSTED
const char atlas_source[] = "dir/prog.atl";
#endif
"#;

/// Compiles a C program that may not use the C library.
pub fn compile_c(folder: &Path, source: &str, flags: &[&str]) -> Vec<u8> {
    let (input, object) = (folder.join("input.c"), folder.join("input.o"));
    std::fs::write(&input, format!("{PRELUDE}{source}")).unwrap();
    let flags_for_all = ["-O1", "-fno-pic", "-ffreestanding", "-fno-stack-protector", "-fno-optimize-sibling-calls"];
    let mut gcc = Command::new("gcc");
    gcc.args(["-c", "-w"]).args(flags_for_all).args(flags).arg(&input).arg("-o").arg(&object);
    let result = output(&mut gcc);
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    std::fs::read(object).unwrap()
}

/// Assembles AT&T assembly.
pub fn assemble(folder: &Path, source: &str) -> Vec<u8> {
    let (input, object) = (folder.join("input.s"), folder.join("assembled.o"));
    std::fs::write(&input, source).unwrap();
    let result = output(Command::new("gcc").arg("-c").arg(&input).arg("-o").arg(&object));
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    std::fs::read(object).unwrap()
}

/// Links objects with the runtime into the executable `name`.
pub fn executable(folder: &Path, name: &str, objects: &[&[u8]]) -> PathBuf {
    let mut inputs: Vec<Input<'_>> = objects.iter().map(|bytes| Input { name: "program.o", bytes }).collect();
    inputs.push(Input { name: "runtime.o", bytes: atlc::emit::RUNTIME });
    let bytes = link(&inputs).unwrap_or_else(|error| panic!("{error}"));
    let path = folder.join(name);
    write_executable(&path, &bytes);
    path
}

/// A C program, compiled and linked, in a folder that lives as long as this.
pub struct Program {
    /// The folder.
    pub folder: TemporaryFolder,
    /// The executable.
    pub path: PathBuf,
}

impl Program {
    /// Compiles and links `source`.
    pub fn new(source: &str) -> Program {
        let folder = TemporaryFolder::new().unwrap();
        let object = compile_c(folder.path(), source, &[]);
        let path = executable(folder.path(), "program", &[&object]);
        Program { folder, path }
    }

    /// Runs it with `input`.
    pub fn run(&self, input: &[u8]) -> Run {
        run(&mut Command::new(&self.path), &[input])
    }

    /// Runs it by a shell, as `$0` in `script`.
    pub fn run_in_shell(&self, script: &str) -> Run {
        run(Command::new("sh").arg("-c").arg(script).arg(&self.path), &[])
    }
}

/// What a process did.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
    /// Its exit status, or minus the signal that it died of.
    pub status: i32,
}

impl Run {
    /// The output as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }
}

/// Runs a command, writing the pieces to its standard input one by one.
pub fn run(command: &mut Command, pieces: &[&[u8]]) -> Run {
    let mut limited = Command::new("timeout");
    // In the foreground, `timeout` makes no group of its own; it gives the status of a killed program on as a shell does.
    limited.args(["--foreground", "-s", "KILL", LIMIT]).arg(command.get_program()).args(command.get_args());
    let mut child = spawn(limited.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let (out, err) = std::thread::scope(|scope| {
        let out = scope.spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let err = scope.spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        for piece in pieces {
            // A program may end before it has read everything.
            if stdin.write_all(piece).is_err() {
                break;
            }
            if pieces.len() > 1 {
                std::thread::yield_now();
            }
        }
        drop(stdin);
        (out.join().unwrap(), err.join().unwrap())
    });
    let status = child.wait().unwrap();
    // `timeout` dies of the signal that its program died of, or reports it as 128 + signal.
    let status = match (status.code(), status.signal()) {
        (Some(code), _) if code > 128 => 128 - code,
        (Some(code), _) => code,
        (None, signal) => -signal.unwrap(),
    };
    Run { stdout: out, stderr: err, status }
}
