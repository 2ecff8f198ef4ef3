//! Which values live at the start and at the end of each block, in any form of the IR.
//!
//! A value lives where some way leads to a read of it without a write before. Each value is followed on its own, from the
//! blocks that read it backwards until a block that writes it (Boissinot, Brandner, Darte, de Dinechin, Rastello:
//! Computing Liveness Sets for SSA-Form Programs, 2011, the variant "by variable"), so that only blocks where it lives are
//! touched.
//!
//! φs: the argument on an edge is read at the end of the block that the edge leaves, and so lives out of it; a φ is
//! written on the edges into its block, and so lives neither in its own block's start nor out of the predecessors for its
//! own sake. A loop's φ that the next round reads through another φ does live out, of course.
//!
//! ```text
//! b0: jump b1                         live out: –
//! b1: %1 = phi [0 from b0, %2 from b2]
//!     branch … b2 : b3                live in: –   live out: %1
//! b2: %2 = int %1 + 1                 live in: %1  live out: %2
//! ```
//!
//! **In**: a function; blocks that the entry does not reach count like others. **Out**: sorted lists. Cost: linear in
//! instructions plus the sizes of the lists.

use super::cfg::Cfg;
use crate::ir::{Block, Function, Operand, Value};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Lists of values by block, behind each other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lists {
    starts: Vec<u32>,
    values: Vec<Value>,
}

impl Lists {
    /// From pairs in order of values.
    fn new(blocks: usize, pairs: &[(Block, Value)]) -> Lists {
        let mut starts = vec![0_u32; blocks + 2];
        pairs.iter().for_each(|(block, _)| starts[block.index() + 2] += 1);
        for n in 2..starts.len() {
            starts[n] += starts[n - 1];
        }
        let mut values = vec![Value::from_u32(0); pairs.len()];
        for (block, value) in pairs {
            let slot = &mut starts[block.index() + 1];
            values[*slot as usize] = *value;
            *slot += 1;
        }
        Lists { starts, values }
    }

    fn of(&self, block: Block) -> &[Value] {
        &self.values[self.starts[block.index()] as usize..self.starts[block.index() + 1] as usize]
    }
}

/// The live values of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Liveness {
    live_in: Lists,
    live_out: Lists,
}

impl Liveness {
    /// The values that live when control comes into the block, behind the φs, which are not among them; in order.
    pub fn live_in(&self, block: Block) -> &[Value] {
        self.live_in.of(block)
    }

    /// The values that live when control leaves the block, before the φs of the next one are written; in order.
    pub fn live_out(&self, block: Block) -> &[Value] {
        self.live_out.of(block)
    }

    /// Does the value live into the block?
    pub fn is_live_in(&self, block: Block, value: Value) -> bool {
        self.live_in(block).binary_search(&value).is_ok()
    }

    /// Does the value live out of the block?
    pub fn is_live_out(&self, block: Block, value: Value) -> bool {
        self.live_out(block).binary_search(&value).is_ok()
    }

    /// Computes both lists of all blocks.
    pub fn compute(function: &Function, cfg: &Cfg) -> Liveness {
        let events = Events::gather(function);
        let mut live_in = Vec::new();
        let mut live_out = Vec::new();
        // Which value a block was last marked for.
        let mut marked_in: SecondaryMap<Block, u32> = SecondaryMap::with_default(u32::MAX);
        let mut marked_out: SecondaryMap<Block, u32> = SecondaryMap::with_default(u32::MAX);
        let mut written: SecondaryMap<Block, u32> = SecondaryMap::with_default(u32::MAX);
        let mut work = Vec::new();
        for value in function.values.keys() {
            let mark = value.as_u32();
            for block in events.writes.of(value) {
                written[*block] = mark;
            }
            let mut read = |block: Block, live_in: &mut Vec<(Block, Value)>, work: &mut Vec<Block>| {
                if marked_in[block] != mark {
                    marked_in[block] = mark;
                    live_in.push((block, value));
                    work.push(block);
                }
            };
            for block in events.reads.of(value) {
                read(*block, &mut live_in, &mut work);
            }
            for block in events.edge_reads.of(value) {
                if marked_out[*block] != mark {
                    marked_out[*block] = mark;
                    live_out.push((*block, value));
                    if written[*block] != mark {
                        read(*block, &mut live_in, &mut work);
                    }
                }
            }
            while let Some(block) = work.pop() {
                for pred in cfg.preds(block) {
                    if marked_out[pred.block] != mark {
                        marked_out[pred.block] = mark;
                        live_out.push((pred.block, value));
                        if written[pred.block] != mark {
                            read(pred.block, &mut live_in, &mut work);
                        }
                    }
                }
            }
        }
        let blocks = function.blocks.len();
        Liveness { live_in: Lists::new(blocks, &live_in), live_out: Lists::new(blocks, &live_out) }
    }
}

/// The blocks that do something with a value, behind each other.
struct ByValue {
    starts: Vec<u32>,
    blocks: Vec<Block>,
}

impl ByValue {
    fn new(values: usize, pairs: &[(Value, Block)]) -> ByValue {
        let mut starts = vec![0_u32; values + 2];
        pairs.iter().for_each(|(value, _)| starts[value.index() + 2] += 1);
        for n in 2..starts.len() {
            starts[n] += starts[n - 1];
        }
        let mut blocks = vec![Block::from_u32(0); pairs.len()];
        for (value, block) in pairs {
            let slot = &mut starts[value.index() + 1];
            blocks[*slot as usize] = *block;
            *slot += 1;
        }
        ByValue { starts, blocks }
    }

    fn of(&self, value: Value) -> &[Block] {
        &self.blocks[self.starts[value.index()] as usize..self.starts[value.index() + 1] as usize]
    }
}

/// Where values are read and written.
struct Events {
    /// Blocks that read the value before they write it.
    reads: ByValue,
    /// Blocks with an edge that has the value as an argument.
    edge_reads: ByValue,
    /// Blocks that write the value; its φs among them.
    writes: ByValue,
}

impl Events {
    fn gather(function: &Function) -> Events {
        let mut reads = Vec::new();
        let mut edge_reads = Vec::new();
        let mut writes = Vec::new();
        // The block in which the value was last written, and in which it was last read before that.
        let mut written: SecondaryMap<Value, u32> = SecondaryMap::with_default(u32::MAX);
        let mut was_read: SecondaryMap<Value, u32> = SecondaryMap::with_default(u32::MAX);
        for (place, &block) in function.layout.iter().enumerate() {
            let place = place as u32;
            let data = &function.blocks[block];
            let mut write = |value: Value, written: &mut SecondaryMap<Value, u32>| {
                if written[value] != place {
                    written[value] = place;
                    writes.push((value, block));
                }
            };
            let mut read = |operand: Operand, written: &SecondaryMap<Value, u32>| {
                if let Operand::Value(value) = operand
                    && written[value] != place
                    && was_read[value] != place
                {
                    was_read[value] = place;
                    reads.push((value, block));
                }
            };
            if place == 0 {
                function.params.iter().for_each(|param| write(*param, &mut written));
            }
            data.params.iter().for_each(|phi| write(*phi, &mut written));
            for inst in &data.insts {
                function.insts[*inst].op.for_each_operand(|operand| read(operand, &written));
                function.insts[*inst].for_each_def(|value| write(value, &mut written));
            }
            if let Some(operand) = data.term.operand() {
                read(operand, &written);
            }
            for edge in data.term.edges() {
                edge_reads.extend(edge.args.iter().filter_map(|arg| arg.value()).map(|value| (value, block)));
            }
        }
        let values = function.values.len();
        Events {
            reads: ByValue::new(values, &reads),
            edge_reads: ByValue::new(values, &edge_reads),
            writes: ByValue::new(values, &writes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse;
    use crate::ir::random::{Shape, generate};
    use crate::ir::{Form, Program};
    use crate::support::span::Source;
    use std::collections::BTreeSet;

    /// The textbook's equations, repeated until nothing changes.
    fn slow(function: &Function) -> (Vec<BTreeSet<Value>>, Vec<BTreeSet<Value>>) {
        let count = function.blocks.len();
        let (mut live_in, mut live_out) = (vec![BTreeSet::new(); count], vec![BTreeSet::new(); count]);
        loop {
            let before = (live_in.clone(), live_out.clone());
            for &block in &function.layout {
                let data = &function.blocks[block];
                let mut live: BTreeSet<Value> = BTreeSet::new();
                for edge in data.term.edges() {
                    live.extend(&live_in[edge.target.index()]);
                    live.extend(edge.args.iter().filter_map(|arg| arg.value()));
                }
                live_out[block.index()] = live.clone();
                live.extend(data.term.operand().and_then(Operand::value));
                for inst in data.insts.iter().rev() {
                    function.insts[*inst].for_each_def(|value| {
                        live.remove(&value);
                    });
                    function.insts[*inst].op.for_each_operand(|operand| live.extend(operand.value()));
                }
                data.params.iter().for_each(|phi| {
                    live.remove(phi);
                });
                if block == function.entry() {
                    function.params.iter().for_each(|param| {
                        live.remove(param);
                    });
                }
                live_in[block.index()] = live;
            }
            if before == (live_in.clone(), live_out.clone()) {
                return (live_in, live_out);
            }
        }
    }

    fn check(program: &Program) {
        for function in program.functions.values() {
            let liveness = Liveness::compute(function, &Cfg::compute(function));
            let (live_in, live_out) = slow(function);
            for &block in &function.layout {
                assert!(liveness.live_in(block).iter().eq(&live_in[block.index()]), "{block} of {}", function.name);
                assert!(liveness.live_out(block).iter().eq(&live_out[block.index()]), "{block} of {}", function.name);
            }
        }
    }

    #[test]
    fn agrees_with_the_equations() {
        for seed in 0..150 {
            for shape in [Shape::tiny(), Shape::webs(), Shape::default()] {
                let mut program = generate(seed, &shape);
                check(&program);
                // The same with many writes for one value, as out of SSA: values are joined by halving their numbers.
                for function in program.functions.values_mut() {
                    function.form = Form::Sequenced;
                    let half = |value: Value| Value::new(value.index() / 2);
                    for inst in function.insts.values_mut() {
                        inst.result = inst.result.expand().map(half).into();
                        inst.op.for_each_operand_mut(|operand| {
                            if let Operand::Value(value) = operand {
                                *value = half(*value);
                            }
                        });
                    }
                }
                check(&program);
            }
        }
    }

    #[test]
    fn a_phi_is_written_on_the_edge() {
        let text = "fn main() {\nb0:\njump b1\nb1:\n%1 = phi [0 from b0, %2 from b2]\n%3 = bool %1 < 9\n\
                    branch %3 ? b2 : b3\nb2:\n%2 = int %1 + 1\njump b1\nb3:\nreturn\n}";
        let program = parse(&Source::new("t", text)).unwrap();
        let function = &program.functions[program.entry];
        let live = Liveness::compute(function, &Cfg::compute(function));
        let (b, v) = (Block::new, Value::new);
        assert_eq!(live.live_in(b(1)), []);
        assert_eq!(live.live_out(b(1)), [v(1)]);
        assert_eq!(live.live_out(b(2)), [v(2)]);
        assert_eq!(live.live_out(b(0)), []);
        check(&program);
    }
}
