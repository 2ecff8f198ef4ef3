//! The explorer's page as a browser shows it, `explain`, and the views of dumps, through the executable.
//!
//! The browser is Debian's Chromium, driven by playwright-core from the npm registry: `npm install --prefix target/browser
//! playwright-core`. Without them the browser test says so and passes, except in CI, where it fails.

use atlc::emit::output::TemporaryFolder;
use atlc::explain::copies::{self, Fate};
use atlc::explain::hazards;
use atlc::explain::trace::trace;
use atlc::explorer::{page, record};
use atlc::fuzz::campaign;
use atlc::fuzz::generate::{Shape, generate};
use atlc::ir::Op;
use atlc::pipeline::Options;
use atlc::support::span::Source;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn atlc(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_atlc")).args(arguments).output().expect("atlc starts")
}

fn text(arguments: &[&str]) -> String {
    let output = atlc(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "atlc {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("listings are text")
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn example(name: &str) -> String {
    root().join("examples").join(name).to_string_lossy().into_owned()
}

/// A program of one function with about so many lines, in many loops and branches.
fn large(lines: usize) -> String {
    let mut text = String::from("let a = read();\nlet b = 1;\n");
    for part in 0..lines / 9 {
        text.push_str(&format!(
            "let i{part} = 0;\nwhile (i{part} < a) {{\n  if (b > {part}) {{\n    let t = a;\n    a = b;\n    b = t + {part};\n  }}\n  i{part} += 1;\n}}\n"
        ));
    }
    text.push_str("print(a, b);\n");
    text
}

#[test]
fn the_page_works_in_a_browser() {
    let modules = root().join("target/browser/node_modules");
    let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .iter()
        .map(Path::new)
        .find(|path| path.exists());
    let (Some(chromium), true) = (chromium, modules.join("playwright-core").exists()) else {
        assert!(std::env::var_os("CI").is_none(), "CI must have chromium, node and playwright-core");
        println!(
            "skipped: chromium or playwright-core (npm install --prefix target/browser playwright-core) is missing"
        );
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let hostile = "print(\"</script><script>alert(1)</script>\"); // <!-- <img src=x onerror=alert(2)> ]]> \u{2028}\n";
    std::fs::write(path("hostile.atl"), hostile).expect("the disk has room");
    std::fs::write(path("large.atl"), large(5000)).expect("the disk has room");
    text(&["explore", &example("swap.atl"), "-o", &path("swap.html")]);
    text(&["explore", &example("sort.atl"), "-O2", "-o", &path("functions.html"), "-C", "keep-functions"]);
    text(&["explore", &path("hostile.atl"), "-o", &path("hostile.html")]);
    text(&["explore", &path("large.atl"), "-o", &path("large.html")]);
    // The largest of the programs that are measured.
    let bench = root().join("bench/programs/fannkuch.atl").display().to_string();
    text(&["explore", &bench, "-O2", "-o", &path("fannkuch.html")]);
    for (page, most) in [("swap.html", 1 << 20), ("fannkuch.html", 4 << 20), ("large.html", 48 << 20)] {
        let size = std::fs::metadata(path(page)).expect("it was written").len();
        println!("{page}: {} kB", size / 1000);
        assert!(size < most, "{page} has {size} bytes");
    }
    let output = Command::new("node")
        .arg(root().join("tests/browser/check.cjs"))
        .arg(chromium)
        .arg(folder.path())
        .env("NODE_PATH", modules)
        .output()
        .expect("node starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{out}");
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.lines().filter(|line| line.starts_with("ok ")).count() > 40, "{out}");
}

/// One function is inlined and goes, so that those behind it get other ids; another stays.
const INLINED: &str = "fn tiny(a: int) -> int { let r = a; if a > 3 { r = 9; } return r; }
fn around(n: int) -> int {
  let q = 1; let w = 2; let i = 0;
  while i < n { let t = q; q = w; w = t; i += 1; print(tiny(i)); }
  if n > 4 { return around(n - 1) + q * around(n - 2); }
  return q;
}
print(around(read()), around(4));
";

/// The φs of a dump: function, value and the number of operands.
fn phis(dump: &str) -> Vec<(String, String, usize)> {
    let mut function = String::new();
    let mut found = Vec::new();
    for line in dump.lines() {
        if let Some(rest) = line.strip_prefix("fn ") {
            function = rest.split('(').next().expect("a name").to_string();
        } else if let Some((value, operands)) = line.split_once(" = phi ") {
            // Each operand names the block that it comes from.
            found.push((function.clone(), value.trim().to_string(), operands.matches(" from b").count()));
        }
    }
    found
}

/// The ledger accounts for every copy: each φ operand of the first SSA form and of the last, and each copy out of SSA form,
/// has one row.
#[test]
fn the_ledger_adds_up() {
    let folder = TemporaryFolder::new().expect("a folder");
    let inlined = folder.path().join("inlined.atl");
    fs::write(&inlined, INLINED).expect("it is written");
    let inlined = inlined.display().to_string();
    for (name, level) in [
        ("swap", "1"),
        ("rotate5", "2"),
        ("lost_copy", "2"),
        ("critical_edge", "0"),
        ("spill", "2"),
        ("sort", "2"),
        ("queens", "2"),
        (inlined.as_str(), "2"),
        (inlined.as_str(), "1"),
    ] {
        let file = if name == inlined { inlined.clone() } else { example(&format!("{name}.atl")) };
        let level = format!("-O{level}");
        let sequence = text(&["dump", &file, "--stage", "sequence", &level]);
        let split = text(&["dump", &file, "--stage", "split-edges", &level]);
        let ledger: serde_json::Value =
            serde_json::from_str(&text(&["explain", "copies", &file, "--json", &level])).expect("JSON");
        let rows = ledger["rows"].as_array().expect("rows");
        let kind = |row: &serde_json::Value| row["fate"]["kind"].as_str().expect("a kind").to_string();
        let is_copy = |line: &&str| line.contains(" = copy ");
        let copies = sequence.lines().filter(is_copy).count();
        let listed = rows.iter().filter(|row| !matches!(kind(row).as_str(), "same-value" | "removed")).count();
        assert_eq!(copies, listed, "{name}: every copy of the dump has one row");
        let mut in_dump: Vec<String> = sequence
            .lines()
            .filter(is_copy)
            .map(|line| line.split(" ; ").next().unwrap_or(line).trim().to_string())
            .collect();
        let mut in_rows: Vec<String> = rows
            .iter()
            .filter(|row| !matches!(kind(row).as_str(), "same-value" | "removed"))
            .map(|row| row["copy"].as_str().expect("a copy").to_string())
            .collect();
        in_dump.sort();
        in_rows.sort();
        assert_eq!(in_dump, in_rows, "{name}");
        let operands: usize = phis(&split).iter().map(|(_, _, operands)| operands).sum();
        let phi_rows = rows.iter().filter(|row| row["phi"].is_string() && kind(row) != "removed").count();
        assert_eq!(operands, phi_rows, "{name}: every φ operand has one row");
        // The φs that were there at first and are not at last, each with a row for each operand.
        let kept: HashSet<(String, String)> =
            phis(&split).into_iter().map(|(function, phi, _)| (function, phi)).collect();
        let mut gone: Vec<(String, String)> = phis(&text(&["dump", &file, "--stage", "ssa", &level]))
            .into_iter()
            .filter(|(function, phi, _)| !kept.contains(&(function.clone(), phi.clone())))
            .flat_map(|(function, phi, operands)| std::iter::repeat_n((function, phi), operands))
            .collect();
        let text_of = |row: &serde_json::Value, field: &str| row[field].as_str().expect("a text").to_string();
        let mut removed: Vec<(String, String)> = rows
            .iter()
            .filter(|row| kind(row) == "removed")
            .map(|row| (text_of(row, "function"), text_of(row, "phi")))
            .collect();
        gone.sort();
        removed.sort();
        assert_eq!(gone, removed, "{name} {level}: every φ operand that optimization removed has one row");
        for row in rows.iter().filter(|row| kind(row) == "survives") {
            assert!(
                !row["machine"].as_array().expect("a list").is_empty(),
                "{name}: a survivor is an instruction: {row}"
            );
        }
    }
}

/// Lines of assignments that construction folds away, by hand.
#[test]
fn rows_name_the_line_of_the_assignment() {
    let copies = text(&["explain", "copies", &example("critical_edge.atl"), "-O0"]);
    for row in [
        "small  line 3  φ %7 in b1, edge b0→b1 ",
        "large  line 4  φ %8 in b1, edge b0→b1 ",
        "small  line 9  φ %11 in b4, edge b3→b4 ",
        "large  line 10  φ %12 in b4, edge b3→b4 ",
        "i  line 12  φ %9 in b1, edge b4→b1 ",
    ] {
        assert!(copies.contains(row), "{row}\n{copies}");
    }
    let copies = text(&["explain", "copies", &example("swap.atl"), "-O0"]);
    // `let t = x; x = y; y = t;` in the loop.
    let source = fs::read_to_string(example("swap.atl")).expect("it reads");
    let line = |wanted: &str| 1 + source.lines().position(|line| line.contains(wanted)).expect("a line");
    assert!(copies.contains(&format!("y  line {}  φ %6 in b1, edge b2→b1", line("y = t"))), "{copies}");
    assert!(copies.contains(&format!("x  line {}  φ %5 in b1, edge b2→b1", line("x = y"))), "{copies}");
}

#[test]
fn the_swap_explains_itself() {
    let copies = text(&["explain", "copies", &example("swap.atl")]);
    assert!(copies.contains("rescues %5 from a cycle, edge b2→b1"), "{copies}");
    assert!(copies.contains("are both live at"), "{copies}");
    let hazards = text(&["explain", "hazards", &example("swap.atl")]);
    assert!(hazards.contains("cycle: on b2→b1 x, y trade values: %5 is rescued in"), "{hazards}");
    let phis = text(&["explain", "phis", "--variable", "t", "--block", "b1", &example("swap.atl")]);
    assert_eq!(
        phis,
        "main: t is written in b2\n  b1 has no φ for t: definitions meet there (b2 → b1, round 1), but t is not live-in\n"
    );
}

#[test]
fn a_rotated_loop_shows_the_lost_copy() {
    let hazards = text(&["explain", "hazards", &example("lost_copy.atl"), "-O2"]);
    assert!(hazards.contains("lost copy: the copy to"), "{hazards}");
    let notes = text(&["explain", "hazards", "--notes", &example("lost_copy.atl"), "-O2"]);
    assert!(notes.contains("lost_copy.atl:"), "{notes}");
}

#[test]
fn dumps_as_differences_json_and_graphs() {
    let swap = example("swap.atl");
    let diff = text(&["dump", &swap, "--diff", "split-edges..parallel-copies"]);
    assert!(diff.lines().any(|line| line.starts_with('-') && line.contains("phi x")), "{diff}");
    assert!(diff.lines().any(|line| line.starts_with('+') && line.contains("parallel")), "{diff}");
    let changed = text(&["dump", &swap, "--all", "--only-changed"]);
    assert!(changed.contains(".ssa ----") && !changed.contains(".sccp ----"), "{changed}");
    let json: serde_json::Value =
        serde_json::from_str(&text(&["dump", &swap, "--stage", "ssa", "--format", "json"])).expect("JSON");
    assert_eq!(json["version"], 1);
    assert_eq!(json["stages"].as_array().expect("stages").len(), 1);
    let dot = text(&["dump", &swap, "--stage", "ssa", "--format", "dot"]);
    assert!(dot.contains("b1 -> b2 [label=\"true\"];") && dot.contains("b2 -> b1"), "{dot}");
    let wrong = atlc(&["dump", &swap, "--diff", "ssa"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn watching_serves_the_page_again_when_the_file_changes() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("a.atl");
    std::fs::write(&file, "print(1);\n").expect("the disk has room");
    let mut server = Command::new(env!("CARGO_BIN_EXE_atlc"))
        .args(["explore", "--watch"])
        .arg(&file)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("atlc starts");
    let mut lines = BufReader::new(server.stderr.take().expect("stderr is a pipe")).lines();
    let first = lines.next().expect("a line").expect("text");
    let address = first.split("http://").nth(1).expect("an address").split('/').next().expect("a host").to_string();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(&address).expect("the server listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    };
    assert!(get("/").contains("print(1);") && get("/version").ends_with('0'));
    std::thread::sleep(std::time::Duration::from_millis(50));
    std::fs::write(&file, "print(2);\n").expect("the disk has room");
    let mut seen = false;
    for _ in 0..100 {
        seen = get("/version").ends_with('1');
        if seen {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let page = get("/");
    server.kill().expect("it still runs");
    server.wait().expect("it ends");
    assert!(seen && page.contains("print(2);"), "the page is made again");
}

/// The same is told of a program whether it begins as source or as the IR of any stage; what is behind cannot be told.
#[test]
fn explanations_of_ir_text() {
    let folder = TemporaryFolder::new().expect("a folder");
    for (name, level) in [("swap", "-O0"), ("lost_copy", "-O2"), ("critical_edge", "-O0"), ("rotate3", "-O1")] {
        let file = example(&format!("{name}.atl"));
        let counted = |said: &str| said.lines().last().expect("a line").to_string();
        let kept = |file: &str, level: &str| {
            let said: serde_json::Value =
                serde_json::from_str(&text(&["explain", "copies", "--json", file, level])).expect("JSON");
            let rows = said["rows"].as_array().expect("rows");
            rows.iter().filter(|row| row["fate"]["kind"] != "removed").count()
        };
        let (rows, hazards) = (kept(&file, level), counted(&text(&["explain", "hazards", &file, level])));
        assert!(rows > 0, "{name}");
        for stage in ["ir", "parallel-copies", "sequence"] {
            let dump = folder.path().join(format!("{name}.{stage}.ir"));
            fs::write(&dump, text(&["dump", &file, "--stage", stage, level])).expect("it is written");
            let dump = dump.display().to_string();
            assert_eq!(kept(&dump, "-O0"), rows, "{name} from {stage}");
            let of_main = text(&["explain", "copies", &dump, "-O0", "--function", "main"]);
            assert_eq!(
                of_main,
                text(&["explain", "copies", &dump, "-O0"]),
                "{name} from {stage}: main is all there is"
            );
            if stage == "ir" {
                assert_eq!(counted(&text(&["explain", "hazards", &dump, "-O0"])), hazards, "{name} from {stage}");
            }
        }
    }
}

/// Random programs, of source and of IR, at every level: the views fail on none, and the ledger adds up.
#[test]
fn views_of_random_programs() {
    for seed in 0..12_u64 {
        let shape = Shape::of_seed(seed);
        for (name, program) in [("r.atl", generate(seed, &shape)), ("r.ir", campaign::random_ir(seed))] {
            let source = Source::new(name, program);
            let options = Options { level: (seed % 3) as u8, threads: 1, ..Options::default() };
            let place = format!("seed {seed}, {name}");
            let page = record::page(&source, &options, false).unwrap_or_else(|_| panic!("{place}: no page"));
            assert!(page::render(&page).contains("</html>"), "{place}");
            let trace = trace(&source, &options).unwrap_or_else(|_| panic!("{place}: no trace"));
            hazards::compute(&trace);
            let rows = copies::compute(&trace, &source);
            let sequenced = trace.sequenced.as_ref().expect("it went so far");
            let insts = sequenced.functions.values().flat_map(|function| {
                let blocks = function.layout.iter().map(|block| &function.blocks[*block]);
                blocks.flat_map(|block| block.insts.iter().map(|inst| &function.insts[*inst].op))
            });
            let made = insts.filter(|op| matches!(op, Op::Copy(_))).count();
            let is_made = |row: &&copies::Row| !matches!(row.fate, Fate::SameValue | Fate::Removed { .. });
            assert_eq!(rows.iter().filter(is_made).count(), made, "{place}: every copy has one row");
            let split = trace.split.as_ref().expect("it went so far");
            let operands: usize = split
                .functions
                .values()
                .flat_map(|function| function.layout.iter().flat_map(|block| function.blocks[*block].term.edges()))
                .map(|edge| edge.args.len())
                .sum();
            let of_phis = |row: &&copies::Row| row.phi.is_some() && !matches!(row.fate, Fate::Removed { .. });
            assert_eq!(rows.iter().filter(of_phis).count(), operands, "{place}: every operand has one row");
        }
    }
}

/// The page's table of faults says what `verify --break` says.
#[test]
fn the_page_breaks_programs_as_verify_does() {
    for name in ["swap", "lost_copy"] {
        let file = example(&format!("{name}.atl"));
        let page = text(&["explore", &file, "-O2", "-o", "-"]);
        let data = page.split_once("<script type=\"application/json\" id=\"data\">").expect("the data").1;
        let data = data.split_once("</script>").expect("the data's end").0;
        let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
        let tables = data["tables"].as_array().expect("tables");
        let faults = tables.iter().find(|table| table["id"] == "faults").expect("faults");
        let rows = faults["rows"].as_array().expect("rows");
        assert!(rows.len() >= 3, "{name}: {rows:?}");
        for row in rows {
            let cell = |at: usize| row["cells"][at].as_str().expect("a text").to_string();
            let output = atlc(&["verify", &file, "-O2", "--break", &cell(0)]);
            let said = String::from_utf8(output.stdout).expect("text");
            let told = if cell(3).is_empty() {
                "shows the same all the same".to_string()
            } else {
                format!("{}, correct is: {}", cell(2), cell(3))
            };
            assert!(said.contains(&told), "{name} {}: {told}\n{said}", cell(0));
        }
    }
}

/// What is asked for and is not there is an error that says what there is; nothing to tell is not.
#[test]
fn explaining_what_is_not_there() {
    let wrong = |arguments: &[&str]| {
        let output = atlc(arguments);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{arguments:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let swap = example("swap.atl");
    let said = wrong(&["explain", "phis", &swap, "--variable", "nope"]);
    assert!(said.contains("there is no variable `nope`; there are: i, t, x, y"), "{said}");
    assert!(wrong(&["explain", "phis", &swap, "--block", "b77"]).contains("there is no block `b77`"));
    for what in ["copies", "hazards", "phis"] {
        assert!(wrong(&["explain", what, &swap, "--function", "nope"]).contains("there is no function `nope`"));
    }
    let folder = TemporaryFolder::new().expect("a folder");
    let bare = folder.path().join("bare.atl");
    fs::write(&bare, "print(1);\n").expect("it is written");
    let bare = bare.display().to_string();
    assert_eq!(text(&["explain", "phis", &bare]), "no variables\n");
    assert_eq!(text(&["explain", "copies", &bare]), "0 rows, 0 still move something\n");
    assert_eq!(text(&["explain", "hazards", &bare]), "0 hazards\n");
}

/// What the explanations say of the four examples of the tour, whole, as text and as JSON. A change here is a change of what
/// people and tools read: look at it, then `cargo insta accept` (or `INSTA_UPDATE=always cargo test --test explore`).
#[test]
fn explanations_as_they_are_read() {
    let said = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_atlc")).args(arguments).current_dir(root()).output();
        let output = output.expect("atlc starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    for (name, level) in [("swap", "-O2"), ("rotate3", "-O1"), ("lost_copy", "-O2"), ("critical_edge", "-O0")] {
        let file = format!("examples/{name}.atl");
        let mut text = String::new();
        for arguments in [
            vec!["explain", "copies", &file, level],
            vec!["explain", "hazards", &file, level],
            vec!["explain", "hazards", "--notes", &file, level],
            vec!["explain", "phis", &file, level],
            vec!["dump", &file, level, "--stage", "liveness,loops,dominators"],
            vec!["dump", &file, level, "--diff", "ssa..sequence"],
        ] {
            text.push_str(&format!("$ atlc {}\n{}\n", arguments.join(" "), said(&arguments)));
        }
        insta::assert_snapshot!(format!("{name}_text"), text);
        let mut json = String::new();
        for what in ["copies", "hazards", "phis"] {
            let written = said(&["explain", what, &file, level, "--json"]);
            let value: serde_json::Value = serde_json::from_str(&written).expect("JSON");
            json.push_str(&serde_json::to_string_pretty(&value).expect("JSON"));
            json.push('\n');
        }
        insta::assert_snapshot!(format!("{name}_json"), json);
    }
}
