#!/usr/bin/env python3
"""Audits a whole directory tree and holds the counts against `find` and `readelf`; then measures.

    benches/system.py FLAGAUDIT [DIR] [CHECKSEC_DIR]      DIR: /usr; checksec, which is slow, gets CHECKSEC_DIR: /usr/sbin

Compared are the ELF files (hard links once), their build-ids, and of files with debug information the number of units at
each level, from the producers that readelf prints. Wall time and peak memory (of the largest process, by wait4) are
measured for flagaudit with one and two jobs, `scanelf -R` and `checksec`, medians of three, in the same run.
"""

import collections
import json
import os
import re
import statistics
import subprocess
import sys
import time


def elf_files(top):
    """Regular ELF files below `top`, hard links once under the first name; symbolic links are not followed."""
    found = []
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                if not os.path.islink(path) and os.path.isfile(path):
                    with open(path, "rb") as file:
                        if file.read(4) == b"\x7fELF":
                            found.append(path)
            except OSError:
                pass
    by_inode = {}
    for path in sorted(found, key=lambda path: path.split("/")):
        stat = os.stat(path)
        by_inode.setdefault((stat.st_dev, stat.st_ino), path)
    return set(by_inode.values())


def readelf(options, paths):
    """readelf's text by file."""
    texts = {}
    paths = sorted(paths)
    for start in range(0, len(paths), 200):
        part = paths[start : start + 200]
        # With one file readelf names none.
        out = subprocess.run(["readelf", *options, *part, "/bin/true"], capture_output=True).stdout
        for block in re.split(rb"\n?File: ", out):
            name, _, text = block.partition(b"\n")
            texts[name.decode(errors="surrogateescape")] = text
    return texts


def level(producer):
    """The level that a producer's options give, `None` where there is none to speak of."""
    words = producer.split()
    if not producer.startswith("GNU ") or producer.startswith(("GNU AS", "GNU GIMPLE")) or all(w[0] != "-" for w in words):
        return None
    last = "-O0"
    for word in words:
        if re.fullmatch(r"-O(|[0-9]+|s|z|g|fast)", word):
            last = {"-O": "-O1"}.get(word, word)
            last = "-O3" if re.fullmatch(r"-O[4-9]|-O\d\d+", last) else last
    return last[1:]


def measure(name, command):
    times, peaks = [], []
    for _ in range(3):
        start = time.monotonic()
        pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
        usage = os.wait4(pid, 0)[2]
        times.append(time.monotonic() - start)
        peaks.append(usage.ru_maxrss / 1024)
    print(f"{name:<34} {statistics.median(times):>9.2f} s {max(peaks):>9.1f} MiB", flush=True)
    return statistics.median(times)


def main():
    flagaudit = os.path.abspath(sys.argv[1])
    top = sys.argv[2] if len(sys.argv) > 2 else "/usr"
    few = sys.argv[3] if len(sys.argv) > 3 else "/usr/sbin"
    run = subprocess.run([flagaudit, "inspect", "-q", "-f", "ndjson", "--units", top], capture_output=True)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    summary = lines[-1]["summary"]
    targets = {line["path"]: line for line in lines[:-1] if not line["elf"] or line["elf"]["kind"] != "archive"}
    expected = elf_files(top)
    notes = {path: re.search(rb"Build ID: ([0-9a-f]+)", text) for path, text in readelf(["-nW"], expected).items()}
    ids = {path: note.group(1).decode() for path, note in notes.items() if note and path in expected}
    ours = {path: facts["elf"]["build_id"] for path, facts in targets.items() if facts["elf"] and facts["elf"]["build_id"]}
    # Debug files of programs that are there, too, are no targets of their own.
    companions = {path for path in expected - set(targets) if ids.get(path) in ours.values()}
    print(f"ELF files: {len(expected)} by find, {len(targets)} targets and {len(companions)} debug files of theirs")
    assert expected == set(targets) | companions, sorted(expected ^ (set(targets) | companions))[:5]
    wrong = {path for path in targets if path in ids and ids[path] != ours.get(path)}
    print(f"build-ids: {len(ids)} files have one by readelf; {len(wrong)} differ; {len(set(ids.values()))} builds")
    assert not wrong, sorted(wrong)[:5]
    counted, different = 0, []
    for path, facts in targets.items():
        if facts["debug_info"]["source"] != "embedded" or not facts["units"]:
            continue
        text = readelf(["-wNi", "--dwarf-depth=1", "-W"], [path]).get(path, b"").decode(errors="replace")
        by_readelf = collections.Counter(
            filter(None, (level(p.strip()) for p in re.findall(r"DW_AT_producer\s*:(?: \([^)]*\))*:?(.*)", text))))
        by_us = collections.Counter(
            unit["level"] for unit in facts["units"]
            if unit["kind"] not in ("assembly", "lto-partition", "skeleton") and unit["level"] not in ("unknown", "optimized")
            and (unit["compiler"] or "").startswith("gcc"))
        counted += sum(by_readelf.values())
        if by_readelf != by_us:
            different.append((path, by_readelf, by_us))
    for line in different[:20]:
        print("differs:", *line)
    print(f"levels: {counted} units with options by readelf; {len(different)} files differ", flush=True)
    print(f"status: {summary['ok']} ok, {summary['partial']} partial, {summary['failed']} failed, exit {run.returncode}")
    one = measure("flagaudit inspect --jobs 1", [flagaudit, "inspect", "-q", "--jobs", "1", top])
    two = measure("flagaudit inspect --jobs 2", [flagaudit, "inspect", "-q", "--jobs", "2", top])
    measure("flagaudit -f ndjson --jobs 2", [flagaudit, "inspect", "-f", "ndjson", "--jobs", "2", top])
    measure(f"scanelf -R -a {top}", ["scanelf", "-Ra", top])
    measure(f"flagaudit inspect {few}", [flagaudit, "inspect", "-q", few])
    measure(f"checksec --dir={few}", ["checksec", f"--dir={few}"])
    assert not different
    print(f"two jobs are {one / two:.2f} times as fast as one; load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
