#!/usr/bin/env python3
"""Audits a whole directory tree and holds the counts against `find` and `readelf`; then measures.

    benches/system.py [--alone] FLAGAUDIT [DIR] [CHECKSEC_DIR]

DIR is /usr; checksec, which is slow, gets CHECKSEC_DIR: /usr/sbin. With --alone what is measured runs before everything
else on the machine (SCHED_FIFO, as root), so that the load of others does not count.

Compared are the ELF files (hard links once), their build-ids, and of files with debug information the number of units at
each level, from the producers that readelf prints. Wall time and peak memory (of the largest process, by time(1)) are
measured for flagaudit with one and two jobs and `scanelf -R`, medians of three rounds in which they take turns, and once
for `checksec`, in the same run.
"""

import collections
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile


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


def once(command, alone):
    """Wall time in seconds and peak memory in MiB of one run."""
    scheduler = {"scheduler": (os.SCHED_FIFO, os.sched_param(5))} if alone else {}
    # time(1) stands between: a process that this one starts begins with the memory of this one.
    with tempfile.NamedTemporaryFile("r") as said:
        timed = ["/usr/bin/time", "-q", "-f", "%e %M", "-o", said.name, *command]
        pid = os.posix_spawn(timed[0], timed, os.environ, file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)], **scheduler)
        os.waitpid(pid, 0)
        seconds, kib = said.read().split()[-2:]
    return float(seconds), int(kib) / 1024


def measure(commands, alone, rounds=3):
    """Medians of `rounds` rounds in which the commands take turns, by command."""
    seen = {name: [] for name, _, _ in commands}
    for turn in range(rounds):
        for name, command, slow in commands:
            if turn == 0 or not slow:
                seen[name].append(once(command, alone))
    medians = {}
    for name, runs in seen.items():
        medians[name] = statistics.median(run[0] for run in runs)
        print(f"{name:<34} {medians[name]:>9.2f} s {max(run[1] for run in runs):>9.1f} MiB", flush=True)
    return medians


def main():
    arguments = [word for word in sys.argv[1:] if word != "--alone"]
    alone = "--alone" in sys.argv
    flagaudit = os.path.abspath(arguments[0])
    top = arguments[1] if len(arguments) > 1 else "/usr"
    few = arguments[2] if len(arguments) > 2 else "/usr/sbin"
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
    median = measure([
        ("flagaudit inspect --jobs 1", [flagaudit, "inspect", "-q", "--jobs", "1", top], False),
        ("flagaudit inspect --jobs 2", [flagaudit, "inspect", "-q", "--jobs", "2", top], False),
        ("flagaudit -f ndjson --jobs 2", [flagaudit, "inspect", "-f", "ndjson", "--jobs", "2", top], False),
        (f"scanelf -R -a {top}", ["scanelf", "-Ra", top], False),
        (f"flagaudit inspect {few}", [flagaudit, "inspect", "-q", few], False),
        (f"checksec --dir={few}", ["checksec", f"--dir={few}"], True),
    ], alone)
    assert not different
    ratio = median["flagaudit inspect --jobs 1"] / median["flagaudit inspect --jobs 2"]
    print(f"two jobs are {ratio:.2f} times as fast as one; load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
