//! Memory of arrays: a stack of blocks in chunks of mapped memory.
//!
//! Arrays die in the reverse order of their birth, so making one moves a pointer up and freeing one moves it back. A
//! block that is freed out of turn (hand-written IR can do that) is only marked, and goes when it comes to lie on top.
//!
//! ```text
//!   chunk: | header | block | block | free, used before | free, never touched |
//!                           last    top                 dirty                 limit
//!   block: | previous block, freed mark | length | elements … |
//! ```
//!
//! Memory above `dirty` is still zero from the kernel, so an array of zeros there need not be cleared: a large array
//! that is made once costs only the pages that it touches. Empty chunks are kept for the next array, up to
//! `SPARE_BYTES`, because clearing memory again is about ten times as fast as having the kernel map fresh pages (48 MB:
//! 2 ms to 22 ms). Larger ones go back at once.

use crate::{sys, traps};
use core::arch::asm;

const PAGE: usize = 4096;

/// What a block has before its elements: the previous block's address (bit 0: freed), and the length. Elements are
/// aligned to 16 bytes, and a block is a multiple of 16 bytes long.
const BLOCK_HEADER: usize = 16;

const FREED: usize = 1;

/// The size of the first chunk; each further one is as large as all before it together, up to `LARGEST_STEP`.
const FIRST_CHUNK: usize = 256 * 1024;
const LARGEST_STEP: usize = 32 << 20;

/// At most so many bytes, in so many chunks, are kept for later.
const SPARE_BYTES: usize = 128 << 20;
const SPARE_CHUNKS: usize = 16;

/// More bytes than the address space has; a longer array is out of memory before its size is computed.
const MOST_BYTES: i64 = 1 << 47;

/// From this size on, `rep stosq` is the fastest way to fill.
const LONG_FILL: usize = 1024;

#[repr(C, align(16))]
struct Chunk {
    below: *mut Chunk,
    bytes: usize,
    /// The fields of `Arena` of the same names, while another chunk is the current one.
    last: usize,
    top: usize,
    dirty: usize,
}

const CHUNK_HEADER: usize = (size_of::<Chunk>() + 15) & !15;

struct Arena {
    top: usize,
    limit: usize,
    dirty: usize,
    /// The topmost block of the current chunk; 0 where it has none.
    last: usize,
    /// The current chunk, null at first.
    chunk: *mut Chunk,
    /// All bytes in chunks that hold blocks.
    mapped: usize,
    /// Empty chunks, linked by `below`.
    spare: *mut Chunk,
    spare_bytes: usize,
    spare_chunks: usize,
}

static mut ARENA: Arena = Arena {
    top: 0,
    limit: 0,
    dirty: 0,
    last: 0,
    chunk: core::ptr::null_mut(),
    mapped: 0,
    spare: core::ptr::null_mut(),
    spare_bytes: 0,
    spare_chunks: 0,
};

/// Makes an array of ints; gives the address of its first element.
///
/// # Safety
/// One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atlrt_array_int(length: i64, init: u64, line: u32, column: u32) -> usize {
    unsafe {
        if length as u64 > (MOST_BYTES / 8) as u64 {
            impossible(length, line, column);
        }
        make(length, length as usize * 8, init, line, column)
    }
}

/// Makes an array of bools; gives the address of its first element.
///
/// # Safety
/// One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atlrt_array_bool(length: i64, init: u64, line: u32, column: u32) -> usize {
    unsafe {
        if length as u64 > MOST_BYTES as u64 {
            impossible(length, line, column);
        }
        make(length, length as usize, u64::from(init as u8 != 0) * 0x0101_0101_0101_0101, line, column)
    }
}

/// Frees an array.
///
/// # Safety
/// `array` came from here and is not used again. One thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atlrt_free(array: usize) {
    unsafe {
        let block = array - BLOCK_HEADER;
        if block != ARENA.last {
            *(block as *mut usize) |= FREED;
            return;
        }
        ARENA.top = block;
        ARENA.last = *(block as *const usize);
        if ARENA.last == 0 || *(ARENA.last as *const usize) & FREED != 0 {
            unwind();
        }
    }
}

#[cold]
unsafe fn impossible(length: i64, line: u32, column: u32) -> ! {
    unsafe {
        if length < 0 {
            traps::negative_length(length, line, column);
        }
        out_of_memory(line, column)
    }
}

#[cold]
unsafe fn out_of_memory(line: u32, column: u32) -> ! {
    unsafe { traps::fail(b"out of memory", line, column) }
}

/// A block for `bytes` bytes of elements, filled with `pattern`.
#[inline(always)]
unsafe fn make(length: i64, bytes: usize, pattern: u64, line: u32, column: u32) -> usize {
    unsafe {
        let rounded = (bytes + 15) & !15;
        let size = BLOCK_HEADER + rounded;
        if ARENA.limit - ARENA.top < size && !grow(size) {
            out_of_memory(line, column);
        }
        let block = ARENA.top;
        let end = block + size;
        let start = block + BLOCK_HEADER;
        *(block as *mut usize) = ARENA.last;
        *((block + 8) as *mut i64) = length;
        ARENA.last = block;
        ARENA.top = end;
        let dirty = ARENA.dirty;
        if end > dirty {
            ARENA.dirty = end;
        }
        let filled = if pattern == 0 && end > dirty { dirty.saturating_sub(start) } else { rounded };
        fill(start, filled, pattern);
        start
    }
}

/// Fills `bytes`, a multiple of 16.
#[inline(always)]
unsafe fn fill(start: usize, bytes: usize, pattern: u64) {
    unsafe {
        if bytes < LONG_FILL {
            let mut at = start as *mut u64;
            let end = (start + bytes) as *mut u64;
            while at < end {
                *at = pattern;
                *at.add(1) = pattern;
                at = at.add(2);
            }
        } else {
            asm!(
                "rep stosq",
                inout("rcx") bytes / 8 => _, inout("rdi") start => _, in("rax") pattern,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Makes a chunk with room for a block of `size` bytes the current one; false where there is no memory.
#[cold]
#[inline(never)]
unsafe fn grow(size: usize) -> bool {
    unsafe {
        let chunk = take_spare(CHUNK_HEADER + size);
        let chunk = if chunk.is_null() { new_chunk(CHUNK_HEADER + size) } else { chunk };
        if chunk.is_null() {
            return false;
        }
        let below = ARENA.chunk;
        if !below.is_null() {
            (*below).last = ARENA.last;
            (*below).top = ARENA.top;
            (*below).dirty = ARENA.dirty;
        }
        (*chunk).below = below;
        ARENA.chunk = chunk;
        ARENA.mapped += (*chunk).bytes;
        ARENA.last = 0;
        ARENA.top = chunk as usize + CHUNK_HEADER;
        ARENA.limit = chunk as usize + (*chunk).bytes;
        ARENA.dirty = (*chunk).dirty;
        true
    }
}

/// The smallest spare chunk of at least `bytes`, taken from the list; null if there is none.
unsafe fn take_spare(bytes: usize) -> *mut Chunk {
    unsafe {
        let mut best: *mut *mut Chunk = core::ptr::null_mut();
        let mut link = &raw mut ARENA.spare;
        while !(*link).is_null() {
            let size = (**link).bytes;
            if size >= bytes && (best.is_null() || size < (**best).bytes) {
                best = link;
            }
            link = &raw mut (**link).below;
        }
        if best.is_null() {
            return core::ptr::null_mut();
        }
        let chunk = *best;
        *best = (*chunk).below;
        ARENA.spare_bytes -= (*chunk).bytes;
        ARENA.spare_chunks -= 1;
        chunk
    }
}

/// A new chunk of at least `bytes`; null where there is no memory.
unsafe fn new_chunk(bytes: usize) -> *mut Chunk {
    unsafe {
        let exact = (bytes + PAGE - 1) & !(PAGE - 1);
        let step = ARENA.mapped.clamp(FIRST_CHUNK, LARGEST_STEP);
        let mut size = exact.max(step);
        let mut start = sys::map(size);
        if start.is_none() {
            release_spares();
            size = exact;
            start = sys::map(size);
        }
        let Some(start) = start else { return core::ptr::null_mut() };
        let chunk = start.cast::<Chunk>();
        (*chunk).bytes = size;
        (*chunk).dirty = start as usize + CHUNK_HEADER;
        chunk
    }
}

/// Gives all spare chunks back to the kernel.
unsafe fn release_spares() {
    unsafe {
        while !ARENA.spare.is_null() {
            let chunk = ARENA.spare;
            ARENA.spare = (*chunk).below;
            sys::unmap(chunk.cast(), (*chunk).bytes);
        }
        ARENA.spare_bytes = 0;
        ARENA.spare_chunks = 0;
    }
}

/// Removes freed blocks from the top, and chunks that have become empty; the lowest chunk stays unless it is huge.
#[inline(never)]
unsafe fn unwind() {
    unsafe {
        loop {
            while ARENA.last != 0 {
                let word = *(ARENA.last as *const usize);
                if word & FREED == 0 {
                    return;
                }
                ARENA.top = ARENA.last;
                ARENA.last = word & !FREED;
            }
            let empty = ARENA.chunk;
            let below = (*empty).below;
            if below.is_null() && (*empty).bytes <= SPARE_BYTES {
                return;
            }
            ARENA.mapped -= (*empty).bytes;
            (*empty).dirty = ARENA.dirty;
            ARENA.chunk = below;
            if below.is_null() {
                (ARENA.last, ARENA.top, ARENA.limit, ARENA.dirty) = (0, 0, 0, 0);
            } else {
                ARENA.last = (*below).last;
                ARENA.top = (*below).top;
                ARENA.limit = below as usize + (*below).bytes;
                ARENA.dirty = (*below).dirty;
            }
            retire(empty);
            if below.is_null() {
                return;
            }
        }
    }
}

/// Keeps an empty chunk for later, or gives it back.
unsafe fn retire(chunk: *mut Chunk) {
    unsafe {
        let bytes = (*chunk).bytes;
        if ARENA.spare_bytes + bytes > SPARE_BYTES || ARENA.spare_chunks == SPARE_CHUNKS {
            sys::unmap(chunk.cast(), bytes);
            return;
        }
        (*chunk).below = ARENA.spare;
        ARENA.spare = chunk;
        ARENA.spare_bytes += bytes;
        ARENA.spare_chunks += 1;
    }
}
