//! Judges the way out of SSA form: does every instruction of the destroyed code read the version that the SSA code reads,
//! on every path?
//!
//! Both codes are run side by side, symbolically. Elements are the values of the SSA code (*versions*) and the values of
//! the destroyed code (*names*), a state says which of them are known to be equal. A φ gives its version what its argument
//! has, on the edge; a copy gives its name what its source has; any other instruction gives both its version and its name
//! something new. An operand is right if its name equals its version. A lost copy, a swap done one after the other, a
//! dropped copy, a copy on an edge that is not its own: all end with a name that is read and does not hold its version.
//!
//! Nearly always the name `%3` holds the version `%3`, so a state stands for that and lists exceptions only. Those arise on
//! edges and vanish behind them; a φ whose copies were dropped because nothing reads it remains one. That two pairs hold the
//! same is forgotten at first; where that ends in doubt, all is done once more with it.
//!
//! ```text
//! b1: %3 = phi [1 from b0, %4 from b2]     b2: %3 = copy %4     the name %3 holds the version %4
//!     %4 = phi [2 from b0, %3 from b2]         %4 = copy %3     so does the name %4
//! b2: jump b1                                  jump b1          the version %4 becomes what %3 was: %4 is wrong
//! ```
//!
//! Translation validation in the way of George Necula, Translation Validation for an Optimizing Compiler, 2000; the
//! problems that it looks for: Preston Briggs et al., Practical Improvements to the Construction and Destruction of Static
//! Single Assignment Form, 1998. It shares no code with `destruct`, `sequence` and `graph::parallel_copy`.
//!
//! **in**: a function in an SSA form, and the same function in [`Form::ParallelCopies`], [`Form::Sequenced`] or, renamed,
//! in [`Form::Variables`], with the same blocks and instructions but for copies; results may have other names. Or the function in parallel copies and in sequence:
//! what is said of versions then holds for what a value held before, which a parallel copy gives it. **out**: `Ok` if it
//! does the same. Cost: linear in instructions and φ operands, plus exceptions times blocks that they live through.

use crate::ir::{Block, Form, Function, Op, Operand, Terminator, Value};
use crate::support::internal::Internal;
use cranelift_entity::{EntityRef, SecondaryMap};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Checks that the destroyed function does what the SSA function does.
pub fn validate(ssa: &Function, destroyed: &Function) -> Result<(), Internal> {
    // Nearly all is right, and shown right without knowing which pairs hold the same. The doubtful is looked at with that.
    let judged = Validator::new(ssa, destroyed, false).run();
    judged.or_else(|_| Validator::new(ssa, destroyed, true).run()).map_err(|error| error.in_function(&ssa.name))
}

/// A name of the destroyed code or a version of the SSA code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Element {
    Name(Value),
    Version(Value),
}

/// What an element holds. Elements with the same contents are equal; `Unknown` equals nothing, not even itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Contents {
    Unknown,
    /// What the name and the version of this number hold, at a block's start, if they are no exception.
    Pair(Value),
    Int(i64),
    Bool(bool),
    /// What the element alone, and others that say the same, held at a block's start.
    Of(Element),
    /// What was computed within the block in hand.
    New(u32),
}

impl Contents {
    fn equals(self, other: Contents) -> bool {
        self == other && self != Contents::Unknown
    }
}

/// The exceptions at a block's start, in order of elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State(Vec<(Element, Contents)>);

impl State {
    fn get(&self, element: Element) -> Option<Contents> {
        self.0.binary_search_by_key(&element, |(element, _)| *element).ok().map(|index| self.0[index].1)
    }
}

struct Validator<'a> {
    ssa: &'a Function,
    destroyed: &'a Function,
    /// The contents of names and versions at the point in hand, where `touched` lists them; else they are by default.
    names: Vec<Option<Contents>>,
    versions: Vec<Option<Contents>>,
    touched: Vec<Element>,
    /// Values that are listed for the edge in hand; all false in between.
    listed: Vec<bool>,
    next: u32,
    /// Keep which pairs hold the same. That makes them exceptions.
    exact: bool,
    /// What is read later of versions and of names, once it has been looked for.
    read_later: Option<[SecondaryMap<Block, Vec<Value>>; 2]>,
    /// For each block the names, of those that the SSA code does not have, that it reads from the block before.
    carried: SecondaryMap<Block, SmallVec<[Value; 4]>>,
}

impl<'a> Validator<'a> {
    fn new(ssa: &'a Function, destroyed: &'a Function, exact: bool) -> Validator<'a> {
        let count = ssa.values.len().max(destroyed.values.len());
        Validator {
            ssa,
            destroyed,
            names: vec![None; count],
            versions: vec![None; count],
            touched: Vec::new(),
            listed: vec![false; count],
            next: 0,
            exact,
            read_later: None,
            carried: carried(destroyed, ssa.values.len()),
        }
    }

    fn run(&mut self) -> Result<(), Internal> {
        self.check_forms()?;
        let order = self.reverse_postorder()?;
        let mut rank: SecondaryMap<Block, usize> = SecondaryMap::new();
        order.iter().enumerate().for_each(|(index, block)| rank[*block] = index);
        let mut states: Vec<Option<State>> = vec![None; order.len()];
        states[0] = Some(State::default());
        // Blocks in order, again and again while something that they start from has changed.
        let mut dirty = vec![false; order.len()];
        let mut next = Some(0);
        while let Some(index) = next {
            dirty[index] = false;
            let block = order[index];
            self.enter(states[index].as_ref().expect("a block is visited after one of its predecessors"));
            self.block(block)?;
            let mut earliest = index + 1;
            let targets: SmallVec<[Block; 2]> =
                self.destroyed.blocks[block].term.edges().map(|edge| edge.target).collect();
            for (edge, target) in targets.into_iter().enumerate() {
                let out = self.edge(block, edge)?;
                let (block_there, target) = (target, rank[target]);
                let joined = match &states[target] {
                    Some(state) => self.meet(block_there, state, &out),
                    None => out,
                };
                if states[target].as_ref() != Some(&joined) {
                    states[target] = Some(joined);
                    dirty[target] = true;
                    earliest = earliest.min(target);
                }
            }
            next = (earliest..order.len()).find(|index| dirty[*index]);
        }
        Ok(())
    }

    fn check_forms(&self) -> Result<(), Internal> {
        let way = (self.ssa.form, self.destroyed.form);
        let goes_on = match way {
            (Form::Ssa | Form::SplitSsa, Form::Variables | Form::ParallelCopies | Form::Sequenced) => true,
            (Form::ParallelCopies, Form::Sequenced) => true,
            (Form::Variables | Form::Ssa | Form::SplitSsa | Form::ParallelCopies | Form::Sequenced, _) => false,
        };
        if !goes_on {
            let message = format!("{} code is compared with {} code", self.ssa.form.name(), self.destroyed.form.name());
            return Err(Internal::new("", message));
        }
        if self.ssa.params != self.destroyed.params {
            return Err(Internal::new("", "the parameters have changed"));
        }
        Ok(())
    }

    /// The blocks that are reached, each behind one of its predecessors; both functions must have the same edges.
    fn reverse_postorder(&self) -> Result<Vec<Block>, Internal> {
        let entry = self.ssa.entry();
        if self.destroyed.entry() != entry {
            return Err(Internal::new(entry, "the entry has changed"));
        }
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
        seen[entry] = true;
        let mut order = Vec::new();
        let mut work = vec![(entry, 0)];
        while let Some((block, next)) = work.pop() {
            if self.destroyed.blocks.get(block).is_none() {
                return Err(Internal::new(block, "a block is missing"));
            }
            let before: SmallVec<[Block; 2]> = self.ssa.blocks[block].term.edges().map(|edge| edge.target).collect();
            let after = &self.destroyed.blocks[block].term;
            let after: SmallVec<[Block; 2]> = after.edges().map(|edge| edge.target).collect();
            if before != after {
                return Err(Internal::new(block, format!("its edges led to {before:?} and lead to {after:?}")));
            }
            if let Some(target) = after.get(next) {
                work.push((block, next + 1));
                if !seen[*target] {
                    seen[*target] = true;
                    work.push((*target, 0));
                }
            } else {
                order.push(block);
            }
        }
        order.reverse();
        Ok(order)
    }

    // ---- contents ----

    fn slot(&mut self, element: Element) -> &mut Option<Contents> {
        match element {
            Element::Name(value) => &mut self.names[value.index()],
            Element::Version(value) => &mut self.versions[value.index()],
        }
    }

    fn get(&self, element: Element) -> Contents {
        match element {
            Element::Name(value) => self.names[value.index()].unwrap_or_else(|| self.default(element)),
            Element::Version(value) => self.versions[value.index()].unwrap_or_else(|| self.default(element)),
        }
    }

    /// What the element holds if a state does not list it. Names that the SSA code does not have hold nothing then: they
    /// live within a block.
    fn default(&self, element: Element) -> Contents {
        match element {
            Element::Name(value) | Element::Version(value) if value.index() < self.ssa.values.len() => {
                Contents::Pair(value)
            }
            Element::Name(_) | Element::Version(_) => Contents::Unknown,
        }
    }

    fn put(&mut self, element: Element, contents: Contents) {
        let slot = self.slot(element);
        let new = slot.is_none();
        *slot = Some(contents);
        if new {
            self.touched.push(element);
        }
    }

    fn enter(&mut self, state: &State) {
        for element in std::mem::take(&mut self.touched) {
            *self.slot(element) = None;
        }
        for (element, contents) in &state.0 {
            self.put(*element, *contents);
        }
    }

    fn version(&self, operand: Operand) -> Contents {
        match operand {
            Operand::Value(value) => self.get(Element::Version(value)),
            Operand::Int(value) => Contents::Int(value),
            Operand::Bool(value) => Contents::Bool(value),
        }
    }

    fn name(&self, operand: Operand) -> Contents {
        match operand {
            Operand::Value(value) => self.get(Element::Name(value)),
            Operand::Int(value) => Contents::Int(value),
            Operand::Bool(value) => Contents::Bool(value),
        }
    }

    fn fresh(&mut self) -> Contents {
        self.next += 1;
        Contents::New(self.next)
    }

    // ---- blocks ----

    fn block(&mut self, block: Block) -> Result<(), Internal> {
        let (ssa, destroyed) = (self.ssa, self.destroyed);
        let mut before = ssa.blocks[block].insts.iter().map(|inst| &ssa.insts[*inst]);
        let mut after = destroyed.blocks[block].insts.iter().map(|inst| &destroyed.insts[*inst]);
        let wrong = |message: String| Internal::new(block, message);
        loop {
            // Copies of either code up to the next other instruction.
            let original = loop {
                match before.next() {
                    Some(inst) if is_copy(&inst.op) => {
                        let read = |(result, source)| (result, self.version(source));
                        let moves: SmallVec<[(Value, Contents); 8]> =
                            copies(&inst.op, inst.result.expand()).into_iter().map(read).collect();
                        moves.into_iter().for_each(|(result, contents)| self.put(Element::Version(result), contents));
                    }
                    other => break other,
                }
            };
            let made = loop {
                match after.next() {
                    Some(inst) if is_copy(&inst.op) => {
                        let read = |(result, source)| (result, self.name(source));
                        let moves: SmallVec<[(Value, Contents); 8]> =
                            copies(&inst.op, inst.result.expand()).into_iter().map(read).collect();
                        moves.into_iter().for_each(|(result, contents)| self.put(Element::Name(result), contents));
                    }
                    other => break other,
                }
            };
            match (original, made) {
                (None, None) => break,
                (Some(original), None) => return Err(wrong(format!("an instruction is missing: {:?}", original.op))),
                (None, Some(made)) => return Err(wrong(format!("an instruction was not there: {:?}", made.op))),
                (Some(original), Some(made)) => {
                    self.operands(&original.op, &made.op).map_err(wrong)?;
                    match (original.result.expand(), made.result.expand()) {
                        (Some(version), Some(name)) if ssa.values[version].ty == destroyed.values[name].ty => {
                            let contents = self.fresh();
                            self.put(Element::Version(version), contents);
                            self.put(Element::Name(name), contents);
                        }
                        (None, None) => {}
                        (Some(_) | None, _) => {
                            return Err(wrong(format!("the result of an instruction has changed: {:?}", made.op)));
                        }
                    }
                }
            }
        }
        let (before, after) = (&ssa.blocks[block].term, &destroyed.blocks[block].term);
        let same = match (before, after) {
            (Terminator::Jump(_), Terminator::Jump(_))
            | (Terminator::Branch { .. }, Terminator::Branch { .. })
            | (Terminator::Return(_), Terminator::Return(_))
            | (Terminator::Unreachable, Terminator::Unreachable) => true,
            (Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Return(_) | Terminator::Unreachable, _) => {
                false
            }
        };
        match (before.operand(), after.operand()) {
            (Some(version), Some(name)) if same => self.read(version, name).map_err(wrong),
            (None, None) if same => Ok(()),
            (Some(_) | None, _) => Err(wrong("its end has changed".to_string())),
        }
    }

    /// The operands of an instruction in both codes; the rest of it must be the same.
    fn operands(&self, before: &Op, after: &Op) -> Result<(), String> {
        let mut versions: SmallVec<[Operand; 4]> = SmallVec::new();
        before.for_each_operand(|operand| versions.push(operand));
        let mut names: SmallVec<[Operand; 4]> = SmallVec::new();
        let mut replaced = after.clone();
        replaced.for_each_operand_mut(|operand| {
            names.push(*operand);
            *operand = versions.get(names.len() - 1).copied().unwrap_or(*operand);
        });
        if names.len() != versions.len() || replaced != *before {
            return Err(format!("an instruction has changed: {before:?} has become {after:?}"));
        }
        versions.into_iter().zip(names).try_for_each(|(version, name)| self.read(version, name))
    }

    fn read(&self, version: Operand, name: Operand) -> Result<(), String> {
        if self.version(version).equals(self.name(name)) {
            return Ok(());
        }
        let show = |operand| match operand {
            Operand::Value(value) => format!("{value}"),
            Operand::Int(value) => format!("{value}"),
            Operand::Bool(value) => format!("{value}"),
        };
        Err(format!("where SSA reads {}, {} is read, which does not hold it here", show(version), show(name)))
    }

    // ---- edges ----

    /// What holds behind an edge, where the φs of its target have got their arguments.
    fn edge(&mut self, block: Block, edge: usize) -> Result<State, Internal> {
        let (ssa, destroyed) = (self.ssa, self.destroyed);
        let before = ssa.blocks[block].term.edges().nth(edge).expect("both functions have the same edges");
        let after = destroyed.blocks[block].term.edges().nth(edge).expect("the edge was just seen");
        let params = &ssa.blocks[before.target].params;
        if !after.args.is_empty() || !destroyed.blocks[before.target].params.is_empty() {
            return Err(Internal::new(block, "an edge out of SSA form has arguments"));
        }
        if params.len() != before.args.len() {
            return Err(Internal::new(block, "an edge has other arguments than its target has φs"));
        }
        let contents: Vec<Contents> = before.args.iter().map(|arg| self.version(*arg)).collect();
        let saved: Vec<Contents> = params.iter().map(|param| self.get(Element::Version(*param))).collect();
        params.iter().zip(contents).for_each(|(param, contents)| self.put(Element::Version(*param), contents));
        let limit = ssa.values.len();
        // Names that the SSA code does not have are forgotten, unless the target begins with reading them.
        let kept = |element: &Element| match element {
            Element::Name(value) => value.index() < limit || self.carried[before.target].contains(value),
            Element::Version(value) => value.index() < limit,
        };
        // Name and version are looked at together: where the one has changed, the other is no pair any more, and may be
        // what a third one holds. And where an exception holds what a pair does, the pair has a part in it.
        let mut elements: Vec<(Element, (Contents, Contents))> = Vec::with_capacity(2 * self.touched.len());
        let mut marked: Vec<Value> = Vec::new();
        for element in &self.touched {
            let (Element::Name(value) | Element::Version(value)) = *element;
            let pair = match self.get(*element) {
                Contents::Pair(pair) if pair != value => Some(pair),
                Contents::Pair(_)
                | Contents::Unknown
                | Contents::Int(_)
                | Contents::Bool(_)
                | Contents::Of(_)
                | Contents::New(_) => None,
            };
            for value in [Some(value), pair].into_iter().flatten() {
                if std::mem::replace(&mut self.listed[value.index()], true) {
                    continue;
                }
                marked.push(value);
                let both = [Element::Name(value), Element::Version(value)].into_iter().filter(kept);
                elements.extend(both.map(|element| (element, (self.get(element), self.get(element)))));
            }
        }
        marked.into_iter().for_each(|value| self.listed[value.index()] = false);
        let state = self.canonical(before.target, elements);
        params.iter().zip(saved).for_each(|(param, contents)| self.put(Element::Version(*param), contents));
        Ok(state)
    }

    /// What holds if either state may: elements are equal if they are so in both.
    fn meet(&mut self, block: Block, a: &State, b: &State) -> State {
        if a == b {
            return a.clone();
        }
        let mut elements: Vec<Element> = a.0.iter().chain(&b.0).map(|(element, _)| *element).collect();
        // Where an exception names the contents of a pair, the pair has a part in it.
        for (_, contents) in a.0.iter().chain(&b.0) {
            if let Contents::Pair(value) = contents {
                elements.extend([Element::Name(*value), Element::Version(*value)]);
            }
        }
        // Name and version are looked at together.
        let partners: Vec<Element> = elements
            .iter()
            .map(|element| match element {
                Element::Name(value) => Element::Version(*value),
                Element::Version(value) => Element::Name(*value),
            })
            .collect();
        elements.extend(partners);
        elements.sort_unstable();
        elements.dedup();
        let get = |state: &State, element: Element| state.get(element).unwrap_or_else(|| self.default(element));
        let contents = elements.into_iter().map(|element| (element, (get(a, element), get(b, element)))).collect();
        self.canonical(block, contents)
    }

    /// The state at the block's start that lists these elements' contents; names that the SSA code does not have hold
    /// nothing unless listed. Where exceptions are many, as they are where values have new names, those are left out that
    /// nothing reads before it is written: whatever is taken for granted of them, nobody relies on it.
    fn canonical(&mut self, block: Block, elements: Vec<(Element, (Contents, Contents))>) -> State {
        let mut state = canonical(elements, self.exact);
        state.0.retain(|(element, contents)| *contents != Contents::Unknown || self.default(*element) != *contents);
        if state.0.len() > MANY && self.read_later.is_none() {
            self.read_later = Some([read_later(self.ssa), read_later(self.destroyed)]);
        }
        if let Some([versions, names]) = &self.read_later {
            state.0.retain(|(element, _)| match element {
                Element::Version(value) => versions[block].binary_search(value).is_ok(),
                Element::Name(value) => names[block].binary_search(value).is_ok(),
            });
        }
        state
    }
}

/// From so many exceptions at once on, those that matter to nobody are looked for.
const MANY: usize = if cfg!(test) { 4 } else { 64 };

/// For each block the values, in order, that some way from its start reads before it writes them; its φs are written
/// before the start. This is liveness once more: the judge does not believe what the judged may have believed.
fn read_later(function: &Function) -> SecondaryMap<Block, Vec<Value>> {
    let mut preds: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    let mut phi_of: SecondaryMap<Value, Option<Block>> = SecondaryMap::new();
    let mut writes: FxHashSet<(Value, Block)> = FxHashSet::default();
    let mut reads: Vec<(Value, Block)> = Vec::new();
    for &block in &function.layout {
        let data = &function.blocks[block];
        data.term.edges().for_each(|edge| preds[edge.target].push(block));
        data.params.iter().for_each(|phi| phi_of[*phi] = Some(block));
        let mut read = |operand: Operand, writes: &FxHashSet<(Value, Block)>| {
            if let Operand::Value(value) = operand
                && !writes.contains(&(value, block))
            {
                reads.push((value, block));
            }
        };
        for inst in &data.insts {
            function.insts[*inst].op.for_each_operand(|operand| read(operand, &writes));
            function.insts[*inst].for_each_def(|value| {
                writes.insert((value, block));
            });
        }
        data.term.for_each_operand(|operand| read(operand, &writes));
    }
    reads.sort_unstable();
    reads.dedup();
    let mut found: SecondaryMap<Block, Vec<Value>> = SecondaryMap::new();
    let mut work: Vec<Block> = Vec::new();
    for of_value in reads.chunk_by(|a, b| a.0 == b.0) {
        let value = of_value[0].0;
        work.extend(of_value.iter().map(|(_, block)| *block));
        while let Some(block) = work.pop() {
            // Values come in order, so the block has this one if it is its last.
            if found[block].last() == Some(&value) {
                continue;
            }
            found[block].push(value);
            if phi_of[value] != Some(block) {
                work.extend(preds[block].iter().filter(|pred| !writes.contains(&(value, **pred))));
            }
        }
    }
    found
}

/// For each block the values from number `limit` on that it reads before it writes them.
fn carried(function: &Function, limit: usize) -> SecondaryMap<Block, SmallVec<[Value; 4]>> {
    let mut carried: SecondaryMap<Block, SmallVec<[Value; 4]>> = SecondaryMap::new();
    if function.values.len() == limit {
        return carried;
    }
    let mut written: SecondaryMap<Value, Option<Block>> = SecondaryMap::new();
    for &block in &function.layout {
        let data = &function.blocks[block];
        let mut read = |operand: Operand, written: &SecondaryMap<Value, Option<Block>>| {
            if let Operand::Value(value) = operand
                && value.index() >= limit
                && written[value] != Some(block)
            {
                carried[block].push(value);
            }
        };
        for inst in &data.insts {
            function.insts[*inst].op.for_each_operand(|operand| read(operand, &written));
            function.insts[*inst].for_each_def(|value| written[value] = Some(block));
        }
        data.term.for_each_operand(|operand| read(operand, &written));
    }
    carried
}

/// The state that lists these elements' contents. Elements are equal if their keys are, of which neither half
/// may be unknown. The name and the version of a number are left out if they are equal, and equal to no exception; if
/// `exact`, only if they are equal to no other pair either.
fn canonical(mut elements: Vec<(Element, (Contents, Contents))>, exact: bool) -> State {
    elements.sort_unstable_by_key(|(element, _)| *element);
    elements.dedup_by_key(|(element, _)| *element);
    let known = |key: (Contents, Contents)| key.0 != Contents::Unknown && key.1 != Contents::Unknown;
    let key_of = |element: Element| {
        elements.binary_search_by_key(&element, |(element, _)| *element).ok().map(|index| elements[index].1)
    };
    // What an element holds where it is not listed: its pair's contents, at both ways in.
    let default = |value: Value| (Contents::Pair(value), Contents::Pair(value));
    let is_pair = |value: Value| {
        let name = key_of(Element::Name(value)).unwrap_or(default(value));
        let version = key_of(Element::Version(value)).unwrap_or(default(value));
        (known(name) && name == version).then_some(name)
    };
    /// Who holds the same.
    #[derive(Default)]
    struct Group {
        /// The least number whose name and version both do.
        pair: Option<Value>,
        /// The least other element.
        single: Option<Element>,
        names: u32,
        versions: u32,
    }
    let mut groups: FxHashMap<(Contents, Contents), Group> = FxHashMap::default();
    let mut paired: Vec<bool> = Vec::with_capacity(elements.len());
    for (element, key) in &elements {
        let (Element::Name(value) | Element::Version(value)) = *element;
        let pair = is_pair(value).is_some();
        paired.push(pair);
        if !known(*key) {
            continue;
        }
        let group = groups.entry(*key).or_default();
        if pair {
            group.pair = Some(group.pair.map_or(value, |other| other.min(value)));
        } else {
            group.single = Some(group.single.map_or(*element, |other| other.min(*element)));
            match element {
                Element::Name(_) => group.names += 1,
                Element::Version(_) => group.versions += 1,
            }
        }
    }
    // An exception may hold what a pair holds that is not listed itself. That pair stands for the group then: it has no
    // entry that could say that it holds what another pair does.
    for (key, group) in &mut groups {
        if let (Contents::Pair(a), Contents::Pair(b)) = key
            && a == b
            && is_pair(*a) == Some(*key)
        {
            group.pair = Some(*a);
        }
    }
    let mut state = Vec::new();
    for ((element, key), paired) in elements.iter().zip(paired) {
        let (Element::Name(value) | Element::Version(value)) = *element;
        let contents = match groups.get(key).filter(|_| known(*key)) {
            None => Contents::Unknown,
            // Nobody but pairs: each can stand for itself.
            Some(group) if group.single.is_none() && !exact => Contents::Pair(value),
            Some(group) => match (*key, group.pair) {
                ((Contents::Int(a), Contents::Int(b)), _) if a == b => Contents::Int(a),
                ((Contents::Bool(a), Contents::Bool(b)), _) if a == b => Contents::Bool(a),
                (_, Some(pair)) => Contents::Pair(pair),
                (_, None) if group.names > 0 && group.versions > 0 => {
                    Contents::Of(group.single.expect("a group without a pair has another element"))
                }
                // Names alone, or versions alone: what they hold is lost to the other side.
                (_, None) => Contents::Unknown,
            },
        };
        if !(paired && contents == Contents::Pair(value)) {
            state.push((*element, contents));
        }
    }
    State(state)
}

fn is_copy(op: &Op) -> bool {
    match op {
        Op::Copy(_) | Op::Parallel(_) => true,
        Op::Binary { .. }
        | Op::Compare { .. }
        | Op::Unary { .. }
        | Op::Select { .. }
        | Op::Array { .. }
        | Op::Free(_)
        | Op::Len(_)
        | Op::Bounds { .. }
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Call { .. }
        | Op::Read
        | Op::Eof
        | Op::Print(_)
        | Op::Assert(_) => false,
    }
}

/// The assignments of a copy, all at once.
fn copies(op: &Op, result: Option<Value>) -> SmallVec<[(Value, Operand); 4]> {
    match op {
        Op::Copy(source) => result.into_iter().map(|result| (result, *source)).collect(),
        Op::Parallel(copies) => copies.iter().copied().collect(),
        Op::Binary { .. }
        | Op::Compare { .. }
        | Op::Unary { .. }
        | Op::Select { .. }
        | Op::Array { .. }
        | Op::Free(_)
        | Op::Len(_)
        | Op::Bounds { .. }
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Call { .. }
        | Op::Read
        | Op::Eof
        | Op::Print(_)
        | Op::Assert(_) => SmallVec::new(),
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
