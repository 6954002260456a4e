#!/usr/bin/env bash
# Proves a release before it ships: built twice in different directories it is the same to the byte; the program runs where
# there is nothing but itself; it is judged truly, and passes docs/policies/flagaudit.toml, by its own check; a build without
# optimization does not; the package installs, runs and goes; `cargo install` works.
#   usage: scripts/verify-release.sh [DIRECTORY]     (default: target/dist)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/toolchain.sh
dist=${1:-target/dist}
policy=docs/policies/flagaudit.toml
# Not on a small /tmp; and with a space in its name, since people have such directories.
mkdir -p target
work=$(mktemp -d "$PWD/target/verify release.XXXXXX")
trap 'wait; rm -rf "$work"' EXIT
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1)}

fail() { echo "verify-release: $*" >&2; exit 1; }
# Runs the rest with the status expected of it.
expect() {
    local wanted=$1 status=0
    shift
    "$@" >"$work/out" 2>&1 || status=$?
    [ "$status" = "$wanted" ] || { cat "$work/out" >&2; fail "status $status instead of $wanted: $*"; }
}

# Both at once: what links a release is one thread.
mkdir "$work/elsewhere"
tar --exclude=./target --exclude=./corpus --exclude=./.git -cf - . | tar -xf - -C "$work/elsewhere"
(unset CARGO_TARGET_DIR && "$work/elsewhere/scripts/release.sh" "$work/dist" >"$work/second.log" 2>&1) & second=$!
scripts/release.sh "$dist"
dist=$(cd "$dist" && pwd)
program=$dist/flagaudit

echo "== the same bytes from another directory"
wait "$second" || { cat "$work/second.log" >&2; fail "the second build failed"; }
cmp "$dist/SHA256SUMS" "$work/dist/SHA256SUMS" || fail "two builds of the same sources differ"
if grep -aqF -e "$PWD" -e "${CARGO_HOME:-$HOME/.cargo}/registry" "$program"; then fail "the program holds a path of this machine"; fi

echo "== static: it runs where there is nothing else"
mkdir -p "$work/root/bin"
cp "$program" "$work/root/bin/flagaudit"
if [ "$(id -u)" = 0 ]; then
    expect 0 chroot "$work/root" /bin/flagaudit check --no-config /bin/flagaudit
fi

echo "== its own policy"
expect 0 "$program" check -p "$policy" "$program"
cat "$work/out"
"$program" inspect --format json "$program" >"$work/own.json"
for fact in '"product": null' '"static": true' '"kind": "pie"' '"interpreter": null' '"needed": \[\]' '"family": "rustc"' \
    '"conflicts": \[\]' '"unknown": 0'; do
    grep -q "$fact" "$work/own.json" || fail "the report on the program lacks $fact"
done

echo "== Debian package"
package=$(find "$dist" -name '*.deb')
dpkg-deb --contents "$package" | awk '{ print $6 }' >"$work/contents"
for file in ./usr/bin/flagaudit ./usr/share/man/man1/flagaudit.1.gz ./usr/share/man/man1/flagaudit-check.1.gz \
    ./usr/share/bash-completion/completions/flagaudit ./usr/share/zsh/vendor-completions/_flagaudit \
    ./usr/share/fish/vendor_completions.d/flagaudit.fish ./usr/share/doc/flagaudit/copyright ./usr/share/doc/flagaudit/docs/guide.md; do
    grep -qxF "$file" "$work/contents" || fail "the package lacks $file"
done
if [ "$(id -u)" = 0 ] && ! dpkg -s flagaudit >/dev/null 2>&1; then
    apt-get -o DPkg::Lock::Timeout=300 install -y -qq "$package" >/dev/null
    cmp "$program" /usr/bin/flagaudit
    expect 0 /usr/bin/flagaudit check -p "$policy" /usr/bin/flagaudit
    apt-get -o DPkg::Lock::Timeout=300 purge -y -qq flagaudit >/dev/null
    test ! -e /usr/bin/flagaudit
else
    dpkg-deb --extract "$package" "$work/package"
    cmp "$program" "$work/package/usr/bin/flagaudit"
fi

echo "== cargo install, and the gate goes red"
# The program without optimization (its dependencies keep theirs, and were built by the tests) does not pass.
cargo install --locked --quiet --debug --path . --root "$work/installed"
expect 1 "$work/installed/bin/flagaudit" check -p "$policy" "$work/installed/bin/flagaudit"
grep -q 'error\[unoptimized-code\]' "$work/out" || fail "not for its level"
echo "== the release is sound"
