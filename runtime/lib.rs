//! The runtime: what every compiled program is linked with. No standard library, no libc, Linux on x86-64 only.
//!
//! `build.rs` compiles this folder to one object and embeds it in `atlc`. The object needs nothing but two symbols of
//! the program, `atlas_entry` (its body) and `atlas_source` (the source's file name), and it is position-independent, so
//! that it links into static and into position-independent executables alike.
//!
//! `_start` is weak: linked with C's own start code, the C program is the host and calls functions of the Atlas program.
//! All state therefore works from its zero initial value, and buffered output is written when the host exits
//! (`.fini_array`) or when it calls `atlrt_flush`.
//!
//! Rules of this folder: no panics (an indexing check would need code of `core` that is not there to link), no calls
//! that the compiler could turn into `memset` or `memcpy` (hence `no_builtins`), one thread. `build.rs` checks the first
//! two on the object.

#![no_std]
#![no_builtins]

mod arrays;
mod input;
mod output;
mod stack;
mod start;
mod sys;
mod traps;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // Nothing here can panic; the build fails if anything refers to this.
    sys::exit(101)
}
