# shellcheck shell=bash
# Sourced by the scripts that build what they measure from Debian's sources.

# list_sources: machines often list binary packages only; the same mirrors serve the sources.
list_sources() {
  if grep -rqs 'deb-src' /etc/apt/sources.list /etc/apt/sources.list.d; then return; fi
  local list
  for list in /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$list" ] || sed 's/^Types: deb$/Types: deb-src/' "$list" >"${list%.sources}-src.sources"
  done
  [ ! -f /etc/apt/sources.list ] || sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/etc/apt/sources.list.d/sources-src.list
}

# upstream_source PACKAGE DIRECTORY: the upstream source of a Debian source package, unpacked, and nothing if the directory
# is there. A mirror may list a security update before it holds its sources, so older versions are asked for, too; between
# two uploads of one release the upstream source is the same.
upstream_source() {
  [ ! -d "$2" ] || return 0
  local part=$2.part version found=
  rm -rf "$part" && mkdir -p "$part/tree"
  : >"$part/log"
  for version in $(apt-cache showsrc "$1" | sed -n 's/^Version: //p' | sort -Vr); do
    if (cd "$part" && apt-get source -qq --download-only --tar-only "$1=$version" >log 2>&1); then
      found=$version
      break
    fi
  done
  [ -n "$found" ] || { echo "no source of $1 to be had:" >&2; tail -n 3 "$part/log" >&2; return 1; }
  # Signatures, and further parts of the source (NAME.orig-PART.tar), lie beside it.
  tar xf "$(find "$part" -maxdepth 1 -name '*.orig.tar.*' ! -name '*.asc')" -C "$part/tree" --strip-components=1 || return 1
  mv "$part/tree" "$2"
  rm -rf "$part"
}

# side_by_side FUNCTION… < LINES: runs each line of the input as a command, as many at a time as there are processors. The
# functions that the lines call, and their variables, are exported. `configure` is serial: one build leaves a processor idle.
side_by_side() {
  export -f "$@"
  xargs -d '\n' -P "$(nproc)" -I '{}' bash -euo pipefail -c '{}'
}
