//! Tests of the checker.

use super::*;
use crate::syntax::parse;

/// The codes and positions of the mistakes in a text, syntax included.
fn mistakes(text: &str) -> Vec<String> {
    let source = Source::new("t.atl", text);
    let parsed = parse(&source);
    let mut diagnostics = parsed.diagnostics;
    if let Some(ast) = parsed.ast
        && let Err(more) = run(&ast, &source)
    {
        diagnostics.extend(more);
    }
    diagnostics.iter().map(|d| format!("{} {}", source.position(d.primary.span.start), d.code)).collect()
}

#[test]
fn each_example_of_the_table_yields_its_code() {
    for entry in codes::TABLE.iter().filter(|entry| !entry.example.is_empty()) {
        let found = mistakes(entry.example);
        let code = entry.code.to_string();
        assert!(found.len() == 1 && found[0].ends_with(&code), "{code}: {:?} gives {found:?}", entry.example);
    }
}

#[test]
fn the_documentation_lists_the_table() {
    let page = include_str!("../../docs/errors.md");
    let mut at = 0;
    for entry in codes::TABLE {
        let mut section = format!("### {}\n\n{}\n", entry.code, entry.meaning);
        if !entry.example.is_empty() {
            section += &format!("\n```atlas\n{}\n```\n", entry.example);
        }
        let found = page[at..].find(&section);
        at += found.unwrap_or_else(|| panic!("docs/errors.md lacks, or has out of order:\n{section}"));
    }
    assert_eq!(page.matches("### E").count(), codes::TABLE.len());
}

#[test]
fn one_mistake_gives_one_message() {
    for (text, expected) in [
        ("print(x); print(x); x = 1;", "1:7 E0301"),
        ("let a = b; let c = a + 1; print(c && a);", "1:9 E0301"),
        ("let a = 1 + true; print(a + 1, a && true);", "1:11 E0402"),
        ("fn f(a: int, b: bool) -> int { return a; } let x = f(1); print(x + 1);", "1:52 E0404"),
        ("let a = [1]; let b = a; b[0] = 1; print(len(b));", "1:22 E0602"),
        ("let a = 1; fn f() { print(a); a = 2; }", "1:27 E0308"),
        ("fn f(a) { print(a + 1); } f(1); f(true);", "1:6 E0216"),
        ("fn f(a int) { print(a); } f(1, 2, 3); print(f(1) + 1);", "1:8 E0201"),
        ("let = 5; print(1);", "1:5 E0201"),
        ("let a = ; print(a + 1);", "1:9 E0201"),
        ("let a = [[1, 2], [3, 4]]; print(a[0]);", "1:10 E0604"),
        ("let a: [[int]] = [[1]]; print(a[0]);", "1:9 E0604"),
        ("fn f() -> float { return 1.5; }", "1:11 E0218"),
        ("fn f() -> [int] { let a = [1]; return a; } let b = f();", "1:11 E0603"),
        ("while (i < 3) { i += 1; }", "1:8 E0301"),
        ("fn f() -> int { if true { return 1; } }", "1:4 E0502"),
        ("fn f() -> int { while (true) { if true { return 1; } break; } }", "1:4 E0502"),
        ("fn f() -> int { while (true) { return 1; break; } }", "1:4 E0502"),
        ("fn f() -> int { let t = true; while (t) { return 1; } }", "1:4 E0502"),
        ("{ let a = 1; } { let a = 2; } print(a);", "1:37 E0306"),
        ("print(a); let a = 1;", "1:7 E0307"),
        ("lenght(1); ", "1:1 E0302"),
    ] {
        let found = mistakes(text);
        assert!(found.first().is_some_and(|first| first == expected), "{text}: {found:?}");
        let several = text.contains("1.5");
        assert!(several || found.len() == 1, "{text}: {found:?}");
    }
}

#[test]
fn what_is_right_checks() {
    for text in [
        "fn f() -> int { while (true) { } }",
        "fn f() -> int { while true { if f() == 1 { return 2; } } }",
        "fn f() -> int { if true { return 1; } else { while (true) { } } }",
        "fn f() -> int { { return 1; } print(2); }",
        "fn f() -> int { while (true) { while (true) { break; } } }",
        "let f = 1; fn f(f: int) -> int { return f; } print(f(f));",
        "let len = 1; let a = [len]; print(len(a), len((a)));",
        "let a = 1; { let a = a == 1; print(a); } let b = a;",
        "fn f(v: [int]) { } let a: [int] = []; f((a)); let read = read(); let eof = eof();",
        "read(); eof(); let a = [true; 2]; len(a); a[0] ^= a[1];",
        "return; print(1);",
        "fn f() { return; print(1); } f(); fn main() { }",
        "let x = true; x &= false; x |= x; let n = 5; n <<= 2; n = int(x);",
    ] {
        assert_eq!(mistakes(text), [""; 0], "{text}");
    }
}

#[test]
fn syntax_and_meaning_in_one_run() {
    let text = "let a = 1\nprint(b);\nlet c = ;\nprint(c + true);\nfn g() -> bool { return 1; }\n";
    assert_eq!(mistakes(text), ["1:10 E0202", "3:9 E0201", "2:7 E0301", "5:25 E0401"]);
}

#[test]
fn names_are_unique_in_their_function() {
    let source = Source::new("t.atl", "let x = 1; { let x = 2; } { let x = true; let y = x; } fn main(x: int) { }");
    let program = run(&parse(&source).ast.expect("it parses"), &source).expect("it is right");
    let names =
        |id: FuncId| program.functions[id].variables.values().map(|variable| variable.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(program.entry), ["x", "x.1", "x.2", "y"]);
    let main = program.functions.iter().find(|(_, function)| function.name == "main.1").expect("a user's main").0;
    assert_eq!(names(main), ["x"]);
}
