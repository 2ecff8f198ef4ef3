//! The system calls that the runtime uses, raw: a negative result from -4095 to -1 is an error number.

use core::arch::asm;

pub const EINTR: isize = -4;
pub const EAGAIN: isize = -11;
pub const EPIPE: isize = -32;

pub const SIGPIPE: usize = 13;
pub const SIGSEGV: usize = 11;

pub const POLLIN: i16 = 1;
pub const POLLOUT: i16 = 4;

const SYS_READ: usize = 0;
const SYS_WRITE: usize = 1;
const SYS_POLL: usize = 7;
const SYS_MMAP: usize = 9;
const SYS_MPROTECT: usize = 10;
const SYS_MUNMAP: usize = 11;
const SYS_RT_SIGACTION: usize = 13;
const SYS_RT_SIGPROCMASK: usize = 14;
const SYS_IOCTL: usize = 16;
const SYS_GETPID: usize = 39;
const SYS_KILL: usize = 62;
const SYS_SIGALTSTACK: usize = 131;
const SYS_EXIT_GROUP: usize = 231;
const SYS_PRLIMIT64: usize = 302;

const PROT_READ_WRITE: usize = 3;
const MAP_PRIVATE_ANONYMOUS: usize = 0x22;
const MAP_NORESERVE: usize = 0x4000;
const MAP_STACK: usize = 0x20000;

/// # Safety
/// The arguments must be right for the call: the kernel reads and writes the memory that they name.
#[inline(always)]
unsafe fn call(number: usize, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
    let result: isize;
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Ends the process.
pub fn exit(status: usize) -> ! {
    loop {
        // SAFETY: touches no memory, and does not return.
        unsafe { call(SYS_EXIT_GROUP, status, 0, 0, 0, 0, 0) };
    }
}

/// Writes up to `len` bytes.
///
/// # Safety
/// `from..from + len` is readable.
pub unsafe fn write(fd: usize, from: *const u8, len: usize) -> isize {
    unsafe { call(SYS_WRITE, fd, from as usize, len, 0, 0, 0) }
}

/// Reads up to `len` bytes; 0 is the end.
///
/// # Safety
/// `to..to + len` is writable and nobody else's.
pub unsafe fn read(fd: usize, to: *mut u8, len: usize) -> isize {
    unsafe { call(SYS_READ, fd, to as usize, len, 0, 0, 0) }
}

/// Waits until a non-blocking descriptor is ready for `events`.
pub fn wait_for(fd: i32, events: i16) {
    #[repr(C)]
    struct PollFd {
        fd: i32,
        events: i16,
        revents: i16,
    }
    let mut poll = PollFd { fd, events, revents: 0 };
    // SAFETY: one PollFd, alive during the call. An error or an interruption only means that the caller tries again.
    unsafe { call(SYS_POLL, &raw mut poll as usize, 1, usize::MAX, 0, 0, 0) };
}

/// New zeroed private memory, or `None`. The kernel may refuse an obvious overcommitment.
pub fn map(bytes: usize) -> Option<*mut u8> {
    mapped(bytes, MAP_PRIVATE_ANONYMOUS)
}

/// New zeroed memory for a stack; it counts only when touched.
pub fn map_stack(bytes: usize) -> Option<*mut u8> {
    mapped(bytes, MAP_PRIVATE_ANONYMOUS | MAP_NORESERVE | MAP_STACK)
}

fn mapped(bytes: usize, flags: usize) -> Option<*mut u8> {
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let result = unsafe { call(SYS_MMAP, 0, bytes, PROT_READ_WRITE, flags, usize::MAX, 0) };
    if result < 0 && result > -4096 { None } else { Some(result as *mut u8) }
}

/// Gives memory of `map` back.
///
/// # Safety
/// The range came from `map` and nothing in it is used again.
pub unsafe fn unmap(start: *mut u8, bytes: usize) {
    unsafe { call(SYS_MUNMAP, start as usize, bytes, 0, 0, 0, 0) };
}

/// Makes pages inaccessible; true on success.
///
/// # Safety
/// Nothing in the range is used again.
pub unsafe fn forbid(start: *mut u8, bytes: usize) -> bool {
    (unsafe { call(SYS_MPROTECT, start as usize, bytes, 0, 0, 0, 0) }) == 0
}

/// Is the descriptor a terminal?
pub fn is_terminal(fd: usize) -> bool {
    const TCGETS: usize = 0x5401;
    let mut termios = [0u64; 16];
    // SAFETY: the kernel's termios has 36 bytes, the buffer 128.
    (unsafe { call(SYS_IOCTL, fd, TCGETS, &raw mut termios as usize, 0, 0, 0) }) == 0
}

/// The limit of the address space in bytes; `u64::MAX` where there is none.
pub fn address_space_limit() -> u64 {
    const RLIMIT_AS: usize = 9;
    let mut limits = [u64::MAX; 2];
    // SAFETY: asks only, into two numbers alive during the call.
    let result = unsafe { call(SYS_PRLIMIT64, 0, RLIMIT_AS, 0, &raw mut limits as usize, 0, 0) };
    if result == 0 { limits[0] } else { u64::MAX }
}

/// The kernel's `struct sigaction`.
#[repr(C)]
struct Action {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

const SA_SIGINFO: usize = 4;
const SA_ONSTACK: usize = 0x0800_0000;
const SA_RESTORER: usize = 0x0400_0000;

/// Restores a signal's default action.
pub fn default_action(signal: usize) {
    let action = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
    // SAFETY: the action is alive during the call; default needs no code of ours.
    unsafe { call(SYS_RT_SIGACTION, signal, &raw const action as usize, 0, 8, 0, 0) };
}

/// Runs `handler` on the alternate signal stack when the signal comes; `restorer` returns from it.
///
/// # Safety
/// Both are code that may run at any instruction of the program.
pub unsafe fn handle(signal: usize, handler: usize, restorer: usize) {
    let action = Action { handler, flags: SA_SIGINFO | SA_ONSTACK | SA_RESTORER, restorer, mask: 0 };
    unsafe { call(SYS_RT_SIGACTION, signal, &raw const action as usize, 0, 8, 0, 0) };
}

/// Sets the stack on which signal handlers run.
///
/// # Safety
/// The memory is writable and used for nothing else.
pub unsafe fn set_signal_stack(start: *mut u8, bytes: usize) {
    #[repr(C)]
    struct SignalStack {
        start: *mut u8,
        flags: i32,
        bytes: usize,
    }
    let stack = SignalStack { start, flags: 0, bytes };
    unsafe { call(SYS_SIGALTSTACK, &raw const stack as usize, 0, 0, 0, 0, 0) };
}

/// Sends a signal to this process, even if it is blocked or ignored now, with its default action.
pub fn die_of(signal: usize) {
    const SIG_UNBLOCK: usize = 1;
    default_action(signal);
    let set: u64 = 1 << (signal - 1);
    // SAFETY: the set is alive during the call; the signal goes to this process only.
    unsafe {
        call(SYS_RT_SIGPROCMASK, SIG_UNBLOCK, &raw const set as usize, 0, 8, 0, 0);
        let this = call(SYS_GETPID, 0, 0, 0, 0, 0, 0);
        call(SYS_KILL, this as usize, signal, 0, 0, 0, 0);
    }
}
