#!/usr/bin/env bash
# Whole processes side by side in one run: medians of N rounds over all commands, processor time, peak memory, bytes read.
#   usage: benches/compare.sh CORPUS [VMLINUX] [WORK]      N=5 by default, ONLY=PATTERN for the titles of some tables,
#                                                          TEXT=FILE for a stripped file with much code,
#                                                          FLAGAUDIT=PROGRAM and BOUND=PROGRAM with SKIP_BUILD=1
# CORPUS is what scripts/corpus.sh makes; VMLINUX is the file with DWARF of Debian's linux-image-6.1.0-*-cloud-amd64-dbg
# (about 590 MB); WORK keeps what is made here (the same compressed, a directory of 3,000 files). Peers that are not
# installed are left out, and said to be.
#
# Cold means that the target's pages are not in the page cache (posix_fadvise; no need to be root, and nobody else's pages
# are dropped), while the programs are. "read" is what was asked of read calls; "disk" what came from the disk in a cold
# run, mapped files included. On a machine that others use, run it as `chrt -f 20 benches/compare.sh …`: a process that
# waits for a processor measures the others.
set -euo pipefail
corpus=${1:?usage: benches/compare.sh CORPUS [VMLINUX] [WORK]}
vmlinux=${2:-}
work=${3:-$(mktemp -d)}
mkdir -p "$work"
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}/release
if [ -z "${SKIP_BUILD:-}" ]; then
  cargo build --locked --release --quiet
  cargo build --locked --release --quiet --manifest-path benches/lower-bound/Cargo.toml --target-dir "$target/.."
fi
if [ -n "$vmlinux" ] && [ ! -e "$work/vmlinux-zlib" ]; then
  objcopy --compress-debug-sections=zlib "$vmlinux" "$work/vmlinux-zlib.part" && mv "$work/vmlinux-zlib.part" "$work/vmlinux-zlib"
fi

python3 - "${N:-5}" "${FLAGAUDIT:-$target/flagaudit}" "${BOUND:-$target/lower-bound}" "$corpus" "$vmlinux" "$work" "${ONLY:-}" "${TEXT:-}" <<'PY'
import os, re, shutil, statistics, subprocess, sys, tempfile, time
n, ours, bound, corpus, vmlinux, work, only, text = int(sys.argv[1]), *sys.argv[2:9]
null = subprocess.DEVNULL
absent = set()

def once(command):
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=null, stderr=null)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    seconds = time.perf_counter() - begin
    try:
        with open(f"/proc/{process.pid}/io") as counts:
            io = {key: int(value) for key, value in (line.split(":") for line in counts)}
    except OSError:
        io = {}
    _, _, usage = os.wait4(process.pid, 0)
    return seconds, usage.ru_utime + usage.ru_stime, io

def peak(command):
    """Peak memory in MiB. Measured under `time`, which is small: a child of this process inherits its peak."""
    if not shutil.which("time"):
        return None
    with tempfile.NamedTemporaryFile("r") as out:
        subprocess.run([shutil.which("time"), "-f", "%M", "-o", out.name, *command], stdout=null, stderr=null)
        return int(out.read().split()[-1]) / 1024

def forget(path):
    """Drops a file's pages, or those of all files of a directory, from the cache."""
    paths = [os.path.join(path, name) for name in os.listdir(path)] if os.path.isdir(path) else [path]
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        os.fdatasync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)

def touched(command, path):
    """MiB in the pages of a file that read calls asked for, as strace sees them."""
    if not shutil.which("strace") or os.path.isdir(path):
        return None
    with tempfile.NamedTemporaryFile("r") as log:
        subprocess.run(["strace", "-f", "-y", "-e", "trace=read,pread64", "-o", log.name, *command], stdout=null, stderr=null)
        pages = set()
        for line in log:
            found = re.search(r"pread64\(\d+<(.*?)>, .*, (\d+), (\d+)\) += (\d+)", line)
            if found and found[1] == os.path.realpath(path) and int(found[4]):
                start, size = int(found[3]), int(found[4])
                pages.update(range(start >> 12, (start + size - 1 >> 12) + 1))
    return len(pages) * 4096 / 2**20

def shown(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"

def table(title, path, commands, rounds=n):
    """Rounds over all commands, so that a disturbance meets all of them alike; one warm-up round."""
    if only and only not in title:
        return
    absent.update(command[0] for command in commands.values() if not shutil.which(command[0]))
    commands = {name: command for name, command in commands.items() if shutil.which(command[0])}
    warm, spent, cold, io = ({name: [] for name in commands} for _ in range(4))
    read = {}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            seconds, cpu, counts = once(command)
            if turn:
                warm[name].append(seconds)
                spent[name].append(cpu)
            read[name] = counts.get("rchar")
    for _ in range(min(rounds, 3)):
        for name, command in commands.items():
            forget(path)
            seconds, _, counts = once(command)
            cold[name].append(seconds)
            io[name].append(counts.get("read_bytes", 0))
    base = statistics.median(warm["flagaudit inspect"])
    cpu_base = min(spent["flagaudit inspect"])
    print(f"\n{title}\n{'command':<46}{'warm ms':>9}{'ratio':>7}{'cpu ms':>9}{'ratio':>7}{'peak MiB':>10}{'read MiB':>10}{'cold ms':>9}{'disk MiB':>10}")
    for name, command in commands.items():
        median, cpu = statistics.median(warm[name]), min(spent[name])
        mib = None if read[name] is None else read[name] / 2**20
        disk = statistics.median(io[name]) / 2**20
        if name == "flagaudit inspect":
            disk_base = disk
        print(f"{name:<46}{median * 1000:>9.1f}{median / base:>7.2f}{cpu * 1000:>9.1f}{cpu / cpu_base:>7.2f}{shown(peak(command)):>10}"
              f"{shown(mib):>10}{statistics.median(cold[name]) * 1000:>9.1f}{disk:>10.1f}", flush=True)
    # With one thread a call is one line.
    pages = touched([*commands["flagaudit inspect"], "--jobs", "1"], path)
    if pages:
        print(f"pages that flagaudit inspect asks for: {pages:.1f} MiB; from the disk: {disk_base / pages:.2f} times as much")

def peers(path, *bounds, big=False):
    commands = {
        "flagaudit inspect": [ours, "inspect", path],
        "flagaudit inspect --units --format json": [ours, "inspect", "--units", "--format", "json", path],
        "flagaudit check": [ours, "check", "--no-config", path],
        **{f"lower bound: {what}": [bound, what, path] for what in bounds},
        "llvm-dwarfdump --debug-info --recurse-depth=0": ["llvm-dwarfdump-14", "--debug-info", "--recurse-depth=0", path],
        "dwarfdump -P": ["dwarfdump", "-P", path],
        "readelf --debug-dump=info --dwarf-depth=1": ["readelf", "--debug-dump=info", "--dwarf-depth=1", path],
        "annocheck": ["annocheck", "--skip-all", "--test-optimization", path],
        "scanelf -a": ["scanelf", "-a", path],
        "checksec": ["checksec", f"--file={path}"],
    }
    if not big:
        # eu-readelf has no depth: it prints every entry, minutes for a kernel. hardening-check runs readelf four times.
        commands["eu-readelf --debug-dump=info"] = ["eu-readelf", "--debug-dump=info", path]
        commands["hardening-check"] = ["hardening-check", path]
    return commands

def collect(folder, count):
    """Programs and libraries of this machine, as many as there are up to `count`."""
    found = []
    for top in ("/usr/bin", "/usr/sbin", "/usr/lib"):
        for where, folders, names in os.walk(top):
            folders.sort()
            for path in (os.path.join(where, name) for name in sorted(names)):
                if len(found) < count and os.path.isfile(path) and not os.path.islink(path) and 4096 < os.path.getsize(path) < 4 << 20:
                    with open(path, "rb") as file:
                        if file.read(4) == b"\x7fELF":
                            found.append(path)
    os.makedirs(folder + ".part", exist_ok=True)
    for index, path in enumerate(found):
        shutil.copyfile(path, f"{folder}.part/{index:04}-{os.path.basename(path)}")
    os.rename(folder + ".part", folder)

plain, stripped = f"{corpus}/O2", f"{corpus}/debian-nginx/usr/sbin/nginx"
table("Debian's nginx, stripped", stripped, {**peers(stripped, "code"), "nginx -V": [stripped, "-V"]})
table("nginx with DWARF (-O2, 158 units)", plain, {**peers(plain, "units"), "nginx -V": [plain, "-V"]})
if vmlinux:
    table("vmlinux with DWARF", vmlinux, peers(vmlinux, "units", big=True))
    packed = f"{work}/vmlinux-zlib"
    table("vmlinux with DWARF, compressed (zlib)", packed, peers(packed, "inflate", big=True), rounds=min(n, 3))
if text:
    table(f"much code: {os.path.basename(text)}, stripped", text, {
        "flagaudit inspect": [ours, "inspect", text],
        "flagaudit inspect --jobs 1": [ours, "inspect", "--jobs", "1", text],
        "lower bound: code": [bound, "code", text],
    }, rounds=min(n, 3))
files = f"{work}/files"
if not os.path.isdir(files):
    collect(files, 3000)
each = sorted(os.path.join(files, name) for name in os.listdir(files))
table(f"a directory of {len(each)} files", files, {
    "flagaudit inspect": [ours, "inspect", files],
    "flagaudit check": [ours, "check", "--no-config", files],
    "llvm-dwarfdump --debug-info --recurse-depth=0": ["llvm-dwarfdump-14", "--debug-info", "--recurse-depth=0", *each],
    "readelf --debug-dump=info --dwarf-depth=1": ["readelf", "--debug-dump=info", "--dwarf-depth=1", *each],
    "eu-readelf --debug-dump=info": ["eu-readelf", "--debug-dump=info", *each],
    "scanelf -R -a": ["scanelf", "-R", "-a", files],
    "annocheck": ["annocheck", "--skip-all", "--test-optimization", files],
}, rounds=min(n, 3))
if absent:
    print("\nnot installed and left out: " + ", ".join(sorted(absent)))
PY
