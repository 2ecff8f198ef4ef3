//! Makes SSA form: one definition for each value, φs where definitions meet.
//!
//! φs are placed on iterated dominance frontiers (Cytron, Ferrante, Rosen, Wegman, Zadeck: Efficiently Computing Static
//! Single Assignment Form and the Control Dependence Graph, 1991). Renaming differs from theirs: a read asks for the
//! closest definition above its block in the dominator tree, by binary search over the tree's preorder, instead of
//! carrying stacks down the tree. So operands of φs are looked up only for φs that turn out to be needed, which makes
//! pruning exact and cheap: a φ that no instruction reads, not even by way of other φs, is never made. Liveness sets,
//! which may be quadratic, are not needed.
//!
//! ```text
//! b0: %0 = copy 1 ; x                b0:
//!     jump b1                            jump b1
//! b1: %0 = int %0 + %0 ; x      →    b1: %2 = phi x [1 from b0, %3 from b1]
//!     %1 = bool %0 < 9                   %3 = int %2 + %2 ; x
//!     branch %1 ? b1 : b2                %1 = bool %3 < 9
//!                                        branch %1 ? b1 : b2
//! ```
//!
//! **In**: [`Form::Variables`]; every read has a write on each way to it. **Out**: [`Form::Ssa`] without unreachable
//! blocks, and with an entry that has no predecessors (a new one, where need be). Values with one definition keep their
//! numbers; the versions of others get new ones, in the order of the listing. Cost: instructions plus φ operands, times
//! the logarithm of definitions per variable; see `graph::frontiers` for placement.

use crate::analysis::cfg::Cfg;
use crate::analysis::dominators::DomTree;
use crate::analysis::frontiers;
use crate::graph::nearest::{Family, Nearest};
use crate::ir::{Block, Edge, Form, Function, Op, Operand, Role, Terminator, Type, Value};
use crate::semantics::Scalar;
use cranelift_entity::{EntityRef, SecondaryMap};

/// Which φs to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Pruning {
    /// Wherever definitions of one variable meet. On ways without a definition, which nothing reads, operands are 0.
    Minimal,
    /// The same, but only for variables that some block reads before it writes them (Briggs, Cooper, Harvey, Simpson:
    /// Practical Improvements to the Construction and Destruction of Static Single Assignment Form, 1998).
    SemiPruned,
    /// Only φs that an instruction reads, directly or by way of other φs.
    #[default]
    Pruned,
}

/// What becomes of copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Copies {
    /// Readers of the copy read what it copied.
    #[default]
    Fold,
    /// They stay instructions.
    Keep,
}

/// How to make SSA form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct Options {
    /// Which φs to make.
    pub pruning: Pruning,
    /// What becomes of copies.
    pub copies: Copies,
}

/// Brings a function into SSA form.
pub fn run(function: &mut Function, options: &Options) {
    assert!(function.form == Form::Variables, "SSA form is made of functions over variables");
    prepare_entry(function);
    let cfg = Cfg::compute(function);
    function.layout.retain(|block| cfg.is_reachable(*block));
    // Edges out of unreachable blocks are gone with them.
    let cfg = Cfg::compute(function);
    let dominators = DomTree::compute(function, &cfg);

    let facts = Facts::gather(function);
    let mut sites = Sites::place(function, &cfg, &dominators, &facts, options.pruning);
    let mut renaming = Renaming::new(function, options.copies, &sites);
    for block in cfg.rpo() {
        renaming.block(function, &dominators, &mut sites, *block);
    }
    if options.pruning != Pruning::Pruned {
        for phi in &sites.phis {
            // There is no array that could stand for none, so φs of arrays are always pruned.
            if matches!(function.values[phi.of].ty, Type::Scalar(_)) {
                renaming.need(&sites, phi.value);
            }
        }
    }
    let operands = renaming.phi_operands(function, &cfg, &dominators, &sites);
    renaming.finish(function, &cfg, &sites, &operands);
    function.form = Form::Ssa;
}

/// Gives a function whose entry is jumped to a new entry in front of it.
fn prepare_entry(function: &mut Function) {
    let entry = function.entry();
    let is_target = |block: &Block| function.blocks[*block].term.edges().any(|edge| edge.target == entry);
    if !function.layout.iter().any(is_target) {
        return;
    }
    let front = function.make_block(Role::Entry);
    function.blocks[front].term = Terminator::Jump(Edge::to(entry));
    if function.blocks[entry].role == Role::Entry {
        function.blocks[entry].role = Role::Other;
    }
    function.layout.insert(0, front);
}

/// "No site".
const NONE: u32 = u32::MAX;

/// What a first look at the function tells.
struct Facts {
    /// How often each value is written.
    writes: SecondaryMap<Value, u32>,
    /// The blocks that write a value, each once, in layout order.
    written_in: SecondaryMap<Value, Vec<Block>>,
    /// Some block reads the value before it writes it.
    crosses_blocks: SecondaryMap<Value, bool>,
}

impl Facts {
    fn gather(function: &Function) -> Facts {
        let mut facts =
            Facts { writes: SecondaryMap::new(), written_in: SecondaryMap::new(), crosses_blocks: SecondaryMap::new() };
        for param in &function.params {
            facts.write(*param, function.entry());
        }
        for &block in &function.layout {
            let data = &function.blocks[block];
            for inst in &data.insts {
                function.insts[*inst].op.for_each_operand(|operand| facts.read(operand, block));
                function.insts[*inst].for_each_def(|value| facts.write(value, block));
            }
            data.term.for_each_operand(|operand| facts.read(operand, block));
        }
        facts
    }

    fn write(&mut self, value: Value, block: Block) {
        self.writes[value] += 1;
        if self.written_in[value].last() != Some(&block) {
            self.written_in[value].push(block);
        }
    }

    fn read(&mut self, operand: Operand, block: Block) {
        if let Operand::Value(value) = operand {
            self.crosses_blocks[value] |= self.written_in[value].last() != Some(&block);
        }
    }
}

/// A φ that may be made.
struct Phi {
    block: Block,
    /// The variable whose versions meet.
    of: Value,
    /// Its own, provisional number.
    value: Value,
}

/// A block at whose end a variable has a version of its own.
struct Site {
    /// The version at the block's end; known when the block has been renamed, for a φ from the start.
    version: Option<Operand>,
}

/// Where variables with several definitions get their versions.
struct Sites {
    /// The sites of each variable; empty for values with one definition.
    families: SecondaryMap<Value, Family>,
    nearest: Nearest,
    sites: Vec<Site>,
    phis: Vec<Phi>,
    /// The φs of each block, by variable.
    phis_in: SecondaryMap<Block, Vec<u32>>,
    /// Numbers from here on are provisional.
    first_provisional: usize,
}

impl Sites {
    fn place(function: &Function, cfg: &Cfg, dominators: &DomTree, facts: &Facts, pruning: Pruning) -> Sites {
        let joins = frontiers::joins(cfg, dominators);
        let mut marks = SecondaryMap::new();
        let first_provisional = function.values.len();
        let mut sites = Sites {
            families: SecondaryMap::new(),
            nearest: Nearest::default(),
            sites: Vec::new(),
            phis: Vec::new(),
            phis_in: SecondaryMap::new(),
            first_provisional,
        };
        for variable in function.values.keys().filter(|value| facts.writes[*value] > 1) {
            let writers = &facts.written_in[variable];
            let meets = pruning == Pruning::Minimal || facts.crosses_blocks[variable];
            let found = if meets { joins.iterated(writers.iter().copied(), &mut marks) } else { Vec::new() };
            // Preorder number, block, and the φ there.
            let mut places: Vec<(u32, Block, Option<Value>)> =
                writers.iter().map(|block| (dominators.number(*block), *block, None)).collect();
            for block in found {
                let value = Value::new(first_provisional + sites.phis.len());
                sites.phis_in[block].push(sites.phis.len() as u32);
                sites.phis.push(Phi { block, of: variable, value });
                places.push((dominators.number(block), block, Some(value)));
            }
            // A block with a φ and a write has one site.
            places.sort_by_key(|(number, _, phi)| (*number, phi.is_none()));
            places.dedup_by_key(|(number, _, _)| *number);
            let Sites { nearest, sites: records, families, .. } = &mut sites;
            families[variable] = nearest.add(places.into_iter().map(|(number, block, phi)| {
                records.push(Site { version: phi.map(Operand::Value) });
                (number, dominators.last_number(block), records.len() as u32 - 1)
            }));
        }
        sites
    }

    /// Has the variable several definitions?
    fn is_renamed(&self, variable: Value) -> bool {
        !self.families[variable].is_empty()
    }

    /// The closest site of the variable in the block or above it.
    fn closest(&self, variable: Value, block: Block, dominators: &DomTree) -> Option<u32> {
        self.nearest.closest(self.families[variable], dominators.number(block))
    }

    /// The version of the variable at the end of the block, if every way there defines it.
    fn at_end(&self, variable: Value, block: Block, dominators: &DomTree) -> Option<Operand> {
        let site = self.closest(variable, block, dominators)?;
        Some(self.sites[site as usize].version.expect("dominators are renamed before what they dominate"))
    }

    /// The φ that has this provisional number.
    fn phi(&self, value: Value) -> Option<usize> {
        value.index().checked_sub(self.first_provisional).filter(|phi| *phi < self.phis.len())
    }
}

/// Operands of φs, behind each other.
struct PhiOperands {
    starts: Vec<usize>,
    operands: Vec<Operand>,
}

/// The walk over the blocks that gives definitions their versions and reads what they read.
struct Renaming {
    copies: Copies,
    /// Within the block with this mark, the version of each variable.
    current: SecondaryMap<Value, (u32, Option<Operand>)>,
    mark: u32,
    /// What values with one definition, a folded copy, stand for.
    folded: SecondaryMap<Value, Option<Operand>>,
    /// Of each new definition, which variable it is a version of; provisional numbers go on behind those of the φs.
    definitions: Vec<Value>,
    /// The source variable that a value without one gets, as it is copied into it.
    named: Vec<(Value, Value)>,
    needed: Vec<bool>,
    work: Vec<usize>,
}

impl Renaming {
    fn new(function: &Function, copies: Copies, sites: &Sites) -> Renaming {
        let mut folded = SecondaryMap::new();
        folded.resize(function.values.len());
        Renaming {
            copies,
            current: SecondaryMap::with_default((NONE, None)),
            mark: 0,
            folded,
            definitions: Vec::new(),
            named: Vec::new(),
            needed: vec![false; sites.phis.len()],
            work: Vec::new(),
        }
    }

    fn block(&mut self, function: &mut Function, dominators: &DomTree, sites: &mut Sites, block: Block) {
        for phi in &sites.phis_in[block] {
            let phi = &sites.phis[*phi as usize];
            self.current[phi.of] = (self.mark, Some(Operand::Value(phi.value)));
        }
        let mut written: Vec<Value> = Vec::new();
        if block == function.entry() {
            for param in function.params.iter().filter(|param| sites.is_renamed(**param)) {
                self.current[*param] = (self.mark, Some(Operand::Value(*param)));
                written.push(*param);
            }
        }

        let mut insts = std::mem::take(&mut function.blocks[block].insts);
        insts.retain(|inst| {
            let data = &mut function.insts[*inst];
            data.op.for_each_operand_mut(|operand| *operand = self.version(dominators, sites, block, *operand));
            let result = data.result.expand();
            if let (Op::Copy(source), Some(result), Copies::Fold) = (&data.op, result, self.copies) {
                if let Operand::Value(source) = source {
                    self.named.push((*source, result));
                }
                if sites.is_renamed(result) {
                    self.current[result] = (self.mark, Some(*source));
                    written.push(result);
                } else {
                    self.folded[result] = Some(*source);
                }
                return false;
            }
            data.op.for_each_operand(|operand| self.need_operand(sites, operand));
            if let Some(result) = result.filter(|result| sites.is_renamed(*result)) {
                let version = Value::new(sites.first_provisional + sites.phis.len() + self.definitions.len());
                self.definitions.push(result);
                self.current[result] = (self.mark, Some(Operand::Value(version)));
                written.push(result);
                data.result = Some(version).into();
            }
            true
        });
        let data = &mut function.blocks[block];
        data.insts = insts;
        data.term.for_each_operand_mut(|operand| {
            *operand = self.version(dominators, sites, block, *operand);
            self.need_operand(sites, *operand);
        });

        for variable in written {
            let site =
                sites.closest(variable, block, dominators).expect("a block that writes a variable is a site of it");
            sites.sites[site as usize].version = self.current[variable].1;
        }
        self.mark += 1;
    }

    /// What a read at this point of the block reads.
    fn version(&mut self, dominators: &DomTree, sites: &Sites, block: Block, operand: Operand) -> Operand {
        let Operand::Value(value) = operand else { return operand };
        if !sites.is_renamed(value) {
            return self.folded[value].unwrap_or(operand);
        }
        let (mark, version) = self.current[value];
        let version = if mark == self.mark {
            version
        } else {
            // Nothing in this block so far: it is the version at the end of the block above.
            let above = dominators.idom(block).and_then(|above| sites.at_end(value, above, dominators));
            self.current[value] = (self.mark, above);
            above
        };
        version.unwrap_or_else(|| panic!("{value} is read in {block} where no way has defined it"))
    }

    fn need_operand(&mut self, sites: &Sites, operand: Operand) {
        if let Operand::Value(value) = operand {
            self.need(sites, value);
        }
    }

    /// Notes that the value is read; if it is a φ, so are its operands.
    fn need(&mut self, sites: &Sites, value: Value) {
        if let Some(phi) = sites.phi(value)
            && !std::mem::replace(&mut self.needed[phi], true)
        {
            self.work.push(phi);
        }
    }

    /// The operands of the needed φs, for each φ one for each edge into its block, from its own start on.
    fn phi_operands(&mut self, function: &Function, cfg: &Cfg, dominators: &DomTree, sites: &Sites) -> PhiOperands {
        let mut found = PhiOperands { starts: vec![0; sites.phis.len()], operands: Vec::new() };
        while let Some(phi) = self.work.pop() {
            let Phi { block, of, .. } = sites.phis[phi];
            found.starts[phi] = found.operands.len();
            for pred in cfg.preds(block) {
                let version = sites.at_end(of, pred.block, dominators).unwrap_or_else(|| undefined(function, of));
                self.need_operand(sites, version);
                found.operands.push(version);
            }
        }
        found
    }

    /// Makes the values of needed φs and definitions, in listing order, and puts them in place of the provisional ones.
    fn finish(self, function: &mut Function, cfg: &Cfg, sites: &Sites, found: &PhiOperands) {
        let provisional = sites.phis.len() + self.definitions.len();
        let mut made: Vec<Option<Value>> = vec![None; provisional];
        let mut make = |function: &mut Function, value: Value, of: Value| {
            let (ty, variable) = (function.values[of].ty, function.values[of].variable.expand());
            let version = function.make_value(ty, variable);
            function.values[version].version_of = Some(of).into();
            made[value.index() - sites.first_provisional] = Some(version);
            version
        };
        for block in function.layout.clone() {
            let phis: Vec<usize> =
                sites.phis_in[block].iter().map(|phi| *phi as usize).filter(|phi| self.needed[*phi]).collect();
            for phi in &phis {
                let Phi { of, value, .. } = sites.phis[*phi];
                let version = make(function, value, of);
                function.blocks[block].params.push(version);
            }
            for (n, pred) in cfg.preds(block).iter().enumerate() {
                pred.edge_mut(function).args = phis.iter().map(|phi| found.operands[found.starts[*phi] + n]).collect();
            }
            for n in 0..function.blocks[block].insts.len() {
                let inst = function.blocks[block].insts[n];
                if let Some(result) = function.insts[inst].result.expand()
                    && let Some(definition) = result.index().checked_sub(sites.first_provisional + sites.phis.len())
                {
                    function.insts[inst].result = Some(make(function, result, self.definitions[definition])).into();
                }
            }
        }

        let place = |operand: &mut Operand| {
            if let Operand::Value(value) = operand
                && let Some(n) = value.index().checked_sub(sites.first_provisional)
            {
                *value = made[n].expect("what is read has been made");
            }
        };
        for block in &function.layout {
            for inst in &function.blocks[*block].insts {
                function.insts[*inst].op.for_each_operand_mut(place);
            }
            function.blocks[*block].term.for_each_operand_mut(place);
        }
        for (value, folded) in self.folded.iter().filter_map(|(value, folded)| Some((value, (*folded)?))) {
            // A copy of a φ that nothing needs stands for nothing.
            if folded.value().is_none_or(|value| made_or_own(&made, sites, value).is_some()) {
                let mut replacement = folded;
                place(&mut replacement);
                function.note_replaced(value, replacement);
            }
        }
        for (source, result) in self.named {
            if let Some(source) = made_or_own(&made, sites, source)
                && function.values[source].variable.is_none()
            {
                function.values[source].variable = function.values[result].variable;
            }
        }
    }
}

/// The value that a provisional number has become; a number that is not provisional is its own.
fn made_or_own(made: &[Option<Value>], sites: &Sites, value: Value) -> Option<Value> {
    match value.index().checked_sub(sites.first_provisional) {
        Some(n) => made[n],
        None => Some(value),
    }
}

/// What stands for a variable on a way that does not define it. Only φs that nothing reads on such ways have it.
fn undefined(function: &Function, variable: Value) -> Operand {
    match function.values[variable].ty {
        Type::Scalar(Scalar::Int) => Operand::Int(0),
        Type::Scalar(Scalar::Bool) => Operand::Bool(false),
        Type::Array(_) => panic!("the array {variable} is read where some way has not defined it"),
    }
}
