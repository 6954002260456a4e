#!/usr/bin/env bash
# Passes the tests on a fresh Debian 12: installs what they need, makes the corpus of real binaries
# (about ten minutes, once), and runs everything, the real-binary tests included.
#   usage: scripts/test.sh        FLAGAUDIT_CORPUS=DIR keeps the corpus elsewhere than ./corpus
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/toolchain.sh
corpus=${FLAGAUDIT_CORPUS:-$PWD/corpus}
echo "== unit, integration and documentation tests"
cargo test --locked --quiet
echo "== corpus of real binaries"
scripts/corpus.sh "$corpus"
echo "== real-binary tests"
FLAGAUDIT_CORPUS=$corpus cargo test --locked --quiet -- --ignored
