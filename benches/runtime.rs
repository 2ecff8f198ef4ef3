//! The runtime beside the C library: `cargo bench --bench runtime`. Needs gcc.
//!
//! Reads ten million integers (beside `scanf` and a hand-written loop over read(2)), prints as many (beside `printf`), and
//! makes and drops arrays of several sizes (beside `calloc` and `free`). User and system time of the fastest of five runs.

#[path = "../tests/native/mod.rs"]
mod native;

use atlc::emit::output::TemporaryFolder;
use native::{compile_c, executable, have, output};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const RUNS: usize = 5;

const READ: &str =
    "void atlas_entry(void) { long s = 0; while (!atlrt_eof()) s += atlrt_read(1, 1); atlrt_print_int(s, '\\n'); }";

const READ_BY_SCANF: &str = r#"#include <stdio.h>
    int main(void) { long s = 0, x; while (scanf("%ld", &x) == 1) s += x; printf("%ld\n", s); }"#;

const READ_BY_HAND: &str = r#"#include <stdio.h>
    #include <unistd.h>
    static unsigned char bytes[65536];
    static int at, end;
    static int next(void) {
        if (at == end) { end = read(0, bytes, sizeof bytes); at = 0; if (end <= 0) return -1; }
        return bytes[at++];
    }
    int main(void) {
        long s = 0;
        for (;;) {
            int c = next(), negative;
            while (c == ' ' || c == '\n') c = next();
            if (c < 0) break;
            if ((negative = c == '-')) c = next();
            long v = 0;
            while (c >= '0' && c <= '9') { v = v * 10 + c - '0'; c = next(); }
            s += negative ? -v : v;
        }
        printf("%ld\n", s);
    }"#;

/// The same numbers for both; of all lengths and signs.
const NUMBERS: &str = "unsigned long x = 88172645463325252ul;
    for (long i = 0; i < 10000000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; PRINT((long)x >> (x & 63)); }";

fn main() {
    // `cargo test --all-targets` runs this without the argument.
    if !std::env::args().any(|argument| argument == "--bench") || !have("gcc") {
        return;
    }
    let folder = TemporaryFolder::new().unwrap();
    let path = folder.path();
    let input = path.join("numbers");
    let print = format!("#define PRINT(n) atlrt_print_int(n, '\\n')\nvoid atlas_entry(void) {{ {NUMBERS} }}");
    let print = ours(path, "print", &print);
    let made = Command::new(&print).stdout(File::create(&input).unwrap()).status().unwrap();
    assert!(made.success());
    let printf = format!("#include <stdio.h>\n#define PRINT(n) printf(\"%ld\\n\", n)\nint main(void) {{ {NUMBERS} }}");
    let printf = theirs(path, "printf", &printf);

    let megabytes = std::fs::metadata(&input).unwrap().len() as f64 / 1e6;
    println!("ten million integers, {megabytes:.0} MB");
    report(
        "read",
        &[
            ("runtime", ours(path, "read", READ)),
            ("read(2)", theirs(path, "hand", READ_BY_HAND)),
            ("scanf", theirs(path, "scanf", READ_BY_SCANF)),
        ],
        &input,
    );
    report("print", &[("runtime", print), ("printf", printf)], &input);

    println!("an array of ints in each round, filled with zeros or sevens, one element touched");
    for (length, rounds) in
        [(10, 10_000_000), (100, 10_000_000), (1000, 1_000_000), (10_000, 200_000), (625_000, 1000), (6_000_000, 100)]
    {
        for init in [0, 7] {
            let loop_of = |make: &str, free: &str| {
                format!(
                    "long s = 0; for (long i = 0; i < {rounds}; i++) {{ long *a = {make}; a[i % {length}] += i; s += a[{}]; {free}(a); }}",
                    length - 1
                )
            };
            let mine = loop_of(&format!("atlrt_array_int({length}, {init}, 1, 1)"), "atlrt_free");
            let mine = ours(path, "arrays", &format!("void atlas_entry(void) {{ {mine} atlrt_print_int(s, '\\n'); }}"));
            let fill =
                if init == 0 { String::new() } else { format!("for (long k = 0; k < {length}; k++) a[k] = {init};") };
            let libc = loop_of(
                &format!("calloc({length}, 8); __asm__ volatile(\"\" : : \"r\"(a) : \"memory\"); {fill}"),
                "free",
            );
            let libc = theirs(
                path,
                "calloc",
                &format!("#include <stdio.h>\n#include <stdlib.h>\nint main(void) {{ {libc} printf(\"%ld\\n\", s); }}"),
            );
            report(
                &format!("{length} × {init}, {rounds} rounds"),
                &[("runtime", mine), ("calloc", libc)],
                Path::new("/dev/null"),
            );
        }
    }
}

/// A program over the runtime.
fn ours(folder: &Path, name: &str, source: &str) -> PathBuf {
    let object = compile_c(folder, source, &["-O2"]);
    executable(folder, name, &[&object])
}

/// A program over the C library.
fn theirs(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (input, path) = (folder.join("peer.c"), folder.join(name));
    std::fs::write(&input, source).unwrap();
    let result = output(Command::new("gcc").args(["-O2", "-w", "-o"]).args([&path, &input]));
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    path
}

fn report(what: &str, programs: &[(&str, PathBuf)], input: &Path) {
    print!("  {what:32}");
    for (name, path) in programs {
        let seconds = (0..RUNS).map(|_| processor_time(path, input)).fold(f64::INFINITY, f64::min);
        print!("  {name} {seconds:.3} s");
    }
    println!();
}

/// User and system time of one run, in seconds.
fn processor_time(program: &Path, input: &Path) -> f64 {
    let before = children_time();
    let stdin = File::open(input).unwrap();
    assert!(Command::new(program).stdin(stdin).stdout(Stdio::null()).status().unwrap().success());
    children_time() - before
}

/// User and system time of all processes waited for so far, in seconds.
fn children_time() -> f64 {
    // SAFETY: all zeros is a value of this type, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage), 0);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
