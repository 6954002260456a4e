#!/usr/bin/env bash
# Builds a release: the static program, an archive with its manual and completions, a Debian package, and check sums.
# The same sources and the same compiler give the same bytes, whatever directory they lie in.
#   usage: scripts/release.sh [DIRECTORY]          (default: target/dist)
#   RELEASE_TARGET=x86_64-unknown-linux-musl       another target whose standard library is installed
#   SOURCE_DATE_EPOCH=SECONDS                      the time written into the archives (default: that of the last commit)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/toolchain.sh
dist=${1:-target/dist}
target=${RELEASE_TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022
# cargo-deb reads file modes and places; an absolute path keeps all of it in one build directory.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}

cargo_tool cargo-deb@3.8.0

# Static, so that it runs on any host, whatever its C library; and no path of this machine inside. `--target` keeps the flags
# away from build scripts and macros, which cannot be static.
separator=$(printf '\037')
flags=(-C target-feature=+crt-static
    "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    "--remap-path-prefix=$CARGO_TARGET_DIR=/target"
    "--remap-path-prefix=$PWD=/flagaudit")
CARGO_ENCODED_RUSTFLAGS=$(IFS=$separator; printf '%s' "${flags[*]}")
export CARGO_ENCODED_RUSTFLAGS
echo "== flagaudit $version for $target"
cargo build --locked --quiet --release --target "$target"
program=$CARGO_TARGET_DIR/$target/release/flagaudit

echo "== manual and completions"
# Where Cargo.toml expects them.
assets=$PWD/target/assets
rm -rf "$assets"
mkdir -p "$assets"/man "$assets"/completions
"$program" man >"$assets/man/flagaudit.1"
for command in inspect check diff explain policy "policy init" "policy validate" "policy show" "policy schema" completions man; do
    # shellcheck disable=SC2086 # a command and the one below it are two words
    "$program" man $command >"$assets/man/flagaudit-${command// /-}.1"
done
for shell in bash zsh fish; do
    "$program" completions "$shell" >"$assets/completions/flagaudit.$shell"
done

rm -rf "$dist"
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
name=flagaudit-$version-$target
echo "== $name.tar.gz"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/$name"
cp -r "$program" "$assets"/man "$assets"/completions schema docs README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$stage/$name"
tar --directory "$stage" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode='u=rwX,go=rX' -cf - "$name" | gzip -9n >"$dist/$name.tar.gz"

echo "== Debian package"
cargo deb --quiet --no-build --no-strip --target "$target" --output "$dist"
cp "$program" "$dist/flagaudit"
(cd "$dist" && sha256sum -- *.tar.gz *.deb flagaudit >SHA256SUMS && cat SHA256SUMS)
