//! The first and the last instructions of the process.

use crate::{output, stack, sys};
use core::arch::global_asm;

// The outermost frame has no caller. Unwinders see it in the directive, those that follow frames in rbp, and those that
// guess in the zeros above.
global_asm!(
    ".pushsection .text._start,\"ax\",@progbits",
    ".p2align 4",
    ".weak _start",
    ".type _start, @function",
    "_start:",
    ".cfi_startproc",
    ".cfi_undefined rip",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {make}",
    "mov rsp, rax",
    "and rsp, -16",
    "push 0",
    "push 0",
    "call atlas_entry",
    "call {end}",
    "ud2",
    ".cfi_endproc",
    ".size _start, . - _start",
    ".popsection",
    make = sym make_stack,
    end = sym end,
);

// In a C program, its exit writes what is still buffered.
global_asm!(
    ".pushsection .fini_array,\"aw\",@fini_array",
    ".p2align 3",
    ".quad {flush}",
    ".popsection",
    flush = sym output::atlrt_flush,
);

unsafe extern "C" fn make_stack(old: usize) -> usize {
    unsafe { stack::make(old) }
}

unsafe extern "C" fn end() -> ! {
    unsafe {
        output::flush();
        sys::exit(0)
    }
}
