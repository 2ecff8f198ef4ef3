//! The front end over whole programs: what is wrong is found where it is, and what is right means what the contract says.

use atlc::execution::{End, Limit, Limits, Outcome};
use atlc::fuzz::generate::{Shape, generate};
use atlc::semantics::Trap;
use atlc::support::diagnostics::Diagnostic;
use atlc::support::span::Source;
use atlc::{check, hir, syntax};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The front end's recursion is as deep as the source nests, so it runs where the stack is large, as in the compiler.
fn on_a_large_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new()
        .stack_size(256 << 20)
        .spawn(work)
        .expect("a thread starts")
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The program, or its mistakes in the order of the source.
fn front(source: &Source) -> Result<hir::Program, Vec<Diagnostic>> {
    let parsed = syntax::parse(source);
    let mut diagnostics = parsed.diagnostics;
    let checked = parsed.ast.map(|ast| check::run(&ast, source));
    match checked {
        Some(Ok(program)) if diagnostics.is_empty() => Ok(program),
        Some(Err(more)) => {
            diagnostics.extend(more);
            Err(diagnostics)
        }
        Some(Ok(_)) | None => Err(diagnostics),
    }
}

/// The cases in the order of their names: each with the path of its source.
fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let files = std::fs::read_dir(&folder).expect("the cases are there");
    let mut cases: Vec<PathBuf> = files
        .map(|file| file.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "atl"))
        .collect();
    cases.sort();
    assert!(cases.len() > 200, "only {} cases", cases.len());
    cases
}

fn beside(case: &Path, extension: &str) -> Option<Vec<u8>> {
    std::fs::read(case.with_extension(extension)).ok()
}

fn text_beside(case: &Path, extension: &str) -> Option<String> {
    beside(case, extension)
        .map(|bytes| String::from_utf8(bytes).expect("the expected text is UTF-8").trim().to_string())
}

fn load(case: &Path) -> Result<Source, Box<(Source, Diagnostic)>> {
    let name = case.file_name().expect("a file").to_string_lossy().into_owned();
    Source::from_bytes(name, std::fs::read(case).expect("the case can be read"))
}

#[test]
fn mistakes_are_found_where_they_are() {
    let mut checked = 0;
    for case in cases() {
        let Some(positions) = text_beside(&case, "pos") else { continue };
        let found = match load(&case) {
            Ok(source) => {
                let diagnostics = front(&source).map(|_| ()).expect_err("the case has a mistake");
                let first = diagnostics.first().expect("a program that is refused has a message");
                assert_eq!(diagnostics.len(), 1, "{}: {diagnostics:#?}", case.display());
                source.position(first.primary.span.start).to_string()
            }
            Err(error) => error.0.position(error.1.primary.span.start).to_string(),
        };
        assert!(
            positions.split_whitespace().any(|position| position == found),
            "{}: expected {positions}, found {found}",
            case.display()
        );
        checked += 1;
    }
    assert!(checked >= 70, "only {checked} cases of mistakes");
}

/// What standard error shows of a run-time error.
fn report(outcome: &Outcome, source: &Source) -> String {
    match outcome.end {
        End::Normal | End::Limit(_) => String::new(),
        End::Trap(trap, span) if trap.has_position() => {
            format!("error: {trap}\n --> {}:{}", source.name, source.position(span.start))
        }
        End::Trap(trap, _) => format!("error: {trap}"),
    }
}

#[test]
fn programs_mean_what_the_contract_says() {
    on_a_large_stack(|| {
        let mut ran = 0;
        for case in cases() {
            if beside(&case, "pos").is_some() || beside(&case, "full").is_some() || beside(&case, "pipe").is_some() {
                continue;
            }
            let source = load(&case).expect("the case is text");
            let program = match front(&source) {
                Ok(program) => program,
                Err(diagnostics) => panic!("{}: {diagnostics:#?}", case.display()),
            };
            let status = text_beside(&case, "status").unwrap_or_else(|| "0".to_string());
            let endless = status == "timeout";
            let limits = Limits { steps: if endless { 200_000 } else { 60_000_000 }, ..Limits::default() };
            let input = beside(&case, "input").unwrap_or_default();
            let started = Instant::now();
            let outcome = hir::interpret::run(&program, &input, limits);
            if started.elapsed() > Duration::from_secs(2) {
                println!("{}: {:?}", case.display(), started.elapsed());
            }
            let expected = beside(&case, "expected").unwrap_or_default();
            let first_line = text_beside(&case, "stderr1");
            let stack_overflow = first_line.as_deref().is_some_and(|line| line.ends_with("stack overflow"));
            match outcome.end {
                // How deep recursion may go is no part of the meaning.
                End::Limit(Limit::Depth) => assert!(stack_overflow, "{}: too deep", case.display()),
                // A case may be too long for an interpreter, but what it printed so far is right.
                End::Limit(_) => assert!(expected.starts_with(&outcome.output), "{}", case.display()),
                End::Normal | End::Trap(..) => {
                    assert!(!endless && !stack_overflow, "{} ended", case.display());
                    assert_eq!(
                        String::from_utf8_lossy(&outcome.output),
                        String::from_utf8_lossy(&expected),
                        "{}",
                        case.display()
                    );
                    let shown = report(&outcome, &source);
                    match first_line {
                        Some(first) => assert_eq!(shown.lines().next(), first.lines().next(), "{}", case.display()),
                        None => {
                            assert_eq!(shown, text_beside(&case, "stderr").unwrap_or_default(), "{}", case.display());
                        }
                    }
                    assert_eq!(status, if outcome.end == End::Normal { "0" } else { "101" }, "{}", case.display());
                    ran += 1;
                }
            }
        }
        assert!(ran > 120, "only {ran} programs ran to their end");
    });
}

#[test]
fn formatted_programs_mean_the_same() {
    on_a_large_stack(|| {
        for case in cases() {
            let Ok(source) = load(&case) else { continue };
            let parsed = syntax::parse(&source);
            let (Some(ast), true) = (parsed.ast, parsed.diagnostics.is_empty()) else { continue };
            let text = syntax::format(&ast);
            let again = syntax::parse(&Source::new("again.atl", text.clone()));
            assert!(again.diagnostics.is_empty(), "{}: {:?}", case.display(), again.diagnostics);
            let again = again.ast.expect("it parses");
            assert_eq!(
                syntax::print_ast(&again).to_string(),
                syntax::print_ast(&ast).to_string(),
                "{}",
                case.display()
            );
        }
    });
}

/// The codes of the mistakes of a huge text, within a bound of time.
fn codes_in_time(name: &str, text: String) -> Vec<String> {
    let name = name.to_string();
    on_a_large_stack(move || {
        let started = Instant::now();
        let source = Source::new("huge.atl", text);
        let codes = match front(&source) {
            Ok(program) => {
                // What comes next must stand the size too.
                let ir = atlc::build::run(&program);
                assert!(!ir.functions.is_empty());
                drop(program);
                Vec::new()
            }
            Err(diagnostics) => diagnostics.iter().map(|diagnostic| diagnostic.code.to_string()).collect(),
        };
        let took = started.elapsed();
        assert!(took < Duration::from_secs(120), "{name} took {took:?}");
        codes
    })
}

#[test]
fn nesting_beyond_the_limit_is_one_clear_error() {
    for (open, close) in [("(", ")"), ("-", ""), ("!", ""), ("~(", ")"), ("a[", "]"), ("f(", ")")] {
        for unclosed in [false, true] {
            let close = if unclosed { String::new() } else { close.repeat(100_000) };
            let text = format!("let x = {}1{close};", open.repeat(100_000));
            assert_eq!(codes_in_time(open, text), ["E0205"], "{open}");
        }
    }
    for open in ["{", "if true {", "while true {", "fn f() {", "} else {", "[", "[1; "] {
        let codes = codes_in_time(open, open.repeat(100_000));
        assert!(!codes.is_empty() && codes.len() <= 101, "{open}: {codes:?}");
    }
    for close in [")", "]", "}", "*/", "else", "'", "\"", "/*", "\\", "é"] {
        let codes = codes_in_time(close, close.repeat(100_000));
        assert!(!codes.is_empty() && codes.len() <= 101, "{close}: {codes:?}");
    }
}

#[test]
fn a_thousand_levels_compile() {
    let deep = |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(1_000), close.repeat(1_000));
    for (name, text) in [
        ("parentheses", format!("print({});", deep("(", "1", ")"))),
        ("right operands", format!("print({});", deep("(1 + ", "1", ")"))),
        ("every precedence", format!("let t = true; print({});", deep("(t || t && t == (t | t ^ t & ", "t", "))"))),
        ("negations", format!("print({});", deep("-(", "1", ")"))),
        ("prefixes", format!("print({}1);", "-~".repeat(500))),
        ("indices", format!("let a = [0; 1]; print({});", deep("a[", "0", "]"))),
        ("calls", format!("fn f(x: int) -> int {{ return x; }} print({});", deep("f(", "0", ")"))),
        ("blocks", deep("{ ", "print(1);", " }")),
        ("ifs", deep("if true { ", "print(1);", " } else { print(2); }")),
        ("loops", deep("while (true) { ", "print(1);", " break; }")),
        ("arrays in blocks", deep("{ let a = [1]; ", "print(1);", " }")),
    ] {
        assert_eq!(codes_in_time(name, text), [""; 0], "{name}");
    }
}

#[test]
fn long_programs_compile() {
    let else_ifs: String = (0..100_000).map(|n| format!("if x == {n} {{ x = {n}; }} else ")).collect();
    let operands = |op: &str| format!("let x = 1; print(x{});", format!(" {op} x").repeat(100_000));
    let bools = |op: &str| {
        format!(
            "let x = true; if x{} {{ }} let y = x{};",
            format!(" {op} x").repeat(50_000),
            format!(" {op} x").repeat(50_000)
        )
    };
    let params: Vec<String> = (0..300).map(|n| format!("p{n}: int")).collect();
    let args: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let functions: String =
        (0..10_000).map(|n| format!("fn f{n}(a: int) -> int {{ return f{}(a) + {n}; }}\n", (n + 1) % 10_000)).collect();
    let mut line = "let x = 0; ".to_string();
    while line.len() < 10 << 20 {
        line.push_str("x = x + 1; ");
    }
    for (name, text) in [
        ("else if", format!("let x = 1; {else_ifs}{{ }}")),
        ("sums", operands("+")),
        ("products", operands("*")),
        ("shifts", operands("<<")),
        ("bits", operands("^")),
        ("conjunctions", bools("&&")),
        ("disjunctions", bools("||")),
        ("statements", format!("let x = 0;\n{}", "x = x + 1;\n".repeat(1_000_000))),
        ("statements of one block", format!("{{ let x = 0;\n{}}}", "x += 1;\n".repeat(1_000_000))),
        ("variables", (0..100_000).map(|n| format!("let v{n} = {n};\n")).collect()),
        ("names that shadow", "{ let v = 1; }\n".repeat(100_000)),
        ("a long line", line),
        ("parameters", format!("fn f({}) -> int {{ return p299; }} print(f({}));", params.join(", "), args.join(", "))),
        ("functions", functions),
        ("elements", format!("let a = [{}1];", "1, ".repeat(100_000))),
        ("arguments of print", format!("print({}1);", "1, ".repeat(100_000))),
        ("a long string", format!("print(\"{}\");", "é".repeat(1_000_000))),
        ("a long comment", format!("/*{}*/", "/* x */".repeat(300_000))),
        ("nested comments", format!("{}{}", "/*".repeat(300_000), "*/".repeat(300_000))),
        ("nothing", String::new()),
        ("only a mark", "\u{feff}".to_string()),
        ("white space", " \t\r\n".repeat(100_000)),
    ] {
        assert_eq!(codes_in_time(name, text), [""; 0], "{name}");
    }
}

#[test]
fn many_mistakes_end_soon() {
    for (name, text) in [
        ("unknown variables", (0..100_000).map(|n| format!("print(a{n});\n")).collect::<String>()),
        ("missing semicolons", "let x = 1\n".repeat(100_000)),
        ("missing semicolons in a block", format!("{{ {} }}", "f()\n".repeat(100_000))),
        ("no statements", "= ".repeat(100_000)),
        ("words", "a b c d ".repeat(100_000)),
        ("one unknown variable", "print(a);\n".repeat(100_000)),
        ("wrong operands", format!("let x = 1{};", " + true".repeat(100_000))),
        ("declared again", "let x = 1;\n".repeat(100_000)),
        ("chains", format!("print(1{});", " < 1".repeat(100_000))),
        ("brackets", "([{".repeat(700)),
        ("headings", "fn f( {".repeat(1_000)),
    ] {
        let codes = codes_in_time(name, text);
        assert!(!codes.is_empty() && codes.len() <= 200, "{name}: {}", codes.len());
    }
}

#[test]
fn the_depth_of_recursion_is_bounded_by_a_limit() {
    let source = Source::new(
        "deep.atl",
        "fn f(n: int) -> int { if n == 0 { return 0; } return f(n - 1) + 1; } print(f(90000)); print(f(-1));",
    );
    let program = front(&source).map_err(|d| format!("{d:?}")).expect("it is right");
    let outcome = hir::interpret::run(&program, b"", Limits::default());
    assert_eq!((outcome.output.as_slice(), outcome.end), (&b"90000\n"[..], End::Limit(Limit::Depth)));
}

#[test]
fn interpretation_follows_the_order_of_evaluation() {
    let run = |text: &str, input: &str| {
        let source = Source::new("t.atl", text);
        let program = front(&source).map_err(|d| format!("{d:?}")).expect("it is right");
        let outcome = hir::interpret::run(&program, input.as_bytes(), Limits::default());
        (String::from_utf8(outcome.output.clone()).expect("text"), report(&outcome, &source))
    };
    let ok = |text: &str| (text.to_string(), String::new());
    // The element is loaded before the right side changes it.
    assert_eq!(
        run("fn g(v: [int]) -> int { v[0] = 100; return 1; } let a = [5]; a[0] += g(a); print(a[0]);", ""),
        ok("6\n")
    );
    // Both reads of `a[read()] = read()` happen before the check.
    assert_eq!(
        run("let a = [0; 2]; a[read()] = read(); print(1);", "7 x"),
        (String::new(), "error: malformed integer in the input\n --> t.atl:1:29".to_string())
    );
    assert_eq!(
        run("let a = [0; 2]; a[read()] = read(); print(1);", "7 8"),
        (String::new(), "error: index 7 out of bounds for an array of length 2\n --> t.atl:1:18".to_string())
    );
    // Arguments of `print` are evaluated before any is printed.
    assert_eq!(
        run("print(1, 2, 1 / 0);", ""),
        (String::new(), format!("error: {}\n --> t.atl:1:15", Trap::DivisionByZero))
    );
    // The right side is evaluated only when needed; `&` needs both.
    assert_eq!(run("let t = true; print(t || 1 / 0 == 1, !t && 1 / 0 == 1);", ""), ok("true false\n"));
    assert_eq!(run("print(false & (1 / 0 == 1));", "").1, "error: division by zero\n --> t.atl:1:18");
    // Arrays of recursive calls and of rounds of a loop are new ones.
    assert_eq!(
        run(
            "let i = 0; while i < 3 { let a = [i; 2]; a[1] += 1; i += 1; if i == 2 { continue; } print(a[0], a[1]); }",
            ""
        ),
        ok("0 1\n2 3\n")
    );
}

/// Runs a program as HIR and as IR over variables, and holds that both agree; gives how the run ended.
fn compare_judges(name: &str, source: &Source, input: &[u8], limits: Limits) -> End {
    let program = match front(source) {
        Ok(program) => program,
        Err(diagnostics) => panic!("{name}: {diagnostics:#?}\n{}", source.text),
    };
    let ir = atlc::build::run(&program);
    atlc::ir::verify::verify(&ir).unwrap_or_else(|error| panic!("{name}: {error}"));
    let by_hir = hir::interpret::run(&program, input, limits);
    let by_ir = atlc::ir::interpret::run(&ir, input, limits).unwrap_or_else(|error| panic!("{name}: {error}")).outcome;
    assert!(by_hir.agrees(&by_ir), "{name}: {:?} and {:?}\n{}", by_hir.end, by_ir.end, source.text);
    by_hir.end
}

#[test]
fn random_programs_mean_the_same_as_ir() {
    on_a_large_stack(|| {
        let mut ends = [0; 3];
        let started = Instant::now();
        for seed in 0..300 {
            let text = generate(seed, &Shape::of_seed(seed));
            let source = Source::new("random.atl", text);
            let input = b"1 -2 3 40 -500 6000 7 8 9 10 0 0 1 x";
            let limits = Limits { steps: 2_000_000, ..Limits::default() };
            let end = compare_judges(&format!("seed {seed}"), &source, input, limits);
            ends[match end {
                End::Normal => 0,
                End::Trap(..) => 1,
                End::Limit(_) => 2,
            }] += 1;
            if started.elapsed() > Duration::from_secs(60) {
                break;
            }
        }
        assert!(ends[0] > 20, "ends of kinds normal, trap, limit: {ends:?}");
    });
}

#[test]
fn cases_mean_the_same_as_ir() {
    on_a_large_stack(|| {
        for case in cases() {
            if beside(&case, "pos").is_none() {
                let source = load(&case).expect("the case is text");
                let input = beside(&case, "input").unwrap_or_default();
                let limits = Limits { steps: 3_000_000, depth: 20_000, ..Limits::default() };
                compare_judges(&case.display().to_string(), &source, &input, limits);
            }
        }
    });
}

#[test]
fn random_programs_format_to_the_same_program() {
    for seed in 0..100 {
        let text = generate(seed, &Shape::of_seed(seed));
        let ast = syntax::parse(&Source::new("random.atl", text)).ast.expect("it parses");
        let formatted = syntax::format(&ast);
        let again = syntax::parse(&Source::new("again.atl", formatted)).ast.expect("it parses");
        assert_eq!(syntax::print_ast(&again).to_string(), syntax::print_ast(&ast).to_string(), "seed {seed}");
    }
}
