#!/usr/bin/env bash
# Holds the work of each audit, counted in instructions, against benches/budget.tsv. Counts repeat where times do not.
#   usage: benches/budget.sh CORPUS [--bless]
# CORPUS is what scripts/corpus.sh makes. Fails where a count is more than 10 % above its budget; --bless writes the counts
# of today. FLAGAUDIT names another program than the release build that is made here.
set -euo pipefail
corpus=$(cd "${1:?usage: benches/budget.sh CORPUS [--bless]}" && pwd)
cd "$(dirname "$0")/.."
if ! command -v valgrind >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends valgrind >/dev/null
fi
if [ -z "${FLAGAUDIT:-}" ]; then
  cargo build --locked --release --quiet
  FLAGAUDIT=${CARGO_TARGET_DIR:-$PWD/target}/release/flagaudit
fi
table=benches/budget.tsv
blessed=$(mktemp)
trap 'rm -f "$blessed"' EXIT
over=0
printf '%-28s %14s %14s %8s\n' what instructions budget change
while IFS=$'\t' read -r what budget arguments; do
  case $what in '#'* | '') printf '%s\n' "$what${budget:+	$budget	$arguments}" >>"$blessed"; continue ;; esac
  # shellcheck disable=SC2086
  count=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$FLAGAUDIT" ${arguments//CORPUS/$corpus} 2>&1 >/dev/null |
    sed -n 's/.*Collected : *//p') || true # a finding is an exit code, too
  if [ -z "$count" ]; then
    echo "$what: valgrind counted nothing" >&2
    exit 1
  fi
  mark=
  if [ "$count" -gt $((budget + budget / 10)) ]; then
    mark=' over budget'
    over=$((over + 1))
  fi
  printf '%-28s %14d %14d %+7d%%%s\n' "$what" "$count" "$budget" $(((count - budget) * 100 / (budget > 0 ? budget : 1))) "$mark"
  printf '%s\t%s\t%s\n' "$what" "$count" "$arguments" >>"$blessed"
done <"$table"
if [ "${2:-}" = --bless ]; then
  cp "$blessed" "$table"
elif [ "$over" -gt 0 ]; then
  echo "$over over budget: make it cheaper, or say in the commit why it costs more and run benches/budget.sh CORPUS --bless" >&2
  exit 1
fi
