#!/usr/bin/env bash
# The main job on a fresh Debian 12: builds the program, fetches Debian's nginx (unpacked, never
# installed or run), and audits it. With a file as argument, audits that instead.
#   usage: scripts/demo.sh [FILE]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/toolchain.sh
cargo build --locked --release --quiet
target=${1:-}
if [ -z "$target" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  chmod 755 "$folder"
  [ -n "$(apt-cache policy nginx 2>/dev/null | sed -n 's/ *Candidate: //p')" ] || apt-get update -qq
  (cd "$folder" && apt-get download -qq nginx 2>/dev/null && dpkg-deb -x ./nginx_*.deb .)
  target=$folder/usr/sbin/nginx
fi
"${CARGO_TARGET_DIR:-target}/release/flagaudit" inspect "$target"
echo
status=0
"${CARGO_TARGET_DIR:-target}/release/flagaudit" check --no-config "$target" || status=$?
echo "exit status $status"
exit "$status"
