//! Sources that no person writes, and some that a person does by mistake, through the executable: an answer or an error,
//! never a crash, within bounded time and memory.

mod harness;

use harness::{Output, Ran, atlc, folder, run};
use std::fs;
use std::time::Duration;

/// Compiles and runs; debug builds check every stage, so the limit is generous.
fn outcome(source: impl AsRef<[u8]>, command: &[&str]) -> Ran {
    let folder = folder();
    fs::write(folder.path().join("x.atl"), source).expect("it is written");
    let mut atlc = atlc();
    atlc.current_dir(&folder).args(command).arg("x.atl");
    let ran = run(&mut atlc, None, Output::File, Duration::from_secs(300));
    assert!(!ran.timed_out, "it hangs");
    assert!(ran.status >= 0, "it dies of signal {}: {}", -ran.status, ran.err());
    assert!(!ran.err().contains("internal compiler error") && !ran.err().contains("panicked"), "{}", ran.err());
    ran
}

/// The levels with how many parts a chain has there: the full length at the default level, and enough at the others to
/// show what is not linear. (Debug builds check every stage, and are slow.)
const LENGTHS: [(&str, usize); 3] = [("-O0", 25_000), ("-O1", 100_000), ("-O2", 25_000)];

/// A compile-time error whose first message contains `what`.
fn rejected(source: impl AsRef<[u8]>, what: &str) {
    let ran = outcome(source, &["check"]);
    let text = ran.err();
    assert_eq!(ran.status, 1, "{}", &text[..text.len().min(500)]);
    let line = text.lines().next().unwrap_or_default();
    assert!(line.starts_with("error[E") && line.contains(what), "{line}");
    assert!(text.contains(" --> x.atl:") || text.contains("--> x.atl:"), "no position: {line}");
    assert!(text.len() < 100_000, "{} bytes of messages", text.len());
}

fn prints(source: impl AsRef<[u8]>, flags: &[&str], output: &str) {
    let mut command = vec!["run"];
    command.extend(flags);
    let ran = outcome(source, &command);
    let error = ran.err();
    assert_eq!(ran.status, 0, "{}", &error[..error.len().min(500)]);
    assert_eq!(ran.out(), output);
}

#[test]
fn nesting_of_a_thousand_compiles() {
    let n = 1000;
    prints(format!("print({}7{});", "(".repeat(n), ")".repeat(n)), &[], "7\n");
    prints(format!("{}print(8);{}", "{".repeat(n), "}".repeat(n)), &[], "8\n");
    prints(format!("{}print(9);{}", "if (true) {".repeat(n), "}".repeat(n)), &[], "9\n");
    prints(format!("print({}1);", "-".repeat(n)), &[], "1\n");
    prints(format!("let b = {}true; print(b);", "!".repeat(n)), &[], "true\n");
    let loops = format!("{}print(1);{}", "while (true) {".repeat(n), "break; }".repeat(n));
    prints(loops, &[], "1\n");
}

#[test]
fn deeper_nesting_is_an_error() {
    for n in [100_000, 1_000_000] {
        rejected(format!("print({}7{});", "(".repeat(n), ")".repeat(n)), "deep");
        rejected(format!("{}{}", "{".repeat(n), "}".repeat(n)), "deep");
        rejected(format!("print({}7);", "-".repeat(n)), "deep");
        rejected(format!("{}{}", "while (true) {".repeat(n), "}".repeat(n)), "deep");
        rejected(format!("let a = [1]; print({}0{});", "a[".repeat(n), "]".repeat(n)), "deep");
    }
}

#[test]
fn unclosed_nesting_is_an_error() {
    for sign in ["(", "{", "print(", "if (", "a[", "-", "while (true) {", "[", "fn f(", "/*", "\"", "'"] {
        let ran = outcome(sign.repeat(100_000), &["check"]);
        assert_eq!(ran.status, 1, "{sign}");
        assert!(ran.err().starts_with("error[E"), "{sign}: {}", ran.err().lines().next().unwrap_or_default());
    }
}

#[test]
fn chains_of_operands_compile_at_each_level() {
    for (level, n) in LENGTHS {
        let sum = vec!["x"; n].join(" + ");
        prints(format!("let x = int(eof()); print({sum});"), &[level], &format!("{n}\n"));
        let all = vec!["b"; n].join(" && ");
        prints(format!("let b = eof(); print({all});"), &[level], "true\n");
    }
}

#[test]
fn chains_of_else_if_compile_at_each_level() {
    for (level, n) in LENGTHS {
        let last = n - 1;
        let mut source = format!("let x = {last} * int(eof()); let y = 0;\nif (x == {n}) {{ y = 1; }}");
        for i in 0..n {
            source.push_str(&format!(" else if (x == {i}) {{ y = {i}; }}\n"));
        }
        source.push_str("print(y);");
        prints(source, &[level], &format!("{last}\n"));
    }
}

#[test]
fn one_huge_block_compiles() {
    for (level, n) in LENGTHS {
        let mut source = String::from("let x = int(eof());\n");
        for i in 0..n {
            source.push_str(&format!("x = x + {};\n", i % 7));
        }
        source.push_str("print(x);\n");
        let sum: usize = (0..n).map(|i| i % 7).sum();
        prints(&source, &[level], &format!("{}\n", sum + 1));
    }
}

#[test]
fn a_line_of_ten_megabytes() {
    let mut source = String::from("let x = 1; ");
    source.push_str(&" ".repeat(10_000_000));
    source.push_str("print(x, y);");
    rejected(&source, "y");
    let comment = format!("print(1); // {}", "é".repeat(5_000_000));
    prints(comment, &[], "1\n");
}

#[test]
fn many_functions_variables_and_parameters() {
    let mut source = String::new();
    for i in 0..10_000 {
        source.push_str(&format!("fn f{i}(x: int) -> int {{ return x + {i}; }}\n"));
    }
    source.push_str("print(f0(1), f9999(1));");
    prints(&source, &["-O1"], "1 10000\n");

    let parameters: Vec<String> = (0..300).map(|i| format!("p{i}: int")).collect();
    let arguments: Vec<String> = (0..300).map(|i| format!("k * {i}")).collect();
    let sum: Vec<String> = (0..300).map(|i| format!("p{i} * {}", i % 5 + 1)).collect();
    let source = format!(
        "fn f({}) -> int {{ return {}; }}\nlet k = int(eof());\nprint(f({}));",
        parameters.join(", "),
        sum.join(" + "),
        arguments.join(", ")
    );
    let expected: i64 = (0..300).map(|i| i * (i % 5 + 1)).sum();
    for level in ["-O0", "-O1", "-O2"] {
        prints(&source, &[level], &format!("{expected}\n"));
    }

    let n = 5_000;
    let mut source = String::new();
    for i in 0..n {
        source.push_str(&format!("let v{i} = int(eof()) + {i};\n"));
    }
    source.push_str("let i = 0; let s = 0; while (i < 3) {\n");
    for i in 0..n {
        source.push_str(&format!("s += v{i};\n"));
    }
    source.push_str("i += 1; }\nprint(s);");
    let expected: i64 = 3 * (0..n).map(|i| i + 1).sum::<i64>();
    prints(source, &["-O1"], &format!("{expected}\n"));
}

#[test]
fn bytes_that_are_no_text() {
    rejected(b"print(1);\n\xff\xfe", "UTF-8");
    let noise: Vec<u8> = (0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert_eq!(outcome(&noise, &["check"]).status, 1);
    let printable: Vec<u8> = noise.iter().map(|byte| 32 + byte % 95).collect();
    assert_eq!(outcome(printable, &["check"]).status, 1);
    assert_eq!(outcome([0u8; 1000], &["check"]).status, 1);
}

#[test]
fn many_mistakes_are_told_in_bounds() {
    let mut source = String::new();
    for i in 0..100_000 {
        source.push_str(&format!("x{i} = y{i} +;\n"));
    }
    let ran = outcome(&source, &["check"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.len() < 1_000_000, "{} bytes", ran.stderr.len());
    let mut source = String::new();
    for i in 0..50_000 {
        source.push_str(&format!("x{i} = true;\n"));
    }
    let ran = outcome(&source, &["check"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.len() < 1_000_000, "{} bytes", ran.stderr.len());
}

#[test]
fn a_call_with_the_wrong_everything() {
    let source = "fn f(a: int, b: [bool]) -> bool { return true; }\nlet x = 1;\nx = f(true, x, 3, y);\n";
    rejected(source, "");
}
