//! The house rules that no compiler checks: the floors, one door per dependency, who may write and exit, file headers,
//! file lengths and leftover markers.

mod harness;

use harness::root;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules by floor. A module imports only from lower floors.
const FLOORS: [&[&str]; 9] = [
    &["support"],
    &["semantics", "execution", "graph"],
    &["syntax", "hir", "ir", "x64"],
    &["analysis"],
    &["check", "build", "ssa", "opt", "isel", "regalloc", "emit", "export"],
    &["pipeline"],
    &["explain", "fuzz", "verify"],
    &["explorer"],
    &["cli"],
];

/// Imports between modules of one floor that are wanted, with the reason.
const SIBLINGS: [(&str, &str, &str); 3] = [
    ("execution", "semantics", "what ends a run is a trap, which semantics defines"),
    ("explorer", "explain", "the page shows what explain finds"),
    ("fuzz", "verify", "a campaign compares runs, which verify makes"),
];

/// Each outside crate, and the one folder or file that may name it. What stands here without a path is free for all.
const DOORS: [(&str, &[&str]); 22] = [
    ("annotate_snippets", &["cli/render.rs"]),
    ("clap", &["cli/args.rs", "cli/tool_args.rs"]),
    ("cranelift_assembler_x64", &["emit/encode.rs", "emit/encode/"]),
    ("cranelift_codegen", &["emit/object.rs"]),
    ("cranelift_entity", &[""]),
    ("cranelift_module", &["emit/object.rs"]),
    ("cranelift_object", &["emit/object.rs"]),
    ("iced_x86", &["emit/disassemble.rs"]),
    ("indicatif", &["cli/progress.rs"]),
    ("lalrpop_util", &["syntax/"]),
    ("libc", &["cli/process.rs"]),
    ("logos", &["syntax/token.rs", "syntax/lexer.rs"]),
    ("object", &["emit/object.rs", "emit/link.rs"]),
    ("proptest", &[""]),
    ("rustc_hash", &[""]),
    ("serde", &[""]),
    ("serde_json", &["explain/", "explorer/", "cli/"]),
    ("similar", &["support/diff.rs"]),
    ("smallvec", &[""]),
    ("target_lexicon", &["emit/object.rs"]),
    ("tempfile", &["emit/output.rs"]),
    ("tiny_http", &["cli/explore.rs"]),
];

struct File {
    /// Relative to `compiler/`.
    path: String,
    text: String,
}

impl File {
    /// The top-level module that the file belongs to.
    fn module(&self) -> &str {
        let first = self.path.split('/').next().expect("a path has a part");
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// Is the whole file there for tests only?
    fn for_tests(&self) -> bool {
        let name = self.path.rsplit('/').next().expect("a path has a part");
        name == "tests.rs" || name.ends_with("_tests.rs") || self.path.contains("/tests/")
    }

    /// The code, without comments, and without the unit tests at its end.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let end = lines
            .windows(2)
            .position(|pair| pair[0].trim() == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{'))
            .unwrap_or(lines.len());
        let numbered = self.text.lines().enumerate().take(end);
        numbered.map(|(number, line)| (number + 1, line.split("//").next().expect("a part")))
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn files() -> Vec<File> {
    let folder = root().join("compiler");
    let mut paths = Vec::new();
    collect(&folder, &mut paths);
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    paths.sort();
    assert!(paths.len() > 20, "the sources are there");
    paths
        .into_iter()
        .map(|path| File {
            path: path.strip_prefix(&folder).expect("it is inside").display().to_string(),
            text: fs::read_to_string(&path).expect("it reads"),
        })
        .collect()
}

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|modules| modules.contains(&module))
}

/// The modules that a line imports by `crate::name` or `crate::{a, b}`.
fn imports(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        if line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &line[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            // The first name of each path in the group; nested groups belong to their path.
            let mut depth = 0;
            let mut name = String::new();
            let mut first = true;
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        found.push(std::mem::take(&mut name));
                        first = true;
                    }
                    ':' => first = false,
                    ' ' if !name.is_empty() => first = false,
                    _ if depth == 0 && first && (c.is_alphanumeric() || c == '_') => name.push(c),
                    _ => {}
                }
            }
            found.push(name);
        } else {
            found.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

fn report(what: &str, wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn modules_import_from_lower_floors_only() {
    let mut wrong = Vec::new();
    for file in files() {
        let module = file.module().to_string();
        if module == "lib" || module == "main" {
            continue;
        }
        let Some(own) = floor(&module) else {
            wrong.push(format!("{}: the module {module} has no floor", file.path));
            continue;
        };
        if file.for_tests() {
            continue;
        }
        for (number, line) in file.code() {
            for import in imports(line) {
                let allowed = SIBLINGS.iter().any(|(from, to, _)| *from == module && *to == import);
                match floor(&import) {
                    Some(other) if other < own || import == module || allowed => {}
                    Some(_) => wrong.push(format!("{}:{number}: {module} imports {import}", file.path)),
                    None if line.contains("macro_rules") || import.starts_with(char::is_uppercase) => {}
                    None => wrong.push(format!("{}:{number}: crate::{import} has no floor", file.path)),
                }
            }
        }
    }
    report("imports must lead down", wrong);
}

#[test]
fn each_dependency_has_one_door() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let dependencies =
        manifest.split("[dependencies]").nth(1).expect("dependencies").split("\n[").next().expect("a part");
    for line in dependencies.lines().filter(|line| line.contains('=')) {
        let name = line.split('=').next().expect("a name").trim().replace('-', "_");
        assert!(DOORS.iter().any(|(known, _)| *known == name), "{name} has no door in this test");
    }
    let mut wrong = Vec::new();
    for file in files() {
        for (number, line) in file.code() {
            for (name, doors) in DOORS {
                let path = format!("{name}::");
                let names_it = line.match_indices(&path).any(|(at, _)| {
                    let before = &line[..at];
                    !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
                });
                if names_it && !file.for_tests() && !doors.iter().any(|door| file.path.starts_with(door)) {
                    wrong.push(format!("{}:{number}: names {name}, whose door is {}", file.path, doors.join(" or ")));
                }
            }
        }
    }
    report("a dependency is named outside its door", wrong);
}

#[test]
fn only_the_command_line_writes_and_only_main_exits() {
    let mut wrong = Vec::new();
    for file in files() {
        for (number, line) in file.code() {
            let writes = ["println!", "eprintln!", "print!(", "eprint!(", "dbg!", "io::stdout", "io::stderr"];
            if file.module() != "cli" && !file.for_tests() {
                wrong.extend(
                    writes
                        .iter()
                        .filter(|what| line.contains(*what))
                        .map(|what| format!("{}:{number}: {what}", file.path)),
                );
            }
            if file.module() != "main" && line.contains("process::exit") {
                wrong.push(format!("{}:{number}: exits", file.path));
            }
        }
    }
    report("floor 6 alone writes, main alone exits", wrong);
}

#[test]
fn every_file_says_what_it_is_and_is_short() {
    let mut wrong = Vec::new();
    for file in files() {
        if !file.text.starts_with("//!") {
            wrong.push(format!("{}: does not open with `//!`", file.path));
        }
        let lines = file.text.lines().count();
        if lines > 900 {
            wrong.push(format!("{}: {lines} lines", file.path));
        }
        if file.path.ends_with("util.rs") || file.path.ends_with("utils.rs") {
            wrong.push(format!("{}: says nothing by its name", file.path));
        }
    }
    report("files", wrong);
}

#[test]
fn nothing_is_left_undone() {
    // Put together here, so that this file does not hold them itself.
    let markers =
        [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["todo", "!("], ["unimplemented", "!("]].map(|parts| parts.concat());
    let mut paths = Vec::new();
    for folder in ["compiler", "runtime", "tests", "docs", "examples", "bench", "benches"] {
        if root().join(folder).is_dir() {
            collect(&root().join(folder), &mut paths);
        }
    }
    paths.extend(["README.md", "ARCHITECTURE.md", "build.rs"].map(|name| root().join(name)));
    let mut wrong = Vec::new();
    for path in paths {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (number, line) in text.lines().enumerate() {
            if markers.iter().any(|marker| line.split(|c: char| c.is_whitespace()).any(|word| word.contains(marker))) {
                wrong.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    report("markers", wrong);
}

#[test]
fn imports_are_found() {
    assert_eq!(imports("use crate::ir::{self, Form};"), ["ir"]);
    assert_eq!(imports("use crate::{ir::{a, b}, graph, x64::Op};"), ["ir", "graph", "x64"]);
    assert_eq!(imports("let x = crate::opt::run(); my_crate::z()"), ["opt"]);
}
