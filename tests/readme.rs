//! What the documents show is real: their programs are compiled and run, their commands executed, and what stands below
//! must come out.
//!
//! In README.md and docs/: a block `atlas` followed by blocks `output`, `error` (with `input` before them, if it reads)
//! is a program with what it prints, and the beginning of its standard error. A block `console` holds commands, each
//! behind `$ `, and all that each shows. `cargo run --release --` stands for the compiler under test. Where a change of the
//! compiler is meant to change what the commands show, `UPDATE_DOCS=1 cargo test --test readme` writes it anew, to be read.

mod harness;

use harness::{Output, Ran, atlc, beside, folder, programs, quick, root, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

struct Fence {
    kind: String,
    line: usize,
    text: String,
    /// Is there only white space between the fence before and this one?
    joined: bool,
}

fn fences(text: &str) -> Vec<Fence> {
    let mut fences: Vec<Fence> = Vec::new();
    let mut open: Option<Fence> = None;
    let mut joined = false;
    for (number, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => {
                let kind = kind.trim().to_string();
                open = Some(Fence { kind, line: number + 1, text: String::new(), joined });
            }
            (Some(_), Some(_)) => {
                fences.extend(open.take());
                joined = true;
            }
            (Some(fence), None) => {
                fence.text.push_str(line);
                fence.text.push('\n');
            }
            (None, None) => joined &= line.trim().is_empty(),
        }
    }
    assert!(open.is_none(), "a block is not closed");
    fences
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("ARCHITECTURE.md")];
    for entry in fs::read_dir(root().join("docs")).expect("docs/") {
        found.push(entry.expect("an entry").path());
    }
    // The examples of docs/errors.md are wrong on purpose; the table of the codes has them too, with a test of its own.
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("errors.md"));
    found.sort();
    found
}

fn program_and_results(path: &Path, fences: &[Fence], index: usize) {
    let place = format!("{}:{}", path.display(), fences[index].line);
    let folder = folder();
    fs::write(folder.path().join("prog.atl"), &fences[index].text).expect("it is written");
    let mut input = String::new();
    let (mut output, mut error) = (None, None);
    for fence in fences[index + 1..].iter().take_while(|fence| fence.joined) {
        match fence.kind.as_str() {
            "input" => input = fence.text.clone(),
            "output" => output = Some(&fence.text),
            "error" => error = Some(fence.text.trim_end()),
            _ => break,
        }
    }
    if output.is_none() && error.is_none() {
        // A program that is only shown must at least be one.
        let ran = quick(atlc().current_dir(&folder).args(["check", "prog.atl"]));
        assert_eq!(ran.status, 0, "{place}: {}", ran.err());
        return;
    }
    fs::write(folder.path().join("input"), input).expect("it is written");
    let mut command = atlc();
    command.current_dir(&folder).args(["run", "prog.atl"]);
    let ran = run(&mut command, Some(&folder.path().join("input")), Output::File, Duration::from_secs(20));
    assert_eq!(ran.out(), output.map_or("", String::as_str), "{place}: {}", ran.err());
    match error {
        Some(error) => assert!(ran.err().starts_with(error) && ran.status != 0, "{place}: {}", ran.err()),
        None => assert_eq!((ran.status, ran.err().as_str()), (0, ""), "{place}"),
    }
}

/// Runs the commands of a block and compares what they show; gives what the block should be.
fn commands(path: &Path, fence: &Fence) -> String {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let mut real = String::new();
    let folder = folder();
    let bin = Path::new(env!("CARGO_BIN_EXE_atlc")).parent().expect("a folder");
    // The commands run in a copy of what they may name, so that they can write.
    for name in ["examples"] {
        let to = folder.path().join(name);
        fs::create_dir(&to).expect("a folder");
        for file in fs::read_dir(root().join(name)).expect("it is there").flatten() {
            fs::copy(file.path(), to.join(file.file_name())).expect("it is copied");
        }
    }
    let mut lines = fence.text.lines().peekable();
    while let Some(line) = lines.next() {
        let place = format!("{}: {line}", path.display());
        let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("{place}: a command starts with `$ `"));
        let mut wanted = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
            wanted.push_str(line);
            wanted.push('\n');
        }
        real.push_str(line);
        real.push('\n');
        if ["cargo test", "cargo build", "git ", "cd "].iter().any(|start| command.starts_with(start)) {
            real.push_str(&wanted);
            continue;
        }
        let command = command.replace("cargo run --release --", "atlc");
        let mut paths = vec![bin.to_path_buf()];
        paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut shell = Command::new("sh");
        shell.current_dir(&folder).arg("-c").arg(format!("exec 2>&1; {command}"));
        shell.env("PATH", std::env::join_paths(paths).expect("paths join"));
        let ran: Ran = run(&mut shell, None, Output::File, Duration::from_secs(60));
        assert!(update || ran.out() == wanted, "{place}\n{}\ninstead of\n{wanted}", ran.out());
        real.push_str(&ran.out());
    }
    real
}

#[test]
fn programs_and_commands_in_the_documents_give_what_is_shown() {
    let mut counted = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).expect("it reads");
        let fences = fences(&text);
        let mut updated = text.clone();
        for (index, fence) in fences.iter().enumerate() {
            match fence.kind.as_str() {
                "atlas" => program_and_results(&path, &fences, index),
                "console" => {
                    let real = commands(&path, fence);
                    updated =
                        updated.replace(&format!("```console\n{}```", fence.text), &format!("```console\n{real}```"));
                }
                _ => continue,
            }
            counted += 1;
        }
        if updated != text {
            fs::write(&path, updated).expect("it is written");
        }
    }
    assert!(counted >= 12, "only {counted} examples were found");
}

#[test]
fn links_between_documents_lead_somewhere() {
    for path in documents() {
        let text = fs::read_to_string(&path).expect("it reads");
        for (at, _) in text.match_indices("](") {
            let target: String = text[at + 2..].chars().take_while(|c| *c != ')').collect();
            if target.starts_with("http") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { path.clone() } else { path.parent().expect("a folder").join(file) };
            assert!(file.exists(), "{}: {target} leads nowhere", path.display());
            if !anchor.is_empty() {
                let target = fs::read_to_string(&file).expect("it reads");
                let found = target.lines().filter(|line| line.starts_with('#')).any(|line| {
                    let heading = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
                    heading.chars().filter(|c| c.is_alphanumeric() || *c == '-').eq(anchor.chars())
                });
                assert!(found, "{}: no heading #{anchor}", path.display());
            }
        }
    }
}

#[test]
fn the_readme_points_at_every_example() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    for program in programs("examples") {
        let name = program.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(readme.contains(&name), "README.md does not name {name}");
        assert!(beside(&program, "expected").is_some(), "{name} has no expected output");
    }
}
