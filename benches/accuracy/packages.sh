# shellcheck shell=bash
# Fetches the packages of packages.txt and unpacks their programs and libraries. Sourced by ../accuracy.sh.

packages() {
  local machine kind names name
  while read -r machine kind names; do
    case $machine in ''|'#'*) continue ;; esac
    [ "$machine" = amd64 ] || foreign "$machine"
    for name in $names; do package "$machine" "$kind" "$name"; done
  done < "$here/accuracy/packages.txt"
}

# foreign MACHINE: an apt of its own for the machine, beside the system's.
foreign() {
  local root=$dir/apt-$1
  [ ! -e "$root/.updated" ] || return 0
  mkdir -p "$root/etc" "$root/lists/partial" "$root/cache/archives/partial"
  : > "$root/status"
  cat > "$root/etc/apt.conf" <<CONF
APT::Architecture "$1";
APT::Architectures { "$1"; };
Dir::State "$root";
Dir::State::Lists "$root/lists";
Dir::State::Status "$root/status";
Dir::Cache "$root/cache";
CONF
  APT_CONFIG=$root/etc/apt.conf apt-get update -qq || say "package lists of $1 are not complete"
  touch "$root/.updated"
}

package() { # MACHINE KIND NAME
  local at=$dir/packages/$1/$2/$3
  [ ! -d "$at" ] || return 0
  say "package $3 ($1)"
  rm -rf "$dir/fetch" && mkdir -p "$dir/fetch/root"
  if (cd "$dir/fetch"
      [ "$1" = amd64 ] || export APT_CONFIG=$dir/apt-$1/etc/apt.conf
      apt-get download -qq "$3" >/dev/null 2>&1
      dpkg-deb --fsys-tarfile ./*.deb | tar x -C root --exclude='./usr/share/*'); then
    mkdir -p "$(dirname "$at")" && mv "$dir/fetch/root" "$at"
  else
    say "failed: package $3 ($1)"
  fi
}
