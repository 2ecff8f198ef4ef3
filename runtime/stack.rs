//! The program's stack: a mapping of our own with a guard zone below it, whatever limit the shell has set.
//!
//! ```text
//!   low                                                          high
//!   | guard: no access | stack, grows downwards  <-  first frame |
//! ```
//!
//! Without it, the limit `unlimited` would let endless recursion eat all memory, and a small limit would end a
//! recursion that other machines can do. An access in the guard zone raises SIGSEGV; the handler runs on a small stack
//! of its own and reports the overflow. Other faults keep their default action.

use crate::{sys, traps};
use core::arch::naked_asm;

/// Thirty times what C programs have; recursion 5 million calls deep fits.
const BYTES: usize = 256 << 20;

/// With less than this, the stack that the process came with is better.
const LEAST: usize = 64 << 10;

/// The guard zone is wide, so that no frame reaches across it; it takes addresses only. At most a quarter of the stack's.
const GUARD: usize = 16 << 20;

const SIGNAL_STACK_BYTES: usize = 32 * 1024;

#[repr(C, align(16))]
struct SignalStack([u8; SIGNAL_STACK_BYTES]);

static mut SIGNAL_STACK: SignalStack = SignalStack([0; SIGNAL_STACK_BYTES]);

/// The guard zone, from and to; empty where there is none.
static mut FORBIDDEN: (usize, usize) = (0, 0);

/// Makes the stack; gives its upper end, or `old` where there is no memory for one.
pub unsafe fn make(old: usize) -> usize {
    unsafe {
        // Where the address space is limited, most of it is for arrays.
        let mut bytes = BYTES;
        let limit = sys::address_space_limit();
        while bytes as u64 > limit / 4 {
            bytes /= 2;
        }
        while bytes >= LEAST {
            let guard = GUARD.min(bytes / 4);
            if let Some(start) = sys::map_stack(guard + bytes) {
                if sys::forbid(start, guard) {
                    FORBIDDEN = (start as usize, start as usize + guard);
                    sys::set_signal_stack((&raw mut SIGNAL_STACK).cast(), SIGNAL_STACK_BYTES);
                    sys::handle(sys::SIGSEGV, on_fault as *const () as usize, return_from_signal as *const () as usize);
                    return start as usize + guard + bytes;
                }
                sys::unmap(start, guard + bytes);
            }
            bytes /= 2;
        }
        old
    }
}

/// The part of the kernel's `siginfo_t` that says where a fault was.
#[repr(C)]
struct Fault {
    signal: i32,
    errno: i32,
    code: i32,
    padding: i32,
    address: usize,
}

unsafe extern "C" fn on_fault(_signal: i32, fault: *const Fault, _context: *const u8) {
    unsafe {
        let address = (*fault).address;
        // A code above zero says that the kernel found the fault. Others come from kill(2) and have no address.
        if (*fault).code <= 0 {
            sys::die_of(sys::SIGSEGV);
        }
        if address >= FORBIDDEN.0 && address < FORBIDDEN.1 {
            traps::stack_overflow();
        }
        // The instruction faults once more on return, and then the process dies of it.
        sys::default_action(sys::SIGSEGV);
    }
}

#[unsafe(naked)]
unsafe extern "C" fn return_from_signal() {
    naked_asm!("mov eax, 15", "syscall", "ud2")
}
