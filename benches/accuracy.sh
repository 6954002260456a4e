#!/usr/bin/env bash
# How often the verdict read from machine code is right: builds programs at known levels, strips them, adds stripped
# programs of Debian (which ships no -O0, but for a few exceptions), asks flagaudit and prints tables.
#
#   usage: benches/accuracy.sh DIR [STEP…]      steps: setup build mixed packages measure; without any: all of them
#   PROGRAMS    programs to build, of "lua zlib nginx sqlite redis haproxy" (default: all, in this order)
#   TIER        0: a sample in minutes; 1: what is met most, and a sample of the rest; 2: all (default)
#   JOBS, NICE  compilations at a time (default: one per processor), and how nicely (default: 19)
#   FLAGAUDIT   the command that is asked (default: target/release/flagaudit, built if it is not there)
#   JSON        where to keep what was measured, one line a file (default: DIR/measured.ndjson)
#
# For a fresh Debian 12 (amd64) with cargo, as root. Resumable: a build, package or file that is there is not made
# again. The whole takes some hours on two cores and 12 GB.
# Which builds are made: benches/accuracy/matrix.sh; which packages: benches/accuracy/packages.txt.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { sed -n '2,14p' "$0"; exit 64; }
dir=$(mkdir -p "$1" && cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- setup build mixed packages measure
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
PROGRAMS=${PROGRAMS:-lua zlib nginx sqlite redis haproxy}
JOBS=${JOBS:-$(nproc)}
TIER=${TIER:-2}
NICE=${NICE:-19}
JSON=${JSON:-$dir/measured.ndjson}
mkdir -p "$dir/src" "$dir/obj" "$dir/bin" "$dir/mixed" "$dir/log"
say() { printf 'accuracy: %s\n' "$*" >&2; }

# shellcheck source=scripts/upstream.sh
. "$here/../scripts/upstream.sh"
# shellcheck source=benches/accuracy/programs.sh
. "$here/accuracy/programs.sh"
# shellcheck source=benches/accuracy/builds.sh
. "$here/accuracy/builds.sh"
# shellcheck source=benches/accuracy/matrix.sh
. "$here/accuracy/matrix.sh"
# shellcheck source=benches/accuracy/packages.sh
. "$here/accuracy/packages.sh"

setup() {
  [ ! -e "$dir/.setup" ] || return 0
  list_sources
  say "compilers"
  apt-get -o DPkg::Lock::Timeout=300 update -qq
  apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends gcc-11 gcc-12 gcc make binutils \
    clang-14 clang-16 clang-19 lld-14 lld-16 lld-19 dpkg-dev xz-utils bzip2 python3 tcl libc6-dev \
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-i686-linux-gnu libc6-dev-i386-cross \
    libpcre2-dev zlib1g-dev libssl-dev libcrypt-dev >/dev/null
  touch "$dir/.setup"
}

asked() { # the command that is asked, built if need be
  if [ -z "${FLAGAUDIT:-}" ]; then
    local target=${CARGO_TARGET_DIR:-$here/../target}
    [ -x "$target/release/flagaudit" ] || (cd "$here/.." && cargo build --release --locked)
    FLAGAUDIT=$target/release/flagaudit
  fi
}

for step in "$@"; do
  case $step in
    setup) setup ;;
    build) for program in $PROGRAMS; do prepare "$program"; matrix "$program"; done ;;
    mixed) for program in $PROGRAMS; do prepare "$program"; mixtures "$program"; done ;;
    packages) packages ;;
    measure) asked; python3 "$here/accuracy/measure.py" "$dir" "$JSON" "$FLAGAUDIT" ;;
    *) say "unknown step: $step"; exit 64 ;;
  esac
done
