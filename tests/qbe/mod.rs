//! A small interpreter of the part of QBE's language that the export writes, with the C functions that its prelude calls, for
//! tests: it says what the text means, and refuses what QBE's own checks would (temporaries that are not assigned, words
//! used as longs, φs that do not name the block that control comes from). It is no substitute for QBE itself.

use std::collections::HashMap;
use std::rc::Rc;

/// What a run has shown.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    pub output: Vec<u8>,
    pub errors: String,
    pub status: i32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Word,
    Long,
}

#[derive(Debug)]
struct Inst {
    result: Option<(String, Class)>,
    op: String,
    args: Vec<String>,
}

#[derive(Debug, Default)]
struct Function {
    params: Vec<(String, Class)>,
    /// Label and instructions of each block, in order.
    blocks: Vec<(String, Vec<Inst>)>,
}

struct Machine<'a> {
    functions: HashMap<String, Rc<Function>>,
    /// Addresses of data.
    data: HashMap<String, u64>,
    memory: Vec<u8>,
    input: &'a [u8],
    output: Vec<u8>,
    errors: String,
    steps: u64,
}

/// Why a function ends other than by returning.
struct Exit(i32);

/// Runs the text's `$main`. `None` if that takes too many steps or too deep calls.
pub fn run(text: &str, input: &[u8]) -> Option<Shown> {
    let mut machine = Machine {
        functions: HashMap::new(),
        data: HashMap::new(),
        memory: vec![0; 4096],
        input,
        output: Vec::new(),
        errors: String::new(),
        steps: 0,
    };
    machine.read(text);
    machine.data.insert("stdout".to_string(), 8);
    let status = match machine.call("main", &[], 0) {
        Ok(result) => result as i32,
        Err(Exit(-1)) => return None,
        Err(Exit(status)) => status,
    };
    Some(Shown { output: machine.output, errors: machine.errors, status })
}

fn class(text: &str) -> Class {
    match text {
        "w" => Class::Word,
        "l" => Class::Long,
        other => panic!("`{other}` is no class"),
    }
}

impl Machine<'_> {
    // ---- Reading

    fn read(&mut self, text: &str) {
        let mut function: Option<(String, Function)> = None;
        for line in text.lines() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
            } else if let Some(rest) = line.strip_prefix("data $") {
                self.read_data(rest);
            } else if let Some(rest) = line.strip_prefix("function ").or(line.strip_prefix("export function ")) {
                let (head, params) = rest.split_once('(').expect("a function has parameters");
                let name = head.rsplit_once('$').expect("a name").1.to_string();
                let params = params.trim_end_matches(") {");
                let param = |text: &str| {
                    let (kind, name) = text.trim().split_once(' ').expect("a class and a name");
                    (name.to_string(), class(kind))
                };
                let params = params.split(',').filter(|text| !text.is_empty()).map(param).collect();
                function = Some((name, Function { params, blocks: Vec::new() }));
            } else if line == "}" {
                let (name, function) = function.take().expect("a function is open");
                assert!(self.functions.insert(name.clone(), Rc::new(function)).is_none(), "${name} is defined twice");
            } else if let Some(label) = line.strip_prefix('@') {
                let (_, function) = function.as_mut().expect("a function is open");
                assert!(function.blocks.iter().all(|(other, _)| other != label), "@{label} stands twice");
                function.blocks.push((label.to_string(), Vec::new()));
            } else {
                let (_, function) = function.as_mut().expect("a function is open");
                function.blocks.last_mut().expect("a block is open").1.push(inst(line.trim()));
            }
        }
    }

    fn read_data(&mut self, rest: &str) {
        let (name, items) = rest.split_once(" = { ").expect("data has items");
        let items = items.strip_suffix(" }").expect("data ends");
        let address = self.allocate(0);
        // A comma within quotes is text.
        let mut quoted = false;
        let parts = items.split(|c| {
            quoted ^= c == '"';
            c == ',' && !quoted
        });
        for part in parts {
            let (kind, value) = part.trim().split_once(' ').expect("a kind and a value");
            match (kind, value.strip_prefix('"')) {
                ("b", Some(text)) => self.memory.extend(text.strip_suffix('"').expect("a quote").bytes()),
                ("b", None) => self.memory.push(value.parse().expect("a byte")),
                ("w", None) => self.memory.extend(value.parse::<i32>().expect("a word").to_le_bytes()),
                (_, _) => panic!("data of kind {kind}"),
            }
        }
        self.data.insert(name.to_string(), address);
    }

    fn allocate(&mut self, bytes: u64) -> u64 {
        self.memory.resize(self.memory.len().next_multiple_of(16) + 16, 0xAA);
        let address = self.memory.len() as u64;
        self.memory.resize(self.memory.len() + bytes as usize, 0xAA);
        address
    }

    // ---- Running

    fn call(&mut self, name: &str, args: &[u64], depth: u32) -> Result<u64, Exit> {
        if !self.functions.contains_key(name) {
            return self.external(name, args);
        }
        if depth > 200 {
            return Err(Exit(-1));
        }
        let function = Rc::clone(&self.functions[name]);
        assert_eq!(function.params.len(), args.len(), "${name} gets so many arguments");
        let mut temps: HashMap<&str, (Class, u64)> = HashMap::new();
        for ((param, class), arg) in function.params.iter().zip(args) {
            temps.insert(param, (*class, cut(*class, *arg)));
        }
        let (mut from, mut at) = ("", 0);
        'blocks: loop {
            let (label, insts) = &function.blocks[at];
            let find = |label: &str| {
                let label = label.strip_prefix('@').expect("a label");
                function
                    .blocks
                    .iter()
                    .position(|(other, _)| other == label)
                    .unwrap_or_else(|| panic!("no block @{label}"))
            };
            let phis: Vec<_> = insts
                .iter()
                .take_while(|inst| inst.op == "phi")
                .map(|inst| {
                    let (result, class) = inst.result.as_ref().expect("a phi has a result");
                    let pair = inst.args.iter().find_map(|arg| {
                        let (block, value) = arg.split_once(' ').expect("a block and a value");
                        (block.strip_prefix('@') == Some(from)).then_some(value)
                    });
                    let value = pair.unwrap_or_else(|| panic!("{result} in @{label} has nothing for @{from}"));
                    (result.as_str(), *class, self.value(&temps, value, *class))
                })
                .collect();
            for (result, class, value) in phis.iter() {
                temps.insert(result, (*class, cut(*class, *value)));
            }
            for inst in &insts[phis.len()..] {
                self.steps += 1;
                if self.steps > 3_000_000 {
                    return Err(Exit(-1));
                }
                let arg = |n: usize, class: Class| self.value(&temps, &inst.args[n], class);
                match inst.op.as_str() {
                    "jmp" => {
                        (from, at) = (label, find(&inst.args[0]));
                        continue 'blocks;
                    }
                    "jnz" => {
                        let target = if arg(0, Class::Word) as u32 != 0 { 1 } else { 2 };
                        (from, at) = (label, find(&inst.args[target]));
                        continue 'blocks;
                    }
                    "ret" => return Ok(inst.args.first().map_or(0, |_| arg(0, Class::Word))),
                    "hlt" => panic!("control comes to `hlt` in ${name}"),
                    "storel" | "storew" | "storeb" => {
                        let (bytes, class) = match inst.op.as_str() {
                            "storel" => (8, Class::Long),
                            "storew" => (4, Class::Word),
                            _ => (1, Class::Word),
                        };
                        let (value, address) = (arg(0, class), arg(1, Class::Long) as usize);
                        self.memory[address..address + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                    }
                    "call" => {
                        let callee = inst.args[0].strip_prefix('$').expect("a function");
                        let values: Vec<u64> = inst.args[1..]
                            .iter()
                            .filter(|arg| *arg != "...")
                            .map(|arg| {
                                let (kind, value) = arg.split_once(' ').expect("a class and a value");
                                self.value(&temps, value, class(kind))
                            })
                            .collect();
                        let result = self.call(callee, &values, depth + 1)?;
                        if let Some((name, class)) = &inst.result {
                            temps.insert(name, (*class, cut(*class, result)));
                        }
                    }
                    op => {
                        let (result, class) = inst.result.as_ref().unwrap_or_else(|| panic!("{op} has no result"));
                        let value = compute(op, *class, arg, &self.memory);
                        temps.insert(result, (*class, cut(*class, value)));
                    }
                }
            }
            (from, at) = (label, at + 1);
        }
    }

    /// A temporary, a constant or an address. A long may be used as a word, not the other way round.
    fn value(&self, temps: &HashMap<&str, (Class, u64)>, text: &str, wanted: Class) -> u64 {
        if text.starts_with('%') {
            let (class, value) = temps.get(text).unwrap_or_else(|| panic!("{text} is read and not assigned"));
            assert!(wanted == Class::Word || *class == Class::Long, "{text} is a word, used as a long");
            return *value;
        }
        match text.strip_prefix('$') {
            Some(name) => *self.data.get(name).unwrap_or_else(|| panic!("${name} is no data")),
            None => text.parse::<i64>().unwrap_or_else(|_| panic!("`{text}` is no value")) as u64,
        }
    }

    fn text(&self, address: u64) -> String {
        let bytes = &self.memory[address as usize..];
        let end = bytes.iter().position(|byte| *byte == 0).expect("a text ends");
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    fn format(&self, args: &[u64]) -> String {
        let format = self.text(args[0]);
        let mut args = args[1..].iter();
        let mut out = String::new();
        let mut rest = format.as_str();
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let mut arg = || *args.next().expect("as many arguments as the format wants");
            if let Some(tail) = rest.strip_prefix("lld") {
                out.push_str(&(arg() as i64).to_string());
                rest = tail;
            } else {
                match &rest[..1] {
                    "d" => out.push_str(&(arg() as i32).to_string()),
                    "c" => out.push(char::from(arg() as u8)),
                    "s" => out.push_str(&self.text(arg())),
                    other => panic!("%{other} in a format"),
                }
                rest = &rest[1..];
            }
        }
        out + rest
    }

    fn external(&mut self, name: &str, args: &[u64]) -> Result<u64, Exit> {
        Ok(match (name, args) {
            ("fflush", [0]) => 0,
            ("dprintf", [2, rest @ ..]) => {
                let text = self.format(rest);
                self.errors.push_str(&text);
                text.len() as u64
            }
            ("printf", args) => {
                let text = self.format(args);
                self.output.extend(text.bytes());
                text.len() as u64
            }
            ("fwrite", [text, 1, bytes, _]) => {
                let (start, bytes) = (*text as usize, *bytes as usize);
                self.output.extend_from_slice(&self.memory[start..start + bytes]);
                bytes as u64
            }
            ("putchar", [c]) => {
                self.output.push(*c as u8);
                *c
            }
            ("getchar", []) => match self.input.split_first() {
                Some((first, rest)) => {
                    self.input = rest;
                    u64::from(*first)
                }
                None => -1i64 as u64,
            },
            ("malloc" | "calloc", [.., bytes]) => {
                if *bytes > 1 << 28 {
                    return Ok(0);
                }
                let address = self.allocate(*bytes);
                if name == "calloc" {
                    self.memory[address as usize..].fill(0);
                }
                address
            }
            ("memset", [at, value, bytes]) => {
                let start = *at as usize;
                self.memory[start..start + *bytes as usize].fill(*value as u8);
                *at
            }
            ("free", [at]) => {
                // Nothing is used again; what is left there is noise.
                let length =
                    u64::from_le_bytes(self.memory[*at as usize..*at as usize + 8].try_into().expect("8 bytes"));
                assert_ne!(length, 0xDEAD_DEAD_DEAD_DEAD, "an array is freed twice");
                self.memory[*at as usize..*at as usize + 8].fill(0xAD);
                0
            }
            ("exit", [status]) => return Err(Exit(*status as i32)),
            (_, _) => panic!("${name} of {} arguments is not known", args.len()),
        })
    }
}

fn cut(class: Class, value: u64) -> u64 {
    match class {
        Class::Word => u64::from(value as u32),
        Class::Long => value,
    }
}

fn compute(op: &str, class: Class, arg: impl Fn(usize, Class) -> u64, memory: &[u8]) -> u64 {
    let load = |bytes: usize| {
        let address = arg(0, Class::Long) as usize;
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(&memory[address..address + bytes]);
        u64::from_le_bytes(value)
    };
    // Signed values of an operation of this class.
    let signed = |n: usize, class: Class| match class {
        Class::Word => i64::from(arg(n, class) as i32),
        Class::Long => arg(n, class) as i64,
    };
    let (a, b) = (|| signed(0, class), || signed(1, class));
    let count = || arg(1, Class::Word) as u32 & if class == Class::Long { 63 } else { 31 };
    let result = match op {
        "copy" => a(),
        "neg" => a().wrapping_neg(),
        "add" => a().wrapping_add(b()),
        "sub" => a().wrapping_sub(b()),
        "mul" => a().wrapping_mul(b()),
        "and" => a() & b(),
        "or" => a() | b(),
        "xor" => a() ^ b(),
        "shl" => a().wrapping_shl(count()),
        "sar" => a().wrapping_shr(count()),
        // The machine faults on these; so does this.
        "div" => a().checked_div(b()).expect("a division without a fault"),
        "rem" => a().checked_rem(b()).expect("a division without a fault"),
        "udiv" => (cut(class, arg(0, class)) / cut(class, arg(1, class))) as i64,
        "extuw" => return u64::from(arg(0, Class::Word) as u32),
        "loadl" => return load(8),
        "loadw" => return load(4),
        "loadub" => return load(1),
        _ => {
            let compared = match op.strip_prefix('c').map(|op| op.split_at(op.len() - 1)) {
                Some((relation, "w")) => Some((relation, Class::Word)),
                Some((relation, "l")) => Some((relation, Class::Long)),
                Some(_) | None => None,
            };
            let Some((relation, class)) = compared else { panic!("`{op}` is not known") };
            let (a, b) = (signed(0, class), signed(1, class));
            let (ua, ub) = (cut(class, a as u64), cut(class, b as u64));
            i64::from(match relation {
                "eq" => a == b,
                "ne" => a != b,
                "slt" => a < b,
                "sle" => a <= b,
                "sgt" => a > b,
                "sge" => a >= b,
                "ult" => ua < ub,
                "ule" => ua <= ub,
                other => panic!("no comparison `{other}`"),
            })
        }
    };
    result as u64
}

/// `%t =w op a, b`, `call $f(w 1, l %x)`, `%p =l phi @a 1, @b %x`.
fn inst(line: &str) -> Inst {
    let (result, rest) = match line.split_once(" =") {
        Some((name, rest)) if name.starts_with('%') => {
            let (kind, rest) = rest.split_once(' ').expect("an operation");
            (Some((name.to_string(), class(kind))), rest)
        }
        Some(_) | None => (None, line),
    };
    let (op, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let args: Vec<String> = if op == "call" {
        let (callee, args) = rest.split_once('(').expect("a call has arguments");
        let args = args.strip_suffix(')').expect("a call ends");
        let args = args.split(',').map(str::trim).filter(|arg| !arg.is_empty());
        std::iter::once(callee).chain(args).map(String::from).collect()
    } else {
        rest.split(',').map(str::trim).filter(|arg| !arg.is_empty()).map(String::from).collect()
    };
    Inst { result, op: op.to_string(), args }
}
