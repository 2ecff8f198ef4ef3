//! Makes random well-typed Atlas programs that end, for tests and fuzzing: the same seed and shape give the same text.
//!
//! The program is written as text, statement by statement, with the variables in scope and their types at hand. What leaving
//! SSA form gets wrong is drawn often: swaps and rotations in loops, values used after the loop that changed them, conditional
//! swaps, `break` and `continue` from nested loops, more live values than registers, calls with permuted arguments.
//!
//! Every run ends: each loop counts on a variable that nothing else assigns, recursion counts down a parameter, and a budget
//! of steps is kept while writing: a statement costs its loops' rounds, a call what its function costs. Divisions and indices
//! are made safe (`x / (y | 1)`, `v[i & 3]`) except where the shape allows traps, which some statements then may meet.
//!
//! **in**: nothing. **out**: a program that the checker accepts. Cost: linear in the text.

use crate::support::random::Random;
use std::fmt::Write;

/// What kind of program to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Functions besides the body, at most.
    pub functions: usize,
    /// Statements of one block, at most.
    pub statements: usize,
    /// How deep blocks nest, at most.
    pub depth: usize,
    /// Steps that a run takes, about.
    pub budget: u64,
    /// Leave some divisions, indices, lengths and assertions unguarded.
    pub traps: bool,
    /// Read standard input.
    pub input: bool,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { functions: 4, statements: 9, depth: 4, budget: 60_000, traps: false, input: false }
    }
}

impl Shape {
    /// The shape that a campaign uses for a seed: most are of the usual size, some small, some with traps or input.
    pub fn of_seed(seed: u64) -> Shape {
        let mut random = Random::new(seed ^ 0x5EED);
        let mut shape = Shape { traps: random.chance(30), input: random.chance(25), ..Shape::default() };
        match random.below(10) {
            0..=2 => {
                shape.functions = 1;
                shape.statements = 5;
                shape.depth = 3;
            }
            3 => {
                shape.functions = 8;
                shape.statements = 14;
            }
            _ => {}
        }
        shape
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ty {
    Int,
    Bool,
    Ints,
    Bools,
}

impl Ty {
    fn name(self) -> &'static str {
        match self {
            Ty::Int => "int",
            Ty::Bool => "bool",
            Ty::Ints => "[int]",
            Ty::Bools => "[bool]",
        }
    }

    fn is_array(self) -> bool {
        matches!(self, Ty::Ints | Ty::Bools)
    }
}

#[derive(Clone, Debug)]
struct Variable {
    name: String,
    ty: Ty,
    /// Loop counters are not assigned by what the loop holds.
    fixed: bool,
    /// An array's length, where it is known; at least 4 for parameters.
    length: Option<u64>,
}

#[derive(Clone, Debug)]
struct Signature {
    name: String,
    params: Vec<Ty>,
    result: Option<Ty>,
    /// Steps of one call, about. A recursive function's first parameter is at most 5.
    cost: u64,
    recursive: bool,
}

/// How loosely an expression binds, from `||` to a primary.
type Level = u8;
const PRIMARY: Level = 11;
const UNARY: Level = 10;
const OR: Level = 1;
const AND: Level = 2;
const COMPARE: Level = 3;

struct Loop {
    counter: String,
    /// Is the counter stepped at the end of the body, so that `continue` must step it?
    steps_at_end: bool,
}

struct Writer<'a> {
    random: Random,
    shape: &'a Shape,
    text: String,
    indent: usize,
    scopes: Vec<Vec<Variable>>,
    functions: Vec<Signature>,
    loops: Vec<Loop>,
    /// What the function being written returns; `None` in the body as well.
    result: Option<Ty>,
    in_body: bool,
    /// The signature of the function being written, if it may call itself here.
    itself: Option<Signature>,
    names: usize,
    /// Rounds of the loops around, multiplied.
    rounds: u64,
    /// Steps spent so far in the function being written.
    spent: u64,
    budget: u64,
}

/// The text of a random program.
pub fn generate(choices: impl Into<Random>, shape: &Shape) -> String {
    let mut writer = Writer {
        random: choices.into(),
        shape,
        text: String::new(),
        indent: 0,
        scopes: vec![Vec::new()],
        functions: Vec::new(),
        loops: Vec::new(),
        result: None,
        in_body: false,
        itself: None,
        names: 0,
        rounds: 1,
        spent: 0,
        budget: 0,
    };
    for _ in 0..writer.random.below(shape.functions + 1) {
        writer.function();
    }
    writer.body();
    writer.text
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.text.push_str("  ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn scalar(&mut self) -> Ty {
        if self.random.chance(75) { Ty::Int } else { Ty::Bool }
    }

    fn declare(&mut self, name: &str, ty: Ty, length: Option<u64>) {
        let variable = Variable { name: name.to_string(), ty, fixed: false, length };
        self.scopes.last_mut().expect("there is a scope").push(variable);
    }

    /// A name for a new variable: sometimes one of an outer block, which it then shadows.
    fn new_name(&mut self) -> String {
        if self.scopes.len() > 1 && self.random.chance(8) {
            let outer: Vec<String> = self.scopes[..self.scopes.len() - 1]
                .iter()
                .flatten()
                .filter(|variable| !variable.fixed)
                .map(|variable| variable.name.clone())
                .collect();
            let inner = &self.scopes[self.scopes.len() - 1];
            // Parameters and the body of a function share one block.
            let free: Vec<&String> = outer
                .iter()
                .filter(|name| inner.iter().all(|variable| variable.name != **name) && !name.starts_with('p'))
                .collect();
            if !free.is_empty() {
                return free[self.random.below(free.len())].clone();
            }
        }
        self.name("x")
    }

    /// The variables that can be named here: an inner one hides an outer one of its name.
    fn visible(&self, accept: impl Fn(&Variable) -> bool) -> Vec<Variable> {
        let mut seen: Vec<&str> = Vec::new();
        let mut found = Vec::new();
        for variable in self.scopes.iter().rev().flat_map(|scope| scope.iter().rev()) {
            if !seen.contains(&variable.name.as_str()) {
                seen.push(&variable.name);
                if accept(variable) {
                    found.push(variable.clone());
                }
            }
        }
        found
    }

    fn pick_variable(&mut self, accept: impl Fn(&Variable) -> bool) -> Option<Variable> {
        let found = self.visible(accept);
        if found.is_empty() {
            return None;
        }
        // Half the time one of the last few, so that values meet.
        let reach = if self.random.chance(50) { found.len().min(6) } else { found.len() };
        Some(found[self.random.below(reach)].clone())
    }

    fn function(&mut self) {
        let name = self.name("f");
        let recursive = self.random.chance(30);
        let mut params = Vec::new();
        if recursive {
            params.push(Ty::Int);
        }
        let count = if self.random.chance(15) { self.random.between(5, 11) } else { self.random.below(5) };
        for _ in 0..count {
            let ty = match self.random.below(10) {
                0..=5 => Ty::Int,
                6 | 7 => Ty::Bool,
                8 => Ty::Ints,
                _ => Ty::Bools,
            };
            params.push(ty);
        }
        let result = match self.random.below(10) {
            0..=5 => Some(Ty::Int),
            6 | 7 => Some(Ty::Bool),
            _ => None,
        };
        let mut header = format!("fn {name}(");
        self.scopes = vec![Vec::new()];
        for (position, ty) in params.iter().enumerate() {
            let param = self.name("p");
            let comma = if position == 0 { "" } else { ", " };
            write!(header, "{comma}{param}: {}", ty.name()).expect("a string takes all");
            self.declare(&param, *ty, None);
        }
        header.push(')');
        if let Some(result) = result {
            write!(header, " -> {}", result.name()).expect("a string takes all");
        }
        header.push_str(" {");
        let first = self.scopes[0].first().map(|variable| variable.name.clone());
        let start = self.text.len();
        self.line(&header);
        self.indent += 1;
        self.result = result;
        self.in_body = false;
        self.loops.clear();
        self.rounds = 1;
        self.spent = 1;
        self.budget = self.shape.budget / 40;
        let mut signature = Signature { name, params, result, cost: 0, recursive };
        if recursive {
            let fuel = first.expect("a recursive function has a parameter");
            self.scopes[0][0].fixed = true;
            let base = result.map_or("return;".to_string(), |ty| format!("return {};", self.leaf(ty).0));
            self.line(&format!("if ({fuel} <= 0) {{ {base} }}"));
            self.itself = Some(signature.clone());
            self.budget /= 8;
        }
        self.statements(self.shape.depth - 1);
        if let Some(ty) = result {
            let value = self.expression(ty, 3).0;
            self.line(&format!("return {value};"));
        }
        self.itself = None;
        self.indent -= 1;
        self.line("}");
        // A recursive function calls itself twice at most, 5 deep.
        signature.cost = if recursive { self.spent * 64 } else { self.spent };
        if signature.cost > self.shape.budget {
            self.text.truncate(start);
        } else {
            self.functions.push(signature);
        }
    }

    fn body(&mut self) {
        self.scopes = vec![Vec::new()];
        self.result = None;
        self.in_body = true;
        self.loops.clear();
        self.rounds = 1;
        self.spent = 0;
        self.budget = self.shape.budget;
        for _ in 0..self.random.between(1, 4) {
            let ty = self.scalar();
            self.let_scalar(ty);
        }
        if self.random.chance(15) {
            self.pressure();
        }
        self.statements(self.shape.depth);
        self.statements(self.shape.depth);
        self.print_all();
    }

    /// Prints every scalar in sight, and the arrays' elements folded, so that no wrong value stays unseen.
    fn print_all(&mut self) {
        let scalars = self.visible(|variable| !variable.ty.is_array());
        for chunk in scalars.chunks(8) {
            let names: Vec<String> = chunk.iter().map(|variable| variable.name.clone()).collect();
            self.line(&format!("print({});", names.join(", ")));
        }
        for array in self.visible(|variable| variable.ty.is_array()) {
            let (i, sum) = (self.name("i"), self.name("s"));
            let element = format!("{}[{i}]", array.name);
            let element = if array.ty == Ty::Bools { format!("int({element})") } else { element };
            self.line(&format!("let {i} = 0; let {sum} = 0;"));
            self.line(&format!(
                "while ({i} < len({name})) {{ {sum} = {sum} * 31 + {element}; {i} += 1; }}",
                name = array.name
            ));
            self.line(&format!("print({sum});"));
        }
    }

    /// More live values than registers: many variables made before a loop, mixed in it, printed after it.
    fn pressure(&mut self) {
        let count = self.random.between(14, 40);
        let names: Vec<String> = (0..count).map(|_| self.name("w")).collect();
        for name in &names {
            let value = self.leaf(Ty::Int).0;
            self.line(&format!("let {name} = {value};"));
        }
        let counter = self.name("i");
        let rounds = self.random.between(1, 5);
        self.line(&format!("let {counter} = 0;"));
        self.line(&format!("while ({counter} < {rounds}) {{"));
        self.indent += 1;
        for position in 0..count {
            let (other, third) = (self.random.below(count), self.random.below(count));
            let op = self.random.pick(&["+", "-", "^", "*", "&", "|"]);
            self.line(&format!("{} = {} {op} {};", names[position], names[other], names[third]));
        }
        self.line(&format!("{counter} += 1;"));
        self.indent -= 1;
        self.line("}");
        self.spent += (count * rounds) as u64;
        for name in &names {
            self.declare(name, Ty::Int, None);
        }
    }

    fn statements(&mut self, depth: usize) {
        for _ in 0..self.random.between(1, self.shape.statements) {
            self.spent += self.rounds;
            self.statement(depth);
        }
    }

    fn block(&mut self, depth: usize) {
        self.scopes.push(Vec::new());
        self.indent += 1;
        self.statements(depth);
        if self.random.chance(20) {
            self.leave();
        }
        self.indent -= 1;
        self.scopes.pop();
    }

    fn statement(&mut self, depth: usize) {
        let simple = depth == 0 || self.spent + self.rounds * 20 > self.budget;
        match self.random.below(if simple { 66 } else { 100 }) {
            0..=9 => {
                let ty = self.scalar();
                self.let_scalar(ty);
            }
            10..=14 => self.let_array(),
            15..=26 => self.assign(),
            27..=33 => self.compound(),
            34..=45 => self.rotate(),
            46..=53 => self.store(),
            54..=57 => self.print(),
            58..=60 => self.call_statement(),
            61 => self.assertion(),
            62..=63 if self.shape.input => self.input(),
            62..=65 => self.assign(),
            66..=79 => self.if_statement(depth - 1),
            80..=95 => self.while_statement(depth - 1),
            96..=97 => {
                self.line("{");
                self.block(depth - 1);
                self.line("}");
            }
            _ => {
                let cond = self.expression(Ty::Bool, 2).0;
                self.line(&format!("if ({cond}) {{"));
                self.scopes.push(Vec::new());
                self.indent += 1;
                self.leave();
                self.indent -= 1;
                self.scopes.pop();
                self.line("}");
            }
        }
    }

    /// A way out: of the loop, of the round or of the function; sometimes with dead code behind it.
    fn leave(&mut self) {
        let text = match (self.loops.last(), self.random.below(3)) {
            (Some(_), 0) => "break;".to_string(),
            (Some(innermost), 1) if innermost.steps_at_end => format!("{} += 1; continue;", innermost.counter),
            (Some(_), 1) => "continue;".to_string(),
            (Some(_) | None, _) => match self.result {
                Some(ty) => format!("return {};", self.expression(ty, 2).0),
                // The body should rarely end before it has printed what it computed.
                None if self.in_body && self.random.chance(90) => return self.print(),
                None => "return;".to_string(),
            },
        };
        self.line(&text);
        if self.random.chance(10) {
            self.assign();
        }
    }

    fn let_scalar(&mut self, ty: Ty) {
        let value = self.expression(ty, 3).0;
        let name = self.new_name();
        let annotation = if self.random.chance(15) { format!(": {}", ty.name()) } else { String::new() };
        self.line(&format!("let {name}{annotation} = {value};"));
        self.declare(&name, ty, None);
    }

    fn let_array(&mut self) {
        let (ty, element) = if self.random.chance(65) { (Ty::Ints, Ty::Int) } else { (Ty::Bools, Ty::Bool) };
        let length = if self.random.chance(5) { self.random.below(4) } else { self.random.between(4, 12) };
        self.spent += self.rounds * length as u64;
        if self.random.chance(60) || length == 0 {
            let value = self.expression(element, 2).0;
            let count = if self.shape.traps && self.random.chance(4) {
                self.expression(Ty::Int, 1).0
            } else {
                length.to_string()
            };
            // A length that may be anything must stay small where it is not an error.
            let (count, known) = if count == length.to_string() {
                (count, Some(length as u64))
            } else {
                (format!("({count}) % 64"), None)
            };
            let name = self.new_name();
            self.line(&format!("let {name} = [{value}; {count}];"));
            self.declare(&name, ty, known.or(Some(0)));
        } else {
            let elements: Vec<String> = (0..length).map(|_| self.expression(element, 1).0).collect();
            let name = self.new_name();
            self.line(&format!("let {name}: {} = [{}];", ty.name(), elements.join(", ")));
            self.declare(&name, ty, Some(length as u64));
        }
    }

    fn assign(&mut self) {
        let Some(target) = self.pick_variable(|variable| !variable.ty.is_array() && !variable.fixed) else {
            return self.let_scalar(Ty::Int);
        };
        let value = self.expression(target.ty, 3).0;
        self.line(&format!("{} = {value};", target.name));
    }

    fn compound(&mut self) {
        let Some(target) = self.pick_variable(|variable| !variable.ty.is_array() && !variable.fixed) else {
            return self.assign();
        };
        let (op, value) = self.compound_parts(target.ty);
        self.line(&format!("{} {op}= {value};", target.name));
    }

    fn compound_parts(&mut self, ty: Ty) -> (&'static str, String) {
        if ty == Ty::Bool {
            return (self.random.pick(&["&", "|", "^"]), self.expression(Ty::Bool, 2).0);
        }
        let op = self.random.pick(&["+", "-", "*", "&", "|", "^", "<<", ">>", "/", "%"]);
        let value = if matches!(op, "/" | "%") { self.divisor() } else { self.expression(Ty::Int, 2).0 };
        (op, value)
    }

    /// Variables of one type trade places: a swap, a rotation, or a chain that drops one value for a new one.
    fn rotate(&mut self) {
        let ty = self.scalar();
        let mut variables = self.visible(|variable| variable.ty == ty && !variable.fixed);
        if variables.len() < 2 {
            return self.let_scalar(ty);
        }
        self.random.shuffle(&mut variables);
        variables.truncate(self.random.between(2, 7));
        let names: Vec<&str> = variables.iter().map(|variable| variable.name.as_str()).collect();
        let mut moves = String::new();
        let temporary = self.name("t");
        if self.random.chance(75) {
            write!(moves, "{{ let {temporary} = {};", names[0]).expect("a string takes all");
        } else {
            let fresh = self.expression(ty, 2).0;
            write!(moves, "{{ let {temporary} = {fresh};").expect("a string takes all");
        }
        for pair in names.windows(2) {
            write!(moves, " {} = {};", pair[0], pair[1]).expect("a string takes all");
        }
        write!(moves, " {} = {temporary}; }}", names[names.len() - 1]).expect("a string takes all");
        if self.random.chance(25) {
            let cond = self.expression(Ty::Bool, 2).0;
            moves = format!("if ({cond}) {moves}");
        }
        self.spent += self.rounds * names.len() as u64;
        self.line(&moves);
    }

    fn store(&mut self) {
        let Some(array) = self.pick_variable(|variable| variable.ty.is_array() && variable.length != Some(0)) else {
            return self.assign();
        };
        let index = self.index(&array);
        let element = if array.ty == Ty::Ints { Ty::Int } else { Ty::Bool };
        if self.random.chance(40) {
            let (op, value) = self.compound_parts(element);
            self.line(&format!("{}[{index}] {op}= {value};", array.name));
        } else {
            let value = self.expression(element, 2).0;
            self.line(&format!("{}[{index}] = {value};", array.name));
        }
    }

    /// An index that is within bounds, unless the shape allows traps.
    fn index(&mut self, array: &Variable) -> String {
        if self.shape.traps && self.random.chance(5) {
            return self.expression(Ty::Int, 1).0;
        }
        match array.length {
            Some(length) if self.random.chance(40) => self.random.below(length as usize).to_string(),
            Some(length) if length >= 4 => {
                let (text, level) = self.expression(Ty::Int, 1);
                format!("{} & 3", if level <= 6 { format!("({text})") } else { text })
            }
            // A parameter's array may have no element at all: then the length is the trap's, not ours to guard.
            Some(_) => "0".to_string(),
            None => {
                let (text, level) = self.expression(Ty::Int, 1);
                format!("{} & 3", if level <= 6 { format!("({text})") } else { text })
            }
        }
    }

    fn print(&mut self) {
        let count = self.random.below(4);
        let mut args = Vec::new();
        for _ in 0..count {
            let arg = match self.random.below(8) {
                0 => self
                    .random
                    .pick(&["\"a\"", "\"\"", "\"x y\\n\"", "\"\\u{e9}\\t\\\"\"", "\"\\\\\"", "\"//\""])
                    .to_string(),
                1..=5 => self.expression(Ty::Int, 2).0,
                _ => self.expression(Ty::Bool, 2).0,
            };
            args.push(arg);
        }
        self.line(&format!("print({});", args.join(", ")));
    }

    fn assertion(&mut self) {
        let cond = if self.shape.traps && self.random.chance(30) {
            self.expression(Ty::Bool, 2).0
        } else {
            format!("({} & 7) >= 0", self.operand(Ty::Int, 1, 6))
        };
        self.line(&format!("assert({cond});"));
    }

    fn input(&mut self) {
        let Some(target) = self.pick_variable(|variable| variable.ty == Ty::Int && !variable.fixed) else {
            return self.line("eof();");
        };
        match self.random.below(4) {
            0 if self.shape.traps => self.line(&format!("{} = read();", target.name)),
            1 => self.line(&format!("if (!eof()) {{ {} += read(); }}", target.name)),
            _ => self.line(&format!("if (!eof()) {{ {} = read(); }}", target.name)),
        }
    }

    fn if_statement(&mut self, depth: usize) {
        let cond = self.expression(Ty::Bool, 3).0;
        let parentheses = self.random.chance(70);
        self.line(&if parentheses { format!("if ({cond}) {{") } else { format!("if {cond} {{") });
        self.block(depth);
        while self.random.chance(20) {
            let cond = self.expression(Ty::Bool, 2).0;
            self.line(&format!("}} else if ({cond}) {{"));
            self.block(depth);
        }
        if self.random.chance(45) {
            self.line("} else {");
            if self.random.chance(95) {
                self.block(depth);
            }
        }
        self.line("}");
    }

    fn while_statement(&mut self, depth: usize) {
        let rounds = if self.random.chance(10) { 0 } else { self.random.between(1, 6) as u64 };
        let counter = self.name("i");
        self.line(&format!("let {counter} = 0;"));
        let counter_variable = Variable { name: counter.clone(), ty: Ty::Int, fixed: true, length: None };
        self.scopes.last_mut().expect("there is a scope").push(counter_variable);
        let steps_at_end = self.random.chance(60);
        let outer = self.rounds;
        // The condition belongs to the loop: what it calls is called in every round.
        self.rounds *= rounds.max(1);
        self.loops.push(Loop { counter: counter.clone(), steps_at_end });
        let style = self.random.below(4);
        let header = match style {
            0 => "while (true) {".to_string(),
            1 => {
                let cond = self.operand(Ty::Bool, 2, COMPARE);
                format!("while ({counter} < {rounds} && {cond}) {{")
            }
            _ => format!("while ({counter} < {rounds}) {{"),
        };
        self.line(&header);
        self.indent += 1;
        if style == 0 {
            self.line(&format!("if ({counter} >= {rounds}) {{ break; }}"));
        }
        if !steps_at_end {
            self.line(&format!("{counter} += 1;"));
        }
        self.scopes.push(Vec::new());
        self.statements(depth);
        self.scopes.pop();
        self.loops.pop();
        if steps_at_end {
            self.line(&format!("{counter} += 1;"));
        }
        self.indent -= 1;
        self.line("}");
        self.rounds = outer;
        // What the loop left behind is used at once, as often as not.
        if self.random.chance(40) {
            self.print();
        }
    }

    fn call_statement(&mut self) {
        match self.call(|_| true) {
            Some(call) => self.line(&format!("{call};")),
            None => self.print(),
        }
    }

    /// A call of a function that fits the budget, if there is one; arrays are passed by name.
    fn call(&mut self, accept: impl Fn(&Signature) -> bool) -> Option<String> {
        let left = self.budget.saturating_sub(self.spent) / self.rounds;
        let mut candidates: Vec<Signature> =
            self.functions.iter().filter(|function| function.cost <= left && accept(function)).cloned().collect();
        // At most two calls of itself, outside of loops.
        if let Some(itself) = &self.itself
            && self.loops.is_empty()
            && accept(itself)
        {
            candidates.push(itself.clone());
        }
        if candidates.is_empty() {
            return None;
        }
        let callee = candidates[self.random.below(candidates.len())].clone();
        let is_itself = self.itself.as_ref().is_some_and(|itself| itself.name == callee.name);
        let mut args = Vec::new();
        for (position, ty) in callee.params.iter().enumerate() {
            if ty.is_array() {
                let array =
                    self.pick_variable(|variable| variable.ty == *ty && variable.length.is_none_or(|n| n >= 4))?;
                args.push(array.name);
            } else if position == 0 && callee.recursive {
                if is_itself {
                    let fuel = self.scopes[0][0].name.clone();
                    args.push(format!("{fuel} - 1"));
                } else {
                    args.push(self.random.below(6).to_string());
                }
            } else if self.random.chance(50) {
                // Mostly plain variables, so that arguments are permutations of what stands in registers.
                args.push(self.leaf(*ty).0);
            } else {
                args.push(self.expression(*ty, 1).0);
            }
        }
        if is_itself {
            self.spent += 1;
            let calls = self.spent_on_itself();
            if calls > 2 {
                self.itself = None;
            }
        } else {
            self.spent += self.rounds * callee.cost;
        }
        Some(format!("{}({})", callee.name, args.join(", ")))
    }

    /// Counts the calls of itself in the text of the function being written.
    fn spent_on_itself(&self) -> usize {
        let Some(itself) = &self.itself else { return 0 };
        let start = self.text.rfind(&format!("fn {}(", itself.name)).unwrap_or(0);
        self.text[start..].matches(&format!("{}(", itself.name)).count() + 1
    }

    /// A literal or a variable.
    fn leaf(&mut self, ty: Ty) -> (String, Level) {
        if self.random.chance(70)
            && let Some(variable) = self.pick_variable(|variable| variable.ty == ty)
        {
            return (variable.name, PRIMARY);
        }
        match ty {
            Ty::Bool => (self.random.pick(&["true", "false"]).to_string(), PRIMARY),
            Ty::Int => self.literal(),
            Ty::Ints | Ty::Bools => panic!("arrays are passed by name only"),
        }
    }

    fn literal(&mut self) -> (String, Level) {
        let value = self.random.integer();
        match self.random.below(12) {
            0 => (format!("{:#x}", value), PRIMARY),
            1 => (format!("{:#b}", value & 0xFFFF), PRIMARY),
            2 => (format!("{:#o}", value & 0xFFFFFF), PRIMARY),
            3 => (self.random.pick(&["'a'", "'\\n'", "'\\u{1F600}'", "'\\''", "' '"]).to_string(), PRIMARY),
            _ if value < 0 => (value.to_string(), UNARY),
            _ => (value.to_string(), PRIMARY),
        }
    }

    /// An expression for the right side of `/` or `%`: not zero, unless the shape allows traps.
    fn divisor(&mut self) -> String {
        if self.shape.traps && self.random.chance(5) {
            return format!("({})", self.expression(Ty::Int, 2).0);
        }
        match self.random.below(4) {
            0 => format!("({} | 1)", self.operand(Ty::Int, 1, 5)),
            1 => self.random.pick(&["-1", "-2", "3", "-7", "10", "1", "641"]).to_string(),
            2 => (1u64 << self.random.below(63)).to_string(),
            _ => {
                let value = self.random.integer();
                if value == 0 || value == i64::MIN { "5".to_string() } else { value.to_string() }
            }
        }
    }

    /// An expression in parentheses unless it binds at least as tightly as the level.
    fn operand(&mut self, ty: Ty, depth: usize, level: Level) -> String {
        let (text, own) = self.expression(ty, depth);
        if own < level || self.random.chance(4) { format!("({text})") } else { text }
    }

    fn expression(&mut self, ty: Ty, depth: usize) -> (String, Level) {
        if depth == 0 || self.random.chance(25) {
            return self.leaf(ty);
        }
        match ty {
            Ty::Int => self.int_expression(depth - 1),
            Ty::Bool => self.bool_expression(depth - 1),
            Ty::Ints | Ty::Bools => panic!("arrays are not expressions"),
        }
    }

    fn int_expression(&mut self, depth: usize) -> (String, Level) {
        match self.random.below(100) {
            0..=69 => {
                let (op, level) = self.random.pick(&[
                    ("+", 8),
                    ("+", 8),
                    ("-", 8),
                    ("-", 8),
                    ("*", 9),
                    ("&", 6),
                    ("|", 4),
                    ("^", 5),
                    ("<<", 7),
                    (">>", 7),
                    ("/", 9),
                    ("%", 9),
                ]);
                let left = self.operand(Ty::Int, depth, level);
                let right =
                    if matches!(op, "/" | "%") { self.divisor() } else { self.operand(Ty::Int, depth, level + 1) };
                (format!("{left} {op} {right}"), level)
            }
            70..=77 => {
                let op = self.random.pick(&["-", "~"]);
                let (text, own) = self.expression(Ty::Int, depth);
                // A literal of 2^63 stands directly under a minus only; `--` is no operator, but reads badly.
                let text = if own < UNARY || text.starts_with(['-', '9']) { format!("({text})") } else { text };
                (format!("{op}{text}"), UNARY)
            }
            78..=84 => (format!("int({})", self.expression(Ty::Bool, depth).0), PRIMARY),
            85..=91 => match self.pick_variable(|variable| variable.ty == Ty::Ints && variable.length != Some(0)) {
                Some(array) => (format!("{}[{}]", array.name, self.index(&array)), PRIMARY),
                None => self.leaf(Ty::Int),
            },
            92..=93 => match self.pick_variable(|variable| variable.ty.is_array()) {
                Some(array) => (format!("len({})", array.name), PRIMARY),
                None => self.leaf(Ty::Int),
            },
            _ => match self.call(|function| function.result == Some(Ty::Int)) {
                Some(call) => (call, PRIMARY),
                None => self.leaf(Ty::Int),
            },
        }
    }

    fn bool_expression(&mut self, depth: usize) -> (String, Level) {
        match self.random.below(100) {
            0..=54 => {
                let op = self.random.pick(&["==", "!=", "<", "<=", ">", ">="]);
                let ty = if matches!(op, "==" | "!=") && self.random.chance(15) { Ty::Bool } else { Ty::Int };
                let left = self.operand(ty, depth, COMPARE + 1);
                let right = self.operand(ty, depth, COMPARE + 1);
                (format!("{left} {op} {right}"), COMPARE)
            }
            55..=74 => {
                let (op, level) = self.random.pick(&[("&&", AND), ("||", OR)]);
                let left = self.operand(Ty::Bool, depth, level);
                let right = self.operand(Ty::Bool, depth, level + 1);
                (format!("{left} {op} {right}"), level)
            }
            75..=82 => {
                let (op, level) = self.random.pick(&[("&", 6), ("|", 4), ("^", 5)]);
                let left = self.operand(Ty::Bool, depth, level);
                let right = self.operand(Ty::Bool, depth, level + 1);
                (format!("{left} {op} {right}"), level)
            }
            83..=90 => (format!("!{}", self.operand(Ty::Bool, depth, UNARY)), UNARY),
            91..=95 => match self.pick_variable(|variable| variable.ty == Ty::Bools && variable.length != Some(0)) {
                Some(array) => (format!("{}[{}]", array.name, self.index(&array)), PRIMARY),
                None => self.leaf(Ty::Bool),
            },
            _ => match self.call(|function| function.result == Some(Ty::Bool)) {
                Some(call) => (call, PRIMARY),
                None => self.leaf(Ty::Bool),
            },
        }
    }
}

#[cfg(test)]
#[path = "generate_tests.rs"]
mod tests;
