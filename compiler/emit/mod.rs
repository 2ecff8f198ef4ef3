//! Floor 4: allocated machine code → bytes → ELF object → executable.

pub mod code;
pub mod disassemble;
pub mod encode;
pub mod external;
pub mod layout;
pub mod link;
pub mod object;
pub mod output;
pub mod peephole;
pub mod shrink_wrap;

/// The runtime, as an ELF object: `runtime/`, compiled by `build.rs`.
pub static RUNTIME: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runtime.o"));
