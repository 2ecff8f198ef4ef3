//! The ways out of SSA form side by side, and that SSA form made without folding copies is conventional: renaming gives
//! back the program that it was made of.

mod harness;
mod native;

use atlc::execution::{End, Limits};
use atlc::explain::compare::{self, Comparison, Counts, Row};
use atlc::fuzz::generate::{Shape, generate};
use atlc::ir;
use atlc::ir::print::print;
use atlc::pipeline::{Options, State, compile};
use atlc::ssa::OutOfSsa;
use atlc::ssa::construct::{Copies, Pruning};
use atlc::support::span::Source;
use harness::{Output, atlc, beside, folder, programs, quick, root, run};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn source(path: &Path) -> Source {
    let name = path.strip_prefix(root()).expect("it is in the project").display().to_string();
    Source::new(name, fs::read_to_string(path).expect("it reads"))
}

/// Enough for most examples; a comparison runs each thirty times.
const LIMITS: Limits = Limits { steps: 100_000, output: 1 << 20, depth: 10_000, memory: 1 << 24 };

fn example(name: &str, level: u8) -> Comparison {
    let path = root().join("examples").join(name);
    let options = Options { level, ..Options::default() };
    let input = beside(&path, "input").unwrap_or_default();
    compare::compute(&source(&path), &options, &input, LIMITS).expect("it compiles")
}

fn row<'a>(comparison: &'a Comparison, ssa: &str, copies: &str, method: &str) -> &'a Row {
    let found = comparison.rows.iter().find(|row| (row.ssa, row.ssa_copies, row.out_of_ssa) == (ssa, copies, method));
    found.unwrap_or_else(|| panic!("there is no row {ssa}, {copies}, {method}"))
}

fn counts(comparison: &Comparison, copies: &str, method: &str) -> Counts {
    row(comparison, "pruned", copies, method).counts.expect("it is built")
}

#[test]
fn the_swap_by_hand() {
    let comparison = example("swap.atl", 0);
    assert_eq!((comparison.rows.len(), comparison.end), (15, "normal"));
    for pruning in ["minimal", "semi-pruned", "pruned"] {
        // x and y name each other: they are one class, and both live in the loop.
        let refused = row(&comparison, pruning, "fold", "rename");
        assert_eq!(refused.counts, None);
        let reason = "not conventional: x %5 and y %6 overlap in b1, at its start (function main)";
        assert_eq!(refused.refused.as_deref(), Some(reason));
        assert!(row(&comparison, pruning, "keep", "rename").counts.is_some());
    }
    // x, y and i have a φ with two operands each.
    let split = counts(&comparison, "fold", "split");
    assert_eq!((split.phis, split.operands, split.inserted), (3, 6, 6));
    // The cycle of x and y takes one temporary; before the loop there are 3 copies, in each of 3 rounds 4.
    assert_eq!((split.temporaries, split.copies, split.executed_copies), (1, 7, Some(3 + 3 * 4)));
    assert_eq!((split.split_blocks, split.coalesced_by_method), (0, 0));
    // 6 operands and 3 φs: 3 copies before the loop, 3 in each of 4 conditions, 3 in each of 3 rounds.
    let isolate = counts(&comparison, "fold", "isolate");
    assert_eq!((isolate.inserted, isolate.temporaries, isolate.copies), (9, 0, 9));
    assert_eq!(isolate.executed_copies, Some(3 + 4 * 3 + 3 * 3));
    // The φs' own copies and the one of i go; 3 constants and the cycle stay, with its temporary.
    let boissinot = counts(&comparison, "fold", "boissinot");
    assert_eq!((boissinot.inserted, boissinot.coalesced_by_method), (9, 4));
    assert_eq!((boissinot.temporaries, boissinot.copies, boissinot.executed_copies), (1, 6, Some(3 + 3 * 3)));
    // Renamed, the copies are those of the source: 3 declarations and 3 assignments in the loop.
    let rename = counts(&comparison, "keep", "rename");
    assert_eq!((rename.inserted, rename.temporaries, rename.copies), (0, 0, 6));
    assert_eq!(rename.executed_copies, Some(3 + 3 * 3));
    // No way is free: in registers, a swap takes three moves.
    for counts in [split, isolate, boissinot, rename] {
        assert_eq!(counts.surviving, 3);
    }
}

#[test]
fn only_splitting_makes_blocks() {
    let comparison = example("critical_edge.atl", 0);
    assert!(counts(&comparison, "fold", "split").split_blocks > 0);
    for method in ["isolate", "boissinot"] {
        assert_eq!(counts(&comparison, "fold", method).split_blocks, 0, "{method}");
    }
}

#[test]
fn every_example_by_every_way() {
    for path in programs("examples") {
        for level in [0, 2] {
            // The comparison itself fails if two ways show different things.
            let comparison = example(path.file_name().expect("a name").to_str().expect("text"), level);
            assert_ne!(comparison.end, "error", "{}", path.display());
            for row in &comparison.rows {
                let what = format!("{} -O{level}: {row:?}", path.display());
                match (&row.counts, row.out_of_ssa) {
                    (Some(counts), "boissinot") => {
                        let isolate =
                            comparison.rows.iter().find(|other| other.ssa == row.ssa && other.out_of_ssa == "isolate");
                        let isolate = isolate.and_then(|row| row.counts).expect("isolating is always possible");
                        assert_eq!(counts.inserted, isolate.inserted, "{what}");
                        // Each copy stays or is coalesced, and only cycles add some.
                        let left = isolate.copies + counts.temporaries - counts.coalesced_by_method;
                        assert_eq!(counts.copies, left, "{what}");
                    }
                    (Some(_), _) => {}
                    (None, "rename") => {
                        let reason = row.refused.as_deref().expect("a reason");
                        assert!(reason.starts_with("not conventional: ") && reason.contains(" overlap in b"), "{what}");
                        assert!(level > 0 || row.ssa_copies == "fold", "{what}");
                    }
                    (None, _) => panic!("{what}"),
                }
            }
        }
    }
}

fn stage(source: &Source, options: &Options, name: &str) -> String {
    match compile(source, options, name, &mut []) {
        Ok(compiled) => match compiled.state {
            State::Ir(program) => print(&program).to_string(),
            other => panic!("{name} gives {:?}", other.language()),
        },
        Err(failure) => panic!("{}: {failure:?}", source.name),
    }
}

#[test]
fn renaming_gives_back_the_program_over_variables() {
    let mut sources: Vec<Source> = programs("examples").iter().map(|path| source(path)).collect();
    sources.extend((0..40).map(|seed| Source::new("random.atl", generate(seed, &Shape::of_seed(seed)))));
    for source in sources {
        for pruning in [Pruning::Minimal, Pruning::SemiPruned, Pruning::Pruned] {
            let mut options = Options { level: 0, out_of_ssa: OutOfSsa::Rename, ..Options::default() };
            options.ssa.pruning = pruning;
            options.ssa.copies = Copies::Keep;
            let before = stage(&source, &options, "drop-functions");
            // What construction drops as unreachable does not come back.
            if before.contains(" dead") {
                continue;
            }
            let after = stage(&source, &options, "rename");
            assert!(before == after, "{pruning:?}, {}:\n{before}\n{after}", source.text);
        }
    }
}

#[test]
fn the_dump_of_a_renamed_example_is_that_of_its_cfg() {
    for path in programs("examples") {
        let dump = |flags: &[&str]| {
            let ran = quick(atlc().arg("dump").arg(&path).arg("-O0").args(flags));
            assert_eq!((ran.status, ran.err().as_str()), (0, ""), "{}", path.display());
            ran.out()
        };
        let renamed = dump(&["--ssa-copies", "keep", "--out-of-ssa", "rename", "--stage", "rename"]);
        assert!(dump(&["--stage", "cfg"]) == renamed, "{}", path.display());
    }
}

#[test]
fn random_programs_by_every_way_and_natively() {
    let folder = folder();
    let input: &[u8] = b"3 -1 4 1 -5 9 2 6";
    let input_file = folder.path().join("input");
    fs::write(&input_file, input).expect("it takes the input");
    let (mut built, mut refused) = (0, 0);
    for seed in 0..14 {
        let source = Source::new("random.atl", generate(1000 + seed, &Shape::of_seed(seed)));
        let options = Options { level: (seed % 3) as u8, verify: true, ..Options::default() };
        let comparison = compare::compute(&source, &options, input, LIMITS)
            .unwrap_or_else(|failure| panic!("seed {seed}: {failure:?}\n{}", source.text));
        refused += comparison.rows.iter().filter(|row| row.refused.is_some()).count();
        if comparison.end != "normal" {
            continue;
        }
        let over_variables = compile(&source, &options, "cfg", &mut []).expect("it compiles");
        let State::Ir(program) = over_variables.state else { panic!("the stage gives IR") };
        let expected = ir::interpret::run(&program, input, LIMITS).expect("it runs").outcome;
        for method in [OutOfSsa::Isolate, OutOfSsa::Boissinot, OutOfSsa::Rename] {
            let mut options = Options { out_of_ssa: method, ..options.clone() };
            options.ssa.copies = Copies::Keep;
            let Ok(compiled) = compile(&source, &options, "executable", &mut []) else {
                assert!(method == OutOfSsa::Rename && options.level > 0, "seed {seed}, {method:?}");
                continue;
            };
            let State::Executable(bytes) = compiled.state else { panic!("the stage gives an executable") };
            let path = folder.path().join(format!("{seed}-{}", method.name()));
            native::write_executable(&path, &bytes);
            let ran = run(&mut Command::new(&path), Some(&input_file), Output::File, Duration::from_secs(20));
            fs::remove_file(&path).expect("it goes");
            assert!(expected.end == End::Normal && ran.status == 0, "seed {seed}, {method:?}: {}", ran.err());
            assert!(ran.stdout == expected.output, "seed {seed}, {method:?}\n{}", source.text);
            built += 1;
        }
    }
    assert!(built >= 10 && refused > 0, "{built} built, {refused} refused");
}

#[test]
fn the_command() {
    let path = root().join("examples/swap.atl");
    let ran = quick(atlc().arg("compare").arg(&path).arg("-O0"));
    assert_eq!((ran.status, ran.err().as_str()), (0, ""));
    let text = ran.out();
    assert!(text.lines().skip(1).all(|line| line.chars().count() <= 110), "{text}");
    let line = |start: [&str; 3]| {
        let found = text.lines().find(|line| line.split_whitespace().take(3).eq(start));
        found.unwrap_or_else(|| panic!("no line {start:?} in\n{text}")).split_whitespace().skip(3).collect::<Vec<_>>()
    };
    assert_eq!(line(["pruned", "fold", "split"])[..2], ["3", "6"]);
    assert_eq!(line(["pruned", "fold", "rename"])[..4], ["not", "conventional:", "x", "%5"]);

    let ran = quick(atlc().arg("compare").arg(&path).args(["-O0", "--json"]));
    let json: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("it is JSON");
    assert_eq!((json["version"].as_u64(), json["rows"].as_array().map(Vec::len)), (Some(1), Some(15)));
    assert_eq!(json["rows"][0]["counts"]["temporaries"].as_u64(), Some(1));
    assert!(json["rows"][3]["counts"].is_null() && json["rows"][3]["refused"].is_string());

    // IR text in SSA form: one way in only. In later forms there is nothing to compare.
    let folder = folder();
    let dump = |stage: &str| {
        let path = folder.path().join(format!("{stage}.ir"));
        let ran = quick(atlc().arg("dump").arg(root().join("examples/swap.atl")).args(["--stage", stage]));
        fs::write(&path, ran.stdout).expect("it takes the text");
        path
    };
    let ran = quick(atlc().arg("compare").arg(dump("ssa")));
    assert_eq!(ran.out().lines().filter(|line| line.starts_with("given")).count(), 4, "{}", ran.out());
    let ran = quick(atlc().arg("compare").arg(dump("sequence")));
    assert!(ran.status == 1 && ran.err().starts_with("error: there is no SSA form on the way of"), "{}", ran.err());
    let ran = quick(atlc().arg("run").arg(dump("split-edges")).args(["--out-of-ssa", "isolate"]));
    assert!(ran.status == 1 && ran.err().contains("from which `--out-of-ssa isolate` does not start"), "{}", ran.err());
    let ran = quick(atlc().arg("explain").arg("copies").arg(&path).args(["--out-of-ssa", "boissinot"]));
    assert_eq!(ran.status, 2);
    let ran = quick(atlc().arg("run").arg(&path).args(["--out-of-ssa", "rename"]));
    assert!(ran.status == 1 && ran.err().contains("not conventional: x %5 and y %6 overlap in b1"), "{}", ran.err());
}

#[test]
fn a_run_that_is_too_long_is_not_counted() {
    let source = Source::new("x.atl", "let i = 0; while (true) { i = i + 1; }");
    let limits = Limits { steps: 1_000, ..Limits::default() };
    let comparison = compare::compute(&source, &Options::default(), b"", limits).expect("it compiles");
    assert_eq!(comparison.end, "limit");
    assert!(comparison.rows.iter().filter_map(|row| row.counts).all(|counts| counts.executed_copies.is_none()));
}
