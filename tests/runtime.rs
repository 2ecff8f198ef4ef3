//! The runtime, driven by small C programs that call it as compiled programs do.

mod native;

use atlc::emit::RUNTIME;
use atlc::emit::output::TemporaryFolder;
use atlc::x64::runtime::RuntimeFn;
use native::{PRELUDE, Program, Run, have, output, run, spawn};
use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WHERE: &str = "\n --> dir/prog.atl:3:9\n";

fn check(run: &Run, stdout: &str, stderr: &str, status: i32) {
    assert_eq!((run.text(), run.stderr.as_str(), run.status), (stdout, stderr, status));
}

#[test]
fn the_compiler_and_the_runtime_agree_on_the_functions() {
    let object = object::File::parse(RUNTIME).unwrap();
    let defined: BTreeSet<&str> = object
        .symbols()
        .filter(|symbol| symbol.is_global() && symbol.is_definition())
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| name.starts_with("atlrt_"))
        .collect();
    // What C programs call besides.
    let mut expected = BTreeSet::from(["atlrt_flush"]);
    expected.extend(RuntimeFn::ALL.map(RuntimeFn::symbol));
    assert_eq!(defined, expected);
}

// ── Output ──────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn ints_are_printed_in_decimal() {
    if !have("gcc") {
        return;
    }
    let mut values = vec![0, i64::MIN, i64::MIN + 1, i64::MAX];
    for power in (0..19).map(|exponent| 10i64.pow(exponent)) {
        values.extend([power - 1, power, power + 1, -power, 1 - power, -1 - power]);
    }
    for bit in 0..63 {
        values.extend([1i64 << bit, (1 << bit) - 1, -(1 << bit)]);
    }
    let mut state = 88_172_645_463_325_252u64;
    for _ in 0..2000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values.push(state as i64 >> (state % 64));
    }
    let list: Vec<String> = values.iter().map(|value| format!("{:#x}UL", *value as u64)).collect();
    let program = Program::new(&format!(
        "static const long values[] = {{{}}};
         void atlas_entry(void) {{ for (long i = 0; i < {}; i++) atlrt_print_int(values[i], i & 1 ? '\\n' : ' '); }}",
        list.join(","),
        values.len()
    ));
    let expected: String =
        values.iter().enumerate().map(|(i, value)| format!("{value}{}", if i % 2 == 1 { "\n" } else { " " })).collect();
    check(&program.run(b""), &expected, "", 0);
}

#[test]
fn bools_and_strings_of_every_length_are_printed() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(
        r#"static char text[300000];
           void atlas_entry(void) {
               for (long i = 0; i < sizeof text; i++) text[i] = 'a' + i % 23;
               atlrt_print_bool(1, ' '); atlrt_print_bool(0, ' '); atlrt_print_bool(0x100, '\n');
               atlrt_print_str(text, 0, '\n');
               for (long i = 0; i < 300; i++) atlrt_print_str(text + i, i, i & 1 ? '\n' : ' ');
               long lengths[] = {65535, 65536, 65537, 65567, 65568, 65569, 131072, 300000, 1, 200000};
               for (int i = 0; i < 10; i++) atlrt_print_str(text, lengths[i], '\n');
           }"#,
    );
    let text: Vec<u8> = (0..300_000).map(|i| b'a' + (i % 23) as u8).collect();
    // A C bool is the low byte alone.
    let mut expected = b"true false false\n\n".to_vec();
    for i in 0..300 {
        expected.extend_from_slice(&text[i..2 * i]);
        expected.push(if i % 2 == 1 { b'\n' } else { b' ' });
    }
    for length in [65535, 65536, 65537, 65567, 65568, 65569, 131_072, 300_000, 1, 200_000] {
        expected.extend_from_slice(&text[..length]);
        expected.push(b'\n');
    }
    let result = program.run(b"");
    assert!(result.stdout == expected, "the output differs");
    assert_eq!((result.stderr.as_str(), result.status), ("", 0));
}

const COUNT_TO_200000: &str = "void atlas_entry(void) { for (long i = 0; i < 200000; i++) atlrt_print_int(i, '\\n'); }";

fn numbers_to_200000() -> Vec<u8> {
    (0..200_000).map(|i| format!("{i}\n")).collect::<String>().into_bytes()
}

#[test]
fn a_slow_reader_that_blocks_nobody_gets_everything() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(COUNT_TO_200000);
    let mut ends = [0; 2];
    // SAFETY: two descriptors are made, and owned right after.
    let (mut reader, writer) = unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (File::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    // SAFETY: the descriptor is open. The program's writes to the full pipe fail with EAGAIN.
    unsafe { assert_eq!(libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK), 0) };
    let mut child = spawn(Command::new(&program.path).stdin(Stdio::null()).stdout(writer));
    let (mut all, mut part) = (Vec::new(), [0; 7001]);
    loop {
        let count = reader.read(&mut part).unwrap();
        if count == 0 {
            break;
        }
        all.extend_from_slice(&part[..count]);
        if all.len() < 300_000 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(child.wait().unwrap().success());
    assert!(all == numbers_to_200000(), "the output differs");
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(COUNT_TO_200000);
    let mut child =
        spawn(Command::new(&program.path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut first = [0; 2];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"0\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.signal(), output.stderr.len()), (Some(libc::SIGPIPE), 0));
    // The same where whoever started it ignores the signal.
    let result = program.run_in_shell("trap '' PIPE; { \"$0\"; echo $? >&2; } | head -n 1");
    check(&result, "0\n", "141\n", 0);
}

#[test]
fn a_full_disk_is_an_error() {
    if !have("gcc") {
        return;
    }
    let message = "error: cannot write to standard output\n";
    let small = Program::new("void atlas_entry(void) { atlrt_print_int(1, '\\n'); }");
    check(&small.run_in_shell("exec \"$0\" > /dev/full"), "", message, 101);
    check(&small.run_in_shell("exec \"$0\" >&-"), "", message, 101);
    let large = Program::new(COUNT_TO_200000);
    check(&large.run_in_shell("exec \"$0\" > /dev/full"), "", message, 101);
    // Output comes before a run-time error, and so does its failure.
    let trap = Program::new("void atlas_entry(void) { atlrt_print_int(1, '\\n'); atlrt_trap_division(3, 9); }");
    check(&trap.run_in_shell("exec \"$0\" > /dev/full"), "", message, 101);
    check(&trap.run_in_shell("exec \"$0\" 2> /dev/full"), "1\n", "", 101);
    let silent = Program::new("void atlas_entry(void) { }");
    check(&silent.run_in_shell("exec \"$0\" > /dev/full"), "", "", 0);
    check(&silent.run_in_shell("exec \"$0\" >&- 2>&- <&-"), "", "", 0);
}

/// Waits for bytes on a descriptor that answers slowly, up to five seconds.
fn wait_for(file: &mut File, expected: &[u8]) {
    let start = Instant::now();
    let mut seen = Vec::new();
    while seen != expected {
        let mut poll = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, alive during the call.
        let ready = unsafe { libc::poll(&raw mut poll, 1, 5000) };
        assert!(ready > 0 && start.elapsed() < Duration::from_secs(5), "only {seen:?} came");
        let mut part = [0; 100];
        let count = file.read(&mut part).unwrap();
        seen.extend_from_slice(&part[..count]);
        assert!(expected.starts_with(&seen), "{seen:?}");
    }
}

#[test]
fn lines_reach_a_terminal_at_once() {
    if !have("gcc") {
        return;
    }
    let program =
        Program::new("void atlas_entry(void) { atlrt_print_int(12, '\\n'); for (;;) __asm__ volatile(\"pause\"); }");
    let (mut master, mut slave) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: two descriptors are made, and owned right after; a null pointer asks for nothing more.
    let (mut master, slave) = unsafe {
        assert_eq!(libc::openpty(&raw mut master, &raw mut slave, null, null.cast(), null.cast()), 0);
        (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave))
    };
    let mut child = spawn(Command::new(&program.path).stdin(Stdio::null()).stdout(slave));
    wait_for(&mut master, b"12\r\n");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_prompt_is_seen_before_the_answer_is_read() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(
        "void atlas_entry(void) {
             for (int i = 0; i < 3; i++) { atlrt_print_str(\"?\", 1, ' '); atlrt_print_int(atlrt_read(1, 1) + 1, '\\n'); }
         }",
    );
    let mut child = spawn(Command::new(&program.path).stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = File::from(OwnedFd::from(child.stdout.take().unwrap()));
    wait_for(&mut stdout, b"? ");
    stdin.write_all(b"41\n").unwrap();
    wait_for(&mut stdout, b"42\n? ");
    stdin.write_all(b"-1\n").unwrap();
    wait_for(&mut stdout, b"0\n? ");
    // The answer comes in two pieces, and its end is the end of the input.
    stdin.write_all(b"98").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    stdin.write_all(b"76").unwrap();
    drop(stdin);
    wait_for(&mut stdout, b"9877\n");
    assert!(child.wait().unwrap().success());
}

// ── Input ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const READ_ALL: &str = "void atlas_entry(void) { while (!atlrt_eof()) atlrt_print_int(atlrt_read(3, 9), '\\n'); }";
const MALFORMED: &str = "error: malformed integer in the input";

/// What `READ_ALL` prints, and whether it fails, worked out the slow way.
fn read_slowly(input: &[u8]) -> (String, bool) {
    let mut printed = String::new();
    for token in input.split(|byte| b" \t\n\x0b\x0c\r".contains(byte)).filter(|token| !token.is_empty()) {
        let (negative, digits) = match token[0] {
            b'-' => (true, &token[1..]),
            b'+' => (false, &token[1..]),
            _ => (false, token),
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return (printed, false);
        }
        let significant: &[u8] = &digits[digits.iter().take_while(|digit| **digit == b'0').count()..];
        if significant.len() > 20 {
            return (printed, false);
        }
        let magnitude = significant.iter().fold(0i128, |value, digit| value * 10 + i128::from(digit - b'0'));
        match i64::try_from(if negative { -magnitude } else { magnitude }) {
            Ok(value) => printed.push_str(&format!("{value}\n")),
            Err(_) => return (printed, false),
        }
    }
    (printed, true)
}

fn reads_as_expected(program: &Program, input: &[u8], pieces: &[&[u8]]) {
    let (printed, right) = read_slowly(input);
    let stderr = if right { String::new() } else { format!("{MALFORMED}{WHERE}") };
    let result = run(&mut Command::new(&program.path), pieces);
    let shown = String::from_utf8_lossy(&input[..input.len().min(200)]);
    assert!(
        result.text() == printed && result.stderr == stderr && result.status == if right { 0 } else { 101 },
        "input {shown:?}…: {result:?}, expected {printed:?}"
    );
}

#[test]
fn integers_are_read_as_the_language_says() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(READ_ALL);
    let (zeros, nines) = ("0".repeat(5000), "9".repeat(5000));
    let inputs: &[&[u8]] = &[
        b"",
        b" \t\n\x0b\x0c\r ",
        b"0",
        b"-0",
        b"+0",
        b"1 -2 +3\n\n4\r\n\x0b5\x0c6\t7",
        b"9223372036854775807 -9223372036854775808",
        b"9223372036854775808",
        b"-9223372036854775809",
        b"18446744073709551615",
        b"18446744073709551616",
        b"18446744073709551617",
        b"-18446744073709551615",
        b"99999999999999999999",
        b"999999999999999999 1000000000000000000 -1000000000000000000",
        b"007 -007",
        b"5 12abc",
        b"0x1F",
        b"1_000",
        b"1.5",
        b"--1",
        b"+-1",
        b"-",
        b"+",
        b"- 1",
        b"5-",
        b"5+3",
        b"\0",
        b"1\x002",
        b"1\0",
        b"7 \0 8",
        b"-\0",
        b"\xEF\xBB\xBF1",
        b"\xA01",
        b"1,2",
        b"e",
    ];
    for input in inputs {
        reads_as_expected(&program, input, &[input]);
    }
    for text in [
        format!("{zeros}7"),
        format!("-{zeros}9223372036854775808 {zeros}9223372036854775807 {zeros}"),
        format!("{zeros}9223372036854775808"),
        nines,
        format!("{zeros}{zeros}x"),
    ] {
        reads_as_expected(&program, text.as_bytes(), &[text.as_bytes()]);
    }
}

#[test]
fn tokens_may_be_split_anywhere() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(READ_ALL);
    // At the border of the buffer's 65,536 bytes, with white space or with zeros in front.
    let tail = b"-1234567890123 +55 \x0b 9223372036854775807\n";
    for at in 65_536 - 40..65_536 + 2 {
        for filler in [b' ', b'0'] {
            let mut input = vec![filler; at];
            if filler == b'0' {
                input.push(b' ');
            }
            input.extend_from_slice(tail);
            reads_as_expected(&program, &input, &[&input]);
        }
    }
    // A file gives the same, and one byte at a time does.
    let input = b" 12 -34\n+56 \t 9223372036854775807 -9223372036854775808 007";
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    reads_as_expected(&program, input, &bytes);
    let bad = b"12 3x4";
    reads_as_expected(&program, bad, &bad.chunks(1).collect::<Vec<_>>());
}

#[test]
fn input_that_blocks_nobody_is_waited_for() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(READ_ALL);
    let mut ends = [0; 2];
    // SAFETY: two descriptors are made, and owned right after.
    let (reader, mut writer) = unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    };
    // SAFETY: the descriptor is open. The program's reads from the empty pipe fail with EAGAIN.
    unsafe { assert_eq!(libc::fcntl(reader.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK), 0) };
    let child = spawn(Command::new(&program.path).stdin(reader).stdout(Stdio::piped()));
    for piece in [&b"1"[..], b"2 3", b" ", b"-4"] {
        std::thread::sleep(Duration::from_millis(20));
        writer.write_all(piece).unwrap();
    }
    drop(writer);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"12\n3\n-4\n"[..], Some(0)));
}

#[test]
fn random_input_is_read_as_the_slow_reader_does() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(READ_ALL);
    let mut state = 0x1234_5678_9ABC_DEF1u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % below
    };
    for round in 0..30 {
        let mut input = Vec::new();
        for _ in 0..random(3000) {
            for _ in 0..random(3) + u64::from(!input.is_empty()) {
                input.push(b" \t\n\x0b\x0c\r"[random(6) as usize]);
            }
            input.extend_from_slice([&b""[..], b"-", b"+"][random(3) as usize]);
            let digits = if random(200) == 0 { random(400) + 1 } else { random(19) + 1 };
            input.extend((0..digits).map(|_| b'0' + if random(3) == 0 { 0 } else { random(10) as u8 }));
        }
        if round % 3 == 0 && !input.is_empty() {
            let at = random(input.len() as u64) as usize;
            input[at] = random(256) as u8;
        }
        let size = 1 + random(5000) as usize;
        reads_as_expected(&program, &input, &input.chunks(size).collect::<Vec<_>>());
    }
}

#[test]
fn what_cannot_be_read_is_the_end_of_the_input() {
    if !have("gcc") {
        return;
    }
    let nothing = format!("error: no integer to read{WHERE}");
    let program = Program::new(
        "void atlas_entry(void) { atlrt_print_bool(atlrt_eof(), '\\n'); atlrt_print_int(atlrt_read(3, 9), '\\n'); }",
    );
    check(&program.run(b""), "true\n", &nothing, 101);
    check(&program.run(b" \n\t "), "true\n", &nothing, 101);
    check(&program.run(b" 5 "), "false\n5\n", "", 0);
    check(&program.run_in_shell("exec \"$0\" < /"), "true\n", &nothing, 101);
    check(&program.run_in_shell("exec \"$0\" <&-"), "true\n", &nothing, 101);
    let both = Program::new("void atlas_entry(void) { atlrt_read(1, 1); atlrt_read(3, 9); }");
    check(&both.run(b"1"), "", &nothing, 101);
    check(&both.run(b"1\n\n"), "", &nothing, 101);
}

// ── Run-time errors ─────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn traps_say_what_and_where_whatever_the_stack_alignment() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(
        r#"#define TRAP(name) \
               __asm__ volatile("sub %0, %%rsp\n call " name "\n" : : "r"(skew), "D"(a), "S"(b), "d"(c), "c"(d))
           #define JUMP(name) \
               __asm__ volatile("sub %0, %%rsp\n jmp " name "\n" : : "r"(skew), "D"(a), "S"(b), "d"(c), "c"(d))
           void atlas_entry(void) {
               long which = atlrt_read(1, 1);
               register long skew __asm__("r9") = atlrt_read(1, 1);
               long a = atlrt_read(1, 1), b = atlrt_read(1, 1), c = atlrt_read(1, 1), d = atlrt_read(1, 1);
               atlrt_print_str("before", 6, '\n');
               if (which == 0) TRAP("atlrt_trap_division");
               if (which == 1) TRAP("atlrt_trap_index");
               if (which == 2) TRAP("atlrt_trap_assert");
               if (which == 3) JUMP("atlrt_trap_division");
               if (which == 4) JUMP("atlrt_trap_index");
               if (which == 5) JUMP("atlrt_trap_assert");
           }"#,
    );
    for skew in [0, 1, 7, 8, 12, 15, 16, 24] {
        for (which, message) in ["error: division by zero", "", "error: assertion failed"].iter().enumerate() {
            for how in [which, which + 3] {
                if which == 1 {
                    let result = program.run(format!("{how} {skew} -7 5 3 9").as_bytes());
                    let message = format!("error: index -7 out of bounds for an array of length 5{WHERE}");
                    check(&result, "before\n", &message, 101);
                } else {
                    let result = program.run(format!("{how} {skew} 3 9 0 0").as_bytes());
                    check(&result, "before\n", &format!("{message}{WHERE}"), 101);
                }
            }
        }
    }
    let far = program.run(b"1 0 9223372036854775807 9223372036854775807 4294967295 100000");
    let message = "error: index 9223372036854775807 out of bounds for an array of length 9223372036854775807\n \
                   --> dir/prog.atl:4294967295:100000\n";
    check(&far, "before\n", message, 101);
}

#[test]
fn much_output_comes_before_the_error() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(
        "void atlas_entry(void) { for (long i = 0; i < 200000; i++) atlrt_print_int(i, '\\n'); atlrt_trap_assert(3, 9); }",
    );
    let result = program.run(b"");
    assert!(result.stdout == numbers_to_200000());
    assert_eq!((result.stderr, result.status), (format!("error: assertion failed{WHERE}"), 101));
    // Both streams in one file keep their order.
    let result = program.run_in_shell("exec \"$0\" 2>&1 | tail -n 3");
    check(&result, &format!("199999\nerror: assertion failed{WHERE}"), "", 0);
}

#[test]
fn bottomless_recursion_is_a_stack_overflow() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(
        r#"__attribute__((noinline)) long down(long n) { return down(n + 1) + n; }
           void atlas_entry(void) { atlrt_print_str("before", 6, '\n'); atlrt_print_int(down(0), '\n'); }"#,
    );
    let message = "error: stack overflow\n";
    check(&program.run(b""), "before\n", message, 101);
    for limit in ["ulimit -s unlimited", "ulimit -s 64", "ulimit -v 600000", "ulimit -v 50000", "ulimit -v 2000"] {
        let result = program.run_in_shell(&format!("{limit}; exec \"$0\""));
        check(&result, "before\n", message, 101);
    }
    // The runtime itself may be what finds no stack.
    let program = Program::new(
        r#"__attribute__((noinline)) long down(long n) {
               volatile char wide[400];
               wide[n & 255] = 1;
               atlrt_print_int(n, '\n');
               return down(n + 1) + wide[n & 255];
           }
           void atlas_entry(void) { down(0); }"#,
    );
    let result = program.run(b"");
    assert_eq!((result.stderr.as_str(), result.status), (message, 101));
    let lines: Vec<&str> = result.text().lines().collect();
    assert!(lines.len() > 500_000);
    assert!(lines.iter().enumerate().all(|(i, line)| line.parse() == Ok(i)), "a line is lost or broken");
    assert!(result.text().ends_with('\n'));
}

#[test]
fn recursion_goes_deeper_than_c_can() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(
        r#"__attribute__((noinline)) long down(long n) { return n ? down(n - 1) + n : 0; }
           void atlas_entry(void) { atlrt_print_int(down(5000000), '\n'); }"#,
    );
    check(&program.run(b""), "12500002500000\n", "", 0);
}

#[test]
fn other_faults_keep_their_signal() {
    if !have("gcc") {
        return;
    }
    let program = Program::new("void atlas_entry(void) { *(volatile long *)8 = 1; }");
    check(&program.run(b""), "", "", -libc::SIGSEGV);
    let program = Program::new("void atlas_entry(void) { for (;;) __asm__ volatile(\"pause\"); }");
    let mut child = spawn(Command::new(&program.path).stdin(Stdio::null()));
    std::thread::sleep(Duration::from_millis(50));
    // SAFETY: the child is alive and not waited for yet.
    unsafe { libc::kill(child.id() as i32, libc::SIGSEGV) };
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGSEGV));
}

// ── Arrays ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Runs a program that prints a line and then waits for the end of its input; gives the line and the most memory that
/// the program had by then, in KiB. (What `wait4` reports counts this process as well, up to the start of the program.)
fn most_memory(program: &Program) -> (String, i64) {
    let mut child = spawn(Command::new(&program.path).stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    (line, most.trim().trim_end_matches(" kB").parse().unwrap())
}

#[test]
fn an_array_each_round_takes_constant_memory_and_little_time() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(
        r#"void atlas_entry(void) {
               long sum = 0;
               for (long i = 0; i < 10000000; i++) {
                   long *a = atlrt_array_int(10, 7, 1, 1);
                   byte *b = atlrt_array_bool(i & 31, 1, 1, 1);
                   a[i % 10] += i; sum += a[9];
                   atlrt_free(b); atlrt_free(a);
               }
               atlrt_print_int(sum, '\n'); atlrt_eof();
           }"#,
    );
    let start = Instant::now();
    let (text, memory) = most_memory(&program);
    // Every tenth round adds its number, and each adds 7: 9 + 19 + … + 9999999, plus 70 million.
    assert_eq!(text, format!("{}\n", (9 + 9_999_999i64) * 1_000_000 / 2 + 70_000_000));
    // Kept arrays would take two gigabytes.
    assert!(memory < 4000, "{memory} KiB");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn large_arrays_are_reused_and_huge_ones_given_back() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(
        r#"void atlas_entry(void) {
               long sum = 0;
               for (long i = 0; i < 300; i++) {
                   byte *a = atlrt_array_bool(5000000, 0, 1, 1);
                   long *b = atlrt_array_int(100000, i, 1, 1);
                   for (long k = 0; k < 5000000; k += 4096) { sum += a[k]; a[k] = 1; }
                   for (long k = 0; k < 100000; k += 512) sum += b[k] == i;
                   atlrt_free(b); atlrt_free(a);
               }
               for (long i = 0; i < 3; i++) {
                   long *a = atlrt_array_int(25000000, i, 1, 1);
                   sum += a[24999999] == i;
                   atlrt_free(a);
               }
               atlrt_print_int(sum, '\n'); atlrt_eof();
           }"#,
    );
    let (text, memory) = most_memory(&program);
    assert_eq!(text, format!("{}\n", 300 * 196 + 3));
    assert!(memory < 230_000, "{memory} KiB");
}

#[test]
fn arrays_keep_their_contents_in_any_order_of_death() {
    if !have("gcc") {
        return;
    }
    // Up to 200 arrays live at once, of many sizes; each is checked when it is made (length, alignment, every element)
    // and when it dies (every element). Arrays die mostly in reverse order of birth, in the second half in any order.
    let program = Program::new(
        r#"static struct { long *a; long n; long v; int bools; } live[200];
           static unsigned long state = 88172645463325252ul;
           static unsigned long random(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state >> 11; }
           static void fail(long code) { atlrt_print_int(code, '\n'); atlrt_trap_assert(3, 9); }
           static void verify(int i) {
               if (live[i].a[-1] != live[i].n) fail(1);
               for (long k = 0; k < live[i].n; k++)
                   if ((live[i].bools ? ((byte *)live[i].a)[k] : live[i].a[k]) != live[i].v) fail(2);
           }
           void atlas_entry(void) {
               int count = 0;
               long made = 0;
               for (long round = 0; round < 60000; round++) {
                   if (count < 200 && (count == 0 || random() % 2 == 0)) {
                       long n = random() % 40;
                       if (random() % 8 == 0) n = random() % 3000;
                       if (random() % 400 == 0) n = random() % 300000;
                       if (random() % 4000 == 0) n = random() % 5000000;
                       int bools = random() % 2;
                       long v = random() % 3 == 0 ? 0 : bools ? 1 : (long)random() * 31;
                       long *a = bools ? (long *)atlrt_array_bool(n, v, 1, 1) : atlrt_array_int(n, v, 1, 1);
                       if ((long)a & 7) fail(3);
                       live[count].a = a; live[count].n = n; live[count].v = v; live[count].bools = bools;
                       verify(count);
                       // New contents, so that a later array of zeros finds something to clear.
                       live[count].v = bools ? 1 : made + 1;
                       for (long k = 0; k < n; k++) if (bools) ((byte *)a)[k] = 1; else a[k] = made + 1;
                       count++; made++;
                   } else {
                       int i = round < 30000 ? count - 1 : random() % count;
                       verify(i);
                       atlrt_free(live[i].a);
                       count--;
                       for (int k = i; k < count; k++) live[k] = live[k + 1];
                   }
               }
               while (count) { count--; verify(count); atlrt_free(live[count].a); }
               atlrt_print_int(made, '\n');
           }"#,
    );
    let result = program.run(b"");
    assert_eq!((result.stderr.as_str(), result.status), ("", 0), "{}", result.text());
    assert!(result.text().trim().parse::<i64>().unwrap() > 25_000);
}

#[test]
fn impossible_lengths_are_errors() {
    if !have("gcc") {
        return;
    }
    let program = Program::new(
        r#"void atlas_entry(void) {
               long bools = atlrt_read(1, 1), length = atlrt_read(1, 1), init = atlrt_read(1, 1);
               atlrt_print_str("before", 6, '\n');
               if (bools) atlrt_array_bool(length, init, 3, 9); else atlrt_array_int(length, init, 3, 9);
               atlrt_print_str("made", 4, '\n');
           }"#,
    );
    for bools in 0..2 {
        for length in [-1, -8, i64::MIN, i64::MIN + 1, -(1 << 60)] {
            let message = format!("error: negative array length {length}{WHERE}");
            check(&program.run(format!("{bools} {length} 1").as_bytes()), "before\n", &message, 101);
        }
        // At and around sizes that wrap, and sizes that no address space has.
        for length in [i64::MAX, i64::MAX - 15, 1 << 62, 1 << 61, (1 << 61) + 1, (1 << 60) - 1, 1 << 48, 1 << 47] {
            for init in [0, 1] {
                let message = format!("error: out of memory{WHERE}");
                check(&program.run(format!("{bools} {length} {init}").as_bytes()), "before\n", &message, 101);
            }
        }
        check(&program.run(format!("{bools} 0 1").as_bytes()), "before\nmade\n", "", 0);
    }
    let limited = Program::new(
        r#"void atlas_entry(void) {
               for (long n = 1; ; n *= 2) { atlrt_array_int(n, 1, 3, 9); atlrt_print_int(n, '\n'); }
           }"#,
    );
    let result = limited.run_in_shell("ulimit -v 300000; exec \"$0\"");
    assert_eq!((result.stderr, result.status), (format!("error: out of memory{WHERE}"), 101));
    // Of the 293 MiB, the stack and its guard have 80. All arrays up to the last take 16 bytes times its length, and
    // chunks may be a quarter larger: 128 to 160 MiB for the length below, at least 256 for the next.
    let last: i64 = String::from_utf8(result.stdout).unwrap().lines().last().unwrap().parse().unwrap();
    assert_eq!(last, 8 << 20);
}

// ── C programs as hosts ─────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn c_programs_can_host_the_runtime() {
    if !have("gcc") {
        return;
    }
    let folder = TemporaryFolder::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("runtime.o"), RUNTIME).unwrap();
    let source = r#"
        #include <stdio.h>
        const char atlas_source[] = "dir/prog.atl";
        void atlas_entry(void) {}
        int main(void) {
            printf("%ld\n", atlrt_read(1, 1)); fflush(stdout);
            atlrt_print_int(1, '\n'); atlrt_flush();
            printf("2\n"); fflush(stdout);
            long *a = atlrt_array_int(3, 3, 1, 1);
            atlrt_print_int(a[2], '\n'); atlrt_free(a);
            return 4;
        }"#;
    std::fs::write(path("host.c"), format!("#define HOSTED\n{PRELUDE}{source}")).unwrap();
    for flags in [&["-pie", "-fPIE"][..], &["-no-pie", "-fno-pie"], &["-static"]] {
        let result = output(Command::new("gcc").args(["-O1", "-Wl,--fatal-warnings"]).args(flags).args([
            path("host.c"),
            path("runtime.o"),
            "-o".into(),
            path("host"),
        ]));
        assert!(result.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&result.stderr));
        check(&run(&mut Command::new(path("host")), &[b"0"]), "0\n1\n2\n3\n", "", 4);
    }
}
