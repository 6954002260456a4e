#!/usr/bin/env bash
# How cost grows: 1, 10 and 100 times the units, functions, sections and files, as a table of processor time.
#   usage: benches/scaling.sh [DIR]      N=5 by default; DIR keeps what is generated
# The inputs are made with the assembler and the linker; none of them is real, all of them are regular.
set -euo pipefail
dir=${1:-$(mktemp -d)}
n=${N:-5}
cd "$(dirname "$0")/.."
[ -n "${SKIP_BUILD:-}" ] || cargo build --locked --release --quiet
ours=${FLAGAUDIT:-${CARGO_TARGET_DIR:-$PWD/target}/release/flagaudit}

python3 - "$n" "$ours" "$dir" <<'PY'
import os, subprocess, sys
n, ours, root = int(sys.argv[1]), sys.argv[2], sys.argv[3]
os.makedirs(root, exist_ok=True)
PRODUCER = "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2"
BODY = "endbr64\npush %rbx\nmov %edi,%ebx\ntest %ebx,%ebx\nje 1f\nlea 1(%rbx),%eax\npop %rbx\nret\n1: xor %eax,%eax\npop %rbx\nret\n"

def function(index, text=True):
    return f".p2align 4\nf{index}: .cfi_startproc\n{BODY}.cfi_endproc\ne{index}:\n"

def units(count):
    """A linked file of as many units of DWARF 5 as given, each with an abbreviation table of its own."""
    lines = [".text\n.globl _start\n_start:\n"] + [function(i) for i in range(count)]
    lines.append('.section .debug_abbrev,"",@progbits\n')
    for i in range(count):
        lines.append(f"a{i}: .byte 1,0x11,1,0x25,0x0e,0x13,0x0b,3,8,0x1b,0x0e,0x11,1,0x12,7,0,0\n")
        lines.append(".byte 2,0x34,0,3,8,0x3a,0x0b,0x3b,0x0b,0x49,0x13,0,0,0\n")
    lines.append('.section .debug_info,"",@progbits\n')
    for i in range(count):
        lines.append(f".4byte 2f-1f\n1: .2byte 5\n.byte 1,8\n.4byte a{i}\n.byte 1\n.4byte producer\n.byte 12\n"
                     f'.asciz "src/u{i}.c"\n.4byte place\n.8byte f{i}\n.8byte e{i}-f{i}\n.byte 0\n2:\n')
    lines.append(f'.section .debug_str,"",@progbits\nproducer: .asciz "{PRODUCER}"\nplace: .asciz "/build/scaling"\n')
    return lines, True

def functions(count):
    return [".text\n.globl _start\n_start:\n"] + [function(i) for i in range(count)], "strip"

def sections(count):
    return [f'.section .text.s{i},"ax",@progbits\n' + function(i) for i in range(count)], False

def make(kind, count):
    path = f"{root}/{kind.__name__}-{count}"
    if os.path.exists(path):
        return path
    lines, link = kind(count)
    with open(path + ".s", "w") as source:
        source.writelines(lines)
    subprocess.run(["as", "-o", path + ".o", path + ".s"], check=True)
    if link:
        subprocess.run(["ld", *(["-s"] if link == "strip" else []), "-o", path + ".new", path + ".o"], check=True)
    else:
        os.rename(path + ".o", path + ".new")
    os.rename(path + ".new", path)
    return path

def files(count):
    path, source = f"{root}/files-{count}", make(units, 10)
    os.makedirs(path, exist_ok=True)
    for i in range(count):
        if not os.path.exists(f"{path}/{i}"):
            with open(source, "rb") as old, open(f"{path}/{i}", "wb") as new:
                new.write(old.read())
    return path

def cost(path):
    """The least processor time of some runs, in ms: on a loaded machine the only one that repeats."""
    best = None
    for _ in range(n):
        process = subprocess.Popen([ours, "inspect", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        assert os.waitstatus_to_exitcode(status) in (0, 1, 2), path
        spent = (usage.ru_utime + usage.ru_stime) * 1000
        best = spent if best is None else min(best, spent)
    return best

process = min(cost("/dev/null") for _ in range(2))
print(f"a process that reads nothing: {process:.1f} ms\n\n{'of what':<12}{'base':>7}{'x1 ms':>10}{'x10 ms':>10}{'x100 ms':>10}{'100/10':>9}")
for kind, base in ((units, 100), (functions, 1000), (sections, 100), (files, 10)):
    path = files if kind is files else lambda count: make(kind, count)
    spent = [max(cost(path(base * times)) - process, 0.05) for times in (1, 10, 100)]
    print(f"{kind.__name__:<12}{base:>7}" + "".join(f"{value:>10.1f}" for value in spent) + f"{spent[2] / spent[1]:>9.1f}")
PY
