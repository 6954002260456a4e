#!/usr/bin/env bash
# Writes the seed corpora of the fuzz targets, made from testdata/, into fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
FLAGAUDIT_FUZZ_SEEDS=$PWD/fuzz/corpus cargo test --locked --quiet --test mutations seeds_are_there_for_every_target
du -sh fuzz/corpus/*
