//! Bytes → assembly in Intel syntax, which the GNU assembler reads: the only door to `iced-x86`.
//!
//! Everything is read back from the bytes, so that a listing shows what runs, not what was meant. Blocks keep their
//! numbers as labels, code out of line has labels of its own, and what linking fills in shows its symbol.
//!
//! ```text
//! atl_gcd:
//! .Lgcd.b1: # 2: while (b != 0) {
//!         test    rsi, rsi
//!         je      .Lgcd.b3
//! ```
//!
//! **in** encoded code · **out** a listing, a section for each function and one for the data. Cost: linear.

use super::code::{FunctionCode, ProgramCode, Target};
use crate::support::listing::{Entity, Kind, Line, Listing, Section};
use crate::support::span::{Source, Span};
use crate::x64::runtime::SOURCE_SYMBOL;
use cranelift_entity::EntityRef;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, FormatterOutput, FormatterTextKind, Instruction, IntelFormatter,
    MemorySizeOptions, Mnemonic, NumberBase, Register, SymbolResolver, SymbolResult,
};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// The whole program; with a source, each line of it stands as a comment before the code that it became.
pub fn run(program: &ProgramCode, source: Option<&Source>) -> Listing {
    let mut head = Line::new();
    head.put(Kind::Plain, "        ").put(Kind::Keyword, ".intel_syntax").put(Kind::Plain, " noprefix");
    let mut text = Line::new();
    text.put(Kind::Plain, "        ").put(Kind::Keyword, ".text");
    let mut sections = vec![Section { function: None, lines: vec![head, text] }];
    let mut names = Names::new(program);
    for (id, function) in &program.functions {
        sections.push(names.function(id.index(), function, source));
    }
    sections.push(data(program));
    Listing { sections }
}

/// One instruction as text, with what tests of the encoder ask about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decoded {
    /// Where it starts.
    pub offset: u64,
    /// Its bytes.
    pub size: usize,
    /// Its text; operands of jumps are offsets.
    pub text: String,
    /// Where it jumps to, if it is a jump within the code.
    pub target: Option<u64>,
}

/// The instructions of some bytes, without names.
pub fn decode(bytes: &[u8]) -> Vec<Decoded> {
    let mut formatter = IntelFormatter::new();
    set_options(&mut formatter);
    let decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    decoder
        .into_iter()
        .map(|instruction| {
            let mut text = String::new();
            formatter.format(&instruction, &mut text);
            let is_jump =
                matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
            let target = is_jump.then(|| instruction.near_branch_target());
            Decoded { offset: instruction.ip(), size: instruction.len(), text, target }
        })
        .collect()
}

fn set_options(formatter: &mut IntelFormatter) {
    let options = formatter.options_mut();
    options.set_number_base(NumberBase::Decimal);
    options.set_space_after_operand_separator(true);
    options.set_signed_immediate_operands(true);
    options.set_rip_relative_addresses(true);
    options.set_show_branch_size(false);
    // Three operands stay three, though two of them are one.
    options.set_use_pseudo_ops(false);
}

/// A label of a function's code: its address is the offset in the function.
type Labels = FxHashMap<u64, String>;

/// What the formatter asks: the symbol at an address within one function.
#[derive(Default)]
struct Resolver {
    labels: Labels,
    /// The symbols that linking fills in, by the offset of the four bytes.
    relocs: FxHashMap<u64, String>,
}

struct SharedResolver(Rc<RefCell<Resolver>>);

impl SymbolResolver for SharedResolver {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _: u32,
        _: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        let resolver = self.0.borrow();
        let inside = instruction.ip()..instruction.next_ip();
        let reloc = inside.clone().find_map(|offset| resolver.relocs.get(&offset));
        let is_jump = instruction.flow_control() != FlowControl::Next;
        let name = match reloc {
            Some(name) if is_jump || instruction.is_ip_rel_memory_operand() => name,
            _ if is_jump => resolver.labels.get(&address)?,
            _ => return None,
        };
        Some(SymbolResult::with_string(address, name.clone()))
    }
}

/// Collects what the formatter writes as pieces of a line.
struct Pieces<'a> {
    line: &'a mut Line,
}

impl FormatterOutput for Pieces<'_> {
    fn write(&mut self, text: &str, kind: FormatterTextKind) {
        let kind = match kind {
            FormatterTextKind::Mnemonic | FormatterTextKind::Prefix | FormatterTextKind::Directive => Kind::Keyword,
            FormatterTextKind::Number => Kind::Literal,
            FormatterTextKind::Register => Kind::Value,
            FormatterTextKind::Keyword => Kind::Type,
            FormatterTextKind::Label
            | FormatterTextKind::Function
            | FormatterTextKind::LabelAddress
            | FormatterTextKind::FunctionAddress
            | FormatterTextKind::Data => Kind::Name,
            _ => Kind::Plain,
        };
        self.line.put(kind, text);
    }

    fn write_register(&mut self, _: &Instruction, _: u32, _: Option<u32>, text: &str, register: Register) {
        let full = register.full_register();
        if full.is_gpr64() {
            let number = full as u32 - Register::RAX as u32;
            self.line.refer(Kind::Value, text, Entity::PReg(number));
        } else {
            self.line.put(Kind::Value, text);
        }
    }
}

struct Names<'a> {
    program: &'a ProgramCode,
    resolver: Rc<RefCell<Resolver>>,
    formatter: IntelFormatter,
}

impl<'a> Names<'a> {
    fn new(program: &'a ProgramCode) -> Names<'a> {
        let resolver = Rc::new(RefCell::new(Resolver::default()));
        let mut formatter = IntelFormatter::with_options(Some(Box::new(SharedResolver(Rc::clone(&resolver)))), None);
        set_options(&mut formatter);
        formatter.options_mut().set_first_operand_char_index(8);
        Names { program, resolver, formatter }
    }

    fn symbol(&self, target: Target) -> String {
        match target {
            Target::Function(id) => self.program.functions[id].symbol.clone(),
            Target::Runtime(function) => function.symbol().to_string(),
            Target::Str(string) => format!(".L{string}"),
        }
    }

    fn function(&mut self, index: usize, code: &FunctionCode, source: Option<&Source>) -> Section {
        let decoded: Vec<Instruction> =
            Decoder::with_ip(64, &code.bytes, 0, DecoderOptions::NONE).into_iter().collect();
        let blocks: FxHashMap<u64, usize> = {
            // Of several empty blocks at one place the last one is shown.
            let places =
                code.blocks.iter().enumerate().filter_map(|(block, place)| Some((u64::from((*place)?), block)));
            places.collect()
        };
        {
            let mut resolver = self.resolver.borrow_mut();
            *resolver = Resolver::default();
            for (place, block) in &blocks {
                resolver.labels.insert(*place, format!(".L{}.b{block}", code.name));
            }
            let relocs = code.relocs.iter().map(|reloc| (u64::from(reloc.offset), self.symbol(reloc.target)));
            resolver.relocs = relocs.collect();
            // The operand of a jump that linking fills in is no label.
            let is_linked = |instruction: &&Instruction| {
                (instruction.ip()..instruction.next_ip()).any(|offset| resolver.relocs.contains_key(&offset))
            };
            let mut targets: Vec<u64> = decoded
                .iter()
                .filter(|instruction| !is_linked(instruction))
                .filter(|instruction| {
                    matches!(
                        instruction.flow_control(),
                        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
                    )
                })
                .map(Instruction::near_branch_target)
                .filter(|target| !resolver.labels.contains_key(target))
                .collect();
            targets.sort_unstable();
            targets.dedup();
            for (number, target) in targets.into_iter().enumerate() {
                resolver.labels.insert(target, format!(".L{}.{number}", code.name));
            }
        }
        let mut lines = vec![Line::new()];
        let mut global = Line::new();
        global.put(Kind::Plain, "        ").put(Kind::Keyword, ".globl");
        global.put(Kind::Plain, " ").put(Kind::Name, &code.symbol);
        let mut label = Line { entity: Some(Entity::Function(index as u32)), ..Line::default() };
        label.refer(Kind::Name, &code.symbol, Entity::Function(index as u32)).put(Kind::Plain, ":");
        lines.extend([global, label]);
        let mut marks = code.marks.iter().peekable();
        let (mut span, mut shown) = (Span::NONE, None);
        for instruction in &decoded {
            let at = instruction.ip();
            if let Some(name) = self.resolver.borrow().labels.get(&at) {
                let entity = blocks.get(&at).map(|block| Entity::Block(*block as u32));
                let mut line = Line { entity, ..Line::default() };
                match entity {
                    Some(entity) => line.refer(Kind::Block, name, entity),
                    None => line.put(Kind::Name, name),
                };
                line.put(Kind::Plain, ":");
                lines.push(line);
            }
            while let Some((_, next)) = marks.next_if(|(offset, _)| u64::from(*offset) <= at) {
                span = *next;
            }
            let number = source.filter(|_| !span.is_none()).map(|source| source.line_of(span.start));
            if number.is_some() && number != shown {
                shown = number;
                lines.extend(source.zip(number).map(|(source, number)| source_line(source, number)));
            }
            let mut line = Line { span, ..Line::default() };
            line.put(Kind::Plain, "        ");
            // Nobody can tell how much memory an instruction that does nothing would read.
            let sizes = if instruction.mnemonic() == Mnemonic::Nop {
                MemorySizeOptions::Always
            } else {
                MemorySizeOptions::Default
            };
            self.formatter.options_mut().set_memory_size_options(sizes);
            self.formatter.format(instruction, &mut Pieces { line: &mut line });
            lines.push(line);
        }
        Section { function: Some(code.name.clone()), lines }
    }
}

fn source_line(source: &Source, number: u32) -> Line {
    let mut line = Line::new();
    let text = format!("# {number}: {}", source.line(number).trim());
    line.put(Kind::Plain, "        ").put(Kind::Comment, text.trim_end());
    line
}

/// The string literals and the source's name.
fn data(program: &ProgramCode) -> Section {
    let mut lines = vec![Line::new()];
    let mut section = Line::new();
    section
        .put(Kind::Plain, "        ")
        .put(Kind::Keyword, ".section")
        .put(Kind::Plain, " ")
        .put(Kind::Name, ".rodata");
    lines.push(section);
    for (id, text) in &program.strings {
        lines.push(bytes(&format!(".L{id}"), ".ascii", text));
    }
    let mut global = Line::new();
    global
        .put(Kind::Plain, "        ")
        .put(Kind::Keyword, ".globl")
        .put(Kind::Plain, " ")
        .put(Kind::Name, SOURCE_SYMBOL);
    lines.push(global);
    lines.push(bytes(SOURCE_SYMBOL, ".asciz", &program.source_name));
    Section { function: None, lines }
}

fn bytes(label: &str, directive: &str, text: &str) -> Line {
    let mut line = Line::new();
    line.put(Kind::Name, label).put(Kind::Plain, ": ").put(Kind::Keyword, directive).put(Kind::Plain, " ");
    let escaped: String = text
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ => format!("\\{byte:03o}"),
        })
        .collect();
    line.put(Kind::Literal, format!("\"{escaped}\""));
    line
}
