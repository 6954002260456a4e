#!/usr/bin/env bash
# Fuzzes one target with coverage on a stable toolchain: the flags are those of `cargo fuzz --sanitizer none`.
#   usage: fuzz/stable.sh TARGET [SECONDS]     seeds are read from fuzz/corpus (fuzz/seeds.sh), what is new is kept there
set -euo pipefail
cd "$(dirname "$0")"
target=$1
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing"
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
host=$(rustc -vV | sed -n 's/^host: //p')
cargo build --locked --release --target "$host" --target-dir ../target/fuzz --bin "$target"
mkdir -p "corpus/$target"
exec "../target/fuzz/$host/release/$target" "corpus/$target" -max_len=65536 -timeout=5 -rss_limit_mb=1024 -max_total_time="${2:-300}"
