//! A program's bytes → a relocatable ELF object that any linker takes.
//!
//! ```text
//! .text     atl_gcd:      … call atlrt_print_int      R_X86_64_PLT32 atlrt_print_int-4
//!           atlas_entry:  … lea rdi, [rip + str0]     R_X86_64_PC32  str0-4
//! .rodata   str0: "hello"   atlas_source: "gcd.atl\0"
//! .note.GNU-stack           (the stack is not executable)
//! ```
//!
//! The program's functions and the name of the source are global symbols, string literals local ones. Only those runtime
//! functions that the program calls are undefined symbols of the object, in the order of `RuntimeFn::ALL`.
//!
//! **In:** relocation offsets lie within their function, by offset; symbols are distinct. **Out:** a well-formed object;
//! the same program gives the same bytes. Cost: linear.
//!
//! This is the only door to the `cranelift-object`, `cranelift-module` and `cranelift-codegen` crates.

use super::code::{ProgramCode, RelocKind, Target};
use crate::support::ids::{FuncId, StrId};
use crate::x64::runtime::{RuntimeFn, SOURCE_SYMBOL};
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::Signature;
use cranelift_codegen::isa::{self, CallConv, OwnedTargetIsa};
use cranelift_codegen::settings;
use cranelift_entity::{EntityRef, PrimaryMap};
use cranelift_module::{DataDescription, Linkage, Module, ModuleReloc, ModuleRelocTarget};
use cranelift_object::object::write::{Object, StandardSection};
use cranelift_object::{ObjectBuilder, ObjectModule};

/// Functions start at multiples of this, as processors fetch aligned blocks of code.
const FUNCTION_ALIGNMENT: u64 = 16;

/// Stands between functions: an `int3` stops whatever runs into it.
const PADDING: u8 = 0xCC;

/// Makes the object.
pub fn run(program: &ProgramCode) -> Vec<u8> {
    let mut module = empty_module(&program.source_name);
    let symbols = Symbols::declare(&mut module, program);
    for (id, function) in &program.functions {
        let relocs: Vec<ModuleReloc> = function
            .relocs
            .iter()
            .map(|reloc| ModuleReloc {
                offset: reloc.offset,
                kind: match reloc.kind {
                    RelocKind::Branch => Reloc::X86CallPLTRel4,
                    RelocKind::Data => Reloc::X86PCRel4,
                },
                name: symbols.target(reloc.target),
                addend: reloc.addend.into(),
            })
            .collect();
        module
            .define_function_bytes(symbols.functions[id], FUNCTION_ALIGNMENT, &function.bytes, &relocs)
            .unwrap_or_else(|error| panic!("the function {} cannot be defined: {error}", function.symbol));
    }
    for (id, text) in &program.strings {
        define_data(&mut module, symbols.strings[id], text.as_bytes().to_vec());
    }
    define_data(&mut module, symbols.source, nul_terminated(&program.source_name));

    let mut product = module.finish();
    let ends: Vec<u64> = symbols
        .functions
        .values()
        .map(|id| product.object.symbol(product.function_symbol(*id)))
        .map(|symbol| symbol.value + symbol.size)
        .collect();
    pad_functions(&mut product.object, &ends);
    product.emit().expect("an object with known sections and relocations can be written")
}

/// An object for x86-64 Linux without anything in it.
fn empty_module(source_name: &str) -> ObjectModule {
    let name = nul_terminated(source_name);
    let builder =
        ObjectBuilder::new(target(), &name[..name.len() - 1], Box::new(|call| unreachable!("no library call {call}")))
            .expect("x86-64 Linux has an object format");
    ObjectModule::new(builder)
}

fn target() -> OwnedTargetIsa {
    let triple = "x86_64-unknown-linux-gnu".parse().expect("the triple is well-formed");
    let flags = settings::Flags::new(settings::builder());
    isa::lookup(triple)
        .expect("the x86-64 back end is compiled in")
        .finish(flags)
        .expect("the default settings are valid")
}

/// A file name as C code reads it: up to its first NUL, which no file's name has, and with a NUL behind it.
fn nul_terminated(name: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = name.bytes().take_while(|byte| *byte != 0).collect();
    bytes.push(0);
    bytes
}

/// What the module calls the things that relocations refer to.
struct Symbols {
    functions: PrimaryMap<FuncId, cranelift_module::FuncId>,
    /// By position in `RuntimeFn::ALL`; `None` for those that the program does not call.
    runtime: [Option<cranelift_module::FuncId>; RuntimeFn::ALL.len()],
    strings: PrimaryMap<StrId, cranelift_module::DataId>,
    source: cranelift_module::DataId,
}

impl Symbols {
    fn declare(module: &mut ObjectModule, program: &ProgramCode) -> Symbols {
        let signature = Signature::new(CallConv::SystemV);
        let mut functions = PrimaryMap::with_capacity(program.functions.len());
        for function in program.functions.values() {
            let id = module.declare_function(&function.symbol, Linkage::Export, &signature);
            functions.push(id.expect("the symbols of functions are distinct"));
        }
        let mut used = [false; RuntimeFn::ALL.len()];
        for reloc in program.functions.values().flat_map(|function| &function.relocs) {
            if let Target::Runtime(function) = reloc.target {
                used[function as usize] = true;
            }
        }
        let runtime = RuntimeFn::ALL.map(|function| {
            used[function as usize].then(|| {
                let id = module.declare_function(function.symbol(), Linkage::Import, &signature);
                id.expect("the runtime's symbols are distinct from the program's")
            })
        });
        let mut strings = PrimaryMap::with_capacity(program.strings.len());
        for id in program.strings.keys() {
            let data = module.declare_data(&format!("str{}", id.index()), Linkage::Local, false, false);
            strings.push(data.expect("the symbols of strings are distinct"));
        }
        let source = module.declare_data(SOURCE_SYMBOL, Linkage::Export, false, false);
        Symbols { functions, runtime, strings, source: source.expect("no function is named like the source's symbol") }
    }

    fn target(&self, target: Target) -> ModuleRelocTarget {
        match target {
            Target::Function(id) => self.functions[id].into(),
            Target::Runtime(function) => {
                self.runtime[function as usize].expect("all called runtime functions are declared").into()
            }
            Target::Str(id) => self.strings[id].into(),
        }
    }
}

fn define_data(module: &mut ObjectModule, id: cranelift_module::DataId, bytes: Vec<u8>) {
    let mut data = DataDescription::new();
    data.define(bytes.into_boxed_slice());
    module.define_data(id, &data).expect("each string is defined once");
}

/// Fills the gaps behind functions, given where each ends.
fn pad_functions(object: &mut Object<'_>, ends: &[u64]) {
    let text = object.section_id(StandardSection::Text);
    let code = object.section_mut(text).data_mut();
    for end in ends {
        let from = *end as usize;
        let to = from.next_multiple_of(FUNCTION_ALIGNMENT as usize).min(code.len());
        code[from..to].fill(PADDING);
    }
}
