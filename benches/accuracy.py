#!/usr/bin/env python3
"""Prints how the machine-code witness does against known truth.

usage: accuracy.py TRUTH.tsv COMMAND…
TRUTH.tsv has a line a file: path, truth (O0 O0+runtime O1 O2 O3 Os Og mixed distro), program, compiler, separated by tabs.
COMMAND prints the inspect document of the files given to it (flagaudit inspect --format json). Only the claims of the
source `code-shape` are looked at: what other witnesses say does not help this one.
"""

import collections
import json
import subprocess
import sys

# Thresholds were set on builds of these; all other programs are fresh to them.
SET_ON = {"nginx", "zlib", "lua", "memcached", "haproxy", "redis", "ninja"}
# Programs of Debian 12 that contain unoptimized code in truth, seen in their disassembly.
TRULY_UNOPTIMIZED = {
    "gdb": "bfd, libctf, libsframe, libiberty",
    "perf": "workloads of perf test",
    "dmsetup": "all",
    "libdevmapper.so.1.02.1": "all",
    "libslang.so.2.3.3": "all",
    "libgcrypt.so.20.4.1": "the jitter entropy collector, which requires -O0",
    "libgomp.so.1.0.0": "OpenACC's Fortran interface",
}


def documents(command, paths):
    """The documents for the files, in batches that fit a command line."""
    found = {}
    for start in range(0, len(paths), 100):
        batch = paths[start : start + 100]
        run = subprocess.run(command + batch, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if not run.stdout:
            sys.exit(f"accuracy.py: {' '.join(command)} printed nothing (exit {run.returncode})")
        for target in json.loads(run.stdout)["targets"]:
            found[target["path"]] = target
    return found


def verdict(target):
    """What the machine code was read as: O0, mixed, optimized or unknown."""
    claims = [c for c in target["optimization"]["claims"] if c["source"] == "code-shape"]
    levels = {c["value"] for c in claims} - {"unknown"}
    if "O0" in levels:
        whole = any(c["value"] == "O0" and c["scope"] == "file" for c in claims)
        return "O0" if whole else "mixed"
    return "optimized" if levels else "unknown"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    truths = [line.rstrip("\n").split("\t") for line in open(sys.argv[1], encoding="utf-8")]
    found = documents(sys.argv[2:], [t[0] for t in truths])
    table = collections.defaultdict(collections.Counter)
    programs = collections.defaultdict(collections.Counter)
    functions = collections.defaultdict(collections.Counter)
    wrong, small = [], 0
    for path, truth, program, _ in truths:
        target = found.get(path)
        if target is None or target.get("elf") is None:
            continue
        said = verdict(target)
        judged, shaped = target["functions"]["judged"], target["functions"]["o0_shaped"]
        if truth == "distro" and program in TRULY_UNOPTIMIZED:
            truth = "shipped unoptimized"
        table[truth][said] += 1
        if truth not in ("mixed", "O0+runtime", "shipped unoptimized"):
            functions["O0" if truth == "O0" else "optimized"].update(judged=judged, shaped=shaped)
        expected = {"O0": {"O0"}, "O0+runtime": {"O0", "mixed"}, "mixed": {"mixed"}, "shipped unoptimized": {"O0", "mixed"}}.get(truth, {"optimized"})
        if said == "unknown":
            small += judged < 15
        right = said in expected
        if truth not in ("distro", "shipped unoptimized"):
            programs[program].update(right=right, wrong=not right and said != "unknown", unknown=said == "unknown")
        if not right and (said != "unknown" or truth != "distro"):
            wrong.append((path, truth, said, judged, shaped))

    print(f"{'truth':<20} {'files':>6} {'O0':>6} {'mixed':>6} {'optimized':>10} {'unknown':>8}")
    for truth in sorted(table):
        row = table[truth]
        print(f"{truth:<20} {sum(row.values()):>6} {row['O0']:>6} {row['mixed']:>6} {row['optimized']:>10} {row['unknown']:>8}")
    print(f"(of the unknown ones {small} have fewer than 15 functions to judge)\n")
    print(f"{'program':<12} {'right':>6} {'wrong':>6} {'unknown':>8}   thresholds were set on it")
    for program in sorted(programs):
        row = programs[program]
        print(f"{program:<12} {row['right']:>6} {row['wrong']:>6} {row['unknown']:>8}   {'yes' if program in SET_ON else 'no'}")
    print()
    for kind, row in sorted(functions.items()):
        share = 100 * row["shaped"] / max(1, row["judged"])
        print(f"functions of {kind} builds: {row['judged']} judged, {row['shaped']} shaped like -O0 ({share:.2f} %)")
    for path, truth, said, judged, shaped in wrong:
        print(f"not right: {path}: is {truth}, read as {said} ({shaped} of {judged} functions shaped like -O0)")


if __name__ == "__main__":
    main()
