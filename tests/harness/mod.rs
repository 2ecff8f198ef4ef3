//! What the tests that run `atlc` and its programs share: bounded runs with all that a process shows, and the cases.
#![allow(dead_code)] // Each test file uses its part.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::fd::FromRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The compiler under test.
pub fn atlc() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atlc"));
    command.env_remove("NO_COLOR");
    command
}

/// The project's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// How a process ended, and what it left.
#[derive(Debug)]
pub struct Ran {
    /// The exit status, or the signal's number, negative.
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// The most memory it had, in MB.
    pub rss: u64,
    /// Was it killed because its time was over?
    pub timed_out: bool,
}

impl Ran {
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// Where a process's standard output goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// To a file, read afterwards.
    File,
    /// To `/dev/full`.
    Full,
    /// To a pipe that nobody reads any more.
    ClosedPipe,
}

/// Starts a command. An executable that this process has just written may be open in another process that is being
/// started at this moment; the system then calls it busy, for an instant.
#[allow(clippy::zombie_processes)] // The caller waits for it.
fn started(command: &mut Command) -> Child {
    for _ in 0..200 {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other.expect("it starts"),
        }
    }
    panic!("{} stays busy", command.get_program().display());
}

/// Runs to the end, or to the limit, when it is killed.
#[allow(clippy::zombie_processes)] // It is waited for by `wait4`, which also tells its memory.
pub fn run(command: &mut Command, input: Option<&Path>, output: Output, limit: Duration) -> Ran {
    let stdin = input.map_or_else(Stdio::null, |path| File::open(path).expect("the input opens").into());
    let mut stdout = tempfile::tempfile().expect("a temporary file");
    let mut stderr = tempfile::tempfile().expect("a temporary file");
    let to = match output {
        Output::File => stdout.try_clone().expect("a descriptor").into(),
        Output::Full => File::options().write(true).open("/dev/full").expect("/dev/full").into(),
        Output::ClosedPipe => closed_pipe(),
    };
    command.stdin(stdin).stdout(to).stderr(stderr.try_clone().expect("a descriptor"));
    let child = started(command);
    let pid = child.id() as i32;
    let (finished, waiting) = channel::<()>();
    let killer = std::thread::spawn(move || match waiting.recv_timeout(limit) {
        Err(RecvTimeoutError::Timeout) => {
            // SAFETY: the process is not waited for yet, so its number is still its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            true
        }
        Ok(()) | Err(RecvTimeoutError::Disconnected) => false,
    });
    let mut status = 0;
    // SAFETY: rusage is plain data, for which zeros are fine.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables. WNOWAIT does not exist for wait4, so the killer is told after the wait;
    // a kill in between would go to a number that is free for less than the time of these two lines.
    let waited = unsafe { libc::wait4(pid, &mut status, 0, &mut usage) };
    let _ = finished.send(());
    assert_eq!(waited, pid, "the process is waited for once");
    let timed_out = killer.join().expect("the killer ends");
    let status = ExitStatus::from_raw(status);
    let read = |file: &mut File| {
        let mut bytes = Vec::new();
        file.rewind().expect("a file rewinds");
        file.read_to_end(&mut bytes).expect("a file reads");
        bytes
    };
    Ran {
        status: status.code().unwrap_or_else(|| -status.signal().expect("ended by a signal")),
        stdout: read(&mut stdout),
        stderr: read(&mut stderr),
        rss: usage.ru_maxrss as u64 / 1024,
        timed_out,
    }
}

fn closed_pipe() -> Stdio {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both descriptors, which nobody else has.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        libc::close(ends[0]);
        File::from_raw_fd(ends[1]).into()
    }
}

/// Runs with no input for at most a minute.
pub fn quick(command: &mut Command) -> Ran {
    run(command, None, Output::File, Duration::from_secs(60))
}

/// Runs with a text on standard input.
pub fn with_input(command: &mut Command, text: impl AsRef<[u8]>) -> Ran {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), text).expect("it takes the text");
    run(command, Some(file.path()), Output::File, Duration::from_secs(60))
}

/// A folder that is removed with the value.
pub fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("atlc-test-").tempdir().expect("a temporary folder")
}

/// Is the outside tool there? Where it is not, CI fails and other places say so and go on.
pub fn tool(name: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    if !found {
        assert!(std::env::var_os("CI").is_none(), "`{name}` is missing, and CI must have it");
        eprintln!("skipped: `{name}` is not installed");
    }
    found
}

/// The programs of a folder of the project, by name.
pub fn programs(folder: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(root().join(folder))
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension() == Some(OsStr::new("atl")))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no programs in {folder}");
    found
}

/// A file beside a program: `NAME.extension`.
pub fn beside(program: &Path, extension: &str) -> Option<Vec<u8>> {
    fs::read(program.with_extension(extension)).ok()
}

/// What is wrong with a case when it is compiled with these flags; nothing if it is right.
///
/// A case is `NAME.atl` with `.expected` (standard output), `.input`, `.stderr` or `.stderr1` (its first line only),
/// `.status` (or `timeout`: silent and still running after two seconds), `.maxrss` (MB), `.full` (standard output is
/// full), `.pipe` (its reader has gone), `.pos` (a compile-time error at one of these positions).
pub fn check(program: &Path, flags: &[&str], limit: Duration) -> Result<(), String> {
    let name = program.file_name().expect("a file").to_string_lossy().into_owned();
    let folder = folder();
    let executable = folder.path().join("out");
    // By its name alone, so that error messages can be compared with what the case says.
    let mut build = atlc();
    build
        .current_dir(program.parent().expect("a folder"))
        .arg("build")
        .arg(&name)
        .arg("-o")
        .arg(&executable)
        .args(flags);
    let built = run(&mut build, None, Output::File, limit);
    if let Some(positions) = beside(program, "pos") {
        return check_positions(&name, &built, &String::from_utf8_lossy(&positions), &executable);
    }
    if built.status != 0 || !built.stdout.is_empty() {
        return Err(format!("does not compile: status {}, {}{}", built.status, built.out(), built.err()));
    }
    let status =
        beside(program, "status").map_or("0".to_string(), |text| String::from_utf8_lossy(&text).trim().to_string());
    let endless = status == "timeout";
    let input = program.with_extension("input");
    let has = |extension: &str| program.with_extension(extension).exists();
    let output = match (has("full"), has("pipe")) {
        (true, _) => Output::Full,
        (false, true) => Output::ClosedPipe,
        (false, false) => Output::File,
    };
    let limit = if endless { Duration::from_secs(2) } else { limit };
    let ran = run(&mut Command::new(&executable), input.exists().then_some(&*input), output, limit);
    if output == Output::ClosedPipe {
        return match (ran.status == -libc::SIGPIPE, ran.stderr.is_empty()) {
            (true, true) => Ok(()),
            (true | false, true | false) => Err(format!("a closed pipe: status {}, {}", ran.status, ran.err())),
        };
    }
    if endless != ran.timed_out {
        return Err(format!("still running after {limit:?}: {}, expected {endless}", ran.timed_out));
    }
    let wanted = if endless { -libc::SIGKILL } else { status.parse().expect("a status is a number") };
    if ran.status != wanted {
        return Err(format!("status {}, expected {wanted}; {}", ran.status, ran.err()));
    }
    if ran.stdout != beside(program, "expected").unwrap_or_default() {
        return Err(format!("standard output is {:?}", ends(&ran.out())));
    }
    match beside(program, "stderr1") {
        Some(line) => {
            let first = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec);
            if first(&ran.stderr) != first(&line) {
                return Err(format!("standard error is {:?}", ran.err()));
            }
        }
        None => {
            if ran.stderr != beside(program, "stderr").unwrap_or_default() {
                return Err(format!("standard error is {:?}", ran.err()));
            }
        }
    }
    if let Some(most) = beside(program, "maxrss") {
        let most: u64 = String::from_utf8_lossy(&most).trim().parse().expect("megabytes");
        if ran.rss > most {
            return Err(format!("took {} MB, more than {most}", ran.rss));
        }
    }
    Ok(())
}

fn check_positions(name: &str, built: &Ran, positions: &str, executable: &Path) -> Result<(), String> {
    let text = built.err();
    if built.status != 1 || !built.stdout.is_empty() {
        return Err(format!("status {}, expected 1 with silent standard output; {text}", built.status));
    }
    if !text.lines().any(|line| line.starts_with("error[E")) {
        return Err(format!("no line `error[E…]: …` in {text}"));
    }
    if executable.exists() {
        return Err("an output file was written".to_string());
    }
    let marker = format!("{name}:");
    let at = text.find(&marker).ok_or_else(|| format!("no position in {text}"))? + marker.len();
    let found: String = text[at..].chars().take_while(|c| c.is_ascii_digit() || *c == ':').collect();
    if !positions.split_whitespace().any(|position| position == found) {
        return Err(format!("the error is at {found}, expected one of {positions}; {text}"));
    }
    Ok(())
}

/// The beginning and end of a long text.
fn ends(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= 400 {
        return text.to_string();
    }
    let (head, tail) = (&characters[..200], &characters[characters.len() - 200..]);
    format!("{} … {}", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

/// Checks all programs of a folder, on as many threads as there are cores, and fails with all that is wrong.
pub fn check_all(folder: &str, flags: &[&str], limit: Duration, chosen: impl Fn(&str) -> bool) {
    let programs: Vec<PathBuf> = programs(folder)
        .into_iter()
        .filter(|path| chosen(&path.file_stem().expect("a name").to_string_lossy()))
        .collect();
    assert!(!programs.is_empty(), "nothing chosen in {folder}");
    let next = std::sync::atomic::AtomicUsize::new(0);
    let failures = std::sync::Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(program) = programs.get(index) else { break };
                    if let Err(wrong) = check(program, flags, limit) {
                        failures.lock().expect("no panic").push(format!("{}: {wrong}", program.display()));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no panic");
    failures.sort();
    assert!(
        failures.is_empty(),
        "{} of {} with {flags:?} failed:\n{}",
        failures.len(),
        programs.len(),
        failures.join("\n")
    );
}
