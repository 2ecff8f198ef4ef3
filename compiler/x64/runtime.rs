//! The runtime's functions as machine code sees them: symbols and arguments. `runtime/` defines them; a test holds that
//! both agree. All follow the System V convention; a bool is 0 or 1 in a full register. `line` and `column` are the
//! position that a run-time error shows. Those that do not return may be called with any stack alignment.

/// A function of the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum RuntimeFn {
    /// `(value: int, end: char)`: prints an int, then the character (a space or a line end).
    PrintInt,
    /// `(value: bool, end: char)`.
    PrintBool,
    /// `(text: address, bytes: int, end: char)`.
    PrintStr,
    /// `(length: int, init: int, line, column) -> address` of the first element; the length stands before it.
    ArrayInt,
    /// `(length: int, init: bool, line, column) -> address`.
    ArrayBool,
    /// `(array: address)`.
    Free,
    /// `(line, column) -> int`.
    Read,
    /// `() -> bool`.
    Eof,
    /// `(line, column)`; does not return.
    TrapDivision,
    /// `(index: int, length: int, line, column)`; does not return.
    TrapIndex,
    /// `(line, column)`; does not return.
    TrapAssert,
}

impl RuntimeFn {
    /// All of them.
    pub const ALL: [RuntimeFn; 11] = [
        RuntimeFn::PrintInt,
        RuntimeFn::PrintBool,
        RuntimeFn::PrintStr,
        RuntimeFn::ArrayInt,
        RuntimeFn::ArrayBool,
        RuntimeFn::Free,
        RuntimeFn::Read,
        RuntimeFn::Eof,
        RuntimeFn::TrapDivision,
        RuntimeFn::TrapIndex,
        RuntimeFn::TrapAssert,
    ];

    /// Its symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            RuntimeFn::PrintInt => "atlrt_print_int",
            RuntimeFn::PrintBool => "atlrt_print_bool",
            RuntimeFn::PrintStr => "atlrt_print_str",
            RuntimeFn::ArrayInt => "atlrt_array_int",
            RuntimeFn::ArrayBool => "atlrt_array_bool",
            RuntimeFn::Free => "atlrt_free",
            RuntimeFn::Read => "atlrt_read",
            RuntimeFn::Eof => "atlrt_eof",
            RuntimeFn::TrapDivision => "atlrt_trap_division",
            RuntimeFn::TrapIndex => "atlrt_trap_index",
            RuntimeFn::TrapAssert => "atlrt_trap_assert",
        }
    }

    /// How many arguments it takes; all go in registers.
    pub fn argument_count(self) -> usize {
        match self {
            RuntimeFn::Eof => 0,
            RuntimeFn::Free => 1,
            RuntimeFn::PrintInt
            | RuntimeFn::PrintBool
            | RuntimeFn::Read
            | RuntimeFn::TrapDivision
            | RuntimeFn::TrapAssert => 2,
            RuntimeFn::PrintStr => 3,
            RuntimeFn::ArrayInt | RuntimeFn::ArrayBool | RuntimeFn::TrapIndex => 4,
        }
    }

    /// Does it give a result in rax?
    pub fn has_result(self) -> bool {
        match self {
            RuntimeFn::ArrayInt | RuntimeFn::ArrayBool | RuntimeFn::Read | RuntimeFn::Eof => true,
            RuntimeFn::PrintInt
            | RuntimeFn::PrintBool
            | RuntimeFn::PrintStr
            | RuntimeFn::Free
            | RuntimeFn::TrapDivision
            | RuntimeFn::TrapIndex
            | RuntimeFn::TrapAssert => false,
        }
    }
}

/// The symbol of the program's body: `void atlas_entry(void)`, called by the runtime's `_start`.
pub const ENTRY_SYMBOL: &str = "atlas_entry";

/// The symbol of the source's name, as run-time errors show it: bytes, ended by a NUL.
pub const SOURCE_SYMBOL: &str = "atlas_source";

/// The symbol of a function of the source. C calls `gcd` as `atl_gcd`.
pub fn function_symbol(source_name: &str) -> String {
    format!("atl_{source_name}")
}
