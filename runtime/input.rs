//! Standard input: integers between white space, read through a buffer of 64 KiB.
//!
//! A token reaches to the next white space (space, `\t`, `\n`, `\v`, `\f`, `\r`) or to the end; it may be longer than
//! the buffer. It is an integer if it is an optional sign and decimal digits whose value fits in 64 bits. A byte that is
//! no digit stands behind the buffered bytes, so that the loops over white space and digits need no other end test.

use crate::{output, sys, traps};

const STDIN: usize = 0;
const CAPACITY: usize = 64 * 1024;

/// Stands behind the buffered bytes: neither white space nor a digit.
const SENTINEL: u8 = 0;

struct Input {
    /// `bytes[at..end]` is read but not used yet; `bytes[end]` is the sentinel.
    at: usize,
    end: usize,
    finished: bool,
    bytes: [u8; CAPACITY + 8],
}

static mut INPUT: Input = Input { at: 0, end: 0, finished: false, bytes: [SENTINEL; CAPACITY + 8] };

/// The next integer of the input.
///
/// # Safety
/// One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atlrt_read(line: u32, column: u32) -> i64 {
    unsafe {
        let Some(mut cursor) = skip_white_space() else { traps::fail(b"no integer to read", line, column) };
        let sign = cursor.byte();
        let negative = sign == b'-';
        if negative || sign == b'+' {
            cursor.step();
        }
        let first_digit = digit(cursor.byte());
        if first_digit > 9 {
            malformed(line, column);
        }
        // The magnitude; what a signed number holds in 18 digits cannot overflow, and further ones are checked.
        let mut value = u64::from(first_digit);
        cursor.step();
        let mut safe = 17;
        loop {
            let next = digit(cursor.peek());
            if next > 9 {
                if cursor.more() {
                    continue;
                }
                break;
            }
            if safe > 0 {
                value = value * 10 + u64::from(next);
                safe -= usize::from(value != 0);
            } else {
                match value.checked_mul(10).and_then(|ten| ten.checked_add(u64::from(next))) {
                    Some(sum) => value = sum,
                    None => malformed(line, column),
                }
            }
            cursor.step();
        }
        if !cursor.at_end() && !is_white_space(cursor.peek()) {
            malformed(line, column);
        }
        cursor.keep();
        if value > i64::MAX as u64 + u64::from(negative) {
            malformed(line, column);
        }
        if negative { (value as i64).wrapping_neg() } else { value as i64 }
    }
}

/// Is only white space left?
///
/// # Safety
/// One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atlrt_eof() -> u64 {
    unsafe {
        match skip_white_space() {
            Some(cursor) => {
                cursor.keep();
                0
            }
            None => 1,
        }
    }
}

#[cold]
unsafe fn malformed(line: u32, column: u32) -> ! {
    unsafe { traps::fail(b"malformed integer in the input", line, column) }
}

/// A place in the input, held in registers while a token is read.
struct Cursor {
    at: *const u8,
    end: *const u8,
}

impl Cursor {
    #[inline(always)]
    unsafe fn new() -> Cursor {
        unsafe {
            let bytes: *const u8 = (&raw const INPUT.bytes).cast();
            Cursor { at: bytes.add(INPUT.at), end: bytes.add(INPUT.end) }
        }
    }

    /// The byte here, or the sentinel at the end of what is buffered.
    #[inline(always)]
    unsafe fn peek(&self) -> u8 {
        unsafe { *self.at }
    }

    /// Goes on over a byte that is not the sentinel.
    #[inline(always)]
    unsafe fn step(&mut self) {
        unsafe { self.at = self.at.add(1) };
    }

    /// Is this the end of what is buffered (and, where `more` said so, of the input)?
    #[inline(always)]
    fn at_end(&self) -> bool {
        self.at == self.end
    }

    /// At the end of what is buffered, reads more; says whether there is more. Elsewhere false.
    #[inline(always)]
    unsafe fn more(&mut self) -> bool {
        unsafe {
            if !self.at_end() || !refill() {
                return false;
            }
            *self = Cursor::new();
            true
        }
    }

    /// The byte here, reading more if needed; the sentinel at the end of the input.
    #[inline(always)]
    unsafe fn byte(&mut self) -> u8 {
        unsafe {
            if self.at_end() {
                self.more();
            }
            self.peek()
        }
    }

    /// Makes this the place where the input goes on.
    #[inline(always)]
    unsafe fn keep(&self) {
        unsafe { INPUT.at = self.at as usize - (&raw const INPUT.bytes) as usize };
    }
}

/// The place of the next byte that is not white space, or `None` at the end of the input.
#[inline(always)]
unsafe fn skip_white_space() -> Option<Cursor> {
    unsafe {
        let mut cursor = Cursor::new();
        loop {
            while is_white_space(cursor.peek()) {
                cursor.step();
            }
            if !cursor.at_end() {
                return Some(cursor);
            }
            if !cursor.more() {
                cursor.keep();
                return None;
            }
        }
    }
}

#[inline(always)]
fn is_white_space(byte: u8) -> bool {
    byte == b' ' || byte.wrapping_sub(b'\t') < 5
}

/// The value of a digit; above 9 for other bytes.
#[inline(always)]
fn digit(byte: u8) -> u8 {
    byte.wrapping_sub(b'0')
}

/// Replaces the buffered bytes, all of which are used, by the next ones; false at the end of the input. What was
/// printed is written first, as the reader may be waiting for it before answering. A read error ends the input.
#[cold]
#[inline(never)]
unsafe fn refill() -> bool {
    unsafe {
        if INPUT.finished {
            return false;
        }
        output::flush();
        let bytes: *mut u8 = (&raw mut INPUT.bytes).cast();
        loop {
            match sys::read(STDIN, bytes, CAPACITY) {
                sys::EINTR => {}
                sys::EAGAIN => sys::wait_for(STDIN as i32, sys::POLLIN),
                count if count > 0 => {
                    INPUT.at = 0;
                    INPUT.end = count as usize;
                    *bytes.add(count as usize) = SENTINEL;
                    return true;
                }
                _ => {
                    INPUT.finished = true;
                    return false;
                }
            }
        }
    }
}
