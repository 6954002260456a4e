#!/usr/bin/env bash
# Installs the servers of Debian 12 that name their own build, so that tests/corpus_servers.rs can hold what is read
# from their files against what they print themselves. None is started.
#   usage: scripts/corpus-servers.sh
# Called by scripts/corpus.sh. Needs root.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
say() { printf 'corpus: %s\n' "$*" >&2; }
servers=(haproxy bind9 squid varnish unbound knot proftpd-core pdns-server ffmpeg postgresql-15 openssl erlang-base
  redis-server memcached lighttpd apache2-bin mariadb-server-core php8.2-cli exim4-daemon-light nodejs debuginfod)
missing=()
for package in "${servers[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ "${#missing[@]}" -eq 0 ] && exit
say "servers: ${missing[*]}"
# Packages start their services unless this says no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1 && exit
for package in "${missing[@]}"; do
  apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 \
    || say "no package $package"
done
