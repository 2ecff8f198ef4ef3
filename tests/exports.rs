//! The exports against their compilers: what LLVM's verifier, `lli` and gcc make of random programs.
//!
//! Outside tools are found on the path (`opt`, `opt-14`, …). Where one is missing its tests say so and pass, except in CI,
//! where they fail.

use atlc::execution::{End, Input, Limits};
use atlc::ir::random::{Shape, generate};
use atlc::{export, ir};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first of the names that is on the path.
fn tool(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).flat_map(|folder| names.iter().map(move |name| folder.join(name))).find(|f| f.is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{} is missing: CI must have it", names[0]);
        println!("skipped: {} is not installed", names[0]);
    }
    found
}

/// Runs a command on a text and gives its status, output and error output.
fn run(command: &mut Command, input: &str) -> (Option<i32>, Vec<u8>, String) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the tool starts");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let input = input.to_string();
    let writer = std::thread::spawn(move || {
        // The tool may end before it has read everything.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().expect("the tool ends");
    writer.join().expect("the writer ends");
    (output.status.code(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// What the IR interpreter says of a program: output and exit status; `None` where it met a limit.
fn expected(program: &ir::Program) -> Option<(Vec<u8>, i32)> {
    let outcome = ir::interpret::run(program, Input::new(b"3 -4 17 x"), Limits::default()).expect("the IR is right");
    match outcome.end {
        End::Normal => Some((outcome.output, 0)),
        End::Trap(..) => Some((outcome.output, 101)),
        End::Limit(_) => None,
    }
}

#[test]
fn llvm_accepts_and_runs_random_programs() {
    let (Some(opt), Some(lli)) = (tool(&["opt", "opt-14"]), tool(&["lli", "lli-14"])) else { return };
    let mut compared = 0;
    for seed in 0..24 {
        let shape = if seed % 2 == 0 { Shape::default() } else { Shape::webs() };
        let program = generate(seed, &shape);
        let text = export::llvm::run(&program, "prog.atl");
        let (status, _, errors) = run(Command::new(&opt).args(["-passes=verify", "-disable-output"]), &text);
        assert_eq!(status, Some(0), "seed {seed}: {errors}");
        let Some((output, code)) = expected(&program) else { continue };
        let file = write(&text, "ll");
        let (status, printed, errors) = run(Command::new(&lli).arg(file.path()), "3 -4 17 x");
        assert_eq!((status, String::from_utf8_lossy(&printed)), (Some(code), String::from_utf8_lossy(&output)), "seed {seed}: {errors}");
        compared += 1;
    }
    assert!(compared > 12, "most programs end within the limits");
}

fn write(text: &str, extension: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(&format!(".{extension}")).tempfile().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("the disk has room");
    file
}
