#!/bin/sh
# Compares the compilation units that flagaudit lists with those of llvm-dwarfdump, file by file.
#
#   benches/oracle-units.sh FILE...
#
# Name and directory of every unit that has a name are compared, as sorted lists. With UNITS set to a program that
# prints "name TAB directory TAB producer" for each unit of a file, producers are compared too.
# FLAGAUDIT and DWARFDUMP name the programs. Exit 1 if any file differs.
#
# Known differences, not faults of ours: llvm-dwarfdump reads neither .zdebug_* nor early LTO sections, and does not
# relocate object files of every machine.

FLAGAUDIT=${FLAGAUDIT:-target/release/flagaudit}
DWARFDUMP=${DWARFDUMP:-llvm-dwarfdump}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
differ=0
files=0
units=0

# Backslashes are dropped on both sides: each program escapes in its own way.
ours() {
    if [ -n "$UNITS" ]; then
        "$UNITS" "$1"
    else
        "$FLAGAUDIT" inspect --units --format json "$1" |
            jq -r '.targets[].units[]? | [.name, .comp_dir // ""] | @tsv'
    fi | tr -d '\\' | awk -F '\t' '$1 != ""' | LC_ALL=C sort
}

theirs() {
    "$DWARFDUMP" --debug-info --recurse-depth=0 "$1" 2>/dev/null | tr -d '\\' | awk -v producers="${UNITS:+1}" '
        function value(line) {
            sub(/^[^(]*\("/, "", line)
            sub(/"\)$/, "", line)
            return line
        }
        function flush() {
            if (name != "") print name "\t" directory (producers ? "\t" producer : "")
            name = directory = producer = ""
        }
        /^0x[0-9a-f]+: +DW_TAG_/ { flush() }
        /^ +DW_AT_name\t\("/ { name = value($0) }
        /^ +DW_AT_comp_dir\t\("/ { directory = value($0) }
        /^ +DW_AT_producer\t\("/ { producer = value($0) }
        END { flush() }' | LC_ALL=C sort
}

for file in "$@"; do
    ours "$file" >"$work/ours"
    theirs "$file" >"$work/theirs"
    files=$((files + 1))
    units=$((units + $(wc -l <"$work/theirs")))
    if ! cmp -s "$work/ours" "$work/theirs"; then
        differ=$((differ + 1))
        echo "$file: $(wc -l <"$work/ours") units, llvm-dwarfdump has $(wc -l <"$work/theirs")"
        diff "$work/ours" "$work/theirs" | head -4
    fi
done
echo "$files files, $units units, $differ differ"
[ "$differ" -eq 0 ]
