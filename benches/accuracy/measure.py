#!/usr/bin/env python3
"""Asks flagaudit about every file of an accuracy directory and prints how the machine-code witness does against the truth.

usage: measure.py DIR OUTPUT.ndjson FLAGAUDIT [WHAT…]      WHAT: builds mixed packages (default: what is there)

The truth is in the names: DIR/bin/PROGRAM-COMPILER-LEVEL-VARIANT, DIR/mixed/… with NAME.ranges (address and size of each
function of the unit that was compiled at another level), DIR/packages/ARCH/GROUP/PACKAGE/… (optimized, but for the files
that unoptimized.tsv lists with the evidence for it). Only claims of the source `code-shape` are looked at: what other
witnesses say does not help this one.
"""

import collections
import csv
import fnmatch
import json
import os
import platform
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The whole-file thresholds were set while looking at builds of these programs; no build of the others moved a threshold.
SET_ON = {"nginx", "zlib", "lua", "haproxy", "redis"}
# What these link in is optimized, whatever the program is.
WITH_LIBRARY = {"static", "asan", "ubsan", "gcov", "pg"}


def documents(command, paths):
    """What flagaudit says of each file, in batches that fit a command line."""
    found = {}
    for start in range(0, len(paths), 100):
        batch = paths[start : start + 100]
        run = subprocess.run(
            [command, "inspect", "--format", "json", *batch], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
        if not run.stdout:
            sys.exit(f"measure.py: {command} printed nothing (exit {run.returncode})")
        for target in json.loads(run.stdout)["targets"]:
            found[target["path"]] = target
    return found


def said(target):
    """What the machine code was read as: O0, mixed, optimized or unknown."""
    claims = [c for c in target["optimization"]["claims"] if c["source"] == "code-shape"]
    levels = {c["value"] for c in claims}
    if "O0" in levels:
        whole = any(c["value"] == "O0" and c["scope"] == "file" for c in claims)
        return "O0" if whole else "mixed"
    return "optimized" if levels - {"unknown"} else "unknown"


def files(top):
    """Regular files below a directory, in order."""
    for root, names, here in os.walk(top):
        names.sort()
        for name in sorted(here):
            path = os.path.join(root, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def is_elf(path):
    """Programs and shared objects that may hold code."""
    with open(path, "rb") as file:
        head = file.read(20)
    if head[:4] != b"\x7fELF" or len(head) < 20:
        return False
    return int.from_bytes(head[16:18], "little" if head[5] == 1 else "big") in (2, 3)


def builds(top, command):
    """One row a build."""
    paths = [p for p in files(top) if is_elf(p)]
    rows = []
    for path, target in documents(command, paths).items():
        program, *compiler, level, variant = os.path.basename(path).split("-")
        rows.append(row("build", path, target) | {"program": program, "compiler": "-".join(compiler), "truth": level, "variant": variant})
    return rows


def row(kind, path, target):
    functions = target["functions"]
    return {
        "kind": kind,
        "path": path,
        "said": said(target),
        "level": target["optimization"]["level"],
        "judged": functions["judged"],
        "shaped": functions["o0_shaped"],
        "reason": target["optimization"]["reason"],
    }


def right(r, verdict):
    """Whether the verdict is right; `None` where there is none."""
    if r["truth"] == "O0":
        # On AArch64 libgcc does the arithmetic of `long double`, which sqlite uses; it is optimized.
        library = r["variant"] in WITH_LIBRARY or r["program"] == "sqlite" and r["compiler"].startswith("aarch64")
        wanted = {"O0", "mixed"} if library else {"O0"}
    else:
        wanted = {"optimized"}
    return None if verdict == "unknown" else verdict in wanted


def ranges(path):
    with open(path, encoding="ascii") as lines:
        return sorted((int(start, 16), int(start, 16) + int(size, 16)) for start, size in map(str.split, lines))


def overlap(ours, others):
    return sum(max(0, min(end, e) - max(start, s)) for start, end in ours for s, e in others)


def mixtures(top, command):
    """One row a program with one unit of another level."""
    paths = [p for p in files(top) if os.path.exists(p + ".ranges")]
    rows = []
    for path, target in documents(command, paths).items():
        host, _, rest = os.path.basename(path).partition("--")
        other, _, unit = rest.partition("-")
        turned = other != "O0"
        program, *compiler, level, variant = host.split("-")
        odd = ranges(path + ".ranges")
        runs = [(r["start"], r["end"]) for r in target["functions"]["runs"] if r["level"] == "O0"]
        inside = overlap(odd, runs)
        rows.append(
            row("mixed", path, target)
            | {
                "program": program,
                "compiler": "-".join(compiler),
                "truth": f"{level} with one {other} file" if turned else f"{level} with one O0 file",
                "variant": variant,
                "unit": unit,
                "functions": len(odd),
                "bytes": sum(end - start for start, end in odd),
                "located": inside,
                "elsewhere": 0 if turned else sum(1 for run in runs if not overlap([run], odd)),
                "modules": sorted({r["module"] for r in target["functions"]["runs"] if r["level"] == "O0" and r["module"]}),
            }
        )
    return rows


def packages(top, command):
    """One row a file of a package."""
    with open(os.path.join(HERE, "unoptimized.tsv"), encoding="utf-8") as lines:
        known = [r for r in csv.reader(lines, delimiter="\t") if r and not r[0].startswith("#")]
    paths = [p for p in files(top) if is_elf(p)]
    rows = []
    for path, target in documents(command, paths).items():
        arch, group, package = os.path.relpath(path, top).split(os.sep)[:3]
        evidence = [why for who, file, why in known if fnmatch.fnmatch(package, who) and fnmatch.fnmatch(os.path.basename(path), file)]
        rows.append(
            row("package", path, target)
            | {"arch": arch, "group": group, "package": package, "truth": "unoptimized" if evidence else "optimized", "evidence": (evidence or [None])[0]}
        )
    return rows


def table(title, head, lines):
    print(f"\n{title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(str(c) if c != 0 else "0" for c in line) + " |")


def by(rows, *keys):
    groups = collections.defaultdict(list)
    for r in rows:
        groups[tuple(r[k] for k in keys)].append(r)
    return sorted(groups.items())


def found_and_false(rows):
    """-O0 builds found of all, optimized builds taken for -O0 (or mixed) of all, and those without a verdict."""
    o0 = [r for r in rows if r["truth"] == "O0"]
    rest = [r for r in rows if r["truth"] != "O0"]
    found = sum(right(r, r["said"]) is True for r in o0)
    false = sum(r["said"] in ("O0", "mixed") for r in rest)
    return f"{found} of {len(o0)}", f"{false} of {len(rest)}", sum(r["said"] == "unknown" for r in rows)


def print_builds(rows):
    head = ["truth", "builds", "O0", "mixed", "optimized", "not told"]
    levels = "O0 Og O1 Os O2 O3 Ofast".split()
    lines = []
    for (level,), group in sorted(by(rows, "truth"), key=lambda item: levels.index(item[0][0])):
        count = collections.Counter(r["said"] for r in group)
        lines.append([level, len(group), count["O0"], count["mixed"], count["optimized"], count["unknown"]])
    table("Builds at known levels, stripped", head, lines)
    head = ["O0 builds found", "other builds called O0 or mixed", "not told"]
    lines = [[p + (" *" if p in SET_ON else ""), c, *found_and_false(g)] for (p, c), g in by(rows, "program", "compiler")]
    table("By program (*: thresholds were set on builds of it) and compiler", ["program", "compiler", *head], lines)
    table("By variant", ["variant", *head], [[v, *found_and_false(g)] for (v,), g in by(rows, "variant")])
    judged = collections.Counter()
    shaped = collections.Counter()
    for r in rows:
        if r["variant"] not in WITH_LIBRARY:
            judged[r["truth"] == "O0"] += r["judged"]
            shaped[r["truth"] == "O0"] += r["shaped"]
    for is_o0, name in ((True, "O0"), (False, "optimized")):
        share = 100 * shaped[is_o0] / max(1, judged[is_o0])
        print(f"\nFunctions of {name} builds: {judged[is_o0]} judged, {shaped[is_o0]} shaped like -O0 ({share:.2f} %).")
    for r in rows:
        if right(r, r["said"]) is not True:
            print(f"not right: {r['path']}: read as {r['said']} ({r['shaped']} of {r['judged']} functions shaped like -O0): {r['reason']}")


def left_out(rows):
    """Each program judged by one threshold on the share of functions shaped like -O0, set on all the others.

    The threshold stands midway between the largest share of an optimized file and the smallest of an -O0 build. It is not the
    rule that flagaudit applies, which is fixed: it tells whether what is counted separates programs it was not set on.
    """
    judged = [r for r in rows if r["judged"] >= 15 and r.get("variant") not in WITH_LIBRARY and r["truth"] != "unoptimized"]
    shares = collections.defaultdict(lambda: ([], []))
    for r in judged:
        name = r["program"] if r["kind"] == "build" else "package " + r["package"]
        shares[name][r["truth"] == "O0"].append(r["shaped"] / r["judged"])
    lines, together = [], [0, 0, 0, 0, 0.0]
    for name, (optimized, o0) in sorted(shares.items()):
        others = [s for other, s in shares.items() if other != name]
        most = max((x for s in others for x in s[False]), default=0.0)
        least = min((x for s in others for x in s[True]), default=1.0)
        threshold = (most + least) / 2
        found, false = sum(x > threshold for x in o0), sum(x > threshold for x in optimized)
        if name.startswith("package "):
            together = [together[0] + 1, together[1] + len(optimized), together[2] + false, together[3], max(together[4], *optimized)]
            continue
        lines.append([
            name, f"{100 * threshold:.1f} %", f"{found} of {len(o0)}", f"{false} of {len(optimized)}",
            f"{100 * min(o0, default=0):.1f} %", f"{100 * max(optimized, default=0):.1f} %",
        ])
    if together[0]:
        lines.append([f"{together[0]} packages, each left out", "", "", f"{together[2]} of {together[1]}", "", f"{100 * together[4]:.1f} %"])
    table(
        "Per program left out: the share of functions shaped like -O0, against a threshold set on all other programs",
        ["program", "threshold", "O0 found", "others called O0", "least of its O0", "most of its others"],
        lines,
    )


def print_mixtures(rows):
    sizes = [(1, 4), (5, 6), (7, 9), (10, 14), (15, 29), (30, 10**6)]
    lines = []
    parts = [r for r in rows if r["truth"].endswith("O0 file")]
    for low, high in sizes:
        group = [r for r in parts if low <= r["functions"] <= high]
        if not group:
            continue
        found = [r for r in group if r["said"] in ("O0", "mixed") and r["located"]]
        bytes_, located = sum(r["bytes"] for r in group), sum(r["located"] for r in group)
        name = f"{low}–{high}" if high < 10**6 else f"{low} and more"
        lines.append([name, len(group), len(found), f"{100 * located / max(1, bytes_):.1f} %", sum(r["elsewhere"] for r in group)])
    table(
        "One file at -O0 in an optimized program, stripped, by the number of functions in the file",
        ["functions", "programs", "found", "its bytes in the ranges named", "ranges elsewhere"],
        lines,
    )
    lines = []
    for r in rows:
        if r["unit"] == "src_http_ngx_http_upstream.c":
            share = f"{100 * r['located'] / max(1, r['bytes']):.1f} %"
            lines.append([r["truth"], r["compiler"], r["variant"], r["said"], share if r["truth"].endswith("O0 file") else "", "; ".join(r["modules"])[:60]])
    if lines:
        table("nginx, src/http/ngx_http_upstream.c at another level", ["truth", "compiler", "variant", "read as", "located", "named"], lines)
    for r in parts:
        if r["functions"] >= 10 and not (r["said"] in ("O0", "mixed") and r["located"]) or r["elsewhere"]:
            print(f"not right: {r['path']}: {r['functions']} functions, {r['located']} of {r['bytes']} bytes located, {r['elsewhere']} ranges elsewhere")
    for r in rows:
        if r["truth"].startswith("O0") and r["said"] not in ("O0", "mixed"):
            print(f"not right: {r['path']}: read as {r['said']}")


def flags(r):
    """Whether -O0 is claimed: by the machine code, or of the whole by whatever witness."""
    return r["said"] in ("O0", "mixed") or r["level"] == "O0"


def print_packages(rows):
    head = ["machine", "kind", "packages", "files", "optimized", "not told", "of them < 15 functions", "called O0 or mixed: rightly", "wrongly"]
    lines = []
    for (arch, group), here in by(rows, "arch", "group"):
        unknown = [r for r in here if r["said"] == "unknown"]
        flagged = [r for r in here if flags(r)]
        lines.append([
            arch, group, len({r["package"] for r in here}), len(here), sum(r["said"] == "optimized" for r in here),
            len(unknown), sum(r["judged"] < 15 for r in unknown),
            sum(r["truth"] == "unoptimized" for r in flagged), sum(r["truth"] == "optimized" for r in flagged),
        ])
    table("Files of Debian packages", head, lines)
    judged, shaped = sum(r["judged"] for r in rows if r["truth"] == "optimized"), sum(r["shaped"] for r in rows if r["truth"] == "optimized")
    print(f"\n{judged} functions judged, {shaped} shaped like -O0 ({100 * shaped / max(1, judged):.3f} %).")
    for r in rows:
        if flags(r):
            what = f"really unoptimized ({r['evidence']})" if r["evidence"] else "FALSE ALARM"
            print(f"{what}: {r['path']}: {r['reason']}")
        elif r["evidence"]:
            print(f"MISSED ({r['evidence']}): {r['path']}: read as {r['said']}")
        elif r["said"] == "unknown" and r["judged"] >= 15:
            print(f"not told: {r['path']}: {r['reason']}")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    top, output, command, *wanted = sys.argv[1:]
    parts = {"builds": (builds, print_builds, "bin"), "mixed": (mixtures, print_mixtures, "mixed"), "packages": (packages, print_packages, "packages")}
    version = subprocess.run([command, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    print(f"{version}, {platform.machine()}, {os.cpu_count()} processors, {subprocess.run(['date', '+%Y-%m-%d'], stdout=subprocess.PIPE, check=True).stdout.decode().strip()}")
    everything = []
    for name in wanted or parts:
        measure, show, place = parts[name]
        rows = measure(os.path.join(top, place), command)
        if rows:
            show(rows)
            everything += rows
    if any(r["kind"] == "build" for r in everything):
        left_out([r for r in everything if r["kind"] in ("build", "package")])
    with open(output, "w", encoding="utf-8") as out:
        for r in everything:
            out.write(json.dumps(r, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
