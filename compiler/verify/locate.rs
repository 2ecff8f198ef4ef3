//! Finds where the runs of a program before and after a stage part: the `print` that shows it, and, between two programs
//! of one language, the first value that is wrong.
//!
//! Both programs are run again and watched. Values of the IR keep their numbers from stage to stage, so the n-th definition
//! of `%4` before and after can be compared, whatever runs in between; the first that differs is named. Machine code before
//! and after allocation has the same instructions in the same order but for copies, so the n-th result is compared. Array
//! references mean nothing outside of their run and are left out. Optimization may change what a value's n-th definition is
//! without being wrong, so the value is a hint; that the outputs differ is what counts.
//!
//! ```text
//! before: b2: %3 is 2, %4 is 1        after: b2: %3 is 2, %4 is 2        the second definition of %4 is the first difference
//! ```
//!
//! **in**: two programs whose runs differ, the input, limits. **out**: places, with what is there. Cost: two runs, and
//! memory for as many definitions as [`MOST`].

use crate::execution::Limits;
use crate::ir::{self, FuncId, Value};
use crate::support::listing::Entity;
use crate::x64::{self, PReg, VReg};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// How many definitions of a run are remembered.
const MOST: usize = 1 << 21;

/// A program that can be run here, as some stage left it.
#[derive(Clone, Debug)]
pub enum Program {
    /// IR in any form.
    Ir(ir::Program),
    /// Machine code over virtual registers.
    Virtual(x64::Program<VReg>),
    /// Machine code over physical registers.
    Physical(x64::Program<PReg>),
}

/// A place in a program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Place {
    /// The function.
    pub function: String,
    /// The block.
    pub block: String,
    /// The number of the instruction in the block, from 0; behind the last is the terminator with the edge out.
    pub index: usize,
    /// The instruction as listings show it.
    pub instruction: String,
}

/// A value that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Wrong {
    /// Its name: a value of the IR, or an instruction's result.
    pub name: String,
    /// What it was before the stage.
    pub before: i64,
    /// What it is after it.
    pub after: i64,
    /// Where it got that.
    pub place: Place,
}

/// Where two runs part, as far as it can be told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Default)]
pub struct Parting {
    /// What prints what differs, before the stage.
    pub printed_before: Option<Place>,
    /// What prints it after the stage.
    pub printed_after: Option<Place>,
    /// The first wrong value.
    pub wrong: Option<Wrong>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Point {
    function: FuncId,
    block: usize,
    index: usize,
}

/// What a watched run tells.
#[derive(Default)]
struct Trace {
    prints: Vec<(Point, usize)>,
    defined: Vec<(Point, Value, i64)>,
    written: Vec<(Point, u64)>,
}

impl ir::interpret::Watch for Trace {
    fn defined(&mut self, function: FuncId, block: ir::Block, index: usize, value: Value, bits: i64) {
        if self.defined.len() < MOST {
            self.defined.push((Point { function, block: block.index(), index }, value, bits));
        }
    }

    fn printed(&mut self, function: FuncId, block: ir::Block, index: usize, output: usize) {
        self.prints.push((Point { function, block: block.index(), index }, output));
    }
}

impl x64::interpret::Watch for Trace {
    fn wrote(&mut self, function: FuncId, block: x64::Block, index: usize, value: u64) {
        if self.written.len() < MOST {
            self.written.push((Point { function, block: block.index(), index }, value));
        }
    }

    fn printed(&mut self, function: FuncId, block: x64::Block, index: usize, output: usize) {
        self.prints.push((Point { function, block: block.index(), index }, output));
    }
}

/// Finds where the runs part; `at` is the first byte of output that differs, if one does.
pub fn run(before: Option<&Program>, after: &Program, input: &[u8], limits: Limits, at: Option<usize>) -> Parting {
    let traced_after = trace(after, input, limits);
    let mut parting = Parting {
        printed_after: at.and_then(|at| printing(&traced_after, at)).map(|point| place(after, point)),
        ..Parting::default()
    };
    let Some(before) = before else { return parting };
    let traced_before = trace(before, input, limits);
    parting.printed_before = at.and_then(|at| printing(&traced_before, at)).map(|point| place(before, point));
    parting.wrong = match (before, after) {
        (Program::Ir(_), Program::Ir(program)) => wrong_value(&traced_before, &traced_after, program),
        (Program::Virtual(old), Program::Physical(new)) => wrong_result(old, &traced_before, new, &traced_after),
        (Program::Virtual(old), Program::Virtual(new)) => wrong_result(old, &traced_before, new, &traced_after),
        (Program::Physical(old), Program::Physical(new)) => wrong_result(old, &traced_before, new, &traced_after),
        (Program::Ir(_) | Program::Virtual(_) | Program::Physical(_), _) => None,
    };
    parting
}

fn trace(program: &Program, input: &[u8], limits: Limits) -> Trace {
    let mut trace = Trace::default();
    // That a run breaks an invariant is known already; what it did until then is wanted.
    match program {
        Program::Ir(program) => drop(ir::interpret::run_watched(program, input, limits, &mut trace)),
        Program::Virtual(program) => drop(x64::interpret::run_watched(program, input, limits, &mut trace)),
        Program::Physical(program) => drop(x64::interpret::run_watched(program, input, limits, &mut trace)),
    }
    trace
}

/// What printed the byte.
fn printing(trace: &Trace, at: usize) -> Option<Point> {
    let index = trace.prints.partition_point(|(_, output)| *output <= at);
    trace.prints.get(index).map(|(point, _)| *point)
}

fn wrong_value(before: &Trace, after: &Trace, program: &ir::Program) -> Option<Wrong> {
    let mut old: FxHashMap<(FuncId, Value), Vec<i64>> = FxHashMap::default();
    for (point, value, bits) in &before.defined {
        old.entry((point.function, *value)).or_default().push(*bits);
    }
    let mut seen: FxHashMap<(FuncId, Value), usize> = FxHashMap::default();
    for (point, value, bits) in &after.defined {
        let count = seen.entry((point.function, *value)).or_default();
        *count += 1;
        if matches!(program.functions[point.function].values[*value].ty, ir::Type::Array(_)) {
            continue;
        }
        let was = old.get(&(point.function, *value)).and_then(|all| all.get(*count - 1));
        if let Some(was) = was.filter(|was| *was != bits) {
            let place = ir_place(program, *point);
            return Some(Wrong { name: value.to_string(), before: *was, after: *bits, place });
        }
    }
    None
}

fn wrong_result<A: x64::print::Shown, B: x64::print::Shown>(
    old: &x64::Program<A>,
    before: &Trace,
    new: &x64::Program<B>,
    after: &Trace,
) -> Option<Wrong> {
    let old = before.written.iter().filter(|(point, _)| computes(old, *point));
    let new_results = after.written.iter().filter(|(point, _)| computes(new, *point));
    for ((was_at, was), (point, is)) in old.zip(new_results) {
        if was_at.function != point.function {
            return None;
        }
        if was != is {
            let place = machine_place(new, *point);
            return Some(Wrong { name: "the result".to_string(), before: *was as i64, after: *is as i64, place });
        }
    }
    None
}

/// Is it an instruction that allocation neither makes nor drops?
fn computes<R: x64::Reg>(program: &x64::Program<R>, point: Point) -> bool {
    let block = &program.functions[point.function].blocks[x64::Block::new(point.block)];
    block.insts.get(point.index).is_some_and(|inst| match &inst.op {
        x64::Op::Mov { .. }
        | x64::Op::Imm { .. }
        | x64::Op::StrAddress { .. }
        | x64::Op::Parallel { .. }
        | x64::Op::Call { .. }
        | x64::Op::Push { .. }
        | x64::Op::Pop { .. }
        | x64::Op::Xchg { .. } => false,
        x64::Op::Alu { op: x64::AluOp::Xor, dst, src, .. } => {
            // `xor r, r` is a constant too.
            dst.reg().is_none_or(|reg| *src != x64::RegMemImm::Reg(reg))
        }
        x64::Op::Load { .. }
        | x64::Op::Store { .. }
        | x64::Op::Lea { .. }
        | x64::Op::Alu { .. }
        | x64::Op::Unary { .. }
        | x64::Op::Shift { .. }
        | x64::Op::Imul { .. }
        | x64::Op::ImulImm { .. }
        | x64::Op::MulHigh { .. }
        | x64::Op::SignExtend { .. }
        | x64::Op::Div { .. }
        | x64::Op::Cmp { .. }
        | x64::Op::CmpByte { .. }
        | x64::Op::Test { .. }
        | x64::Op::Set { .. }
        | x64::Op::Cmov { .. }
        | x64::Op::Trap { .. } => true,
    })
}

fn place(program: &Program, point: Point) -> Place {
    match program {
        Program::Ir(program) => ir_place(program, point),
        Program::Virtual(program) => machine_place(program, point),
        Program::Physical(program) => machine_place(program, point),
    }
}

fn ir_place(program: &ir::Program, point: Point) -> Place {
    let function = &program.functions[point.function];
    let listing = ir::print::print_function(program, point.function);
    let block = ir::Block::new(point.block);
    let inst = function.blocks[block].insts.get(point.index).map(|inst| Entity::Inst(inst.as_u32()));
    let start = listing.lines().position(|line| line.entity == Some(Entity::Block(block.as_u32())));
    let found = match (inst, start) {
        (Some(inst), _) => listing.lines().find(|line| line.entity == Some(inst)),
        (None, Some(start)) => {
            // The terminator is the last line of the block.
            let next = |line: &&crate::support::listing::Line| {
                !matches!(line.entity, Some(Entity::Block(_))) && line.text().starts_with(' ')
            };
            listing.lines().skip(start + 1).take_while(next).last()
        }
        (None, None) => None,
    };
    let instruction = found.map_or(String::new(), |line| line.text().trim().to_string());
    Place { function: function.name.clone(), block: block.to_string(), index: point.index, instruction }
}

fn machine_place<R: x64::print::Shown>(program: &x64::Program<R>, point: Point) -> Place {
    let function = &program.functions[point.function];
    let names = |id: FuncId| program.functions[id].name.clone();
    let listing = x64::print::print_function(function, &names, None);
    let block = x64::Block::new(point.block);
    let start = listing.lines().position(|line| line.entity == Some(Entity::Block(block.as_u32())));
    let found = start.and_then(|start| listing.lines().nth(start + 1 + point.index));
    let instruction = found.map_or(String::new(), |line| line.text().trim().to_string());
    Place { function: function.name.clone(), block: block.to_string(), index: point.index, instruction }
}
