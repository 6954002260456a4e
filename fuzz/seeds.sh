#!/usr/bin/env bash
# Writes the seed corpora of the fuzz targets, made from testdata/, into fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
FLAGAUDIT_FUZZ_SEEDS=$PWD/fuzz/corpus cargo test --locked --quiet --test mutations -- --ignored write_seeds
du -sh fuzz/corpus/*
