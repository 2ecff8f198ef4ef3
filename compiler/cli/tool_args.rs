//! The commands that test: `verify`, `fuzz`, `reduce`, `bisect`, as clap sees them.
//!
//! **Out:** arguments that clap has checked one by one; what must hold between them is checked where they are used.

use super::args::CodeOptions;
use crate::verify::mutants;
use clap::Args;
use std::path::PathBuf;

/// The notes under `atlc verify --help`.
pub fn verify_help() -> String {
    let mut text = String::from(
        "Exit status: 0 if all runs agree, 1 if not. With --break the status is 0 if the fault was caught.\n\n\
         Examples:\n  \
         atlc verify examples/swap.atl\n  \
         echo 3 4 | atlc verify gcd.atl -O2 -C regs=5\n  \
         atlc verify prog.atl --json | jq .difference\n  \
         atlc verify examples/swap.atl --break naive-order\n\n\
         Faults for --break, by the stage whose result they spoil:\n",
    );
    for mutant in mutants::all() {
        text.push_str(&format!("  {:<22} {:<12} {}\n", mutant.name, mutant.stage, mutant.title));
    }
    text
}

/// The notes under `atlc fuzz --help`.
pub const FUZZ_HELP: &str = "\
Exit status: 0 if nothing was found, 1 if something was. Every seed is a program by itself, so a campaign can be split into
ranges of seeds, and goes on from where it stopped with a range that starts there.

Examples:
  atlc fuzz                                     until interrupted, from seed 0
  atlc fuzz --seeds 0..100000 --jobs 8          so many programs on eight threads
  atlc fuzz --time 60 --save findings           a minute; findings go to files, reduced
  atlc fuzz --seeds 5000..6000 --json           JSON lines on standard output, for machines
  atlc fuzz --seeds 0..100 --against gcc        also through the exported C and gcc -O2";

/// The notes under `atlc reduce --help`.
pub const REDUCE_HELP: &str = "\
--verify keeps what differs at some stage or makes the compiler fail. The check must hold of FILE as it is, and holds of what is left. A command is run by `sh -c` with the candidate's path as $1;
it holds if it exits with status 0.

Examples:
  atlc reduce bad.atl --verify -O2                       still differs at some stage
  atlc reduce bad.atl --against gcc                      still differs from gcc's translation of the exported C
  atlc reduce bad.atl --check 'atlc run $1 | grep -q -- -1'
  atlc reduce bad.atl --verify -o small.atl";

/// The notes under `atlc bisect --help`.
pub const BISECT_HELP: &str = "\
Exit status: 0 if no change makes a difference, 1 if one does.

Examples:
  atlc bisect bad.atl -O2
  atlc bisect bad.atl -O2 < input";

/// `atlc verify`
#[derive(Args, Debug)]
pub struct Verify {
    /// The program: `x.atl`, IR text `x.ir`, or `-` for standard input
    pub file: PathBuf,
    /// Put a fault into the result of a stage, for the interpreters only, and see who catches it
    #[arg(long = "break", value_name = "FAULT")]
    pub fault: Option<String>,
    /// The report as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub limits: RunLimits,
    #[command(flatten)]
    pub code: CodeOptions,
}

/// How far runs may go.
#[derive(Args, Debug)]
pub struct RunLimits {
    /// Stop interpreters after so many steps; runs are then compared as far as they went
    #[arg(long, value_name = "N", default_value_t = 50_000_000)]
    pub steps: u64,
    /// Stop runs after so many bytes of output
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub output_limit: usize,
}

/// `atlc fuzz`
#[derive(Args, Debug)]
pub struct Fuzz {
    /// Which seeds: `A..B`, or `A..` for all from A on
    #[arg(long, value_name = "A..B", default_value = "0..")]
    pub seeds: String,
    /// How many threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub jobs: u32,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u64>,
    /// Compile each program in every way (171), not in one of them at each level
    #[arg(long)]
    pub every_way: bool,
    /// Also compare with the exported C as this compiler translates it
    #[arg(long, value_name = "CC")]
    pub against: Option<String>,
    /// Events as JSON lines on standard output
    #[arg(long)]
    pub json: bool,
    /// Where programs that found something go, with what they found, reduced
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
}

/// `atlc reduce`
#[derive(Args, Debug)]
pub struct Reduce {
    /// The program: `x.atl`
    pub file: PathBuf,
    /// Keep what this command accepts; the program's path is $1
    #[arg(long, value_name = "COMMAND", required_unless_present_any = ["verify", "against"], conflicts_with = "verify")]
    pub check: Option<String>,
    /// Keep what differs from the exported C as this compiler translates it
    #[arg(long, value_name = "CC", conflicts_with_all = ["check", "verify"])]
    pub against: Option<String>,
    /// Where the result goes; standard output by default
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Try at most so many candidates
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub tries: usize,
    #[command(flatten)]
    pub code: CodeOptions,
}

/// `atlc bisect`
#[derive(Args, Debug)]
pub struct Bisect {
    /// The program: `x.atl`, IR text `x.ir`
    pub file: PathBuf,
    /// The result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub limits: RunLimits,
    #[command(flatten)]
    pub code: CodeOptions,
}
