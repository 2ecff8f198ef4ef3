//! Measures SSA construction, its facts and the way out of SSA form on generated functions that double: each step must
//! take about twice as long. Run with `cargo bench --bench ssa`.

use atlc::analysis::{cfg::Cfg, dominators::DomTree, frontiers, liveness::Liveness, loops::Loops};
use atlc::ir::{Function, Program, parse::parse, print::print, verify::verify};
use atlc::ssa::{construct, destruct, sequence, split_edges};
use atlc::support::span::Source;
use std::fmt::Write;
use std::time::Instant;

/// A name, what makes the program of a size, and whether liveness is measured on it.
type Shape = (&'static str, fn(usize) -> String, bool);

fn main() {
    let shapes: [Shape; 5] = [
        ("n ifs that change a variable each, in a loop", ifs_in_a_loop, false),
        ("n variables in one block, all read in the next", straight, true),
        ("n ways out of a loop, each after a variable of its own", breaks, true),
        ("n loops, 1,000 deep, left from within", nested, true),
        ("n joins of 10 variables that all change", everything_changes, true),
    ];
    for (title, shape, live) in shapes {
        println!("{title}");
        for n in [25_000, 50_000, 100_000] {
            measure(n, &shape(n), live);
        }
    }
}

fn measure(n: usize, text: &str, live: bool) {
    let mut line = format!("  n = {n:6}");
    let mut time = |name: &str, step: &mut dyn FnMut()| {
        let start = Instant::now();
        step();
        write!(line, "  {name} {:.0}", start.elapsed().as_secs_f64() * 1e3).expect("writing to a string does not fail");
    };
    let source = Source::new("generated.ir", text);
    let mut program: Option<Program> = None;
    time("parse", &mut || program = parse(&source).map_err(|errors| panic!("{errors:?}")).ok());
    let mut program = program.expect("it was parsed");
    time("verify", &mut || verify(&program).expect("the generated program is valid"));
    let main = program.entry;
    let options = construct::Options::default();
    time("construct", &mut || construct::run(&mut program.functions[main], &options));
    time("verify", &mut || verify(&program).expect("SSA form is valid"));
    time("facts", &mut || facts(&program.functions[main]));
    let function = &program.functions[main];
    // The lists are as long as they are: where n values live through n blocks, they are not asked for.
    let mut size = 0;
    if live {
        time("liveness", &mut || {
            let live = Liveness::compute(function, &Cfg::compute(function));
            size = function.layout.iter().map(|block| live.live_in(*block).len()).sum();
        });
    }
    let function = &mut program.functions[main];
    time("split", &mut || split_edges::run(function));
    time("destruct", &mut || destruct::run(function));
    time("sequence", &mut || sequence::run(function));
    time("verify", &mut || verify(&program).expect("the form out of SSA is valid"));
    time("print", &mut || drop(print(&program)));
    let function = &program.functions[main];
    println!("{line} ms; {} blocks, {} values, {size} live in", function.layout.len(), function.values.len());
}

fn facts(function: &Function) {
    let cfg = Cfg::compute(function);
    let dominators = DomTree::compute(function, &cfg);
    frontiers::joins(&cfg, &dominators);
    Loops::compute(function, &cfg, &dominators);
}

/// Lines of IR text over variables.
struct Text(String);

impl Text {
    fn new() -> Text {
        Text("form variables\nfn main() {\n".to_string())
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("writing to a string does not fail");
    }

    fn end(mut self) -> String {
        self.0.push_str("return\n}\n");
        self.0
    }
}

fn ifs_in_a_loop(n: usize) -> String {
    let mut text = Text::new();
    text.line(format_args!("b0:\n%0 = copy 0"));
    (1..=n).for_each(|i| text.line(format_args!("%{i} = copy {i}")));
    let (count, done) = (n + 1, n + 2);
    text.line(format_args!("jump b1\nb1:\n%{count} = bool %0 < 9\nbranch %{count} ? b2 : b{}", 2 * n + 3));
    for i in 1..=n {
        let (this, then, next) = (2 * i, 2 * i + 1, 2 * i + 2);
        text.line(format_args!("b{this}:\n%{done} = bool %{i} < 5\nbranch %{done} ? b{then} : b{next}"));
        text.line(format_args!("b{then}:\n%{i} = int %{i} + 1\njump b{next}"));
    }
    text.line(format_args!("b{}:\n%0 = int %0 + 1\njump b1\nb{}:", 2 * n + 2, 2 * n + 3));
    (1..=n).for_each(|i| text.line(format_args!("print %{i}")));
    text.end()
}

fn straight(n: usize) -> String {
    let mut text = Text::new();
    text.line(format_args!("b0:"));
    (0..n).for_each(|i| text.line(format_args!("%{i} = copy {i}\n%{i} = int %{i} + 1")));
    text.line(format_args!("jump b1\nb1:"));
    (0..n).for_each(|i| text.line(format_args!("print %{i}")));
    text.end()
}

fn breaks(n: usize) -> String {
    let mut text = Text::new();
    text.line(format_args!("b0:\njump b1"));
    for i in 1..=n {
        let out = n + 2;
        text.line(format_args!(
            "b{i}:\n%{i} = read\n%{i} = int %{i} + 1\n%0 = bool %{i} == 0\nbranch %0 ? b{out} : b{}",
            i + 1
        ));
    }
    text.line(format_args!("b{}:\njump b1\nb{}:", n + 1, n + 2));
    text.end()
}

/// Nests of 1,000 loops, one behind the other; each loop's exit is within the next inner one, as with `while (true)`.
fn nested(n: usize) -> String {
    let depth = 1_000;
    let mut text = Text::new();
    text.line(format_args!("b0:\n%0 = copy 0\njump b1"));
    let mut next = 1;
    for _ in 0..n / depth {
        for _ in 0..depth {
            text.line(format_args!("b{next}:\n%0 = int %0 + 1\njump b{}", next + 1));
            next += 1;
        }
        for level in 0..depth {
            let header = next - 1 - 2 * level;
            text.line(format_args!("b{next}:\n%1 = bool %0 < {next}\nbranch %1 ? b{header} : b{}", next + 1));
            next += 1;
        }
    }
    text.line(format_args!("b{next}:\nprint %0"));
    text.end()
}

fn everything_changes(n: usize) -> String {
    let mut text = Text::new();
    text.line(format_args!("b0:"));
    (0..10).for_each(|i| text.line(format_args!("%{i} = read")));
    text.line(format_args!("jump b1"));
    for i in 0..n {
        let (this, then, els, next) = (3 * i + 1, 3 * i + 2, 3 * i + 3, 3 * i + 4);
        text.line(format_args!("b{this}:\n%10 = bool %0 < %1\nbranch %10 ? b{then} : b{els}"));
        for (block, step) in [(then, 1), (els, 3)] {
            text.line(format_args!("b{block}:"));
            (0..10).for_each(|v| text.line(format_args!("%{v} = int %{v} + %{}", (v + step) % 10)));
            text.line(format_args!("jump b{next}"));
        }
    }
    text.line(format_args!("b{}:", 3 * n + 1));
    (0..10).for_each(|i| text.line(format_args!("print %{i}")));
    text.end()
}
