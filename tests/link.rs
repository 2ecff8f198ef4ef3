//! The object writer and the linker: hand-made programs are linked, by this linker and by others, inspected and run.

mod native;

use atlc::emit::code::{FunctionCode, ProgramCode, Reloc, RelocKind, Target};
use atlc::emit::external::link_with;
use atlc::emit::link::{Input, LinkError, link};
use atlc::emit::output::TemporaryFolder;
use atlc::emit::output::{EXECUTABLE, write_atomically};
use atlc::emit::{RUNTIME, object};
use atlc::x64::runtime::{ENTRY_SYMBOL, RuntimeFn};
use cranelift_entity::{EntityRef, PrimaryMap};
use native::{Run, alone, assemble, compile_c, executable, have, output, run, write_executable};
use std::path::Path;
use std::process::Command;

/// A program that calls a function which prints a string, and prints what another function returns.
///
/// ```text
/// atlas_entry:  push rbp
///               call atl_greet
///               mov edi, 41
///               call atl_next
///               mov rdi, rax
///               mov esi, 10
///               call atlrt_print_int
///               pop rbp
///               ret
/// atl_greet:    lea rdi, [rip + str1]
///               mov esi, 5
///               mov edx, 10
///               jmp atlrt_print_str
/// atl_next:     lea rax, [rdi + 1]
///               ret
/// ```
fn sample() -> ProgramCode {
    let mut functions = PrimaryMap::new();
    let function = |name: &str, symbol: &str, bytes: &[u8], relocs: Vec<Reloc>| FunctionCode {
        name: name.into(),
        symbol: symbol.into(),
        bytes: bytes.to_vec(),
        relocs,
        marks: Vec::new(),
        blocks: Vec::new(),
    };
    let branch = |offset, target| Reloc { offset, kind: RelocKind::Branch, target, addend: -4 };
    let (greet, next) = (EntityRef::new(1), EntityRef::new(2));
    let entry = functions.push(function(
        "main",
        ENTRY_SYMBOL,
        &[
            0x55, 0xE8, 0, 0, 0, 0, 0xBF, 41, 0, 0, 0, 0xE8, 0, 0, 0, 0, 0x48, 0x89, 0xC7, 0xBE, 10, 0, 0, 0, 0xE8, 0,
            0, 0, 0, 0x5D, 0xC3,
        ],
        vec![
            branch(2, Target::Function(greet)),
            branch(12, Target::Function(next)),
            branch(25, Target::Runtime(RuntimeFn::PrintInt)),
        ],
    ));
    let mut strings = PrimaryMap::new();
    strings.push("unused \u{1F600} \0 text".to_string());
    let hello = strings.push("hello".to_string());
    functions.push(function(
        "greet",
        "atl_greet",
        &[0x48, 0x8D, 0x3D, 0, 0, 0, 0, 0xBE, 5, 0, 0, 0, 0xBA, 10, 0, 0, 0, 0xE9, 0, 0, 0, 0],
        vec![
            Reloc { offset: 3, kind: RelocKind::Data, target: Target::Str(hello), addend: -4 },
            branch(18, Target::Runtime(RuntimeFn::PrintStr)),
        ],
    ));
    functions.push(function("next", "atl_next", &[0x48, 0x8D, 0x47, 1, 0xC3], Vec::new()));
    ProgramCode { functions, entry, strings, source_name: "sample.atl".into() }
}

const SAMPLE_OUTPUT: &str = "hello\n42\n";

fn prints_the_sample(run: &Run) {
    assert_eq!((run.text(), run.stderr.as_str(), run.status), (SAMPLE_OUTPUT, "", 0));
}

/// Runs a tool on a file; it must succeed without a word on standard error.
fn silent(tool: &str, arguments: &[&str], file: &Path) -> String {
    let output = output(Command::new(tool).args(arguments).arg(file));
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && complaints.is_empty(), "{tool} on {}: {complaints}", file.display());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_linked_sample_runs() {
    let folder = TemporaryFolder::new().unwrap();
    let path = executable(folder.path(), "sample", &[&object::run(&sample())]);
    prints_the_sample(&run(&mut Command::new(path), &[]));
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    let (first, second) = (object::run(&sample()), object::run(&sample()));
    assert_eq!(first, second);
    let linked =
        |object: &[u8]| link(&[Input { name: "a", bytes: object }, Input { name: "runtime", bytes: RUNTIME }]).unwrap();
    assert_eq!(linked(&first), linked(&second));
}

#[test]
fn readers_of_objects_have_no_complaint() {
    if !have("readelf") || !have("objdump") {
        return;
    }
    let folder = TemporaryFolder::new().unwrap();
    let object = folder.path().join("sample.o");
    std::fs::write(&object, object::run(&sample())).unwrap();
    let program = executable(folder.path(), "sample", &[&object::run(&sample())]);
    for file in [&object, &program] {
        silent("readelf", &["-aW"], file);
        silent("objdump", &["-dr"], file);
    }

    let symbols = silent("readelf", &["-sW"], &object);
    let symbol = |name: &str| {
        let line = symbols.lines().find(|line| line.split_whitespace().last() == Some(name));
        line.unwrap_or_else(|| panic!("no symbol {name}")).split_whitespace().collect::<Vec<_>>()
    };
    // Columns: number, value, size, type, binding, visibility, section, name.
    assert_eq!(symbol("atl_next")[2..5], ["5", "FUNC", "GLOBAL"]);
    assert_eq!(symbol("atl_greet")[2..5], ["22", "FUNC", "GLOBAL"]);
    assert_eq!(symbol(ENTRY_SYMBOL)[2..5], ["31", "FUNC", "GLOBAL"]);
    assert_eq!(symbol("str1")[2..5], ["5", "OBJECT", "LOCAL"]);
    assert_eq!(symbol("atlas_source")[2..5], ["11", "OBJECT", "GLOBAL"]);
    assert_eq!(symbol("atlrt_print_int")[6], "UND");
    assert!(!symbols.contains("atlrt_read"), "a runtime function that is not called is needed");

    let segments = silent("readelf", &["-lW"], &program);
    let stack = segments.lines().find(|line| line.contains("GNU_STACK")).unwrap();
    assert!(stack.contains(" RW ") && !stack.contains("RWE"), "{stack}");
    assert!(!segments.lines().any(|line| line.contains("LOAD") && line.contains("RWE")), "{segments}");
    let listing = silent("objdump", &["-d"], &program);
    assert!(listing.contains("<atl_next>:") && listing.contains("<atlrt_print_int>"));
}

#[test]
fn other_linkers_agree() {
    for linker in ["ld", "gcc"] {
        if !have(linker) {
            continue;
        }
        let folder = TemporaryFolder::new().unwrap();
        let out = folder.path().join("linked");
        let object = object::run(&sample());
        let inputs = [Input { name: "sample.o", bytes: &object }, Input { name: "runtime.o", bytes: RUNTIME }];
        let linked = alone(|| link_with(Path::new(linker), &inputs)).unwrap_or_else(|error| panic!("{error}"));
        alone(|| write_atomically(&out, &linked, EXECUTABLE)).unwrap();
        prints_the_sample(&run(&mut Command::new(out), &[]));
    }
}

#[test]
fn c_programs_call_the_functions() {
    if !have("gcc") {
        return;
    }
    let folder = TemporaryFolder::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("sample.o"), object::run(&sample())).unwrap();
    std::fs::write(path("runtime.o"), RUNTIME).unwrap();
    // The program's body is a function like others; what it prints is written when the C program ends.
    let source = "#include <stdio.h>
        long atl_next(long);
        void atl_greet(void), atlas_entry(void);
        int main(void) { printf(\"%ld\\n\", atl_next(-1)); fflush(stdout); atl_greet(); atlas_entry(); return 3; }";
    std::fs::write(path("host.c"), source).unwrap();
    for flags in [&["-fPIE", "-pie"][..], &["-fno-pie", "-no-pie"], &["-static"]] {
        let result = output(Command::new("gcc").args(["-O1", "-Wl,--fatal-warnings"]).args(flags).args([
            path("host.c"),
            path("sample.o"),
            path("runtime.o"),
            "-o".into(),
            path("host"),
        ]));
        assert!(result.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&result.stderr));
        let result = run(&mut Command::new(path("host")), &[]);
        assert_eq!((result.text(), result.stderr.as_str(), result.status), ("0\nhello\nhello\n42\n", "", 3));
    }
}

#[test]
fn linkers_warn_of_nothing() {
    if !have("ld") || !have("readelf") {
        return;
    }
    let folder = TemporaryFolder::new().unwrap();
    let (object, runtime) = (folder.path().join("sample.o"), folder.path().join("runtime.o"));
    let out = folder.path().join("linked");
    std::fs::write(&object, object::run(&sample())).unwrap();
    std::fs::write(&runtime, RUNTIME).unwrap();
    let result = output(Command::new("ld").args(["-static", "--fatal-warnings", "-o"]).args([&out, &object, &runtime]));
    assert!(result.status.success() && result.stderr.is_empty(), "{}", String::from_utf8_lossy(&result.stderr));
    let segments = silent("readelf", &["-lW"], &out);
    let stack = segments.lines().find(|line| line.contains("GNU_STACK")).unwrap();
    assert!(!stack.contains("RWE"), "{stack}");
}

#[test]
fn external_linkers_fail_clearly() {
    let object = object::run(&sample());
    let inputs = [Input { name: "dir/sample program.o", bytes: &object }];
    let error = alone(|| link_with(Path::new("/no/such/linker"), &inputs)).unwrap_err().to_string();
    assert!(error.starts_with("the linker /no/such/linker failed: it cannot be run: "), "{error}");
    if have("ld") {
        let error = alone(|| link_with(Path::new("ld"), &inputs)).unwrap_err().to_string();
        assert!(error.contains("undefined reference to `atlrt_print_int'"), "{error}");
    }
}

#[test]
fn programs_run_wherever_their_code_lies() {
    if !have("gcc") {
        return;
    }
    let folder = TemporaryFolder::new().unwrap();
    let sample = object::run(&sample());
    for size in [0, 1, 15, 4095, 70_000] {
        let before = assemble(
            folder.path(),
            &format!(".globl before\nbefore: .fill {size}, 1, 0x90\n.section .note.GNU-stack,\"\",@progbits\n"),
        );
        let path = executable(folder.path(), "moved", &[&before, &sample]);
        prints_the_sample(&run(&mut Command::new(path), &[]));
        let path = executable(folder.path(), "moved", &[&sample, &before]);
        prints_the_sample(&run(&mut Command::new(path), &[]));
    }
}

#[test]
fn data_of_all_kinds_is_linked() {
    if !have("gcc") || !have("readelf") {
        return;
    }
    let folder = TemporaryFolder::new().unwrap();
    // Tables of addresses (R_X86_64_64), absolute addresses (32 and 32S), a jump table, data and zeros with wide
    // alignments, constants that may be merged, weak symbols that are and are not there, and debug information.
    let source = r#"
        extern int absent(void) __attribute__((weak));
        extern int present(void) __attribute__((weak));
        static long zeros[100] __attribute__((aligned(256)));
        static long numbers[3] __attribute__((aligned(128))) = {10, 20, 30};
        static const char *const names[] = {"one", "two", "three"};
        long *const pointers[] = {&numbers[1], &zeros[99]};
        static double half = 0.5;
        __attribute__((noinline)) long choose(long n) {
            switch (n) {
                case 0: return 7; case 1: return 1; case 2: return 8; case 3: return 2; case 4: return 81;
                case 5: return 82; case 6: return 8182; default: return -1;
            }
        }
        void atlas_entry(void) {
            zeros[99] = 5;
            for (long i = 0; i < 3; i++) atlrt_print_str(names[i], names[i][1] == 'h' ? 5 : 3, ' ');
            atlrt_print_int(*pointers[0] + *pointers[1] + numbers[2], ' ');
            for (long i = -1; i < 8; i++) atlrt_print_int(choose(i), ' ');
            atlrt_print_bool(((long)zeros & 255) == 0 && ((long)numbers & 127) == 0, ' ');
            atlrt_print_int(absent ? absent() : 0, ' ');
            atlrt_print_int(present ? present() : 0, ' ');
            atlrt_print_int(half * 8, '\n');
        }"#;
    let program = compile_c(folder.path(), source, &["-g"]);
    let other = compile_c(folder.path(), "int present(void) { return 11; }", &["-g", "-Datlas_source=other_name"]);
    let path = executable(folder.path(), "data", &[&program, &other]);
    let result = run(&mut Command::new(&path), &[]);
    assert_eq!(result.text(), "one two three 55 -1 7 1 8 2 81 82 8182 -1 true 0 11 4\n");
    assert_eq!(result.status, 0);
    silent("readelf", &["-aW"], &path);
    let lines = silent("readelf", &["--debug-dump=decodedline"], &path);
    assert!(lines.contains("input.c"), "{lines}");
}

fn errors(folder: &Path, sources: &[&str]) -> LinkError {
    let objects: Vec<Vec<u8>> = sources.iter().map(|source| assemble(folder, source)).collect();
    let names = ["first.o", "second.o", "third.o"];
    let inputs: Vec<Input<'_>> = objects.iter().zip(names).map(|(bytes, name)| Input { name, bytes }).collect();
    link(&inputs).unwrap_err()
}

#[test]
fn errors_name_symbols_and_inputs() {
    if !have("gcc") {
        return;
    }
    let folder = TemporaryFolder::new().unwrap();
    let folder = folder.path();
    assert_eq!(
        errors(folder, &[".globl _start\n_start: call one\ncall two\ncall one\n", "call three\n"]).to_string(),
        "undefined symbol one, used by first.o; undefined symbol two, used by first.o; \
         undefined symbol three, used by second.o"
    );
    assert_eq!(
        errors(folder, &[".globl f\nf: ret\n"]).to_string(),
        "undefined symbol _start, used by the executable's header"
    );
    assert_eq!(
        errors(folder, &[".globl _start\n_start: ret\n", ".globl f\nf: ret\n", ".globl f\nf: nop\n"]).to_string(),
        "the symbol f is defined both by second.o and by third.o"
    );
    // Three gigabytes of zeros take no room in the file, but displacements cannot reach over them.
    assert_eq!(
        errors(
            folder,
            &[".globl _start\n.bss\n.zero 3221225472\nfar: .zero 8\n\
                 .text\n_start: nop\nlea far(%rip), %rax\nret\n"]
        )
        .to_string(),
        ".bss is too far from .text+0x4 of first.o"
    );
    for (source, what) in [
        (".globl _start\n_start: ret\n.globl f\nf: ret\n.data\n.quad f@SIZE", "the relocation type 33"),
        (".globl _start\n_start: ret\n.section .tdata,\"awT\"\n.quad 1", "thread-local storage"),
        (".globl _start\n_start: ret\n.comm shared, 8", "the common symbol shared"),
        (".globl _start\n_start: ret\n.section .x,\"awx\"\nret", "code that can be written"),
        (".globl _start\n_start: ret\n.section .text.f,\"axG\",@progbits,f,comdat\nret", "section groups"),
    ] {
        assert_eq!(
            errors(folder, &[source]).to_string(),
            format!("first.o needs {what}, which this linker does not do")
        );
    }
}

#[test]
fn strong_symbols_win_over_weak_ones() {
    if !have("gcc") {
        return;
    }
    let folder = TemporaryFolder::new().unwrap();
    let start = ".globl _start\n_start: call f\nmov %eax, %edi\nmov $60, %eax\nsyscall\n";
    let weak = |value: u32| format!(".weak f\nf: mov ${value}, %eax\nret\n");
    let strong = ".globl f\nf: mov $5, %eax\nret\n";
    for (sources, status) in [
        ([start, &weak(1), strong], 5),
        ([start, strong, &weak(1)], 5),
        ([&weak(1), start, strong], 5),
        ([start, &weak(1), &weak(2)], 1),
        ([start, &weak(2), &weak(1)], 2),
    ] {
        let objects = sources.map(|source| assemble(folder.path(), source));
        let inputs: Vec<Input<'_>> = objects.iter().map(|bytes| Input { name: "o", bytes }).collect();
        let path = folder.path().join("weak");
        write_executable(&path, &link(&inputs).unwrap());
        assert_eq!(run(&mut Command::new(path), &[]).status, status);
    }
}

#[test]
fn damaged_objects_are_errors() {
    let good = object::run(&sample());
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let runtime = Input { name: "runtime.o", bytes: RUNTIME };
    for length in [0, 1, 63, 64, 100, good.len() - 1] {
        let error = link(&[Input { name: "short.o", bytes: &good[..length] }, runtime]).unwrap_err();
        assert!(error.to_string().starts_with("short.o is not a well-formed object: "), "{error}");
    }
    for round in 0..3000 {
        let mut bytes = good.clone();
        for _ in 0..1 + round % 4 {
            let at = random(bytes.len());
            bytes[at] = [0, 1, 0xFF, 0x80, random(256) as u8][random(5)];
        }
        // Whatever comes out, it must not be a crash.
        let _ = link(&[Input { name: "damaged.o", bytes: &bytes }, runtime]);
    }
}

#[test]
fn ten_thousand_functions_link_at_once() {
    let mut program = sample();
    let call = |target| Reloc { offset: 1, kind: RelocKind::Branch, target, addend: -4 };
    for i in 0..10_000u32 {
        // Each function has 400 bytes and four calls; none of them is ever reached.
        let mut bytes = [0xE8, 0, 0, 0, 0].repeat(4);
        bytes.resize(400, 0xC3);
        let relocs = (0..4).map(|k| Reloc { offset: 1 + 5 * k, ..call(Target::Function(EntityRef::new(0))) }).collect();
        let name = format!("f{i}");
        program.functions.push(FunctionCode {
            symbol: format!("atl_{name}"),
            name,
            bytes,
            relocs,
            marks: Vec::new(),
            blocks: Vec::new(),
        });
    }
    let start = std::time::Instant::now();
    let object = object::run(&program);
    let written = start.elapsed();
    let folder = TemporaryFolder::new().unwrap();
    let path = executable(folder.path(), "large", &[&object]);
    println!("object {written:?}, link {:?}", start.elapsed() - written);
    assert!(start.elapsed().as_secs() < 10);
    prints_the_sample(&run(&mut Command::new(path), &[]));
}
