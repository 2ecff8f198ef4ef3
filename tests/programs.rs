//! Every case and example as a native executable: at each level, with few registers, and with everything in memory.
//! Output, status, standard error and memory must be exactly what the case says.

mod harness;

use harness::check_all;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

fn everywhere(flags: &[&str]) {
    check_all("tests/cases", flags, LIMIT, |_| true);
    check_all("examples", flags, LIMIT, |_| true);
}

#[test]
fn at_level_0() {
    everywhere(&["-O0"]);
}

#[test]
fn at_level_1() {
    everywhere(&["-O1"]);
}

#[test]
fn at_level_2() {
    everywhere(&["-O2"]);
}

#[test]
fn with_few_registers() {
    everywhere(&["-O1", "-C", "regs=4"]);
    everywhere(&["-O2", "-C", "regs=6"]);
}

#[test]
fn with_everything_in_memory() {
    everywhere(&["-O0", "-C", "spill-all"]);
    everywhere(&["-O2", "-C", "spill-all"]);
}

#[test]
fn with_other_ways_into_ssa() {
    everywhere(&["-O0", "--ssa", "minimal", "--ssa-copies", "keep"]);
    everywhere(&["-O1", "--ssa", "semi-pruned", "--ssa-copies", "keep"]);
}

#[test]
fn with_isolated_phis() {
    everywhere(&["-O0", "--out-of-ssa", "isolate", "--verify"]);
    everywhere(&["-O2", "--out-of-ssa", "isolate", "-C", "regs=5"]);
}

#[test]
fn with_copies_coalesced_by_value() {
    everywhere(&["-O0", "--ssa-copies", "keep", "--out-of-ssa", "boissinot"]);
    everywhere(&["-O1", "--out-of-ssa", "boissinot"]);
    everywhere(&["-O2", "--out-of-ssa", "boissinot", "--verify"]);
}

/// Without optimization, form made without folding copies is conventional, however the φs are placed.
#[test]
fn with_versions_renamed_back() {
    for pruning in ["minimal", "semi-pruned", "pruned"] {
        everywhere(&["-O0", "--ssa", pruning, "--ssa-copies", "keep", "--out-of-ssa", "rename", "--verify"]);
    }
}
