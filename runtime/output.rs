//! Standard output: a buffer of 64 KiB, and the functions that print into it.
//!
//! The buffer is written when it is full, at the end of the program, before a run-time error's message, before a read
//! that may wait, and, if standard output is a terminal, after each line. Its state is right after every instruction
//! that could fault, so that the handler of a stack overflow may write it too.

use crate::{sys, traps};

const STDOUT: usize = 1;

/// How many bytes are collected before they are written.
const CAPACITY: usize = 64 * 1024;

/// The longest thing that is printed without asking for room again: an int has up to 20 characters, and its end.
const SLACK: usize = 32;

struct Output {
    /// `bytes[written..used]` waits to be written; both are 0 when nothing does.
    written: usize,
    used: usize,
    terminal: Terminal,
    bytes: [u8; CAPACITY + SLACK],
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Terminal {
    Unknown = 0,
    No = 1,
    Yes = 2,
}

static mut OUTPUT: Output = Output { written: 0, used: 0, terminal: Terminal::Unknown, bytes: [0; CAPACITY + SLACK] };

/// The decimal digits of 00 to 99.
static PAIRS: [u8; 200] = pairs();

const fn pairs() -> [u8; 200] {
    let mut table = [0; 200];
    let mut i = 0;
    while i < 100 {
        table[2 * i] = b'0' + (i / 10) as u8;
        table[2 * i + 1] = b'0' + (i % 10) as u8;
        i += 1;
    }
    table
}

/// Prints an int and the character `end`.
///
/// # Safety
/// One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atlrt_print_int(value: i64, end: u32) {
    unsafe {
        let mut to = room();
        if value < 0 {
            *to = b'-';
            to = to.add(1);
        }
        let to = put_digits(to, value.unsigned_abs());
        finish(to, end as u8);
    }
}

/// Prints `true` or `false` and the character `end`.
///
/// # Safety
/// One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atlrt_print_bool(value: u64, end: u32) {
    unsafe {
        let to = room();
        if value as u8 != 0 {
            to.cast::<u32>().write_unaligned(u32::from_le_bytes(*b"true"));
            finish(to.add(4), end as u8);
        } else {
            to.cast::<u32>().write_unaligned(u32::from_le_bytes(*b"fals"));
            *to.add(4) = b'e';
            finish(to.add(5), end as u8);
        }
    }
}

/// Prints `len` bytes and the character `end`.
///
/// # Safety
/// The bytes are readable. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atlrt_print_str(text: *const u8, len: usize, end: u32) {
    unsafe {
        put(text, len);
        finish(room(), end as u8);
    }
}

/// Writes what is buffered. For C programs that call Atlas functions and write to the same descriptor.
///
/// # Safety
/// One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atlrt_flush() {
    unsafe { flush() };
}

/// Where at least `SLACK` bytes fit.
#[inline(always)]
unsafe fn room() -> *mut u8 {
    unsafe {
        if OUTPUT.used >= CAPACITY {
            flush();
        }
        bytes().add(OUTPUT.used)
    }
}

#[inline(always)]
fn bytes() -> *mut u8 {
    // SAFETY: computes an address only.
    unsafe { (&raw mut OUTPUT.bytes).cast() }
}

/// Appends `end` at `to`, and makes everything before it part of the output.
#[inline(always)]
unsafe fn finish(to: *mut u8, end: u8) {
    unsafe {
        *to = end;
        OUTPUT.used = to as usize + 1 - bytes() as usize;
        if end == b'\n' && OUTPUT.terminal != Terminal::No {
            finish_line();
        }
    }
}

/// The end of a line that may go to a terminal.
#[cold]
#[inline(never)]
unsafe fn finish_line() {
    unsafe {
        if OUTPUT.terminal == Terminal::Unknown {
            OUTPUT.terminal = if sys::is_terminal(STDOUT) { Terminal::Yes } else { Terminal::No };
        }
        if OUTPUT.terminal == Terminal::Yes {
            flush();
        }
    }
}

/// Writes `value` in decimal at `to`; gives the place behind it.
#[inline(always)]
unsafe fn put_digits(to: *mut u8, value: u64) -> *mut u8 {
    unsafe {
        let end = to.add(digit_count(value));
        let mut at = end;
        let mut rest = value;
        while rest >= 10_000 {
            let four = (rest % 10_000) as u32;
            rest /= 10_000;
            at = at.sub(4);
            put_pair(at, four / 100);
            put_pair(at.add(2), four % 100);
        }
        let mut rest = rest as u32;
        if rest >= 100 {
            at = at.sub(2);
            put_pair(at, rest % 100);
            rest /= 100;
        }
        if rest >= 10 {
            put_pair(at.sub(2), rest);
        } else {
            *at.sub(1) = b'0' + rest as u8;
        }
        end
    }
}

/// How many decimal digits a number has: the number of binary digits gives it but for one comparison.
#[inline(always)]
fn digit_count(value: u64) -> usize {
    const POWERS: [u64; 20] = {
        let mut powers = [0; 20];
        let mut power = 1u64;
        let mut i = 1;
        while i < 20 {
            power *= 10;
            powers[i] = power;
            i += 1;
        }
        powers
    };
    static TABLE: [u64; 20] = POWERS;
    let bits = 64 - (value | 1).leading_zeros() as usize;
    // 1233 / 4096 is just above the decimal logarithm of 2, and right for up to 64 bits.
    let guess = (bits * 1233) >> 12;
    // SAFETY: guess is at most 19.
    let power = unsafe { *(&raw const TABLE).cast::<u64>().add(guess) };
    guess + usize::from(value >= power)
}

#[inline(always)]
unsafe fn put_pair(to: *mut u8, pair: u32) {
    unsafe {
        let from = (&raw const PAIRS).cast::<u8>().add(2 * pair as usize).cast::<u16>();
        to.cast::<u16>().write_unaligned(from.read_unaligned());
    }
}

/// Appends bytes, writing what is buffered as often as needed.
#[inline(never)]
pub unsafe fn put(text: *const u8, len: usize) {
    unsafe {
        let (mut from, mut left) = (text, len);
        loop {
            let to = room();
            let part = left.min(CAPACITY + SLACK - OUTPUT.used);
            copy(from, to, part);
            OUTPUT.used += part;
            left -= part;
            if left == 0 {
                return;
            }
            from = from.add(part);
        }
    }
}

/// Copies bytes between places that do not overlap.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    unsafe {
        if len < 64 {
            let mut i = 0;
            while i + 8 <= len {
                to.add(i).cast::<u64>().write_unaligned(from.add(i).cast::<u64>().read_unaligned());
                i += 8;
            }
            while i < len {
                *to.add(i) = *from.add(i);
                i += 1;
            }
        } else {
            core::arch::asm!(
                "rep movsb",
                inout("rcx") len => _, inout("rsi") from => _, inout("rdi") to => _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Appends an int, for messages.
#[inline(never)]
pub unsafe fn put_int(value: i64) {
    unsafe {
        let mut to = room();
        if value < 0 {
            *to = b'-';
            to = to.add(1);
        }
        let to = put_digits(to, value.unsigned_abs());
        OUTPUT.used = to as usize - bytes() as usize;
    }
}

/// Writes what is buffered to standard output; ends the program if that cannot be done.
#[cold]
#[inline(never)]
pub unsafe fn flush() {
    unsafe {
        match write_out(STDOUT) {
            Ok(()) => {}
            Err(sys::EPIPE) => {
                // The signal was ignored or blocked; other tools die of it, and so do we.
                sys::die_of(sys::SIGPIPE);
                sys::exit(128 + sys::SIGPIPE);
            }
            Err(_) => {
                discard();
                traps::cannot_write();
            }
        }
    }
}

/// Drops what is buffered.
unsafe fn discard() {
    unsafe {
        OUTPUT.written = 0;
        OUTPUT.used = 0;
    }
}

/// Writes what is buffered to a descriptor: all of it, however small the pieces that the kernel takes.
#[inline(never)]
pub unsafe fn write_out(fd: usize) -> Result<(), isize> {
    unsafe {
        while OUTPUT.written < OUTPUT.used {
            match sys::write(fd, bytes().add(OUTPUT.written), OUTPUT.used - OUTPUT.written) {
                sys::EINTR => {}
                sys::EAGAIN => sys::wait_for(fd as i32, sys::POLLOUT),
                error if error < 0 => return Err(error),
                // POSIX lets no write of some bytes take none; if one does, it is as full as a disk can be.
                0 => return Err(0),
                written => OUTPUT.written += written as usize,
            }
        }
        discard();
        Ok(())
    }
}
