//! Leaves SSA form by renaming, where the form is conventional: the values that φs connect become one value, and the φs go.
//!
//! SSA form is conventional if no two values of one φ congruence class (a φ, its operands, and what is connected to those)
//! have live ranges that overlap. (Sreedhar, Ju, Gillies, Santhanam: Translating Out of Static Single Assignment Form,
//! 1999; the test in one walk over each class in the order of the dominator tree is that of Budimlić, Cooper, Harvey,
//! Kennedy, Oberg, Reeves: Fast Copy Coalescing and Live-Range Identification, 2002.) Form that was made of variables
//! without folding their copies is conventional until something is optimized; folded copies connect variables.
//!
//! ```text
//! b1: %6 = phi x [%7 from b0, %8 from b2]      b0: %0 = copy 1 ; x
//! b2: %8 = int %6 + 1 ; x                  →   b2: %0 = int %0 + 1 ; x
//! ```
//!
//! A class takes the name of the value over variables that its members are versions of; versions that no φ connects join
//! their variable's class where nothing of both overlaps. So going into SSA form and out again gives back the same
//! program. φs that no instruction reads go first: they need no value. An operand that is a constant becomes a copy at the
//! end of the block that its edge leaves.
//!
//! **In**: [`Form::Ssa`]. **Out**: [`Form::Variables`], its instructions in the same order; or an [`Overlap`], and the
//! function is of no use any more. Cost: that of liveness, and sorting.

use crate::analysis::cfg::Cfg;
use crate::analysis::dominators::DomTree;
use crate::analysis::live_points::{Phis, Place, Points};
use crate::ir::{Block, CopyOrigin, Form, Function, Op, Operand, Value};
use cranelift_entity::{PrimaryMap, SecondaryMap};
use rustc_hash::FxHashSet;
use std::fmt;

/// Why the form is not conventional.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// The two versions, with their variables: what is live, and what is written where it is.
    pub versions: [String; 2],
    /// The block where they are live at once.
    pub block: Block,
    /// Where in the block.
    pub point: String,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = &self.versions;
        write!(f, "not conventional: {first} and {second} overlap in {}, {}", self.block, self.point)
    }
}

/// Leaves SSA form.
pub fn run(function: &mut Function) -> Result<(), Overlap> {
    assert!(function.form == Form::Ssa, "values are renamed in SSA form");
    let cfg = Cfg::compute(function);
    function.layout.retain(|block| cfg.is_reachable(*block));
    drop_dead_phis(function);
    let cfg = Cfg::compute(function);
    let dominators = DomTree::compute(function, &cfg);
    let points = Points::compute(function, &cfg, &dominators, Phis::OnEdges);
    let webs = Webs::gather(function, &points);
    let names = webs.names(function, &points)?;
    let constants = webs.constants;
    rewrite(function, &names, constants);
    function.form = Form::Variables;
    Ok(())
}

/// Makes the last step of this way: over variables again, without φs and parallel copies, the function is what selection
/// starts from.
pub fn finish(function: &mut Function) {
    assert!(function.form == Form::Variables, "only functions over variables are out of SSA form by renaming");
    function.form = Form::Sequenced;
}

/// Drops φs that no instruction reads, directly or by way of other φs.
fn drop_dead_phis(function: &mut Function) {
    // The φs that read nothing but their operands: where each stands.
    let mut phi_at: SecondaryMap<Value, Option<(Block, u32)>> = SecondaryMap::new();
    for &block in &function.layout {
        for (number, phi) in function.blocks[block].params.iter().enumerate() {
            phi_at[*phi] = Some((block, number as u32));
        }
    }
    let cfg = Cfg::compute(function);
    let mut needed: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut work = Vec::new();
    let mut need = |operand: Operand, work: &mut Vec<(Block, u32)>| {
        if let Operand::Value(value) = operand
            && let Some(place) = phi_at[value]
            && !std::mem::replace(&mut needed[value], true)
        {
            work.push(place);
        }
    };
    for &block in &function.layout {
        let data = &function.blocks[block];
        data.insts
            .iter()
            .for_each(|inst| function.insts[*inst].op.for_each_operand(|operand| need(operand, &mut work)));
        data.term.operand().into_iter().for_each(|operand| need(operand, &mut work));
    }
    while let Some((block, number)) = work.pop() {
        for pred in cfg.preds(block) {
            need(pred.edge(function).args[number as usize], &mut work);
        }
    }
    for block in function.layout.clone() {
        let kept: Vec<bool> = function.blocks[block].params.iter().map(|phi| needed[*phi]).collect();
        if kept.iter().all(|kept| *kept) {
            continue;
        }
        keep(&mut function.blocks[block].params, &kept);
        for pred in cfg.preds(block) {
            keep(&mut pred.edge_mut(function).args, &kept);
        }
    }
}

fn keep<T>(list: &mut Vec<T>, kept: &[bool]) {
    let mut flags = kept.iter();
    list.retain(|_| *flags.next().expect("an operand for each φ"));
}

/// A member of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Member {
    /// A value.
    Value(Value),
    /// The constant operand with this number in [`Webs::constants`].
    Constant(u32),
}

/// A constant operand, which a copy will make.
struct Constant {
    phi: Value,
    operand: Operand,
    /// The block that the edge leaves, and the edge's number there.
    pred: Block,
    edge: u8,
}

/// The φ congruence classes; values that no φ connects are classes of their own.
struct Webs {
    /// Each value's class: the members are in `members` of its representative.
    class: PrimaryMap<Value, Value>,
    /// The members of each class with their places, what dominates first.
    members: SecondaryMap<Value, Vec<(Place, Member)>>,
    /// The representatives, in the order of values.
    classes: Vec<Value>,
    constants: Vec<Constant>,
}

impl Webs {
    fn gather(function: &Function, points: &Points) -> Webs {
        let mut parents: SecondaryMap<Value, Option<Value>> = SecondaryMap::new();
        parents.resize(function.values.len());
        let mut constants = Vec::new();
        for &block in &function.layout {
            for (edge, number) in function.blocks[block].term.edges().zip(0_u8..) {
                for (phi, operand) in function.blocks[edge.target].params.iter().zip(&edge.args) {
                    match operand {
                        Operand::Value(value) => {
                            let (a, b) = (root(&mut parents, *phi), root(&mut parents, *value));
                            if a != b {
                                // The smaller number represents both.
                                parents[a.max(b)] = Some(a.min(b));
                            }
                        }
                        Operand::Int(_) | Operand::Bool(_) => {
                            constants.push(Constant { phi: *phi, operand: *operand, pred: block, edge: number });
                        }
                    }
                }
            }
        }
        let mut webs = Webs {
            class: function.values.keys().collect(),
            members: SecondaryMap::new(),
            classes: Vec::new(),
            constants,
        };
        for value in function.values.keys().filter(|value| points.is_written(*value)) {
            let class = root(&mut parents, value);
            if webs.members[class].is_empty() {
                webs.classes.push(class);
            }
            webs.class[value] = class;
            webs.members[class].push((points.written(value), Member::Value(value)));
        }
        for (number, constant) in webs.constants.iter().enumerate() {
            let place = points.end(constant.pred);
            webs.members[webs.class[constant.phi]].push((place, Member::Constant(number as u32)));
        }
        for class in &webs.classes {
            webs.members[*class].sort_by_key(|(place, _)| place.key());
        }
        webs
    }

    /// The name of each value's class.
    fn names(&self, function: &Function, points: &Points) -> Result<PrimaryMap<Value, Value>, Overlap> {
        for class in &self.classes {
            let members = &self.members[*class];
            let is_value = |member: &&(Place, Member)| matches!(member.1, Member::Value(_));
            // Two versions say more than a constant would; so they are looked at first.
            self.check(members.iter().filter(is_value), function, points)?;
            self.check(members.iter(), function, points)?;
        }
        // The value over variables that all members of a class are versions of, if it is one.
        let home_of_value = |value: Value| function.values[value].version_of.expand().unwrap_or(value);
        let mut by_home: SecondaryMap<Value, Vec<Value>> = SecondaryMap::new();
        for class in &self.classes {
            let mut homes = self.members[*class].iter().filter_map(|(_, member)| match member {
                Member::Value(value) => Some(home_of_value(*value)),
                Member::Constant(_) => None,
            });
            let first = homes.next().expect("a class has a value");
            if homes.all(|home| home == first) {
                by_home[first].push(*class);
            }
        }
        let mut is_param: SecondaryMap<Value, bool> = SecondaryMap::new();
        function.params.iter().for_each(|param| is_param[*param] = true);
        let mut name_of_class: SecondaryMap<Value, Option<Value>> = SecondaryMap::new();
        for (home, classes) in by_home.iter().filter(|(_, classes)| !classes.is_empty()) {
            // A class of several variables may have the value; then it is not to be had.
            if points.is_written(home) && !classes.contains(&self.class[home]) {
                continue;
            }
            let mut all: Vec<(Place, Member)> = classes.iter().flat_map(|class| self.members[*class].clone()).collect();
            all.sort_by_key(|(place, _)| place.key());
            if classes.len() == 1 || self.check(all.iter(), function, points).is_ok() {
                classes.iter().for_each(|class| name_of_class[*class] = Some(home));
            } else {
                // The class of the value itself keeps its name; if there is none, the first class takes it.
                let first = if points.is_written(home) { self.class[home] } else { classes[0] };
                name_of_class[first] = Some(home);
            }
        }
        let mut names: PrimaryMap<Value, Value> = function.values.keys().collect();
        for class in &self.classes {
            // A parameter cannot have another name; there is at most one, as parameters overlap.
            let values = || {
                self.members[*class].iter().filter_map(|(_, member)| match member {
                    Member::Value(value) => Some(*value),
                    Member::Constant(_) => None,
                })
            };
            let name = values().find(|value| is_param[*value]).or(name_of_class[*class]).unwrap_or(*class);
            values().for_each(|value| names[value] = name);
        }
        Ok(names)
    }

    /// Walks over members in the order of the dominator tree with the stack of those above: if some overlap, so do some
    /// where the one is the closest above the other.
    fn check<'a>(
        &self,
        members: impl Iterator<Item = &'a (Place, Member)>,
        function: &Function,
        points: &Points,
    ) -> Result<(), Overlap> {
        let mut above: Vec<&(Place, Member)> = Vec::new();
        for current in members {
            while above.last().is_some_and(|(place, _)| !place.dominates(&current.0)) {
                above.pop();
            }
            if let Some((place, member)) = above.last() {
                let overlap = place.key() == current.0.key()
                    || match member {
                        Member::Value(value) => points.lives_behind(*value, &current.0),
                        // It lives on its edge only.
                        Member::Constant(_) => false,
                    };
                let overlap = overlap && !self.same_constant(*member, current.1);
                if overlap {
                    return Err(self.overlap(*member, current, function));
                }
            }
            above.push(current);
        }
        Ok(())
    }

    /// Are both one constant, which one copy makes?
    fn same_constant(&self, a: Member, b: Member) -> bool {
        match (a, b) {
            (Member::Constant(a), Member::Constant(b)) => {
                let (a, b) = (&self.constants[a as usize], &self.constants[b as usize]);
                a.pred == b.pred && a.operand == b.operand
            }
            (Member::Value(_) | Member::Constant(_), _) => false,
        }
    }

    fn overlap(&self, first: Member, (place, second): &(Place, Member), function: &Function) -> Overlap {
        let text = |value: Value| match function.variable_of(value) {
            Some(variable) => format!("{} {value}", variable.name),
            None => value.to_string(),
        };
        let name = |member: Member| match member {
            Member::Value(value) => text(value),
            Member::Constant(number) => {
                let Constant { phi, operand, .. } = self.constants[number as usize];
                match operand {
                    Operand::Int(value) => format!("{} ({value})", text(phi)),
                    Operand::Bool(value) => format!("{} ({value})", text(phi)),
                    Operand::Value(value) => text(value),
                }
            }
        };
        let insts = function.blocks[place.block].insts.len();
        let point = match (place.instruction(), second) {
            (None, _) => "at its start".to_string(),
            (Some(index), Member::Value(_)) => format!("at instruction {} of {insts}", index + 1),
            (Some(_), Member::Constant(_)) => "at its end".to_string(),
        };
        Overlap { versions: [name(first), name(*second)], block: place.block, point }
    }
}

/// The representative of a value, with the path to it halved.
fn root(parents: &mut SecondaryMap<Value, Option<Value>>, mut value: Value) -> Value {
    while let Some(parent) = parents[value] {
        if let Some(above) = parents[parent] {
            parents[value] = Some(above);
        }
        value = parent;
    }
    value
}

fn rewrite(function: &mut Function, names: &PrimaryMap<Value, Value>, constants: Vec<Constant>) {
    let rename = |operand: &mut Operand| {
        if let Operand::Value(value) = operand {
            *value = names[*value];
        }
    };
    for block in function.layout.clone() {
        for number in 0..function.blocks[block].insts.len() {
            let data = &mut function.insts[function.blocks[block].insts[number]];
            data.op.for_each_operand_mut(rename);
            data.result = data.result.expand().map(|value| names[value]).into();
        }
        let data = &mut function.blocks[block];
        data.params.clear();
        data.term.for_each_operand_mut(rename);
        data.term.edges_mut().for_each(|edge| edge.args.clear());
    }
    // In the order of the listing; what follows another of its block and class is the same constant.
    let mut made: FxHashSet<(Block, Value)> = FxHashSet::default();
    for Constant { phi, operand, pred, edge } in constants {
        if !made.insert((pred, names[phi])) {
            continue;
        }
        let span = function.blocks[pred].term_span;
        let inst = function.make_inst(Op::Copy(operand), Some(names[phi]), span);
        function.copy_origins.insert(inst, CopyOrigin::Phi { phi, pred, edge });
        function.blocks[pred].insts.push(inst);
    }
}
