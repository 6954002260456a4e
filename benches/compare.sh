#!/usr/bin/env bash
# Whole processes side by side in one run, warm cache: medians of N runs and peak memory.
#   usage: benches/compare.sh CORPUS [VMLINUX]      N=5 by default
# CORPUS is what scripts/corpus.sh makes; VMLINUX is the file with DWARF of Debian's
# linux-image-6.1.0-*-cloud-amd64-dbg (about 590 MB). Peers that are not installed are left out.
set -euo pipefail
corpus=${1:?usage: benches/compare.sh CORPUS [VMLINUX]}
vmlinux=${2:-}
n=${N:-5}
cd "$(dirname "$0")/.."
[ -n "${SKIP_BUILD:-}" ] || cargo build --locked --release --quiet
ours=${CARGO_TARGET_DIR:-$PWD/target}/release/flagaudit

python3 - "$n" "$ours" "$corpus" "$vmlinux" <<'PY'
import os, resource, shutil, statistics, subprocess, sys, time
n, ours, corpus, vmlinux = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]

def once(command):
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    return time.perf_counter() - begin, usage.ru_maxrss / 1024

def measure(commands):
    """Rounds over all commands, so that a disturbance meets all of them alike; one warm-up round."""
    times = {name: [] for name in commands}
    memory = {name: 0 for name in commands}
    for turn in range(n + 1):
        for name, command in commands.items():
            seconds, peak = once(command)
            if turn:
                times[name].append(seconds)
            memory[name] = max(memory[name], peak)
    return {name: (statistics.median(times[name]), min(times[name]), memory[name]) for name in commands}

def table(title, commands):
    commands = {name: command for name, command in commands.items() if shutil.which(command[0])}
    result = measure(commands)
    base = result["flagaudit inspect"][0]
    print(f"\n{title}\n{'command':<44}{'median ms':>10}{'min ms':>9}{'peak MiB':>10}{'ratio':>8}")
    for name, (median, least, peak) in result.items():
        print(f"{name:<44}{median*1000:>10.1f}{least*1000:>9.1f}{peak:>10.1f}{median/base:>8.1f}")

def peers(path, big=False):
    commands = {
        "flagaudit inspect": [ours, "inspect", path],
        "flagaudit inspect --units --format json": [ours, "inspect", "--units", "--format", "json", path],
        "flagaudit check": [ours, "check", "--no-config", path],
        "llvm-dwarfdump --debug-info --recurse-depth=0": ["llvm-dwarfdump-14", "--debug-info", "--recurse-depth=0", path],
        "dwarfdump -P": ["dwarfdump", "-P", path],
        "readelf --debug-dump=info --dwarf-depth=1": ["readelf", "--debug-dump=info", "--dwarf-depth=1", path],
        "annocheck": ["annocheck", "--skip-all", "--test-optimization", path],
        "scanelf -a": ["scanelf", "-a", path],
    }
    if not big:
        commands["hardening-check"] = ["hardening-check", path]
    return commands

table("nginx with DWARF (-O2, 158 units)", peers(f"{corpus}/O2"))
table("Debian's nginx, stripped", peers(f"{corpus}/debian-nginx/usr/sbin/nginx"))
if vmlinux:
    table("vmlinux with DWARF", peers(vmlinux, big=True))
PY
