//! Leaves SSA form by isolating every φ with parallel copies, of which those between values that do not interfere are never
//! made: what a copy would connect becomes one value.
//!
//! Boissinot, Darte, Rastello, de Dinechin, Guillon: Revisiting Out-of-SSA Translation for Correctness, Code Quality, and
//! Efficiency, 2009. Three ideas of theirs: the isolating copies of one place are one parallel copy, so that they do not
//! interfere with each other; two values interfere only if their live ranges overlap *and* they hold different values, and
//! in SSA form a copy holds what its source holds; and whether two classes of values interfere is found in one walk over
//! both in the order of the dominator tree, with a stack, where each member meets only its closest dominating member and,
//! behind that one, those that hold the same.
//!
//! ```text
//! b1: %3 = phi x [1 from b0, %4 from b2]       b0: … parallel %3 = 1, %4 = 2
//!     %4 = phi y [2 from b0, %3 from b2]   →   b2: … parallel %3 = %4, %4 = %3
//! ```
//!
//! There are three kinds of *members* of classes: the values of the function; for each φ what it is before the copy
//! behind it; for each of its operands what the copy in front of a terminator makes. The latter two, of one φ, are a class
//! from the start. Copies are tried from the innermost loops outwards.
//!
//! **In**: [`Form::Ssa`] without unreachable blocks, and without a branch whose edges go to one block with different
//! arguments ([`super::split_edges::run_twins`]). **Out**: [`Form::ParallelCopies`], where each class has one name; copies
//! within a class are gone, also those that were instructions. **Cost**: that of liveness; each test is linear in both
//! classes, or in what is above and below a value that is tested with a large one; and where the tests together would take more than a constant times the members, only small classes are
//! still tested: the copies between large ones stay.

use crate::analysis::cfg::Cfg;
use crate::analysis::dominators::DomTree;
use crate::analysis::live_points::{Phis, Place, Points};
use crate::analysis::loops::Loops;
use crate::ir::{Block, CopyOrigin, Form, Function, Op, Operand, Terminator, Value};
use cranelift_entity::{EntityRef, SecondaryMap};
use rustc_hash::FxHashMap;

/// What was done, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Copies that would isolate the φs.
    pub isolating: usize,
    /// Copies, isolating ones and instructions, whose sides became one value.
    pub coalesced: usize,
}

/// Leaves SSA form.
pub fn run(function: &mut Function) -> Facts {
    assert!(function.form == Form::Ssa, "values are coalesced in SSA form");
    let cfg = Cfg::compute(function);
    let dominators = DomTree::compute(function, &cfg);
    let loops = Loops::compute(function, &cfg, &dominators);
    let points = Points::compute(function, &cfg, &dominators, Phis::ByCopies);
    let mut webs = Webs::gather(function, &cfg, &points);
    let mut copies = webs.affinities(function);
    // Stable: copies of equal depth stay in the order of the listing.
    copies.sort_by_key(|copy| std::cmp::Reverse(loops.depth(copy.block)));
    let mut classes = Classes::new(&webs, &points);
    let mut facts = Facts { isolating: webs.isolating, coalesced: 0 };
    for copy in copies {
        facts.coalesced += usize::from(classes.coalesce(copy.destination, copy.source));
    }
    let Classes { class_of, classes, .. } = classes;
    let names = names(function, &mut webs, &class_of, &classes);
    rewrite(function, &cfg, &webs, &names);
    function.form = Form::ParallelCopies;
    facts
}

/// A member of a class, by number: values by theirs, then those that isolating makes.
type Member = u32;

/// What a member holds: two members with the same contents hold the same wherever both live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Contents {
    /// What this member is the first to hold.
    Of(Member),
    /// A constant.
    Constant(Operand),
}

/// What isolating one φ would make.
struct Web {
    phi: Value,
    block: Block,
    /// What the φ is before the copy behind it.
    start: Member,
    /// For each edge into the block what the copy at the end of the block before it makes, and its source.
    ends: Vec<(Member, Operand)>,
}

/// A copy whose sides may become one.
struct Affinity {
    destination: Member,
    source: Member,
    block: Block,
}

/// All members, by number.
struct Webs {
    values: usize,
    webs: Vec<Web>,
    /// Where each member is written; none for values that nothing writes.
    places: Vec<Option<Place>>,
    contents: Vec<Contents>,
    isolating: usize,
}

impl Webs {
    fn gather(function: &Function, cfg: &Cfg, points: &Points) -> Webs {
        let values = function.values.len();
        let member = |value: Value| value.index() as Member;
        let mut this = Webs {
            values,
            webs: Vec::new(),
            places: function
                .values
                .keys()
                .map(|value| points.is_written(value).then(|| points.written(value)))
                .collect(),
            contents: function.values.keys().map(|value| Contents::Of(member(value))).collect(),
            isolating: 0,
        };
        // Dominating blocks first, so that a copy finds what its source holds.
        for block in cfg.rpo() {
            for inst in &function.blocks[*block].insts {
                let data = &function.insts[*inst];
                if let (Op::Copy(source), Some(result)) = (&data.op, data.result.expand()) {
                    this.contents[result.index()] = this.held(*source);
                }
            }
        }
        for &block in &function.layout {
            let data = &function.blocks[block];
            for (number, phi) in data.params.iter().enumerate() {
                let start = this.add(points.start(block), Contents::Of(member(*phi)));
                let mut ends: Vec<(Member, Operand)> = Vec::with_capacity(cfg.preds(block).len());
                for (index, pred) in cfg.preds(block).iter().enumerate() {
                    let operand = pred.edge(function).args[number];
                    // Twin edges have the same copies.
                    let twin = index > 0 && cfg.preds(block)[index - 1].block == pred.block;
                    if twin {
                        let before = *ends.last().expect("the edge before has its copy");
                        assert!(before.1 == operand, "the twin edges from {} to {block} are not split", pred.block);
                        ends.push(before);
                    } else {
                        let held = this.held(operand);
                        ends.push((this.add(points.end(pred.block), held), operand));
                        this.isolating += 1;
                    }
                }
                this.isolating += 1;
                this.webs.push(Web { phi: *phi, block, start, ends });
            }
        }
        this
    }

    fn held(&self, operand: Operand) -> Contents {
        match operand {
            Operand::Value(value) => self.contents[value.index()],
            Operand::Int(_) | Operand::Bool(_) => Contents::Constant(operand),
        }
    }

    fn add(&mut self, place: Place, contents: Contents) -> Member {
        self.places.push(Some(place));
        self.contents.push(contents);
        self.places.len() as Member - 1
    }

    /// All copies between members, in the order of the listing.
    fn affinities(&self, function: &Function) -> Vec<Affinity> {
        let member = |value: Value| value.index() as Member;
        let mut found = Vec::new();
        for web in &self.webs {
            found.push(Affinity { destination: member(web.phi), source: web.start, block: web.block });
            for (end, operand) in &web.ends {
                if let Operand::Value(value) = operand {
                    let block = self.places[*end as usize].expect("copies have places").block;
                    found.push(Affinity { destination: *end, source: member(*value), block });
                }
            }
        }
        for &block in &function.layout {
            for inst in &function.blocks[block].insts {
                let data = &function.insts[*inst];
                if let (Op::Copy(Operand::Value(source)), Some(result)) = (&data.op, data.result.expand()) {
                    found.push(Affinity { destination: member(result), source: member(*source), block });
                }
            }
        }
        found
    }
}

/// No member.
const NONE: u32 = u32::MAX;

/// Classes up to this many members together are tested whatever the tests have cost. Less in unit tests, so that random
/// programs have large classes too.
const SMALL: usize = if cfg!(test) { 4 } else { 32 };

/// So many members that hold the same are looked through.
const CHAIN: usize = 64;

/// How many steps tests may take for each member before only small classes are tested.
const STEPS_PER_MEMBER: usize = 64;

/// The classes so far.
struct Classes<'a> {
    points: &'a Points<'a>,
    webs: &'a Webs,
    class_of: Vec<u32>,
    /// The members of each class, what dominates first; empty for classes that another one has taken in.
    classes: Vec<Vec<Member>>,
    /// For each member the closest member of its own class that dominates it, overlaps and holds the same.
    equal_above: Vec<Member>,
    /// The same in the class that it is tested with; valid during a test.
    equal_above_other: Vec<Member>,
    /// For each member the closest member of its own class that dominates it.
    parent: Vec<Member>,
    steps: usize,
}

impl<'a> Classes<'a> {
    fn new(webs: &'a Webs, points: &'a Points<'a>) -> Classes<'a> {
        let members = webs.places.len();
        let mut this = Classes {
            points,
            webs,
            class_of: (0..members as u32).collect(),
            classes: (0..members as u32).map(|member| vec![member]).collect(),
            equal_above: vec![NONE; members],
            equal_above_other: vec![NONE; members],
            parent: vec![NONE; members],
            steps: 0,
        };
        for web in &webs.webs {
            let mut members = vec![web.start];
            members.extend(web.ends.iter().map(|(end, _)| *end));
            members.sort_unstable();
            members.dedup();
            members.sort_by_key(|member| this.place(*member).key());
            for member in &members {
                this.classes[*member as usize] = Vec::new();
                this.class_of[*member as usize] = web.start;
            }
            this.link(&members);
            this.classes[web.start as usize] = members;
        }
        this
    }

    /// Finds for each member of a class, given in order, the closest one that dominates it.
    fn link(&mut self, members: &[Member]) {
        let mut above: Vec<Member> = Vec::new();
        for member in members {
            while above.last().is_some_and(|other| !self.place(*other).dominates(self.place(*member))) {
                above.pop();
            }
            self.parent[*member as usize] = above.last().copied().unwrap_or(NONE);
            above.push(*member);
        }
    }

    fn place(&self, member: Member) -> &'a Place {
        self.webs.places[member as usize].as_ref().expect("what is read is written")
    }

    /// Makes the classes of both members one, unless they interfere. Are they one now?
    fn coalesce(&mut self, a: Member, b: Member) -> bool {
        let (a, b) = (self.class_of[a as usize], self.class_of[b as usize]);
        if a == b {
            return true;
        }
        let together = self.classes[a as usize].len() + self.classes[b as usize].len();
        if together > SMALL {
            if self.steps > STEPS_PER_MEMBER * self.class_of.len() {
                return false;
            }
            if let [single] = self.classes[a as usize][..] {
                return self.insert(single, b);
            }
            if let [single] = self.classes[b as usize][..] {
                return self.insert(single, a);
            }
        }
        self.steps += together;
        let Some(merged) = self.merge(a, b) else { return false };
        for member in &merged {
            // The closer one of both: the one that the other dominates.
            let (own, other) = (self.equal_above[*member as usize], self.equal_above_other[*member as usize]);
            let key = |member: Member| (member != NONE).then(|| (self.place(member).key(), member));
            self.equal_above[*member as usize] = if key(own) >= key(other) { own } else { other };
        }
        let (kept, gone) =
            if self.classes[a as usize].len() >= self.classes[b as usize].len() { (a, b) } else { (b, a) };
        for member in std::mem::take(&mut self.classes[gone as usize]) {
            self.class_of[member as usize] = kept;
        }
        self.link(&merged);
        self.classes[kept as usize] = merged;
        true
    }

    /// Puts a member that is alone into a large class, unless it interferes with some of that: only the members above it
    /// and below it are looked at.
    fn insert(&mut self, single: Member, class: u32) -> bool {
        let place = *self.place(single);
        let contents = self.webs.contents[single as usize];
        let key = (place.key(), single);
        let members = &self.classes[class as usize];
        let at = members.partition_point(|member| (self.place(*member).key(), *member) < key);
        let below = members[at..].partition_point(|member| place.dominates(self.place(*member)));
        // The one in front of it has the closest that dominates it above itself.
        let mut parent = at.checked_sub(1).map_or(NONE, |before| members[before]);
        while parent != NONE && !self.place(parent).dominates(&place) {
            self.steps += 1;
            parent = self.parent[parent as usize];
        }
        // Moving what stands behind is cheap, but not free.
        self.steps += 1 + below + members.len() / 256;
        let Some(found) = self.overlapping(single, parent) else { return false };
        if found != NONE && self.webs.contents[parent as usize] != contents {
            return false;
        }
        let below: Vec<Member> = self.classes[class as usize][at..at + below].to_vec();
        let overlaps: Vec<bool> = below.iter().map(|member| self.overlap(single, *member)).collect();
        let differs =
            |(member, overlaps): (&Member, &bool)| *overlaps && self.webs.contents[*member as usize] != contents;
        if below.iter().zip(&overlaps).any(differs) {
            return false;
        }
        for (member, overlaps) in below.into_iter().zip(overlaps) {
            if self.parent[member as usize] == parent {
                self.parent[member as usize] = single;
            }
            let above = self.equal_above[member as usize];
            if overlaps && (above == NONE || (self.place(above).key(), above) < key) {
                self.equal_above[member as usize] = single;
            }
        }
        self.parent[single as usize] = parent;
        self.equal_above[single as usize] = found;
        self.classes[class as usize].insert(at, single);
        self.classes[self.class_of[single as usize] as usize].clear();
        self.class_of[single as usize] = class;
        true
    }

    /// The members of both classes in order, unless some of the one interfere with some of the other.
    fn merge(&mut self, a: u32, b: u32) -> Option<Vec<Member>> {
        let (left, right) =
            (std::mem::take(&mut self.classes[a as usize]), std::mem::take(&mut self.classes[b as usize]));
        let merged = self.merge_lists(&left, &right, a);
        self.classes[a as usize] = left;
        self.classes[b as usize] = right;
        merged
    }

    fn merge_lists(&mut self, left: &[Member], right: &[Member], left_class: u32) -> Option<Vec<Member>> {
        let order = |this: &Self, member: Member| (this.place(member).key(), member);
        let mut merged: Vec<Member> = Vec::with_capacity(left.len() + right.len());
        // The members that dominate the one in hand, the closest one last.
        let mut above: Vec<Member> = Vec::new();
        let (mut next_left, mut next_right) = (0, 0);
        loop {
            let current = match (left.get(next_left), right.get(next_right)) {
                (None, None) => return Some(merged),
                (Some(l), Some(r)) if order(self, *l) > order(self, *r) => {
                    next_right += 1;
                    *r
                }
                (Some(l), _) => {
                    next_left += 1;
                    *l
                }
                (None, Some(r)) => {
                    next_right += 1;
                    *r
                }
            };
            while above.last().is_some_and(|member| !self.place(*member).dominates(self.place(current))) {
                above.pop();
            }
            self.equal_above_other[current as usize] = NONE;
            if let Some(parent) = above.last() {
                let is_left = |member: Member| self.class_of[member as usize] == left_class;
                // Of the other class, the closest candidate above: the parent, or what overlaps the parent and holds
                // the same. What overlaps the current one overlaps the parent too, and so must hold what that holds.
                let start = if is_left(*parent) == is_left(current) {
                    self.equal_above_other[*parent as usize]
                } else {
                    *parent
                };
                let found = self.overlapping(current, start)?;
                if found != NONE && self.webs.contents[current as usize] != self.webs.contents[*parent as usize] {
                    return None;
                }
                self.equal_above_other[current as usize] = found;
            }
            above.push(current);
            merged.push(current);
        }
    }

    /// The first of a member and those above it that hold the same which overlaps the current one, [`NONE`] if none
    /// does. None at all if there are too many to look at.
    fn overlapping(&mut self, current: Member, start: Member) -> Option<Member> {
        let mut candidate = start;
        for _ in 0..CHAIN {
            if candidate == NONE || self.overlap(candidate, current) {
                return Some(candidate);
            }
            self.steps += 1;
            candidate = self.equal_above[candidate as usize];
        }
        None
    }

    /// Do the live ranges overlap, given that the place of the first dominates that of the second? What is written at one
    /// place overlaps, even if it is read nowhere: one name cannot take two values at once.
    fn overlap(&self, above: Member, below: Member) -> bool {
        let (first, second) = (self.place(above), self.place(below));
        if first.key() == second.key() {
            return true;
        }
        // What isolating makes is read by the next copies, or on the edge: nothing is written in between.
        match above as usize >= self.webs.values {
            true => false,
            false => self.points.lives_behind(Value::new(above as usize), second),
        }
    }
}

/// The name of each member's class, by member: a parameter, else the first φ, else the first value, else a new value.
fn names(function: &mut Function, webs: &mut Webs, class_of: &[u32], classes: &[Vec<Member>]) -> Vec<Value> {
    let mut is_phi: SecondaryMap<Value, bool> = SecondaryMap::new();
    webs.webs.iter().for_each(|web| is_phi[web.phi] = true);
    let mut is_param: SecondaryMap<Value, bool> = SecondaryMap::new();
    function.params.iter().for_each(|param| is_param[*param] = true);
    let values = webs.values;
    let mut name_of_class: Vec<Option<Value>> = classes
        .iter()
        .map(|members| {
            let own = || members.iter().filter(|member| (**member as usize) < values).map(|m| Value::new(*m as usize));
            own().find(|value| is_param[*value]).or_else(|| own().find(|value| is_phi[*value])).or_else(|| own().next())
        })
        .collect();
    for web in &webs.webs {
        let name = &mut name_of_class[class_of[web.start as usize] as usize];
        if name.is_none() {
            let (ty, variable) = (function.values[web.phi].ty, function.values[web.phi].variable.expand());
            *name = Some(function.make_value(ty, variable));
        }
    }
    class_of.iter().map(|class| name_of_class[*class as usize].expect("every class has a name")).collect()
}

/// Gives everything the name of its class, and makes the copies that are left.
fn rewrite(function: &mut Function, cfg: &Cfg, webs: &Webs, names: &[Value]) {
    let name = |operand: Operand| match operand {
        Operand::Value(value) => Operand::Value(names[value.index()]),
        Operand::Int(_) | Operand::Bool(_) => operand,
    };
    let mut starts: FxHashMap<Block, Vec<(Value, Operand)>> = FxHashMap::default();
    let mut ends: FxHashMap<Block, End> = FxHashMap::default();
    for web in &webs.webs {
        let (destination, source) = (names[web.phi.index()], names[web.start as usize]);
        if destination != source {
            starts.entry(web.block).or_default().push((destination, Operand::Value(source)));
        }
        for (pred, (end, operand)) in cfg.preds(web.block).iter().zip(&web.ends) {
            let (destination, source) = (names[*end as usize], name(*operand));
            let origin = CopyOrigin::Phi { phi: web.phi, pred: pred.block, edge: pred.edge };
            if Operand::Value(destination) != source {
                ends.entry(pred.block).or_default().push(destination, source, origin);
            }
        }
    }
    for block in function.layout.clone() {
        let mut insts = Vec::with_capacity(function.blocks[block].insts.len() + 2);
        let span = function.blocks[block].term_span;
        if let Some(copies) = starts.remove(&block) {
            insts.push(function.make_inst(Op::Parallel(distinct(copies)), None, span));
        }
        for inst in std::mem::take(&mut function.blocks[block].insts) {
            let data = &mut function.insts[inst];
            data.op.for_each_operand_mut(|operand| *operand = name(*operand));
            data.result = data.result.expand().map(|value| names[value.index()]).into();
            if let (Op::Copy(Operand::Value(source)), Some(result)) = (&data.op, data.result.expand())
                && *source == result
            {
                continue;
            }
            insts.push(inst);
        }
        if let Some(end) = ends.remove(&block) {
            let inst = function.make_inst(Op::Parallel(distinct(end.copies)), None, span);
            if let (Terminator::Jump(_), Some(origin)) = (&function.blocks[block].term, end.origin) {
                function.copy_origins.insert(inst, origin);
            }
            insts.push(inst);
        }
        let data = &mut function.blocks[block];
        data.insts = insts;
        data.params.clear();
        data.term.for_each_operand_mut(|operand| *operand = name(*operand));
        data.term.edges_mut().for_each(|edge| edge.args.clear());
    }
}

/// The copies in front of a terminator.
#[derive(Default)]
struct End {
    copies: Vec<(Value, Operand)>,
    origin: Option<CopyOrigin>,
}

impl End {
    fn push(&mut self, destination: Value, source: Operand, origin: CopyOrigin) {
        self.copies.push((destination, source));
        self.origin.get_or_insert(origin);
    }
}

/// Where two copies of one place have one destination, their sources hold the same, as both are in its class: one will do.
fn distinct(mut copies: Vec<(Value, Operand)>) -> Vec<(Value, Operand)> {
    let mut seen = rustc_hash::FxHashSet::default();
    copies.retain(|(destination, _)| seen.insert(*destination));
    copies
}
