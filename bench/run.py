#!/usr/bin/env python3
"""Measures what atlc makes and how fast it compiles.

    bench/run.py programs [NAME…] [--repeat N]    user time of each program at -O0, -O1, -O2 next to gcc -O2 on its C twin
    bench/run.py compile [--lines 10000,20000,…]  compile time and peak memory of generated programs that double
    bench/run.py verify [--lines 10000,20000,…]   the same with --verify, as a ratio to without
    bench/run.py compilers [--lines 2000]         compile time to an object file next to tcc, gcc and clang on the exported C

Needs a release build (`cargo build --release`) and, for `programs`, gcc; `compilers` takes those that are there. Times are the least of N runs: user time of programs, processor
time of compilations (several threads may share it), so that other work on the machine matters little. Ratios of programs are
to gcc -O2 -fwrapv, those of compilations to half the size. Every run's output is compared with what it must print.
"""
import argparse
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ATLC = os.path.join(HERE, '..', 'target', 'release', 'atlc')
LEVELS = ['-O0', '-O1', '-O2']


def run(command, stdin=None, limit=None):
    """(user seconds, processor seconds, peak MB, output); fails loudly. More than `limit` processor seconds: TimeoutError."""
    def confine():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

    with tempfile.TemporaryFile() as out, open(stdin or os.devnull, 'rb') as data:
        process = subprocess.Popen(command, stdin=data, stdout=out, preexec_fn=confine if limit else None)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if limit and process.returncode != 0 and usage.ru_utime + usage.ru_stime > limit - 1:
            raise TimeoutError
        if process.returncode != 0:
            sys.exit(f'{command} ended with {process.returncode}')
        out.seek(0)
        return usage.ru_utime, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.read()


def best(command, stdin, expected, repeat):
    times = []
    for _ in range(repeat):
        user, _, _, output = run(command, stdin)
        if output != expected:
            sys.exit(f'{command} prints something else than it must')
        times.append(user)
    return min(times)


def programs(options):
    names = options.names or sorted(f[:-4] for f in os.listdir(f'{HERE}/programs') if f.endswith('.atl'))
    ratios = {level: [] for level in LEVELS}
    print(f'{"program":<14}{"gcc -O2":>9}' + ''.join(f'{level:>9}{"ratio":>7}' for level in LEVELS))
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            base = f'{HERE}/programs/{name}'
            with open(base + '.expected', 'rb') as f:
                expected = f.read()
            twin = f'{folder}/{name}.c.out'
            subprocess.run(['gcc', '-O2', '-fwrapv', '-w', f'{HERE}/c/{name}.c', '-o', twin], check=True)
            gcc = best([twin], base + '.input', expected, options.repeat)
            row = f'{name:<14}{gcc:>9.3f}'
            for level in LEVELS:
                exe = f'{folder}/{name}{level}'
                subprocess.run([ATLC, 'build', level, base + '.atl', '-o', exe], check=True)
                ours = best([exe], base + '.input', expected, options.repeat)
                ratios[level].append(ours / max(gcc, 1e-3))
                row += f'{ours:>9.3f}{ratios[level][-1]:>7.2f}'
            print(row, flush=True)
    print(f'{"geometric mean":<23}' + ''.join(
        f'{math.exp(sum(map(math.log, ratios[level])) / len(ratios[level])):>16.2f}' for level in LEVELS))


def many_functions(lines):
    parts = []
    for i in range(lines // 10):
        parts.append(f'''fn f{i}(a: int, b: int) -> int {{
  let x = a * {i % 97 + 3} + b;
  let k = 0;
  while (k < 10) {{
    if (x % 3 == k) {{ x += b; }}
    x = x ^ a << k;
    k += 1;
  }}
  return x;
}}''')
    calls = '\n'.join(f'total += f{i}(total, {i});' for i in range(0, lines // 10))
    return '\n'.join(parts) + '\nlet total = read();\n' + calls + '\nprint(total);\n'


def one_block(lines):
    names = [f'v{i}' for i in range(50)]
    parts = [f'let {n} = read();' for n in names]
    for i in range(lines):
        a, b, c = names[i % 50], names[(i * 7 + 3) % 50], names[(i * 13 + 5) % 50]
        parts.append(f'{a} = {b} {"+-^*&|"[i % 6]} {c} + {i % 1000};')
    return '\n'.join(parts) + '\nprint(' + ', '.join(names[:10]) + ');\n'


def else_if(lines):
    parts = ['let x = read();\nlet y = 0;\nif (x == 0) { y = 1; }']
    parts += [f'else if (x == {i}) {{ y = y + {i % 100}; }}' for i in range(1, lines)]
    return '\n'.join(parts) + '\nprint(y);\n'


KINDS = [('many functions', many_functions), ('one huge block', one_block), ('deep else-if', else_if)]


def verify_cost(options):
    names = sorted(f'{HERE}/programs/{f}' for f in os.listdir(f'{HERE}/programs') if f.endswith('.atl'))
    with tempfile.TemporaryDirectory() as folder:
        def compile_time(level, path, *flags):
            command = [ATLC, 'build', level, path, '-o', f'{folder}/x', *flags]
            return min(run(command)[1:3] for _ in range(options.repeat))

        print(f'{"program":<16}{"level":<6}{"lines":>8}{"seconds":>9}{"--verify":>9}{"ratio":>7}{"peak MB":>9}{"--verify":>9}')
        for level in LEVELS:
            plain, judged = (sum(compile_time(level, path, *flags)[0] for path in names) for flags in ([], ['--verify']))
            lines = sum(open(path).read().count('\n') for path in names)
            print(f'{"bench/programs":<16}{level:<6}{lines:>8}{plain:>9.3f}{judged:>9.3f}{judged / plain:>7.2f}', flush=True)
        for title, make in KINDS:
            for level in LEVELS:
                for size in map(int, options.lines.split(',')):
                    path = f'{folder}/x.atl'
                    text = make(size)
                    with open(path, 'w') as f:
                        f.write(text)
                    (plain, peak), (judged, judged_peak) = (compile_time(level, path, *flags) for flags in ([], ['--verify']))
                    print(f'{title:<16}{level:<6}{text.count(chr(10)):>8}{plain:>9.3f}{judged:>9.3f}{judged / plain:>7.2f}'
                          f'{peak:>9.0f}{judged_peak:>9.0f}', flush=True)


def compilers(options):
    """All compile the same: `atlc build --emit c` of the bench programs, one after the other, and of the generated ones."""
    others = [(name, path, flag) for name, flags in [('tcc', ['']), ('gcc', ['-O0', '-O1', '-O2']), ('clang', ['-O0', '-O1', '-O2'])]
              for path in [shutil.which(name) or shutil.which(name + '-14')] if path for flag in flags]
    missing = {'tcc', 'gcc', 'clang'} - {name for name, _, _ in others}
    if missing:
        print('not there: ' + ', '.join(sorted(missing)))
    with tempfile.TemporaryDirectory() as folder:
        sets = [('bench/programs', [f'{HERE}/programs/{f}' for f in sorted(os.listdir(f'{HERE}/programs')) if f.endswith('.atl')])]
        for title, make in KINDS:
            path = f'{folder}/{title.replace(" ", "-")}.atl'
            with open(path, 'w') as f:
                f.write(make(options.lines))
            sets.append((title, [path]))
        for title, sources in sets:
            exported = []
            for path in sources:
                exported.append(f'{folder}/{os.path.basename(path)}.c')
                subprocess.run([ATLC, 'build', path, '--emit', f'c={exported[-1]}'], check=True)

            def total(*command, files):
                """None if one takes more than a minute: large functions are more than linear for some."""
                try:
                    return min(sum(run([*command, file], limit=60)[1] for file in files) for _ in range(options.repeat))
                except TimeoutError:
                    return None

            ours = [(level, total(ATLC, 'build', level, '--emit', f'obj={folder}/x.o', files=sources)) for level in LEVELS]
            print(title + ': ' + ', '.join(f'atlc {level} {seconds:.3f} s' for level, seconds in ours))
            print(f'  {"":<12}{"seconds":>9}' + ''.join(f'{"/ " + level:>9}' for level, _ in ours))
            for name, path, flag in others:
                seconds = total(path, *([flag] if flag else []), '-w', '-c', '-o', f'{folder}/x.o', files=exported)
                shown = f'{seconds:>9.3f}' + ''.join(f'{seconds / mine:>9.1f}' for _, mine in ours) if seconds else '     > 60'
                print(f'  {name + " " + flag:<12}{shown}', flush=True)


def compile_times(options):
    sizes = [int(n) for n in options.lines.split(',')]
    print(f'{"program":<16}{"level":<6}{"lines":>8}{"seconds":>9}{"ratio":>7}{"peak MB":>9}{"lines/s":>11}')
    with tempfile.TemporaryDirectory() as folder:
        for title, make in KINDS:
            for level in LEVELS:
                before = None
                for size in sizes:
                    path = f'{folder}/x.atl'
                    text = make(size)
                    with open(path, 'w') as f:
                        f.write(text)
                    count = text.count('\n')
                    cpu, peak = min(run([ATLC, 'build', level, path, '-o', f'{folder}/x'])[1:3] for _ in range(options.repeat))
                    ratio = f'{cpu / before:>7.2f}' if before else ' ' * 7
                    print(f'{title:<16}{level:<6}{count:>8}{cpu:>9.3f}{ratio}{peak:>9.0f}{count / cpu:>11.0f}', flush=True)
                    before = cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    p = commands.add_parser('programs')
    p.add_argument('names', nargs='*')
    p.add_argument('--repeat', type=int, default=3)
    for name in ['compile', 'verify']:
        c = commands.add_parser(name)
        c.add_argument('--lines', default='10000,20000,40000,80000')
        c.add_argument('--repeat', type=int, default=3)
    c = commands.add_parser('compilers')
    c.add_argument('--lines', type=int, default=2000)
    c.add_argument('--repeat', type=int, default=3)
    options = parser.parse_args()
    # Deep recursion is part of what is measured.
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = 64 << 20
    resource.setrlimit(resource.RLIMIT_STACK, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    if not os.path.exists(ATLC):
        sys.exit('build it first: cargo build --release')
    {'programs': programs, 'compile': compile_times, 'verify': verify_cost, 'compilers': compilers}[options.command](options)


if __name__ == '__main__':
    main()
