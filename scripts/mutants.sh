#!/usr/bin/env bash
# Reads many damaged inputs with an optimized build that checks overflow and assertions, and prints a count a target.
#   usage: scripts/mutants.sh COUNT [SEED]     variables of tests/mutations/main.rs are passed on
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/toolchain.sh
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
# Panics are caught and told; a program that aborts would be everything compiled a second time.
export CARGO_PROFILE_RELEASE_PANIC=unwind
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/mutants}
FLAGAUDIT_MUTATIONS=$1 FLAGAUDIT_MUTATION_SEED=${2:-1} cargo test --locked --quiet --release --test mutations -- --nocapture
