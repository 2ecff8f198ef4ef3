//! `atlc`: a compiler from the small language Atlas to native x86-64 Linux executables.
//!
//! ```text
//! source → tokens → AST → HIR → CFG over variables → SSA → optimized SSA → critical edges split → parallel copies
//!        → out of SSA → machine code over virtual registers → allocated machine code → bytes → object → executable
//! ```
//!
//! The modules stand in floors; each imports only from lower ones (ARCHITECTURE.md has the picture and the decisions).

pub mod analysis;
pub mod build;
pub mod check;
pub mod cli;
pub mod emit;
pub mod execution;
pub mod explain;
pub mod explorer;
pub mod export;
pub mod fuzz;
pub mod graph;
pub mod hir;
pub mod ir;
pub mod isel;
pub mod opt;
pub mod pipeline;
pub mod regalloc;
pub mod semantics;
pub mod ssa;
pub mod support;
pub mod syntax;
pub mod verify;
pub mod x64;
