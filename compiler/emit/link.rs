//! Objects → a static executable, in this process: a linker for just what this compiler makes.
//!
//! Sections of one kind are laid behind each other, symbols get their addresses, and relocations are filled in:
//!
//! ```text
//! program.o  .text  call ????  R_X86_64_PLT32 atlrt_flush-4        401234: call 401500
//! runtime.o  .text  atlrt_flush:                              →    401500 <atlrt_flush>:
//! ```
//!
//! ```text
//! file:    | headers .rodata .eh_frame | .text   | .data | .debug_* .symtab .strtab .shstrtab, section headers
//! memory:  | read                      | execute | write, then .bss |
//! ```
//!
//! Each segment starts on a page of its own, at the file's offset within the page, so that the file has no holes.
//! All defined symbols are kept for debuggers and profilers. Tables of functions to call at the start and at the end are
//! laid out, but `_start` is the runtime's, which calls none (it writes the output itself). What linkers do besides (archives, shared libraries, section
//! groups, thread-local storage, tables of addresses) is an error that names it; `external` calls a big linker.
//!
//! **In:** any bytes; they may be malformed. **Out:** an executable, or an error that names input and symbol.
//! Cost: linear; two objects of the usual size take microseconds.
//!
//! This is the only door to the `object` crate.

use object::elf::{self, FileHeader64, Rela64, SectionHeader64, Sym64};
use object::read::elf::{FileHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{LittleEndian, SectionIndex, SymbolIndex};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// The symbol at which the kernel starts the program.
const START: &[u8] = b"_start";

/// Where executables are loaded, as the x86-64 ABI's default has it.
const BASE: u64 = 0x40_0000;

const PAGE: u64 = 4096;

/// Larger than any object that can be linked; a wrong size beyond it would overflow addresses.
const LARGEST_SECTION: u64 = 1 << 40;

/// No segment is aligned to more than a page; this is beyond what sections of code and data ask for.
const LARGEST_ALIGNMENT: u64 = PAGE;

/// Section numbers from here on have special meanings, and some are for the symbol tables.
const MOST_SECTIONS: usize = 0xFF00 - 16;

/// Fills gaps in code: `int3`.
const CODE_PADDING: u8 = 0xCC;

const E: LittleEndian = LittleEndian;

type Header = SectionHeader64<LittleEndian>;

/// One object to link.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Its name in errors.
    pub name: &'a str,
    /// An ELF object for x86-64.
    pub bytes: &'a [u8],
}

/// Why there is no executable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkError {
    /// An input is no well-formed object.
    Malformed {
        /// The input's name.
        input: String,
        /// What is wrong with it.
        message: String,
    },
    /// An input needs something that this linker does not do.
    Unsupported {
        /// The input's name.
        input: String,
        /// What it needs.
        what: String,
    },
    /// Symbols are used but defined nowhere: each with the first input that uses it.
    Undefined(Vec<(String, String)>),
    /// A symbol is defined twice.
    Duplicate {
        /// The symbol.
        symbol: String,
        /// The name of the first input that defines it.
        first: String,
        /// And of the second.
        second: String,
    },
    /// A distance or an address does not fit in its field.
    Overflow {
        /// The input's name.
        input: String,
        /// The section that refers.
        section: String,
        /// Where in it.
        offset: u64,
        /// The symbol that it refers to.
        symbol: String,
    },
    /// The external linker failed.
    External {
        /// Its path.
        linker: String,
        /// What it said, or why it could not be run.
        message: String,
    },
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Malformed { input, message } => write!(f, "{input} is not a well-formed object: {message}"),
            LinkError::Unsupported { input, what } => write!(f, "{input} needs {what}, which this linker does not do"),
            LinkError::Undefined(symbols) => {
                const SHOWN: usize = 10;
                let shown: Vec<String> = symbols
                    .iter()
                    .take(SHOWN)
                    .map(|(symbol, input)| format!("undefined symbol {symbol}, used by {input}"))
                    .collect();
                write!(f, "{}", shown.join("; "))?;
                if symbols.len() > SHOWN { write!(f, "; and {} more", symbols.len() - SHOWN) } else { Ok(()) }
            }
            LinkError::Duplicate { symbol, first, second } => {
                write!(f, "the symbol {symbol} is defined both by {first} and by {second}")
            }
            LinkError::Overflow { input, section, offset, symbol } => {
                write!(f, "{symbol} is too far from {section}+{offset:#x} of {input}")
            }
            LinkError::External { linker, message } => write!(f, "the linker {linker} failed: {message}"),
        }
    }
}

impl std::error::Error for LinkError {}

/// Links objects into a static executable that starts at `_start`.
///
/// # Errors
/// See [`LinkError`].
pub fn link(inputs: &[Input<'_>]) -> Result<Vec<u8>, LinkError> {
    let objects: Vec<Object<'_>> = inputs.iter().map(Object::parse).collect::<Result<_, _>>()?;
    let mut layout = Layout::collect(&objects)?;
    let globals = Globals::collect(&objects)?;
    layout.assign_addresses();
    let mut image = layout.copy_contents(&objects)?;
    let addresses = resolve(&objects, &layout, &globals)?;
    for (object, (places, addresses)) in objects.iter().zip(layout.places.iter().zip(&addresses)) {
        relocate(object, places, addresses, &layout, &mut image)?;
    }
    let start = globals.by_name[START];
    let entry = addresses[start.object][start.symbol.0].unwrap_or(0);
    Ok(finish(image, &layout, &objects, &globals, &addresses, entry))
}

/// One input, with its tables read.
struct Object<'a> {
    name: &'a str,
    bytes: &'a [u8],
    sections: SectionTable<'a, FileHeader64<LittleEndian>>,
    symbols: SymbolTable<'a, FileHeader64<LittleEndian>>,
}

impl<'a> Object<'a> {
    fn parse(input: &Input<'a>) -> Result<Object<'a>, LinkError> {
        let Input { name, bytes } = *input;
        let malformed = |error: object::Error| LinkError::Malformed { input: name.into(), message: error.to_string() };
        let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(malformed)?;
        header.endian().map_err(malformed)?;
        if header.e_machine.get(E) != elf::EM_X86_64 || header.e_type.get(E) != elf::ET_REL {
            let message = "it is not a relocatable object for x86-64".into();
            return Err(LinkError::Malformed { input: name.into(), message });
        }
        let sections = header.sections(E, bytes).map_err(malformed)?;
        let symbols = sections.symbols(E, bytes, elf::SHT_SYMTAB).map_err(malformed)?;
        Ok(Object { name, bytes, sections, symbols })
    }

    fn malformed(&self, message: impl fmt::Display) -> LinkError {
        LinkError::Malformed { input: self.name.into(), message: message.to_string() }
    }

    fn unsupported(&self, what: impl Into<String>) -> LinkError {
        LinkError::Unsupported { input: self.name.into(), what: what.into() }
    }

    fn section_name(&self, section: &Header) -> Result<&'a [u8], LinkError> {
        self.sections.section_name(E, section).map_err(|error| self.malformed(error))
    }

    fn symbol_name(&self, symbol: &Sym64<LittleEndian>) -> Result<&'a [u8], LinkError> {
        self.symbols.symbol_name(E, symbol).map_err(|error| self.malformed(error))
    }

    /// The symbol's name, or its section's if it has none; for errors.
    fn describe(&self, index: SymbolIndex) -> String {
        let Ok(symbol) = self.symbols.symbol(index) else { return format!("symbol {}", index.0) };
        let name = match self.symbols.symbol_section(E, symbol, index) {
            Ok(Some(section)) if symbol.st_type() == elf::STT_SECTION => {
                self.sections.section(section).ok().and_then(|section| self.section_name(section).ok())
            }
            _ => self.symbol_name(symbol).ok(),
        };
        text(name.unwrap_or_default())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How a section is mapped; in the order of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Access {
    Read,
    Execute,
    Write,
    /// Writable, zero, and not in the file.
    Zero,
    /// Not mapped.
    None,
}

/// A section of the executable.
struct Section<'a> {
    name: &'a [u8],
    access: Access,
    kind: u32,
    align: u64,
    size: u64,
    address: u64,
    offset: u64,
    /// Its number in the executable's section table; 0 if it is empty and has none.
    number: u16,
}

/// Where an input's section has gone: an index into `Layout::sections`, and the offset in it.
#[derive(Clone, Copy)]
struct Place {
    section: usize,
    offset: u64,
}

/// All sections of the executable.
struct Layout<'a> {
    sections: Vec<Section<'a>>,
    /// The sections' indices, while they are collected.
    by_name: FxHashMap<(&'a [u8], Access), usize>,
    /// By input and index of its section; `None` for what is not part of the executable.
    places: Vec<Vec<Option<Place>>>,
}

impl<'a> Layout<'a> {
    /// Says for each input section where it goes.
    fn collect(objects: &[Object<'a>]) -> Result<Layout<'a>, LinkError> {
        let places = Vec::with_capacity(objects.len());
        let mut layout = Layout { sections: Vec::new(), by_name: FxHashMap::default(), places };
        for object in objects {
            let mut places = Vec::with_capacity(object.sections.len());
            for section in object.sections.iter() {
                places.push(layout.place(object, section)?);
            }
            layout.places.push(places);
        }
        // The file has the sections in the order of their segments; the sort keeps the order within each.
        let mut order: Vec<usize> = (0..layout.sections.len()).collect();
        order.sort_by_key(|index| layout.sections[*index].access);
        let mut rank = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            rank[*old] = new;
        }
        layout.sections.sort_by_key(|section| section.access);
        for place in layout.places.iter_mut().flatten().flatten() {
            place.section = rank[place.section];
        }
        Ok(layout)
    }

    fn place(&mut self, object: &Object<'a>, section: &'a Header) -> Result<Option<Place>, LinkError> {
        let (kind, flags) = (section.sh_type(E), section.sh_flags(E));
        let name = object.section_name(section)?;
        let flagged = |flag: u32| flags & u64::from(flag) != 0;
        match kind {
            elf::SHT_PROGBITS | elf::SHT_X86_64_UNWIND => {}
            elf::SHT_INIT_ARRAY | elf::SHT_FINI_ARRAY | elf::SHT_PREINIT_ARRAY => {}
            elf::SHT_NOBITS => {}
            elf::SHT_GROUP => return Err(object.unsupported("section groups")),
            elf::SHT_REL => return Err(object.unsupported("relocations without addends")),
            // Tables for linkers, and notes, which say nothing that this executable needs.
            _ => return Ok(None),
        }
        let access = match () {
            () if flagged(elf::SHF_TLS) => return Err(object.unsupported("thread-local storage")),
            () if flagged(elf::SHF_ALLOC) && flagged(elf::SHF_EXECINSTR) && flagged(elf::SHF_WRITE) => {
                return Err(object.unsupported("code that can be written"));
            }
            () if flagged(elf::SHF_ALLOC) && flagged(elf::SHF_EXECINSTR) => Access::Execute,
            () if flagged(elf::SHF_ALLOC) && flagged(elf::SHF_WRITE) && kind == elf::SHT_NOBITS => Access::Zero,
            () if flagged(elf::SHF_ALLOC) && flagged(elf::SHF_WRITE) => Access::Write,
            () if flagged(elf::SHF_ALLOC) => Access::Read,
            () if flagged(elf::SHF_COMPRESSED) => return Ok(None),
            () if name.starts_with(b".debug_") || name == b".comment" => Access::None,
            () => return Ok(None),
        };
        if kind == elf::SHT_NOBITS && access != Access::Zero {
            return Err(object.unsupported(format!("the section {} without contents", text(name))));
        }
        let (size, align) = (section.sh_size(E), section.sh_addralign(E).max(1));
        if size > LARGEST_SECTION || !align.is_power_of_two() {
            return Err(object.malformed(format!("the size or alignment of the section {}", text(name))));
        }
        if align > LARGEST_ALIGNMENT {
            return Err(object.unsupported(format!("an alignment of {align} bytes")));
        }
        // What is promised to be in the file must be there, before memory is set aside for it.
        section.data(E, object.bytes).map_err(|error| object.malformed(error))?;
        let name = output_name(name);
        let new = self.sections.len();
        let index = *self.by_name.entry((name, access)).or_insert(new);
        if index == new {
            if new == MOST_SECTIONS {
                return Err(object.unsupported("more kinds of sections"));
            }
            let kind = if kind == elf::SHT_X86_64_UNWIND { elf::SHT_PROGBITS } else { kind };
            self.sections.push(Section { name, access, kind, align: 1, size: 0, address: 0, offset: 0, number: 0 });
        }
        let output = &mut self.sections[index];
        let offset = output.size.next_multiple_of(align);
        output.size = offset + size;
        output.align = output.align.max(align);
        if output.size > LARGEST_SECTION {
            return Err(object.unsupported(format!("more than a terabyte of {}", text(name))));
        }
        Ok(Some(Place { section: index, offset }))
    }

    /// Gives every section its place in the file and in memory.
    fn assign_addresses(&mut self) {
        let (mut offset, mut number) = (headers_size(), 0);
        let mut address = BASE + offset;
        let mut access = Access::Read;
        for section in &mut self.sections {
            // Bss goes on in the segment of the data.
            let same = section.access == access || (section.access == Access::Zero && access == Access::Write);
            if !same && section.access != Access::None {
                address = address.next_multiple_of(PAGE) + offset % PAGE;
            }
            access = section.access;
            if section.size > 0 {
                number += 1;
                section.number = number;
            }
            match access {
                Access::Read | Access::Execute | Access::Write => {
                    let skip = address.next_multiple_of(section.align) - address;
                    address += skip;
                    offset += skip;
                    (section.address, section.offset) = (address, offset);
                    address += section.size;
                    offset += section.size;
                }
                Access::Zero => {
                    address = address.next_multiple_of(section.align);
                    (section.address, section.offset) = (address, offset);
                    address += section.size;
                }
                Access::None => {
                    offset = offset.next_multiple_of(section.align);
                    section.offset = offset;
                    offset += section.size;
                }
            }
        }
    }

    /// The file up to the last section's contents, not relocated yet and without headers.
    fn copy_contents(&self, objects: &[Object<'_>]) -> Result<Vec<u8>, LinkError> {
        let in_file = self.sections.iter().filter(|section| section.access != Access::Zero);
        let size = in_file.clone().map(|section| section.offset + section.size).max().unwrap_or(headers_size());
        // The symbol table follows; growing for it would copy everything once more.
        let symbols: usize = objects.iter().map(|object| object.symbols.len()).sum();
        let mut image = Vec::with_capacity(size as usize + symbols * SYMBOL_WITH_NAME + PAGE as usize);
        image.resize(size as usize, 0);
        for section in in_file.filter(|section| section.access == Access::Execute) {
            image[section.offset as usize..][..section.size as usize].fill(CODE_PADDING);
        }
        for (object, places) in objects.iter().zip(&self.places) {
            for (section, place) in object.sections.iter().zip(places) {
                let Some(place) = place else { continue };
                let output = &self.sections[place.section];
                if output.access != Access::Zero {
                    let data = section.data(E, object.bytes).map_err(|error| object.malformed(error))?;
                    let start = (output.offset + place.offset) as usize;
                    image[start..start + data.len()].copy_from_slice(data);
                }
            }
        }
        Ok(image)
    }
}

/// The section of the executable that an input's section becomes part of.
fn output_name(name: &[u8]) -> &[u8] {
    const JOINED: [&[u8]; 5] = [b".text", b".rodata", b".data", b".bss", b".fini_array"];
    for output in JOINED {
        if name.strip_prefix(output).is_some_and(|rest| rest.is_empty() || rest[0] == b'.') {
            return output;
        }
    }
    name
}

/// A definition: which input has it, and as which symbol.
#[derive(Clone, Copy)]
struct Definition {
    object: usize,
    symbol: SymbolIndex,
    weak: bool,
}

/// The global symbols that are defined.
struct Globals<'a> {
    by_name: FxHashMap<&'a [u8], Definition>,
    /// Their names, by first appearance.
    order: Vec<&'a [u8]>,
}

impl<'a> Globals<'a> {
    /// Finds them; the first strong definition of a name counts, else the first weak one.
    fn collect(objects: &[Object<'a>]) -> Result<Globals<'a>, LinkError> {
        let mut globals = Globals { by_name: FxHashMap::default(), order: Vec::new() };
        for (index, object) in objects.iter().enumerate() {
            for (symbol_index, symbol) in object.symbols.enumerate() {
                let shndx = symbol.st_shndx(E);
                if symbol.is_local() || shndx == elf::SHN_UNDEF {
                    continue;
                }
                let name = object.symbol_name(symbol)?;
                if shndx == elf::SHN_COMMON {
                    return Err(object.unsupported(format!("the common symbol {}", text(name))));
                }
                if matches!(symbol.st_type(), elf::STT_GNU_IFUNC | elf::STT_TLS) {
                    return Err(object.unsupported(format!("the special symbol {}", text(name))));
                }
                let weak = symbol.is_weak();
                let new = Definition { object: index, symbol: symbol_index, weak };
                match globals.by_name.get_mut(name) {
                    None => {
                        globals.by_name.insert(name, new);
                        globals.order.push(name);
                    }
                    Some(old) if old.weak && !weak => *old = new,
                    Some(_) if weak => {}
                    Some(old) => {
                        return Err(LinkError::Duplicate {
                            symbol: text(name),
                            first: objects[old.object].name.into(),
                            second: object.name.into(),
                        });
                    }
                }
            }
        }
        Ok(globals)
    }
}

/// The address of each symbol of each input; `None` for what is defined in no part of the executable.
type Addresses = Vec<Vec<Option<u64>>>;

/// Finds the address of every symbol.
fn resolve(objects: &[Object<'_>], layout: &Layout<'_>, globals: &Globals<'_>) -> Result<Addresses, LinkError> {
    let mut undefined: Vec<(String, String)> = Vec::new();
    let mut missing: FxHashSet<&[u8]> = FxHashSet::default();
    let mut all = Addresses::with_capacity(objects.len());
    for (index, object) in objects.iter().enumerate() {
        let mut addresses = Vec::with_capacity(object.symbols.len());
        for (symbol_index, symbol) in object.symbols.enumerate() {
            let address = if symbol_index.0 == 0 {
                // The table's first entry is no symbol; relocations that refer to none refer to it.
                Some(0)
            } else if symbol.is_local() {
                address_of(object, &layout.places[index], layout, symbol_index)?
            } else {
                let name = object.symbol_name(symbol)?;
                match globals.by_name.get(name) {
                    Some(definition) => {
                        let home = definition.object;
                        address_of(&objects[home], &layout.places[home], layout, definition.symbol)?
                    }
                    None if symbol.is_weak() => Some(0),
                    None => {
                        if missing.insert(name) {
                            undefined.push((text(name), object.name.into()));
                        }
                        None
                    }
                }
            };
            addresses.push(address);
        }
        all.push(addresses);
    }
    if !globals.by_name.contains_key(START) && missing.insert(START) {
        undefined.push((text(START), "the executable's header".into()));
    }
    if undefined.is_empty() { Ok(all) } else { Err(LinkError::Undefined(undefined)) }
}

/// The address of a symbol that its object defines.
fn address_of(
    object: &Object<'_>,
    places: &[Option<Place>],
    layout: &Layout<'_>,
    index: SymbolIndex,
) -> Result<Option<u64>, LinkError> {
    let symbol = object.symbols.symbol(index).map_err(|error| object.malformed(error))?;
    if symbol.st_shndx(E) == elf::SHN_ABS {
        return Ok(Some(symbol.st_value(E)));
    }
    let Some(place) = place_of(object, places, index)? else { return Ok(None) };
    Ok(Some(layout.sections[place.section].address.wrapping_add(place.offset).wrapping_add(symbol.st_value(E))))
}

/// Where the section that a symbol lies in has gone.
fn place_of(object: &Object<'_>, places: &[Option<Place>], index: SymbolIndex) -> Result<Option<Place>, LinkError> {
    let symbol = object.symbols.symbol(index).map_err(|error| object.malformed(error))?;
    let section = object.symbols.symbol_section(E, symbol, index).map_err(|error| object.malformed(error))?;
    match section {
        Some(section) => places
            .get(section.0)
            .copied()
            .ok_or_else(|| object.malformed(format!("the symbol {} lies in no section", object.describe(index)))),
        None => Ok(None),
    }
}

/// Fills in the relocations of one input.
fn relocate(
    object: &Object<'_>,
    places: &[Option<Place>],
    addresses: &[Option<u64>],
    layout: &Layout<'_>,
    image: &mut [u8],
) -> Result<(), LinkError> {
    for table in object.sections.iter() {
        let Some((relas, _)) = table.rela(E, object.bytes).map_err(|error| object.malformed(error))? else { continue };
        let index = SectionIndex(table.sh_info(E) as usize);
        let section = object.sections.section(index).map_err(|error| object.malformed(error))?;
        let Some(place) = places[index.0] else { continue };
        let output = &layout.sections[place.section];
        if output.access == Access::Zero {
            return Err(object.malformed("a relocation in a section without contents"));
        }
        let site =
            Site { object, section, address: output.address + place.offset, mapped: output.access != Access::None };
        let start = (output.offset + place.offset) as usize;
        let bytes = &mut image[start..start + section.sh_size(E) as usize];
        for rela in relas {
            site.fill(rela, addresses, bytes)?;
        }
    }
    Ok(())
}

/// The input section whose relocations are filled in.
struct Site<'a> {
    object: &'a Object<'a>,
    section: &'a Header,
    address: u64,
    mapped: bool,
}

impl Site<'_> {
    /// Computes one relocation as the x86-64 ABI says (S: symbol, A: addend, P: place) and writes it.
    fn fill(&self, rela: &Rela64<LittleEndian>, addresses: &[Option<u64>], bytes: &mut [u8]) -> Result<(), LinkError> {
        let object = self.object;
        let (offset, kind) = (rela.r_offset(E), rela.r_type(E, false));
        let symbol = SymbolIndex(rela.r_sym(E, false) as usize);
        let address = match addresses.get(symbol.0) {
            Some(Some(address)) => *address,
            // Debug information about a part that is not in the executable.
            Some(None) if !self.mapped => 0,
            Some(None) => {
                let message =
                    format!("it refers to {}, whose section is no part of a program", object.describe(symbol));
                return Err(object.malformed(message));
            }
            None => return Err(object.malformed("a relocation to a symbol that does not exist")),
        };
        let absolute = address.wrapping_add_signed(rela.r_addend(E));
        let relative = absolute.wrapping_sub(self.address.wrapping_add(offset)) as i64;
        let field = match kind {
            elf::R_X86_64_NONE => return Ok(()),
            elf::R_X86_64_64 => Field::Eight(absolute),
            elf::R_X86_64_PC64 => Field::Eight(relative as u64),
            elf::R_X86_64_32 => Field::Four(u32::try_from(absolute).ok()),
            elf::R_X86_64_32S => Field::Four(i32::try_from(absolute as i64).ok().map(|value| value as u32)),
            elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => {
                Field::Four(i32::try_from(relative).ok().map(|value| value as u32))
            }
            other => return Err(object.unsupported(format!("the relocation type {other}"))),
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let outside = || object.malformed("a relocation outside of its section");
        match field {
            Field::Eight(value) => {
                let end = start.checked_add(8).ok_or_else(outside)?;
                bytes.get_mut(start..end).ok_or_else(outside)?.copy_from_slice(&value.to_le_bytes());
            }
            Field::Four(Some(value)) => {
                let end = start.checked_add(4).ok_or_else(outside)?;
                bytes.get_mut(start..end).ok_or_else(outside)?.copy_from_slice(&value.to_le_bytes());
            }
            Field::Four(None) => {
                return Err(LinkError::Overflow {
                    input: object.name.into(),
                    section: text(object.section_name(self.section)?),
                    offset,
                    symbol: object.describe(symbol),
                });
            }
        }
        Ok(())
    }
}

/// What a relocation writes; `None` where it does not fit.
enum Field {
    Eight(u64),
    Four(Option<u32>),
}

/// The file header and the program headers: three segments and the stack's flags.
fn headers_size() -> u64 {
    FILE_HEADER + 4 * PROGRAM_HEADER
}

const FILE_HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
const SECTION_HEADER: u64 = 64;
const SYMBOL: u64 = 24;

/// About what a symbol takes with its name.
const SYMBOL_WITH_NAME: usize = 48;

/// Appends the symbols and the section headers to the image, and writes the headers at its start.
fn finish(
    mut image: Vec<u8>,
    layout: &Layout<'_>,
    objects: &[Object<'_>],
    globals: &Globals<'_>,
    addresses: &Addresses,
    entry: u64,
) -> Vec<u8> {
    let symbols = SymbolTableBytes::make(layout, objects, globals, addresses);
    let kept: Vec<&Section<'_>> = layout.sections.iter().filter(|section| section.number != 0).collect();
    let mut names = vec![0];
    let mut headers = vec![[0; 10]];
    for section in &kept {
        let flags = match section.access {
            Access::Read => elf::SHF_ALLOC,
            Access::Execute => elf::SHF_ALLOC | elf::SHF_EXECINSTR,
            Access::Write | Access::Zero => elf::SHF_ALLOC | elf::SHF_WRITE,
            Access::None => 0,
        };
        headers.push([
            append_string(&mut names, section.name),
            section.kind.into(),
            flags.into(),
            section.address,
            section.offset,
            section.size,
            0,
            0,
            section.align,
            // Arrays of addresses say how large an address is.
            if section.kind == elf::SHT_PROGBITS || section.kind == elf::SHT_NOBITS { 0 } else { 8 },
        ]);
    }
    let first_table = headers.len() as u64;
    let symtab = append_string(&mut names, b".symtab");
    let strtab = append_string(&mut names, b".strtab");
    let shstrtab = append_string(&mut names, b".shstrtab");
    let mut table = |name: u64, kind: u32, bytes: &[u8], link: u64, info: u64, align: u64, entry: u64| {
        image.resize(image.len().next_multiple_of(align as usize), 0);
        let (offset, size) = (image.len() as u64, bytes.len() as u64);
        headers.push([name, kind.into(), 0, 0, offset, size, link, info, align, entry]);
        image.extend_from_slice(bytes);
    };
    table(symtab, elf::SHT_SYMTAB, &symbols.bytes, first_table + 1, symbols.locals, 8, SYMBOL);
    table(strtab, elf::SHT_STRTAB, &symbols.names, 0, 0, 1, 0);
    table(shstrtab, elf::SHT_STRTAB, &names, 0, 0, 1, 0);
    image.resize(image.len().next_multiple_of(8), 0);
    let headers_offset = image.len() as u64;
    for [name, kind, flags, address, offset, size, link, info, align, entry] in &headers {
        put32(&mut image, *name as u32);
        put32(&mut image, *kind as u32);
        for word in [flags, address, offset, size] {
            put64(&mut image, *word);
        }
        put32(&mut image, *link as u32);
        put32(&mut image, *info as u32);
        put64(&mut image, *align);
        put64(&mut image, *entry);
    }

    let programs = program_headers(&kept);
    let mut start: Vec<u8> = Vec::with_capacity(headers_size() as usize);
    start.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    put16(&mut start, elf::ET_EXEC);
    put16(&mut start, elf::EM_X86_64);
    put32(&mut start, elf::EV_CURRENT.into());
    put64(&mut start, entry);
    put64(&mut start, FILE_HEADER);
    put64(&mut start, headers_offset);
    put32(&mut start, 0);
    put16(&mut start, FILE_HEADER as u16);
    put16(&mut start, PROGRAM_HEADER as u16);
    put16(&mut start, programs.len() as u16);
    put16(&mut start, SECTION_HEADER as u16);
    put16(&mut start, headers.len() as u16);
    put16(&mut start, headers.len() as u16 - 1);
    for [kind, flags, offset, address, file_size, size, align] in programs {
        put32(&mut start, kind as u32);
        put32(&mut start, flags as u32);
        for word in [offset, address, address, file_size, size, align] {
            put64(&mut start, word);
        }
    }
    image[..start.len()].copy_from_slice(&start);
    image
}

/// Type, flags, offset, address, size in the file, size in memory, alignment of each segment.
fn program_headers(sections: &[&Section<'_>]) -> Vec<[u64; 7]> {
    let mut headers = Vec::new();
    let mut segment = |flags: u32, accesses: [Access; 2], from: Option<u64>| {
        let mut members = sections.iter().filter(|section| accesses.contains(&section.access));
        let first = members.clone().next();
        let (Some(offset), Some(address)) =
            (from.or(first.map(|section| section.offset)), from.map(|_| BASE).or(first.map(|section| section.address)))
        else {
            return;
        };
        let memory_end = members.clone().next_back().map_or(BASE + headers_size(), |last| last.address + last.size);
        let file_end = members
            .rfind(|section| section.access != Access::Zero)
            .map_or(if from.is_some() { headers_size() } else { offset }, |last| last.offset + last.size);
        let kind = elf::PT_LOAD.into();
        headers.push([kind, flags.into(), offset, address, file_end - offset, memory_end - address, PAGE]);
    };
    // The first segment has the headers as well, whether or not there is read-only data.
    segment(elf::PF_R, [Access::Read; 2], Some(0));
    segment(elf::PF_R | elf::PF_X, [Access::Execute; 2], None);
    segment(elf::PF_R | elf::PF_W, [Access::Write, Access::Zero], None);
    headers.push([elf::PT_GNU_STACK.into(), (elf::PF_R | elf::PF_W).into(), 0, 0, 0, 0, 16]);
    headers
}

/// The executable's symbol table.
struct SymbolTableBytes {
    bytes: Vec<u8>,
    names: Vec<u8>,
    /// How many symbols, the empty first one included, are local; they come first.
    locals: u64,
}

impl SymbolTableBytes {
    fn make(layout: &Layout<'_>, objects: &[Object<'_>], globals: &Globals<'_>, addresses: &Addresses) -> Self {
        let count: usize = objects.iter().map(|object| object.symbols.len()).sum();
        let mut table = SymbolTableBytes {
            bytes: Vec::with_capacity((count + 1) * SYMBOL as usize),
            names: Vec::with_capacity(count * 16),
            locals: 1,
        };
        table.names.push(0);
        table.bytes.resize(SYMBOL as usize, 0);
        for (index, object) in objects.iter().enumerate() {
            for (symbol_index, symbol) in object.symbols.enumerate() {
                if symbol.is_local() && symbol.st_type() != elf::STT_SECTION {
                    let added = table.add(object, &layout.places[index], layout, symbol_index, &addresses[index]);
                    table.locals += u64::from(added);
                }
            }
        }
        for name in &globals.order {
            let Definition { object, symbol, .. } = globals.by_name[name];
            table.add(&objects[object], &layout.places[object], layout, symbol, &addresses[object]);
        }
        table
    }

    /// Adds a symbol if it has a name and is part of the executable; says whether.
    fn add(
        &mut self,
        object: &Object<'_>,
        places: &[Option<Place>],
        layout: &Layout<'_>,
        index: SymbolIndex,
        addresses: &[Option<u64>],
    ) -> bool {
        let Ok(symbol) = object.symbols.symbol(index) else { return false };
        let (Some(address), Ok(name)) = (addresses[index.0], object.symbol_name(symbol)) else { return false };
        if name.is_empty() {
            return false;
        }
        let number = match place_of(object, places, index) {
            Ok(Some(place)) => layout.sections[place.section].number,
            _ => 0,
        };
        // Absolute symbols, the names of source files, and labels in empty sections belong to no section.
        let number = if number == 0 { elf::SHN_ABS } else { number };
        let name = append_string(&mut self.names, name);
        put32(&mut self.bytes, name as u32);
        self.bytes.extend_from_slice(&[symbol.st_info(), symbol.st_other()]);
        put16(&mut self.bytes, number);
        put64(&mut self.bytes, address);
        put64(&mut self.bytes, symbol.st_size(E));
        true
    }
}

/// Appends a string and its NUL; gives its offset.
fn append_string(table: &mut Vec<u8>, string: &[u8]) -> u64 {
    let offset = table.len() as u64;
    table.extend_from_slice(string);
    table.push(0);
    offset
}

fn put16(bytes: &mut Vec<u8>, value: u16) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn put32(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn put64(bytes: &mut Vec<u8>, value: u64) {
    bytes.extend_from_slice(&value.to_le_bytes());
}
