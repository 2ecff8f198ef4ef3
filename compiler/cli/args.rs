//! The command line as clap sees it, and its translation into the pipeline's options.
//!
//! **Out:** options that hold together; what does not is a usage error (exit status 2) that says what would.

use super::tool_args::{self, Bisect, Fuzz, Reduce, Verify};
use crate::pipeline::{Options, stages};
use crate::regalloc;
use crate::ssa::OutOfSsa;
use crate::ssa::construct::{Copies, Pruning};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  atlc run examples/swap.atl                        compile and run
  echo 'print(6 * 7);' | atlc run -                 a program from standard input
  atlc build prog.atl -o prog -O2                   an executable
  atlc build prog.atl --emit obj=prog.o,asm=-       an object, and its instructions on standard output
  atlc dump prog.atl --stage ssa                    the program in SSA form
  atlc dump prog.atl --all -o dumps                 every stage, in numbered files
  atlc dump prog.ir --stage sequence                the same from IR text
  atlc verify prog.atl                              run what every stage leaves, and compare
  atlc fuzz --seeds 0..1000                         compile and compare random programs";

/// The whole command line.
#[derive(Parser, Debug)]
#[command(
    name = "atlc",
    version,
    about = "Compiles Atlas to x86-64 Linux executables, and shows every stage on the way",
    after_help = EXAMPLES,
    max_term_width = 110
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// When to colour diagnostics and dumps
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = false)]
    pub color: When,
}

/// Why there is no command to run.
pub enum NoCommand {
    /// Help or the version was asked for.
    Text(String),
    /// Wrong usage.
    Usage(String),
}

/// Reads the command line.
pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, NoCommand> {
    Cli::try_parse_from(arguments).map_err(|error| {
        let text = error.render().to_string();
        if error.use_stderr() { NoCommand::Usage(text) } else { NoCommand::Text(text) }
    })
}

/// When to use colour.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// On terminals, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Compile to an executable, or to anything on the way there
    #[command(after_help = build_help())]
    Build(Build),
    /// Compile and run; the program's exit status and signals are atlc's
    Run(Run),
    /// Look for errors in the source only
    Check(Check),
    /// Print what a program has become at a stage
    #[command(after_help = dump_help())]
    Dump(Dump),
    /// Say why the code is as it is: the fate of every copy, hazards, φs
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Set the ways into SSA form and out of it side by side, with what each costs
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Compare),
    /// Write a page that shows all stages, to open in a browser
    #[command(after_help = EXPLORE_EXAMPLES)]
    Explore(Explore),
    /// Run a program as every stage leaves it, and compare
    #[command(after_help = tool_args::verify_help())]
    Verify(Verify),
    /// Compile and compare random programs
    #[command(after_help = tool_args::FUZZ_HELP)]
    Fuzz(Fuzz),
    /// Make a program small while something remains true of it
    #[command(after_help = tool_args::REDUCE_HELP)]
    Reduce(Reduce),
    /// Find the change of optimization that makes a difference
    #[command(after_help = tool_args::BISECT_HELP)]
    Bisect(Bisect),
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  atlc explain copies examples/swap.atl             each copy: its φ, edge, place in the sequence and fate
  atlc explain copies --surviving examples/swap.atl only those that still move something, with the witness
  atlc explain hazards examples/lost_copy.atl       critical edges, lost copies, cycles, pruned φs
  atlc explain phis --variable x examples/swap.atl  why x has a φ in a block, or has none";

const COMPARE_EXAMPLES: &str = "\
Counts are of the whole program; the program is run on the input, as IR and as machine code.

Examples:
  atlc compare examples/swap.atl
  atlc compare examples/sort.atl -O2 < examples/sort.input
  atlc compare prog.atl -O0 --input data -C regs=5    few registers: more copies survive
  atlc compare prog.atl --json | jq '.rows[] | select(.refused)'";

const EXPLORE_EXAMPLES: &str = "\
Examples:
  atlc explore prog.atl                             writes prog.html
  atlc explore prog.atl -O2 -o page.html --open     and opens it
  atlc explore prog.atl --watch                     serves it on this machine, and again on each save";

/// `atlc explain`
#[derive(Args, Debug)]
pub struct Explain {
    /// What to explain
    #[arg(value_enum)]
    pub what: What,
    /// The program: `x.atl`, IR text `x.ir`, or `-` for standard input
    pub file: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Only this function
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// With `phis`: only this variable
    #[arg(long, value_name = "NAME")]
    pub variable: Option<String>,
    /// With `phis`: only this block
    #[arg(long, value_name = "BLOCK")]
    pub block: Option<String>,
    /// With `copies`: only those that still move something
    #[arg(long)]
    pub surviving: bool,
    /// With `hazards`: as notes on the source's lines
    #[arg(long)]
    pub notes: bool,
    #[command(flatten)]
    pub code: CodeOptions,
}

/// What `atlc explain` explains.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Where each copy comes from and what became of it
    Copies,
    /// What could go wrong on the way out of SSA form
    Hazards,
    /// Why a variable has a φ in a block, or has none
    Phis,
}

/// `atlc compare`
#[derive(Args, Debug)]
pub struct Compare {
    /// The program: `x.atl`, IR text `x.ir`, or `-` for standard input
    pub file: PathBuf,
    /// The program's input [default: standard input, if the program reads any]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// As JSON (docs/json.md)
    #[arg(long)]
    pub json: bool,
    /// How many steps each run may take
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    pub steps: u64,
    /// Optimization level: 0, 1 or 2
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub level: u8,
    /// As for `build`: `regs=N`, `spill-all`, `keep-functions`, `threads=N`
    #[arg(short = 'C', value_name = "SWITCH")]
    pub switches: Vec<String>,
    /// Check the result of every stage (debug builds of atlc always do)
    #[arg(long)]
    pub verify: bool,
}

impl Compare {
    /// The pipeline's options, but for the ways that are compared.
    pub fn options(&self) -> Result<Options, String> {
        let code = CodeOptions {
            level: self.level,
            ssa: SsaMethod::Pruned,
            ssa_copies: SsaCopies::Fold,
            out_of_ssa: Method::Split,
            switches: self.switches.clone(),
            opt_limit: None,
            verify: self.verify,
            time_passes: false,
        };
        code.options()
    }
}

/// `atlc explore`
#[derive(Args, Debug)]
pub struct Explore {
    /// The program: `x.atl`, IR text `x.ir`, or `-` for standard input
    pub file: PathBuf,
    /// Where the page goes [default: FILE with `.html`]; `-` is standard output
    #[arg(short, long, value_name = "PAGE")]
    pub output: Option<PathBuf>,
    /// What the program reads where the page runs it [default: nothing]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Open the page with the desktop's browser
    #[arg(long)]
    pub open: bool,
    /// Serve the page on this machine, and make it again whenever FILE changes
    #[arg(long, conflicts_with = "output")]
    pub watch: bool,
    /// With `--watch`: the port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    #[command(flatten)]
    pub code: CodeOptions,
}

/// `atlc build`
#[derive(Args, Debug)]
pub struct Build {
    /// The program: `x.atl`, IR text `x.ir`, or `-` for standard input
    pub file: PathBuf,
    /// Where the output goes [default: FILE without `.atl`]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// What to write, and where; PATH `-` is standard output
    #[arg(long, value_name = "KIND[=PATH]", value_delimiter = ',')]
    pub emit: Vec<String>,
    /// Link with this program (ld, mold, ld.lld …) instead of atlc's own linker
    #[arg(long, value_name = "PATH")]
    pub linker: Option<PathBuf>,
    /// Compile only as far as this stage, and write nothing
    #[arg(long, value_name = "STAGE")]
    pub stop_after: Option<String>,
    #[command(flatten)]
    pub code: CodeOptions,
}

/// `atlc run`
#[derive(Args, Debug)]
pub struct Run {
    /// The program: `x.atl`, IR text `x.ir`, or `-` for standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub code: CodeOptions,
    /// Arguments of the program
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<OsString>,
}

/// `atlc check`
#[derive(Args, Debug)]
pub struct Check {
    /// The program: `x.atl`, IR text `x.ir`, or `-` for standard input
    pub file: PathBuf,
}

/// `atlc dump`
#[derive(Args, Debug)]
pub struct Dump {
    /// The program: `x.atl`, IR text `x.ir`, or `-` for standard input
    pub file: PathBuf,
    /// Which stages or facts
    #[arg(long, value_name = "NAME", value_delimiter = ',', required_unless_present_any = ["all", "diff"], conflicts_with = "all")]
    pub stage: Vec<String>,
    /// All of them
    #[arg(long)]
    pub all: bool,
    /// Write one numbered file per stage into this folder, instead of standard output
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Only this function
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// Show the difference between two stages
    #[arg(long, value_name = "A..B", conflicts_with_all = ["stage", "all", "output"])]
    pub diff: Option<String>,
    /// Leave out stages that changed nothing
    #[arg(long)]
    pub only_changed: bool,
    /// As text, JSON (docs/json.md) or graphs for Graphviz
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
    #[command(flatten)]
    pub code: CodeOptions,
}

/// `--format`
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Text,
    Json,
    Dot,
}

/// The choices that shape the code.
#[derive(Args, Debug)]
pub struct CodeOptions {
    /// Optimization level: 0, 1 or 2
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub level: u8,
    /// How φs are placed
    #[arg(long, value_name = "METHOD", default_value = "pruned")]
    pub ssa: SsaMethod,
    /// Whether copies between variables become values of their own
    #[arg(long, value_name = "HOW", default_value = "fold")]
    pub ssa_copies: SsaCopies,
    /// The way out of SSA form
    #[arg(long, value_name = "METHOD", default_value = "split")]
    pub out_of_ssa: Method,
    /// `regs=N` allocates N registers only, `spill-all` keeps all values in memory, `keep-functions` keeps functions
    /// that the body does not reach, `threads=N` bounds threads
    #[arg(short = 'C', value_name = "SWITCH")]
    pub switches: Vec<String>,
    /// Let optimization make only N changes, to find the one that matters
    #[arg(long, value_name = "N")]
    pub opt_limit: Option<u64>,
    /// Check the result of every stage (debug builds of atlc always do)
    #[arg(long)]
    pub verify: bool,
    /// Show how long each stage took and what it changed
    #[arg(long)]
    pub time_passes: bool,
}

/// `--ssa`
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum SsaMethod {
    /// At every block of the iterated dominance frontier
    Minimal,
    /// Only for variables that live across blocks
    SemiPruned,
    /// Only where the variable is live
    Pruned,
}

/// `--ssa-copies`
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum SsaCopies {
    /// `x = y` makes x name y's value
    Fold,
    /// `x = y` makes a new value
    Keep,
}

/// `--out-of-ssa`
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Split critical edges, put the copies of each edge in sequence
    Split,
    /// Isolate each φ by copies on both sides, as LLVM does
    Isolate,
    /// Isolate, and coalesce by value (Boissinot and others, 2009)
    Boissinot,
    /// Make one value of what φs connect, where the form is conventional
    Rename,
}

impl CodeOptions {
    /// The pipeline's options, or what is wrong with the switches.
    pub fn options(&self) -> Result<Options, String> {
        let mut options = Options { level: self.level, ..Options::default() };
        options.verify |= self.verify;
        options.opt_limit = self.opt_limit;
        options.ssa.pruning = match self.ssa {
            SsaMethod::Minimal => Pruning::Minimal,
            SsaMethod::SemiPruned => Pruning::SemiPruned,
            SsaMethod::Pruned => Pruning::Pruned,
        };
        options.ssa.copies = match self.ssa_copies {
            SsaCopies::Fold => Copies::Fold,
            SsaCopies::Keep => Copies::Keep,
        };
        options.out_of_ssa = match self.out_of_ssa {
            Method::Split => OutOfSsa::Split,
            Method::Isolate => OutOfSsa::Isolate,
            Method::Boissinot => OutOfSsa::Boissinot,
            Method::Rename => OutOfSsa::Rename,
        };
        for switch in &self.switches {
            match switch.split_once('=') {
                Some(("regs", count)) => {
                    let Ok(count) = count.parse() else {
                        return Err(format!("`-C {switch}`: the number of registers must be a number"));
                    };
                    options.registers = regalloc::Options::with_registers(count)
                        .map_err(|message| format!("`-C {switch}`: {message}"))?
                        .registers;
                }
                Some(("threads", count)) => {
                    let Some(count) = count.parse().ok().filter(|n| (1..=256).contains(n)) else {
                        return Err(format!("`-C {switch}`: the number of threads must be 1 to 256"));
                    };
                    options.threads = count;
                }
                None if switch == "spill-all" => options.spill_all = true,
                None if switch == "keep-functions" => options.keep_functions = true,
                Some(_) | None => {
                    return Err(format!(
                        "`-C {switch}` is not known; there are regs=N, spill-all, keep-functions and threads=N"
                    ));
                }
            }
        }
        Ok(options)
    }
}

/// What `--emit` writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EmitKind {
    /// The executable.
    Executable,
    /// The ELF object of the program without the runtime.
    Object,
    /// The ELF object of the runtime.
    Runtime,
    /// The dump of a stage or fact, by its name.
    Dump(&'static str),
}

impl EmitKind {
    /// The name of the stage or fact, if it is the dump of one.
    pub fn dump(&self) -> Option<&'static str> {
        match self {
            EmitKind::Dump(name) => Some(name),
            EmitKind::Executable | EmitKind::Object | EmitKind::Runtime => None,
        }
    }
}

/// One output of `atlc build`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// What is written.
    pub kind: EmitKind,
    /// Where; `None` is standard output.
    pub path: Option<PathBuf>,
}

impl Build {
    /// What to write and where, or what is wrong with the combination.
    pub fn outputs(&self) -> Result<Vec<Output>, String> {
        let kinds = if self.emit.is_empty() { vec!["exe".to_string()] } else { self.emit.clone() };
        let mut outputs: Vec<Output> = Vec::new();
        let mut output_used = false;
        let executable_too = kinds.len() > 1;
        for text in &kinds {
            let (name, path) = match text.split_once('=') {
                Some((name, path)) => (name, Some(path)),
                None => (text.as_str(), None),
            };
            let (kind, extension) = emit_kind(name)?;
            let takes_output = path.is_none() && (!executable_too || kind == EmitKind::Executable);
            let path = match (path, &self.output) {
                (Some("-"), _) => None,
                (Some(""), _) => return Err(format!("`--emit {text}`: a path is missing after `=`")),
                (Some(path), _) => Some(PathBuf::from(path)),
                (None, Some(output)) if takes_output => {
                    output_used = true;
                    Some(output.clone()).filter(|path| path.as_os_str() != "-")
                }
                (None, _) => Some(default_output(&self.file, &kind, extension)),
            };
            if path.is_none() && kind == EmitKind::Executable {
                return Err("an executable is not written to standard output".to_string());
            }
            outputs.push(Output { kind, path });
        }
        if self.output.is_some() && !output_used {
            return Err("`-o` names the executable, or the one thing that `--emit` names without a path".to_string());
        }
        Ok(outputs)
    }
}

fn emit_kind(name: &str) -> Result<(EmitKind, &str), String> {
    Ok(match name {
        "exe" | "executable" => (EmitKind::Executable, ""),
        "obj" | "object" => (EmitKind::Object, "o"),
        "runtime" => (EmitKind::Runtime, "runtime.o"),
        "asm" => (EmitKind::Dump("bytes"), "s"),
        "llvm-ir" => (EmitKind::Dump("llvm-ir"), "ll"),
        "qbe" => (EmitKind::Dump("qbe"), "ssa"),
        _ => match stages::dump_name(name) {
            Some(known) => (EmitKind::Dump(known), known),
            None => return Err(format!("`--emit {name}` is not known; {}", kinds_line())),
        },
    })
}

/// FILE without `.atl`, with the extension of the kind; `a.out` for standard input and names without `.atl`.
fn default_output(file: &Path, kind: &EmitKind, extension: &str) -> PathBuf {
    let has_extension = file.extension().is_some_and(|ext| ext == "atl" || ext == "ir");
    let stem = if has_extension { file.with_extension("") } else { PathBuf::from("a.out") };
    match kind {
        EmitKind::Executable => stem,
        EmitKind::Object | EmitKind::Runtime | EmitKind::Dump(_) => stem.with_added_extension(extension),
    }
}

fn kinds_line() -> String {
    let exports = stages::export_names().join(", ");
    format!("there are exe, obj, asm, runtime, {exports} and the stages and facts {}", stages::dump_names().join(", "))
}

fn build_help() -> String {
    let exports = stages::export_names().join(", ");
    format!(
        "Kinds of --emit: exe (the default), obj, asm, runtime, {exports}, and every stage and fact:\n{}",
        names_paragraph()
    )
}

fn dump_help() -> String {
    format!("Stages, in order, with the facts between them:\n{}", names_paragraph())
}

fn names_paragraph() -> String {
    let mut text = String::new();
    let mut width = 0;
    for name in stages::dump_names() {
        if width + name.len() + 2 > 100 {
            text.push('\n');
            width = 0;
        }
        text.push_str(if width == 0 { "  " } else { " " });
        text.push_str(name);
        width += name.len() + 1;
    }
    text
}

/// Checks the names of `--stage`, or says which there are.
pub fn stage_names(names: &[String]) -> Result<Vec<&'static str>, String> {
    let known = |name: &String| {
        let name = match name.as_str() {
            "asm" => "bytes",
            other => other,
        };
        stages::dump_name(name).ok_or_else(|| {
            format!("`--stage {name}` is not known; the stages and facts are {}", stages::dump_names().join(", "))
        })
    };
    names.iter().map(known).collect()
}
