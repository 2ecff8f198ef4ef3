//! Runs a program in any form of the IR: what every stage must keep.
//!
//! Calls have explicit frames, so that recursion in the program needs none here. The φs of a block, and the copies of a
//! parallel copy, are all read before any is written. Besides running, it is a judge: a read of an undefined value, an
//! access out of bounds that no check caught, a check against what is no length, a use of a freed array, an array that
//! outlives its call, and control at `unreachable` are internal errors, as no source program leads to them.
//!
//! ```text
//! b1: %3 = phi x [1 from b0, %4 from b2]       coming from b2, %3 and %4 swap
//!     %4 = phi y [2 from b0, %3 from b2]
//! ```
//!
//! **In**: a program that the verifier accepts. **Out**: what the run shows, and counts of what was executed. Cost:
//! constant per instruction; a frame is 16 bytes for each value that its function names.

use super::types::*;
use crate::execution::{End, Limits, Machine, Outcome, Stop};
use crate::semantics::{Scalar, Trap};
use crate::support::internal::Internal;
use cranelift_entity::SecondaryMap;

/// How often what was executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Counts {
    /// Instructions and terminators; a parallel copy counts as its copies.
    pub instructions: u64,
    /// Copies, those of parallel copies included.
    pub copies: u64,
    /// Operands that φs took on.
    pub phis: u64,
    /// Array elements read.
    pub loads: u64,
    /// Array elements written.
    pub stores: u64,
    /// Conditional branches.
    pub branches: u64,
    /// Unconditional jumps.
    pub jumps: u64,
    /// Calls of the program's functions.
    pub calls: u64,
}

/// A run: what it showed, and what it took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// What it showed.
    pub outcome: Outcome,
    /// What it took.
    pub counts: Counts,
}

/// Watches a run. Places are the block and the number of the instruction in it; the terminator's number is the number of
/// instructions, and what φs take on is told there, on the edge.
pub trait Watch {
    /// A value has got these bits, whatever its type: a parameter at the call, a φ on the edge, a result.
    fn defined(&mut self, function: FuncId, block: Block, index: usize, value: Value, bits: i64);

    /// A `print` has run, and the output is so long now.
    fn printed(&mut self, function: FuncId, block: Block, index: usize, output: usize);
}

/// Watches nothing, at no cost.
impl Watch for () {
    fn defined(&mut self, _: FuncId, _: Block, _: usize, _: Value, _: i64) {}

    fn printed(&mut self, _: FuncId, _: Block, _: usize, _: usize) {}
}

/// Runs the program on this input. An error is a fault of the IR, never of the Atlas program that it was made from.
pub fn run(program: &Program, input: &[u8], limits: Limits) -> Result<Run, Internal> {
    run_watched(program, input, limits, &mut ())
}

/// As [`run`], while somebody watches.
pub fn run_watched<W: Watch>(program: &Program, input: &[u8], limits: Limits, watch: &mut W) -> Result<Run, Internal> {
    let mut interpreter = Interpreter {
        program,
        watch,
        machine: Machine::new(input, limits),
        shapes: SecondaryMap::new(),
        registers: Vec::new(),
        frames: Vec::new(),
        arrays: Arrays::default(),
        counts: Counts::default(),
        pending: Vec::new(),
    };
    interpreter.push_frame(program.entry, None);
    match interpreter.execute() {
        Ok(end) => Ok(Run { outcome: interpreter.machine.finish(end), counts: interpreter.counts }),
        Err(Fault(message)) => {
            let frame = interpreter.frames.last();
            let function = frame.map_or(program.entry, |frame| frame.function);
            let entity = frame.map_or(String::new(), |frame| frame.block.to_string());
            Err(Internal::new(entity, message).in_function(&program.functions[function].name))
        }
    }
}

/// A broken invariant, as a clause.
struct Fault(String);

/// Why execution leaves an instruction early.
enum Leave {
    Stop(Stop),
    Fault(Fault),
}

impl From<Stop> for Leave {
    fn from(stop: Stop) -> Leave {
        Leave::Stop(stop)
    }
}

impl From<Fault> for Leave {
    fn from(fault: Fault) -> Leave {
        Leave::Fault(fault)
    }
}

fn fault<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault(message.into()))
}

/// Which register of a frame holds each value.
#[derive(Clone, Debug, Default)]
struct Shape {
    registers: SecondaryMap<Value, u32>,
    /// How many registers a frame has; 0 until the function is called.
    count: usize,
}

impl Shape {
    /// Gives registers to the values that the function names; others cost nothing. Register 0 is nobody's.
    fn of(function: &Function) -> Shape {
        let mut shape = Shape { registers: SecondaryMap::with_capacity(function.values.len()), count: 1 };
        function.params.iter().for_each(|param| shape.name(*param));
        for block in &function.layout {
            let data = &function.blocks[*block];
            data.params.iter().for_each(|phi| shape.name(*phi));
            let mut read = |operand: Operand| operand.value().into_iter().for_each(|value| shape.name(value));
            data.term.for_each_operand(&mut read);
            for inst in &data.insts {
                function.insts[*inst].op.for_each_operand(&mut read);
            }
            for inst in &data.insts {
                function.insts[*inst].for_each_def(|value| shape.name(value));
            }
        }
        shape
    }

    fn name(&mut self, value: Value) {
        if self.registers[value] == 0 {
            self.registers[value] = self.count as u32;
            self.count += 1;
        }
    }
}

/// A call in progress.
struct Frame {
    function: FuncId,
    /// Where its registers start.
    base: usize,
    block: Block,
    /// The next instruction of the block; the terminator behind the last.
    next: usize,
    /// What the caller's instruction defines.
    result: Option<Value>,
    /// Arrays that it has made and not freed.
    arrays: u32,
}

enum Elements {
    Int(Vec<i64>),
    Bool(Vec<bool>),
}

impl Elements {
    fn len(&self) -> usize {
        match self {
            Elements::Int(elements) => elements.len(),
            Elements::Bool(elements) => elements.len(),
        }
    }

    fn ty(&self) -> Scalar {
        match self {
            Elements::Int(_) => Scalar::Int,
            Elements::Bool(_) => Scalar::Bool,
        }
    }
}

/// The arrays. A value of array type is a place in `slots` in its lower half, and in its upper half how often that place
/// has been used, so that a stale reference is known as such.
#[derive(Default)]
struct Arrays {
    slots: Vec<(u32, Option<Elements>)>,
    free: Vec<u32>,
}

impl Arrays {
    fn add(&mut self, elements: Elements) -> i64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let (uses, place) = &mut self.slots[slot as usize];
        *uses = uses.wrapping_add(1);
        *place = Some(elements);
        (i64::from(*uses) << 32) | i64::from(slot)
    }

    fn get(&mut self, reference: i64) -> Result<&mut Elements, Fault> {
        let (slot, uses) = (reference as u32 as usize, (reference >> 32) as u32);
        match self.slots.get_mut(slot) {
            Some((current, Some(elements))) if *current == uses => Ok(elements),
            _ => fault("an array is used that has been freed"),
        }
    }

    fn remove(&mut self, reference: i64) -> Result<Elements, Fault> {
        self.get(reference)?;
        let slot = reference as u32;
        self.free.push(slot);
        Ok(self.slots[slot as usize].1.take().expect("the slot was found to be in use"))
    }
}

struct Interpreter<'a, W> {
    program: &'a Program,
    watch: &'a mut W,
    machine: Machine<'a>,
    shapes: SecondaryMap<FuncId, Shape>,
    /// The registers of all frames; `None` holds nothing.
    registers: Vec<Option<i64>>,
    frames: Vec<Frame>,
    arrays: Arrays,
    counts: Counts,
    /// What φs or a parallel copy have read and not written yet.
    pending: Vec<(Value, i64)>,
}

impl<'a, W: Watch> Interpreter<'a, W> {
    fn push_frame(&mut self, function: FuncId, result: Option<Value>) {
        let data = &self.program.functions[function];
        if self.shapes[function].count == 0 {
            self.shapes[function] = Shape::of(data);
        }
        let base = self.registers.len();
        self.registers.resize(base + self.shapes[function].count, None);
        self.frames.push(Frame { function, base, block: data.entry(), next: 0, result, arrays: 0 });
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the program runs within a frame")
    }

    fn function(&self) -> &'a Function {
        &self.program.functions[self.frames[self.frames.len() - 1].function]
    }

    fn register(&self, value: Value) -> usize {
        let frame = &self.frames[self.frames.len() - 1];
        frame.base + self.shapes[frame.function].registers[value] as usize
    }

    fn read(&self, operand: Operand) -> Result<i64, Fault> {
        match operand {
            Operand::Value(value) => match self.registers[self.register(value)] {
                Some(bits) => Ok(bits),
                None => fault(format!("{value} is read and holds nothing")),
            },
            Operand::Int(value) => Ok(value),
            Operand::Bool(value) => Ok(i64::from(value)),
        }
    }

    fn write(&mut self, value: Value, bits: i64) {
        let register = self.register(value);
        self.registers[register] = Some(bits);
        let frame = &self.frames[self.frames.len() - 1];
        self.watch.defined(frame.function, frame.block, frame.next.saturating_sub(1), value, bits);
    }

    /// Runs until the program ends.
    fn execute(&mut self) -> Result<End, Fault> {
        loop {
            let function = self.function();
            let frame = self.frame();
            let block = &function.blocks[frame.block];
            let (left, span) = match block.insts.get(frame.next) {
                Some(inst) => {
                    frame.next += 1;
                    let data = &function.insts[*inst];
                    (self.inst(data), data.span)
                }
                None => match self.terminator(&block.term) {
                    Ok(true) => return Ok(End::Normal),
                    Ok(false) => continue,
                    Err(leave) => (Err(leave), block.term_span),
                },
            };
            match left {
                Ok(()) => {}
                Err(Leave::Stop(stop)) => return Ok(stop.at(span)),
                Err(Leave::Fault(fault)) => return Err(fault),
            }
        }
    }

    fn step(&mut self) -> Result<(), Stop> {
        self.counts.instructions += 1;
        self.machine.step()
    }

    fn inst(&mut self, data: &InstData) -> Result<(), Leave> {
        if let Op::Parallel(copies) = &data.op {
            return self.parallel(copies);
        }
        self.step()?;
        let bits = match &data.op {
            Op::Copy(source) => {
                self.counts.copies += 1;
                self.read(*source)?
            }
            Op::Parallel(_) => unreachable!("parallel copies were run above"),
            Op::Binary { op, args, .. } => {
                let (left, right) = (self.read(args[0])?, self.read(args[1])?);
                // On bools as 0 and 1 the three operations that there are give 0 or 1.
                op.eval(left, right).ok_or(Stop::Trap(Trap::DivisionByZero))?
            }
            Op::Compare { op, args } => i64::from(op.eval(self.read(args[0])?, self.read(args[1])?)),
            Op::Unary { op, arg } => op.eval(self.read(*arg)?),
            Op::Select { cond, args } => {
                let (cond, yes, no) = (self.read(*cond)?, self.read(args[0])?, self.read(args[1])?);
                if cond != 0 { yes } else { no }
            }
            Op::Array { element, init, len } => self.array(*element, *init, *len)?,
            Op::Free(array) => {
                let reference = self.read(*array)?;
                let elements = self.arrays.remove(reference)?;
                self.machine.release(elements.ty(), elements.len());
                let frame = self.frame();
                match frame.arrays.checked_sub(1) {
                    Some(rest) => frame.arrays = rest,
                    None => return Err(Fault("an array is freed by a call that has not made it".to_string()).into()),
                }
                return Ok(());
            }
            Op::Len(array) => {
                let reference = self.read(*array)?;
                self.arrays.get(reference)?.len() as i64
            }
            Op::Bounds { index, len } => {
                let (index, length) = (self.read(*index)?, self.read(*len)?);
                if length < 0 {
                    return Ok(fault(format!("an index is checked against {length}, which is no length"))?);
                }
                if index < 0 || index >= length {
                    return Err(Stop::Trap(Trap::IndexOutOfBounds { index, length }).into());
                }
                return Ok(());
            }
            Op::Load { array, index, .. } => {
                self.counts.loads += 1;
                let (elements, index) = self.element(*array, *index)?;
                match elements {
                    Elements::Int(elements) => elements[index],
                    Elements::Bool(elements) => i64::from(elements[index]),
                }
            }
            Op::Store { array, index, value, .. } => {
                self.counts.stores += 1;
                let bits = self.read(*value)?;
                let (elements, index) = self.element(*array, *index)?;
                match elements {
                    Elements::Int(elements) => elements[index] = bits,
                    Elements::Bool(elements) => elements[index] = bits != 0,
                }
                return Ok(());
            }
            Op::Call { callee, args } => return self.call(*callee, args, data.result.expand()),
            Op::Read => self.machine.input.read().map_err(Stop::Trap)?,
            Op::Eof => i64::from(self.machine.input.eof()),
            Op::Print(args) => {
                let printed = self.print(args);
                let frame = &self.frames[self.frames.len() - 1];
                self.watch.printed(frame.function, frame.block, frame.next - 1, self.machine.output.len());
                return printed;
            }
            Op::Assert(cond) => {
                if self.read(*cond)? == 0 {
                    return Err(Stop::Trap(Trap::AssertionFailed).into());
                }
                return Ok(());
            }
        };
        if let Some(result) = data.result.expand() {
            self.write(result, bits);
        }
        Ok(())
    }

    fn parallel(&mut self, copies: &[(Value, Operand)]) -> Result<(), Leave> {
        self.pending.clear();
        for (destination, source) in copies {
            self.step()?;
            self.counts.copies += 1;
            let bits = self.read(*source)?;
            self.pending.push((*destination, bits));
        }
        self.write_pending();
        Ok(())
    }

    fn write_pending(&mut self) {
        for n in 0..self.pending.len() {
            let (value, bits) = self.pending[n];
            self.write(value, bits);
        }
    }

    fn array(&mut self, element: Scalar, init: Operand, len: Operand) -> Result<i64, Leave> {
        let (init, len) = (self.read(init)?, self.read(len)?);
        let len = self.machine.allocate(element, len)?;
        let elements = match element {
            Scalar::Int => Elements::Int(vec![init; len]),
            Scalar::Bool => Elements::Bool(vec![init != 0; len]),
        };
        self.frame().arrays += 1;
        Ok(self.arrays.add(elements))
    }

    fn element(&mut self, array: Operand, index: Operand) -> Result<(&mut Elements, usize), Fault> {
        let (reference, index) = (self.read(array)?, self.read(index)?);
        let elements = self.arrays.get(reference)?;
        match usize::try_from(index).ok().filter(|index| *index < elements.len()) {
            Some(index) => Ok((elements, index)),
            None => fault(format!(
                "element {index} of an array of length {} is touched, which no check caught",
                elements.len()
            )),
        }
    }

    fn call(&mut self, callee: FuncId, args: &[Operand], result: Option<Value>) -> Result<(), Leave> {
        self.counts.calls += 1;
        self.pending.clear();
        for (param, arg) in self.program.functions[callee].params.iter().zip(args) {
            let bits = self.read(*arg)?;
            self.pending.push((*param, bits));
        }
        self.machine.enter()?;
        self.push_frame(callee, result);
        self.write_pending();
        Ok(())
    }

    fn print(&mut self, args: &[PrintArg]) -> Result<(), Leave> {
        if args.is_empty() {
            self.machine.print_str(b"", b'\n')?;
        }
        let function = self.function();
        for (n, arg) in args.iter().enumerate() {
            let end = if n + 1 == args.len() { b'\n' } else { b' ' };
            match arg {
                PrintArg::Str(string) => self.machine.print_str(self.program.strings[*string].as_bytes(), end)?,
                PrintArg::Operand(operand) => {
                    let bits = self.read(*operand)?;
                    match function.type_of(*operand) {
                        Type::Scalar(Scalar::Bool) => self.machine.print_bool(bits != 0, end)?,
                        Type::Scalar(Scalar::Int) => self.machine.print_int(bits, end)?,
                        Type::Array(_) => return Err(Fault(format!("an array is printed, {operand:?}")).into()),
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs a terminator; says whether the program has ended.
    fn terminator(&mut self, term: &Terminator) -> Result<bool, Leave> {
        self.step()?;
        let edge = match term {
            Terminator::Jump(edge) => {
                self.counts.jumps += 1;
                edge
            }
            Terminator::Branch { cond, then, els } => {
                self.counts.branches += 1;
                if self.read(*cond)? != 0 { then } else { els }
            }
            Terminator::Return(operand) => return self.ret(*operand),
            Terminator::Unreachable => return Err(Fault("control has come to `unreachable`".to_string()).into()),
        };
        let params = &self.function().blocks[edge.target].params;
        if !params.is_empty() {
            self.pending.clear();
            for (phi, arg) in params.iter().zip(&edge.args) {
                let bits = self.read(*arg)?;
                self.pending.push((*phi, bits));
            }
            self.counts.phis += params.len() as u64;
            // On the edge: behind the last instruction.
            self.frame().next += 1;
            self.write_pending();
        }
        let frame = self.frame();
        frame.block = edge.target;
        frame.next = 0;
        Ok(false)
    }

    fn ret(&mut self, operand: Option<Operand>) -> Result<bool, Leave> {
        let bits = operand.map(|operand| self.read(operand)).transpose()?;
        if self.frame().arrays > 0 {
            return Err(Fault("a call ends and leaves an array behind".to_string()).into());
        }
        let frame = self.frames.pop().expect("the program runs within a frame");
        self.registers.truncate(frame.base);
        if self.frames.is_empty() {
            return Ok(true);
        }
        self.machine.leave();
        if let Some(result) = frame.result {
            match bits {
                Some(bits) => self.write(result, bits),
                None => return Err(Fault(format!("a call that gives no value defines {result}")).into()),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;
    use crate::execution::Limit;
    use crate::support::span::{Position, Source};

    fn read(text: &str) -> Program {
        parse(&Source::new("t", text)).unwrap_or_else(|errors| panic!("{errors:#?}"))
    }

    fn body(lines: &str) -> Program {
        read(&format!("fn main() {{\nb0:\n{lines}\n}}\n"))
    }

    fn shown(program: &Program, input: &str) -> (String, End) {
        let outcome =
            run(program, input.as_bytes(), Limits::default()).unwrap_or_else(|error| panic!("{error}")).outcome;
        (String::from_utf8(outcome.output).expect("text"), outcome.end)
    }

    fn trap(program: &Program) -> (Trap, Option<Position>) {
        match shown(program, "").1 {
            End::Trap(trap, span) => (trap, program.positions.position(span)),
            end => panic!("{end:?}"),
        }
    }

    #[test]
    fn phis_and_parallel_copies_read_before_they_write() {
        let swap = "\
fn main() {
b0:
  jump b1
b1:
  %3 = phi x [1 from b0, %4 from b2]
  %4 = phi y [2 from b0, %3 from b2]
  %5 = phi i [0 from b0, %7 from b2]
  %6 = bool %5 < 3
  branch %6 ? b2 : b3
b2:
  %7 = int %5 + 1
  jump b1
b3:
  print %3
  print %4
  return
}";
        let run_of = run(&read(swap), b"", Limits::default()).unwrap();
        assert_eq!(run_of.outcome.output, b"2\n1\n");
        assert_eq!(run_of.counts.phis, 12);
        assert_eq!((run_of.counts.branches, run_of.counts.jumps), (4, 4));
        let parallel = "form parallel-copies\nfn main() {\nb0:\n%0 = copy 1\n%1 = copy 2\nparallel %0 = %1, %1 = %0\njump b1\nb1:\nprint %0, %1\nreturn\n}";
        assert_eq!(shown(&read(parallel), "").0, "2 1\n");
    }

    #[test]
    fn everything_computes() {
        let text = "\
fn fact(%0 n: int) -> int {
b0:
  %1 = bool %0 <= 1
  branch %1 ? b1 : b2
b1:
  return 1
b2:
  %2 = int %0 - 1
  %3 = call fact(%2)
  %4 = int %3 * %0
  return %4
}
fn fill(%0: [bool]) {
b0:
  store bool %0[1] = true
  return
}
fn main() {
b0:
  %0 = call fact(20)
  %1 = array int [7; 3]
  %2 = array bool [false; 2]
  call fill(%2)
  %3 = load bool %2[1]
  %4 = load bool %2[0]
  store int %1[2] = %0
  %5 = load int %1[2]
  %6 = load int %1[0]
  %7 = len %1
  bounds 2 < %7
  print %5, %6, \"!\", %3, %4, %7
  free %2
  free %1
  %8 = read
  %9 = eof
  %10 = select %9 ? %8 : 0
  %11 = int of %9
  %12 = bool ! %9
  %13 = bool %12 | %9
  print %10, %11, %12, %13
  print
  return
}";
        let (output, end) = shown(&read(text), " -5 \n");
        assert_eq!(output, "2432902008176640000 7 ! true false 3\n-5 1 false true\n\n");
        assert_eq!(end, End::Normal);
    }

    #[test]
    fn traps_have_the_position_of_the_text() {
        let at = |line, column| Some(Position { line, column });
        assert_eq!(trap(&body("%0 = int 1 / 0 @3:9\nreturn")), (Trap::DivisionByZero, at(3, 9)));
        let index = Trap::IndexOutOfBounds { index: -1, length: 4 };
        assert_eq!(trap(&body("bounds -1 < 4 @4:2\nreturn")), (index, at(4, 2)));
        assert_eq!(trap(&body("%0 = array int [0; -2] @5:1\nreturn")), (Trap::NegativeLength { length: -2 }, at(5, 1)));
        assert_eq!(trap(&body("assert false @1:1\nreturn")), (Trap::AssertionFailed, at(1, 1)));
        assert_eq!(trap(&body("%0 = read @2:2\nreturn")), (Trap::NoInteger, at(2, 2)));
    }

    #[test]
    fn faults_of_the_ir_are_internal_errors() {
        let message = |program: &Program| run(program, b"", Limits::default()).expect_err("a fault").to_string();
        let array = "%0 = array int [0; 2]\n";
        assert!(message(&body(&format!("{array}%1 = load int %0[2]\nfree %0\nreturn"))).contains("no check caught"));
        assert!(message(&body(&format!("{array}free %0\n%1 = len %0\nreturn"))).contains("has been freed"));
        assert!(
            message(&body(&format!("{array}free %0\n%2 = array int [0; 2]\n%1 = len %0\nreturn")))
                .contains("has been freed")
        );
        assert!(message(&body(&format!("{array}return"))).contains("leaves an array behind"));
        assert!(message(&body("bounds 1 < -3 @1:1\nreturn")).contains("-3, which is no length"));
        assert!(message(&body("unreachable")).contains("`unreachable`"));
        assert!(message(&body("print %0\nreturn")).contains("%0 is read and holds nothing"));
    }

    #[test]
    fn limits_end_the_run() {
        let limits = Limits { steps: 100_000, depth: 1_000, ..Limits::default() };
        let end = |program: &Program| run(program, b"", limits).expect("the program is valid").outcome.end;
        let forever = read("fn main() {\nb0:\njump b1\nb1:\njump b1\n}");
        assert_eq!(end(&forever), End::Limit(Limit::Steps));
        let deep = read("fn f(%0: int) {\nb0:\ncall f(%0)\nreturn\n}\nfn main() {\nb0:\ncall f(1)\nreturn\n}");
        assert_eq!(end(&deep), End::Limit(Limit::Depth));
        let large = body("%0 = array bool [true; 1000000000]\nfree %0\nreturn");
        assert_eq!(end(&large), End::Limit(Limit::Memory));
    }
}
