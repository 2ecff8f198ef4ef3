//! The command line: what each command does, what it writes where, exit statuses, and errors that are no fault of the
//! compiler.

mod harness;

use harness::{Output, Ran, atlc, folder, quick, run, tool, with_input};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder with `prog.atl`.
fn project(source: &str) -> TempDir {
    let folder = folder();
    fs::write(folder.path().join("prog.atl"), source).expect("it is written");
    folder
}

fn in_folder(folder: &TempDir, arguments: &[&str]) -> Ran {
    quick(atlc().current_dir(folder).args(arguments))
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn fails(ran: &Ran, status: i32, message: &str) {
    assert_eq!(ran.status, status, "{}{}", ran.out(), ran.err());
    assert_eq!(ran.out(), "");
    assert!(ran.err().starts_with("error") && ran.err().contains(message), "{}", ran.err());
    assert!(!ran.err().contains("internal compiler error"), "{}", ran.err());
}

#[test]
fn run_passes_on_output_input_and_status() {
    let folder = project("let x = read(); print(x, x / read());");
    let ran = with_input(atlc().current_dir(&folder).args(["run", "prog.atl"]), "12 5");
    assert_eq!((ran.status, ran.out().as_str(), ran.err().as_str()), (0, "12 2\n", ""));
    let ran = with_input(atlc().current_dir(&folder).args(["run", "prog.atl"]), "12 0");
    assert_eq!(ran.status, 101);
    assert_eq!(ran.err(), "error: division by zero\n --> prog.atl:1:28\n");
    assert_eq!(names(folder.path()), ["prog.atl"], "run leaves nothing behind");
    // The name of the source is the one on the command line.
    let path = folder.path().join(".").join("prog.atl");
    let ran = with_input(atlc().arg("run").arg(&path), "1 0");
    assert_eq!(ran.err(), format!("error: division by zero\n --> {}:1:28\n", path.display()));
}

#[test]
fn run_takes_arguments_and_leaves_no_temporary_file() {
    let folder = project("print(1);");
    let temporary = harness::folder();
    let ran = quick(
        atlc().current_dir(&folder).env("TMPDIR", temporary.path()).args(["run", "prog.atl", "-O2", "--", "a", "--b"]),
    );
    assert_eq!((ran.status, ran.out().as_str()), (0, "1\n"));
    assert!(names(temporary.path()).is_empty());
    fails(&in_folder(&folder, &["run", "prog.atl", "a"]), 2, "unexpected argument");
}

#[test]
fn run_dies_by_the_signal_of_the_program() {
    let folder = project("while (true) { }");
    let mut child =
        atlc().current_dir(&folder).args(["run", "prog.atl"]).stdin(Stdio::null()).spawn().expect("it starts");
    let pid = child.id();
    // Once it runs the program, its command line says so.
    let begin = Instant::now();
    loop {
        let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        if executable != Path::new(env!("CARGO_BIN_EXE_atlc")) {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "the program does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: the child is ours and not waited for yet.
    unsafe { libc::kill(pid as i32, libc::SIGTERM) };
    let status = child.wait().expect("it ends");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGTERM));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = project("let i = 0; while (true) { print(i); i += 1; }");
    for arguments in [
        &["run", "prog.atl"][..],
        &["dump", "prog.atl", "--stage", "ssa"],
        &["--help"],
        &["build", "prog.atl", "--emit", "asm=-"],
    ] {
        let ran = run(atlc().current_dir(&folder).args(arguments), None, Output::ClosedPipe, Duration::from_secs(60));
        assert_eq!((ran.status, ran.err().as_str()), (-libc::SIGPIPE, ""), "{arguments:?}");
    }
}

#[test]
fn a_full_device_is_an_error() {
    let folder = project("print(1);");
    for arguments in [&["dump", "prog.atl", "--stage", "ssa"][..], &["build", "prog.atl", "--emit", "asm=-"]] {
        let ran = run(atlc().current_dir(&folder).args(arguments), None, Output::Full, Duration::from_secs(60));
        assert_eq!(ran.status, 1, "{arguments:?}");
        assert!(ran.err().contains("cannot write to standard output"), "{}", ran.err());
    }
    let ran = run(atlc().current_dir(&folder).args(["run", "prog.atl"]), None, Output::Full, Duration::from_secs(60));
    assert_eq!((ran.status, ran.err().as_str()), (101, "error: cannot write to standard output\n"));
    let ran = in_folder(&folder, &["build", "prog.atl", "-o", "/dev/full"]);
    fails(&ran, 1, "cannot write `/dev/full`");
}

#[test]
fn build_names_its_output_after_the_source() {
    let folder = project("print(42);");
    assert_eq!(in_folder(&folder, &["build", "prog.atl"]).status, 0);
    assert_eq!(names(folder.path()), ["prog", "prog.atl"]);
    let program = folder.path().join("prog");
    assert_eq!(quick(&mut Command::new(&program)).out(), "42\n");
    // Executable for those whom the umask allows.
    assert_eq!(fs::metadata(&program).expect("it is there").permissions().mode() & 0o100, 0o100);
    let ran = with_input(atlc().current_dir(&folder).args(["build", "-"]), "print(43);");
    assert_eq!((ran.status, ran.err().as_str()), (0, ""));
    assert_eq!(quick(&mut Command::new(folder.path().join("a.out"))).out(), "43\n");
    assert_eq!(in_folder(&folder, &["build", "prog.atl", "-O0", "-o", "other"]).status, 0);
    assert_eq!(quick(&mut Command::new(folder.path().join("other"))).out(), "42\n");
}

#[test]
fn an_error_in_the_source_leaves_the_output_as_it_was() {
    let folder = project("print(x);");
    fs::write(folder.path().join("out"), "precious").expect("it is written");
    let ran = in_folder(&folder, &["build", "prog.atl", "-o", "out"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err().starts_with("error[E"), "{}", ran.err());
    assert!(ran.err().contains("--> prog.atl:1:7"), "{}", ran.err());
    assert_eq!(fs::read_to_string(folder.path().join("out")).expect("it is there"), "precious");
    assert_eq!(names(folder.path()), ["out", "prog.atl"]);
}

#[test]
fn the_source_is_never_overwritten() {
    let source = "print(1);";
    let folder = project(source);
    let inside = |name: &str| folder.path().join(name);
    symlink("prog.atl", inside("link")).expect("a link");
    fs::hard_link(inside("prog.atl"), inside("hard")).expect("a link");
    fs::create_dir(inside("sub")).expect("a folder");
    for output in ["prog.atl", "./prog.atl", "sub/../prog.atl", "link", "hard"] {
        fails(&in_folder(&folder, &["build", "prog.atl", "-o", output]), 1, "is the source itself");
        fails(
            &in_folder(&folder, &["build", "prog.atl", "--emit", &format!("asm={output}")]),
            1,
            "is the source itself",
        );
        assert_eq!(fs::read_to_string(inside("prog.atl")).expect("it is there"), source);
    }
    // A source without `.atl` does not name its own output either.
    fs::write(inside("plain"), source).expect("it is written");
    assert_eq!(in_folder(&folder, &["build", "plain"]).status, 0);
    assert_eq!(fs::read_to_string(inside("plain")).expect("it is there"), source);
}

#[test]
fn two_outputs_do_not_share_a_file() {
    let folder = project("print(1);");
    fs::create_dir(folder.path().join("sub")).expect("a folder");
    for emit in ["obj=x,asm=x", "obj=x,asm=./x", "obj=x,asm=sub/../x", "exe,asm=prog"] {
        fails(&in_folder(&folder, &["build", "prog.atl", "--emit", emit]), 2, "two outputs go to");
    }
    assert_eq!(names(folder.path()), ["prog.atl", "sub"]);
}

#[test]
fn what_cannot_be_read_or_written_is_said() {
    let folder = project("print(1);");
    let inside = |name: &str| folder.path().join(name);
    fs::create_dir(inside("sub")).expect("a folder");
    fs::write(inside("latin1.atl"), b"print(1);\n// \xe9\n").expect("it is written");
    fails(&in_folder(&folder, &["build", "missing.atl"]), 1, "cannot read `missing.atl`: no such file or directory");
    fails(&in_folder(&folder, &["run", "sub"]), 1, "cannot read `sub`: it is a directory");
    let ran = in_folder(&folder, &["check", "latin1.atl"]);
    fails(&ran, 1, "not valid UTF-8");
    assert!(ran.err().contains("--> latin1.atl:2:4"), "{}", ran.err());
    fails(&in_folder(&folder, &["build", "prog.atl", "-o", "no/such/folder"]), 1, "cannot write `no/such/folder`");
    fails(&in_folder(&folder, &["build", "prog.atl", "-o", "sub"]), 1, "cannot write `sub`");
    fails(&in_folder(&folder, &["dump", "prog.atl", "--all", "-o", "prog.atl"]), 1, "not a directory");
    assert_eq!(names(folder.path()), ["latin1.atl", "prog.atl", "sub"]);
}

#[test]
fn pipes_with_a_name() {
    let folder = project("print(1);");
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    // As an output that nobody reads: an error, not an endless wait.
    let ran = run(
        atlc().current_dir(&folder).args(["build", "prog.atl", "-o", "fifo"]),
        None,
        Output::File,
        Duration::from_secs(20),
    );
    fails(&ran, 1, "cannot write `fifo`");
    // As an input it is read like a file.
    let mut writer =
        Command::new("sh").arg("-c").arg(format!("echo 'print(7);' > {}", fifo.display())).spawn().expect("sh");
    let ran = in_folder(&folder, &["run", "fifo"]);
    writer.wait().expect("it ends");
    assert_eq!((ran.status, ran.out().as_str()), (0, "7\n"), "{}", ran.err());
}

#[test]
fn check_compiles_nothing() {
    let folder = project("fn unused() -> int { return 1; }\nprint(1 / 0);");
    let ran = in_folder(&folder, &["check", "prog.atl"]);
    assert_eq!((ran.status, ran.out().as_str()), (0, ""));
    assert_eq!(names(folder.path()), ["prog.atl"]);
    let ran = with_input(atlc().args(["check", "-"]), "let x: bool = 1;");
    assert_eq!(ran.status, 1);
    assert!(ran.err().contains("--> <stdin>:1:15"), "{}", ran.err());
    assert!(!ran.err().contains('\x1b'), "no colour in a file");
    let ran = with_input(atlc().args(["check", "-", "--color", "always"]), "let x: bool = 1;");
    assert!(ran.err().contains('\x1b'), "colour when asked for");
    let ran = with_input(atlc().env("NO_COLOR", "1").args(["check", "-"]), "let x: bool = 1;");
    assert!(!ran.err().contains('\x1b'));
}

#[test]
fn wrong_usage_has_status_2() {
    let folder = project("print(1);");
    for (arguments, message) in [
        (&[][..], ""),
        (&["compile", "prog.atl"], "compile"),
        (&["build"], "FILE"),
        (&["build", "prog.atl", "-O3"], "-O"),
        (&["build", "prog.atl", "--emit", "elephant"], "`--emit elephant` is not known"),
        (&["build", "prog.atl", "--emit", "obj="], "path is missing"),
        (&["build", "prog.atl", "--emit", "exe=-"], "not written to standard output"),
        (&["build", "prog.atl", "--emit", "obj=a,asm=b", "-o", "c"], "`-o` names"),
        (&["build", "prog.atl", "-C", "regs=2"], "number of registers"),
        (&["build", "prog.atl", "-C", "regs=many"], "number of registers"),
        (&["build", "prog.atl", "-C", "speed"], "is not known"),
        (&["build", "prog.atl", "--ssa", "maximal"], "maximal"),
        (&["build", "prog.atl", "--stop-after", "lunch"], "is not known"),
        (&["dump", "prog.atl"], "--stage"),
        (&["dump", "prog.atl", "--stage", "lunch"], "is not known"),
        (&["dump", "prog.atl", "--stage", "ssa", "--all"], "cannot be used with"),
    ] {
        let ran = in_folder(&folder, arguments);
        assert_eq!((ran.status, ran.out().as_str()), (2, ""), "{arguments:?}: {}", ran.err());
        assert!(ran.err().contains(message), "{arguments:?}: {}", ran.err());
    }
    assert_eq!(names(folder.path()), ["prog.atl"]);
}

#[test]
fn help_and_version_go_to_standard_output() {
    for arguments in [
        &["--help"][..],
        &["build", "--help"],
        &["run", "--help"],
        &["check", "--help"],
        &["dump", "--help"],
        &["--version"],
    ] {
        let ran = quick(atlc().args(arguments));
        assert_eq!((ran.status, ran.err().as_str()), (0, ""), "{arguments:?}");
        assert!(ran.out().contains("atlc"), "{}", ran.out());
    }
    let help = quick(atlc().arg("--help")).out();
    assert!(help.contains("Examples:") && help.contains("atlc run examples/swap.atl"), "{help}");
    // The list of stages in the help is the list of stages.
    let help = quick(atlc().args(["dump", "--help"])).out();
    for name in ["tokens", "ssa", "split-edges", "liveness", "regalloc", "allocation", "bytes"] {
        assert!(help.split_whitespace().any(|word| word == name), "{name} is missing in {help}");
    }
}

#[test]
fn emit_writes_each_kind() {
    let folder = project("fn twice(x: int) -> int { return x * 2; }\nprint(twice(21));");
    let ran = in_folder(&folder, &["build", "prog.atl", "--emit", "exe,obj,asm,ir,runtime,tokens,cfg=c.txt"]);
    assert_eq!((ran.status, ran.err().as_str()), (0, ""));
    let written = names(folder.path());
    assert_eq!(written, ["c.txt", "prog", "prog.atl", "prog.ir", "prog.o", "prog.runtime.o", "prog.s", "prog.tokens"]);
    let read = |name: &str| fs::read(folder.path().join(name)).expect("it is there");
    for elf in ["prog", "prog.o", "prog.runtime.o"] {
        assert!(read(elf).starts_with(b"\x7fELF"), "{elf}");
    }
    assert!(String::from_utf8_lossy(&read("prog.ir")).contains("fn main()"));
    assert_eq!(quick(&mut Command::new(folder.path().join("prog"))).out(), "42\n");
    let object = fs::metadata(folder.path().join("prog.o")).expect("it is there");
    assert_eq!(object.mode() & 0o111, 0, "an object is not executable");

    let ran = in_folder(&folder, &["build", "prog.atl", "--emit", "asm=-"]);
    assert!(ran.out().contains("ret"), "{}", ran.out());
    let ran = in_folder(&folder, &["build", "prog.atl", "--emit", "obj", "-o", "named.o"]);
    assert_eq!(ran.status, 0, "{}", ran.err());
    assert!(read("named.o").starts_with(b"\x7fELF"));
}

#[test]
fn the_same_source_gives_the_same_bytes() {
    let source = fs::read_to_string(harness::root().join("bench/programs/nqueens.atl")).expect("it is there");
    let folder = project(&source);
    let mut all = Vec::new();
    for (name, threads) in [("a", "1"), ("b", "1"), ("c", "4")] {
        let ran = in_folder(&folder, &["build", "prog.atl", "-O2", "-o", name, "-C", &format!("threads={threads}")]);
        assert_eq!(ran.status, 0, "{}", ran.err());
        all.push(fs::read(folder.path().join(name)).expect("it is there"));
    }
    assert!(all[0] == all[1] && all[0] == all[2]);
}

#[test]
fn an_outside_linker_gives_a_program_that_does_the_same() {
    if !tool("ld") {
        return;
    }
    let folder = project("let a = [3; 5]; print(a[4], \"text\"); print(a[read()]);");
    assert_eq!(in_folder(&folder, &["build", "prog.atl", "-o", "ours"]).status, 0);
    let ran = in_folder(&folder, &["build", "prog.atl", "-o", "theirs", "--linker", "ld"]);
    assert_eq!((ran.status, ran.err().as_str()), (0, ""));
    for input in ["2", "9", "", "x"] {
        let [ours, theirs] =
            ["ours", "theirs"].map(|name| with_input(&mut Command::new(folder.path().join(name)), input));
        assert_eq!((ours.status, ours.out(), ours.err()), (theirs.status, theirs.out(), theirs.err()), "{input:?}");
    }
    fails(&in_folder(&folder, &["build", "prog.atl", "--linker", "no-such-linker"]), 1, "no-such-linker");
    fails(&in_folder(&folder, &["build", "prog.atl", "-o", "x", "--linker", "false"]), 1, "linker");
    assert!(!folder.path().join("x").exists());
}

#[test]
fn c_calls_an_object() {
    if !tool("gcc") {
        return;
    }
    let folder = project(
        "fn gcd(a: int, b: int) -> int { while (b != 0) { let t = a % b; a = b; b = t; } return a; }\n\
         fn mix(a: int, b: bool, c: int, d: int, e: int, f: int, g: int, h: bool) -> int {\n\
           return a + 10 * int(b) + 100 * c + 1000 * d + 10000 * e + 100000 * f + 1000000 * g + 10000000 * int(h);\n\
         }\n\
         fn positive(x: int) -> bool { return x > 0; }",
    );
    fs::write(
        folder.path().join("main.c"),
        r#"
        #include <stdio.h>
        long atl_gcd(long, long);
        long atl_mix(long, long, long, long, long, long, long, long);
        long atl_positive(long);
        int main(void) {
            printf("%ld %ld %ld %ld\n", atl_gcd(1071, 462), atl_mix(1, 1, 3, 4, 5, 6, 7, 1), atl_positive(3), atl_positive(-3));
            return 0;
        }
        "#,
    )
    .expect("it is written");
    for level in ["-O0", "-O1", "-O2"] {
        let ran = in_folder(&folder, &["build", "prog.atl", level, "--emit", "obj=prog.o,runtime=runtime.o"]);
        assert_eq!(ran.status, 0, "{}", ran.err());
        // C's own start code is stronger than the runtime's.
        let gcc = quick(Command::new("gcc").current_dir(&folder).args(["main.c", "prog.o", "runtime.o", "-o", "c"]));
        assert_eq!(gcc.status, 0, "{}", gcc.err());
        assert_eq!(quick(&mut Command::new(folder.path().join("c"))).out(), "21 17654311 1 0\n");
    }
}

#[test]
fn time_passes_shows_every_stage_that_ran() {
    let folder = project("let i = 0; while (i < 3) { i += 1; } print(i);");
    let ran = in_folder(&folder, &["build", "prog.atl", "--time-passes", "-O2"]);
    assert_eq!(ran.status, 0);
    for name in ["tokens", "ssa", "split-edges", "regalloc", "executable", "total", "peak memory"] {
        assert!(ran.err().lines().any(|line| line.starts_with(name)), "{name} is missing in\n{}", ran.err());
    }
}

#[test]
fn stop_after_writes_nothing() {
    let folder = project("print(1);");
    for stage in ["tokens", "hir", "ssa", "regalloc", "object"] {
        let ran = in_folder(&folder, &["build", "prog.atl", "--stop-after", stage]);
        assert_eq!((ran.status, ran.err().as_str()), (0, ""), "{stage}");
    }
    assert_eq!(names(folder.path()), ["prog.atl"]);
}
