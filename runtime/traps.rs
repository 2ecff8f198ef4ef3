//! Run-time errors: a message with the position in the source, and exit status 101.
//!
//! The program's code may call or jump here with any alignment of the stack, so small pieces of assembly align it. What
//! was printed so far is written first; then the message is composed in the same buffer.

use crate::{output, sys};
use core::arch::{asm, global_asm};

const STDERR: usize = 2;

/// The exit status of a run-time error.
const STATUS: usize = 101;

macro_rules! aligned {
    ($symbol:literal, $body:path) => {
        global_asm!(
            concat!(".pushsection .text.", $symbol, ",\"ax\",@progbits"),
            ".p2align 4",
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ", @function"),
            concat!($symbol, ":"),
            "and rsp, -16",
            "call {body}",
            "ud2",
            concat!(".size ", $symbol, ", . - ", $symbol),
            ".popsection",
            body = sym $body,
        );
    };
}

aligned!("atlrt_trap_division", division);
aligned!("atlrt_trap_index", index);
aligned!("atlrt_trap_assert", assert);

unsafe extern "C" fn division(line: u32, column: u32) -> ! {
    unsafe { fail(b"division by zero", line, column) }
}

unsafe extern "C" fn assert(line: u32, column: u32) -> ! {
    unsafe { fail(b"assertion failed", line, column) }
}

unsafe extern "C" fn index(index: i64, length: i64, line: u32, column: u32) -> ! {
    unsafe {
        begin(b"index ");
        output::put_int(index);
        put(b" out of bounds for an array of length ");
        output::put_int(length);
        end(line, column)
    }
}

/// The length of an array is negative.
#[cold]
pub unsafe fn negative_length(length: i64, line: u32, column: u32) -> ! {
    unsafe {
        begin(b"negative array length ");
        output::put_int(length);
        end(line, column)
    }
}

/// A run-time error whose message is fixed.
#[cold]
#[inline(never)]
pub unsafe fn fail(message: &[u8], line: u32, column: u32) -> ! {
    unsafe {
        begin(message);
        end(line, column)
    }
}

/// The stack is used up.
#[cold]
pub unsafe fn stack_overflow() -> ! {
    unsafe {
        begin(b"stack overflow\n");
        leave()
    }
}

/// Standard output takes no more. What was buffered is gone.
#[cold]
pub unsafe fn cannot_write() -> ! {
    unsafe {
        put(b"error: cannot write to standard output\n");
        leave()
    }
}

/// Writes the output so far, then begins a message.
unsafe fn begin(message: &[u8]) {
    unsafe {
        output::flush();
        put(b"error: ");
        put(message);
    }
}

/// Ends a message with the position.
unsafe fn end(line: u32, column: u32) -> ! {
    unsafe {
        put(b"\n --> ");
        let name = source_name();
        let mut len = 0;
        while *name.add(len) != 0 {
            len += 1;
        }
        // Longer than any path can be; the buffer must not be written to standard output from here on.
        output::put(name, len.min(32 * 1024));
        put(b":");
        output::put_int(line.into());
        put(b":");
        output::put_int(column.into());
        put(b"\n");
        leave()
    }
}

#[inline(never)]
unsafe fn put(text: &[u8]) {
    unsafe { output::put(text.as_ptr(), text.len()) };
}

unsafe fn leave() -> ! {
    unsafe {
        // Where standard error takes nothing, nobody can be told.
        let _ = output::write_out(STDERR);
        sys::exit(STATUS)
    }
}

fn source_name() -> *const u8 {
    let name: *const u8;
    // An extern static would be found through a table of addresses, which a static link has not.
    // SAFETY: computes an address only.
    unsafe { asm!("lea {}, [rip + atlas_source]", out(reg) name, options(nomem, nostack, preserves_flags)) };
    name
}
