//! Dumps: numbered files in the order of the pipeline, IR that can be read back at every form, facts, and programs that
//! start as IR text.

mod harness;

use harness::{atlc, beside, folder, programs, quick, root, run};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The stages whose dumps are IR, as `(number, name)`, of a folder of dumps.
fn ir_dumps(folder: &Path) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let (number, stage) = name.split_once('.').expect("NUMBER.STAGE");
        let text = fs::read_to_string(folder.join(&name)).expect("it reads");
        // Machine code names symbols at its functions; facts have no bodies.
        let is_function = |line: &str| line.starts_with("fn ") && line.ends_with(" {") && !line.contains(" symbol=");
        if !["hir", "ast"].contains(&stage) && text.lines().any(is_function) {
            found.push((number.parse().expect("a number"), stage.to_string()));
        }
    }
    found.sort();
    found
}

#[test]
fn every_ir_dump_of_every_example_can_be_read_back_and_run() {
    for program in programs("examples") {
        for level in ["-O0", "-O2"] {
            let folder = folder();
            let dumps = folder.path().join("dumps");
            let ran = quick(atlc().arg("dump").arg(&program).args(["--all", level, "-o"]).arg(&dumps));
            assert_eq!((ran.status, ran.err().as_str()), (0, ""), "{}", program.display());
            let stages = ir_dumps(&dumps);
            let first_and_last =
                (stages.first().expect("stages").1.as_str(), stages.last().expect("stages").1.as_str());
            assert_eq!(first_and_last, ("cfg", "sequence"));
            for (number, stage) in &stages {
                let text = dumps.join(format!("{number:03}.{stage}"));
                let copy = folder.path().join(format!("{stage}.ir"));
                fs::copy(&text, &copy).expect("it is copied");
                let ran = run(
                    atlc().arg("run").arg(&copy).arg("-O0"),
                    program.with_extension("input").exists().then_some(&*program.with_extension("input")),
                    harness::Output::File,
                    Duration::from_secs(60),
                );
                let place = format!("{} {level} at {stage}", program.display());
                assert_eq!((ran.status, ran.err().as_str()), (0, ""), "{place}");
                assert_eq!(ran.stdout, beside(&program, "expected").expect("expected"), "{place}");
            }
        }
    }
}

#[test]
fn the_files_are_in_the_order_of_the_pipeline() {
    let folder = folder();
    let swap = root().join("examples/swap.atl");
    let ran = quick(atlc().arg("dump").arg(&swap).args(["--all", "-O2", "-o"]).arg(folder.path().join("new/dumps")));
    assert_eq!((ran.status, ran.out().as_str(), ran.err().as_str()), (0, "", ""));
    let mut names: Vec<String> = fs::read_dir(folder.path().join("new/dumps"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names[..5], ["010.tokens", "020.ast", "030.hir", "040.cfg", "050.drop-functions"]);
    let stages: Vec<&str> = names.iter().map(|name| name.split_once('.').expect("NUMBER.STAGE").1).collect();
    let order = [
        "ssa",
        "split-edges",
        "dominators",
        "loops",
        "liveness",
        "parallel-copies",
        "sequence",
        "isel",
        "regalloc",
        "live-ranges",
        "allocation",
        "bytes",
        "object",
        "executable",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|name| stages.iter().position(|stage| stage == name).unwrap_or_else(|| panic!("no {name} in {stages:?}")))
        .collect();
    assert!(places.is_sorted(), "{stages:?}");
}

#[test]
fn the_source_line_stands_above_the_code() {
    let swap = root().join("examples/swap.atl");
    for stage in ["hir", "cfg", "ssa", "sequence", "isel", "regalloc", "bytes"] {
        let ran = quick(atlc().arg("dump").arg(&swap).args(["-O0", "--stage", stage]));
        assert_eq!(ran.status, 0, "{}", ran.err());
        let text = ran.out();
        let lines: Vec<&str> = text.lines().collect();
        let comment = lines.iter().position(|line| line.contains("11 | print(x); // 2"));
        let comment = comment.unwrap_or_else(|| panic!("no comment for line 11 at {stage}:\n{text}"));
        assert!(lines.len() > comment + 1, "code follows");
    }
}

#[test]
fn facts_say_what_they_should() {
    // b0 entry, b1 loop head, b2 body, b3 end, by hand.
    let swap = root().join("examples/swap.atl");
    let dump = |fact: &str| {
        let ran = quick(atlc().arg("dump").arg(&swap).args(["-O0", "--stage", fact]));
        assert_eq!((ran.status, ran.err().as_str()), (0, ""));
        ran.out()
    };
    let dominators = dump("dominators");
    for line in ["    b1 frontier=b1", "      b2 frontier=b1", "      b3"] {
        assert!(
            dominators.lines().any(|text| text.trim_end().starts_with(line)),
            "{line:?} is missing in\n{dominators}"
        );
    }
    assert!(dump("loops").contains("loop b1"), "{}", dump("loops"));
    let liveness = dump("liveness");
    assert!(liveness.lines().any(|line| line.contains("b2") && line.contains("in=")), "{liveness}");
    assert!(!dump("live-ranges").is_empty());
    assert!(!dump("allocation").is_empty());
}

#[test]
fn every_way_out_of_ssa_has_facts_exports_and_the_last_ssa_form() {
    let swap = root().join("examples/swap.atl");
    for level in ["-O0", "-O2"] {
        for way in ["split", "isolate", "boissinot", "rename"] {
            let flags = [level, "--ssa-copies", "keep", "--out-of-ssa", way];
            let dumped = |stage: &str| {
                let ran = quick(atlc().arg("dump").arg(&swap).args(["--stage", stage]).args(flags));
                assert_eq!((ran.status, ran.err().as_str()), (0, ""), "{stage} {flags:?}");
                String::from_utf8(ran.stdout).expect("text")
            };
            assert!(dumped("dominators").contains(" frontier=b"), "{flags:?}");
            assert!(dumped("loops").contains("loop b"), "{flags:?}");
            let ir = dumped("ir");
            assert!(ir.contains(" = phi x "), "{ir}");
            assert!(dumped("llvm-ir").contains(" = phi i64 "), "{flags:?}");
            // A way that splits critical edges says so, and is the usual one; the others leave them.
            assert_eq!(ir.starts_with("form split-ssa\n"), way == "split", "{ir}");
        }
    }
}

#[test]
fn one_function_can_be_chosen() {
    let gcd = root().join("examples/gcd.atl");
    let ran = quick(atlc().arg("dump").arg(&gcd).args(["-O0", "--stage", "cfg,ssa", "--function", "lcm"]));
    assert_eq!(ran.status, 0, "{}", ran.err());
    let text = ran.out();
    let heads = |name: &str| text.lines().filter(|line| line.starts_with(&format!("fn {name}("))).count();
    assert_eq!([heads("lcm"), heads("gcd"), heads("main")], [2, 0, 0], "{text}");
    let ran = quick(atlc().arg("dump").arg(&gcd).args(["--stage", "cfg", "--function", "nobody"]));
    assert_eq!(ran.status, 1);
    assert!(ran.err().contains("no function `nobody`"), "{}", ran.err());
}

#[test]
fn functions_that_nobody_calls_are_dropped_unless_kept() {
    let folder = folder();
    let path = folder.path().join("x.atl");
    fs::write(&path, "fn lonely() { print(1); }\nprint(2);").expect("it is written");
    let dump = |flags: &[&str]| quick(atlc().arg("dump").arg(&path).args(flags)).out();
    let has = |text: &str| text.lines().any(|line| line.starts_with("fn lonely()"));
    assert!(has(&dump(&["--stage", "cfg"])));
    assert!(!has(&dump(&["--stage", "ssa"])));
    assert!(has(&dump(&["--stage", "ssa", "-C", "keep-functions"])));
}

#[test]
fn ir_text_starts_at_its_form() {
    let folder = folder();
    // A self loop whose phis read each other: x and y trade places while n counts down from 3.
    // Rounds: (1, 2) (2, 1) (1, 2); x * 10 + y = 12.
    let text = "form ssa\n\nfn main() {\nb0:\n  jump b1\nb1:\n  %0 = phi [1 from b0, %1 from b1]\n  %1 = phi [2 from b0, %0 from b1]\n  \
                %2 = phi [3 from b0, %3 from b1]\n  %3 = int %2 - 1\n  %4 = bool %3 > 0\n  branch %4 ? b1 : b2\nb2:\n  \
                %5 = int %0 * 10\n  %6 = int %5 + %1\n  print %6\n  return\n}\n";
    let path = folder.path().join("x.ir");
    fs::write(&path, text).expect("it is written");
    for level in ["-O0", "-O1", "-O2"] {
        let ran = quick(atlc().arg("run").arg(&path).arg(level));
        assert_eq!((ran.status, ran.out().as_str(), ran.err().as_str()), (0, "12\n", ""), "{level}");
    }
    let ran = quick(atlc().arg("dump").arg(&path).args(["--stage", "cfg"]));
    assert_eq!(ran.status, 1, "what lies before cannot be dumped");
    fs::write(&path, "form ssa\n\nfn main() {\nb0:\n  print %9\n  return\n}\n").expect("it is written");
    let ran = quick(atlc().arg("run").arg(&path));
    assert_eq!(ran.status, 1);
    assert!(ran.err().starts_with("error") && !ran.err().contains("internal compiler error"), "{}", ran.err());
    fs::write(&path, "fn main( {").expect("it is written");
    let ran = quick(atlc().arg("run").arg(&path));
    assert_eq!(ran.status, 1);
    assert!(ran.err().starts_with("error["), "{}", ran.err());
}

#[test]
fn what_comes_before_an_error_is_dumped() {
    let folder = folder();
    let path = folder.path().join("x.atl");
    fs::write(&path, "print(nothing);").expect("it is written");
    let ran = quick(atlc().arg("dump").arg(&path).args(["--stage", "tokens,hir"]));
    assert_eq!(ran.status, 1);
    assert!(ran.out().contains("nothing"), "{}", ran.out());
    assert!(ran.err().starts_with("error[E"), "{}", ran.err());
}
