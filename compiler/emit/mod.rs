//! Floor 4: allocated machine code → bytes → ELF object → executable.

pub mod code;
