#!/usr/bin/env bash
# The part of the corpus that is about the nginx family in its breadth:
#   usage: scripts/corpus-nginx.sh DIR        (scripts/corpus.sh calls it for its own folder)
# DIR/versions   nginx 1.18 to 1.28 from Debian's sources and the crate nginx-src, built by gcc and clang at
#                -O0 and -O2, dynamic and static, stripped, each with the module table it was made from,
#                and 1.22.1 with the Lua module compiled in, with and without its assertions
# DIR/machines   Debian's nginx for amd64, arm64, armhf and i386
# DIR/modules    every libnginx-mod-* package of Debian, unpacked, with the libraries they need
# Nothing of it is committed. Runs again where it was interrupted. Needs cargo, and DIR/src (nginx 1.22.1);
# three to five minutes on two cores.
set -euo pipefail
dir=$(mkdir -p "${1:?usage: scripts/corpus-nginx.sh DIR}" && cd "$1" && pwd)
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
. "$(dirname "$0")/upstream.sh"
say() { printf 'corpus: %s\n' "$*" >&2; }

# A package manager of its own, so that the machine's lists and foreign architectures stay as they are.
apt_root=$dir/apt
private_apt() { APT_CONFIG=$apt_root/apt.conf "$@"; }
if [ ! -e "$apt_root/.ready" ]; then
  say "package lists of other releases and machines"
  mkdir -p "$apt_root"/etc/apt/{sources.list.d,preferences.d,apt.conf.d} "$apt_root"/var/lib/apt/lists/partial \
    "$apt_root"/var/cache/apt/archives/partial "$apt_root"/var/lib/dpkg
  : > "$apt_root/var/lib/dpkg/status"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | sed -n 1p)
  key=/usr/share/keyrings/debian-archive-keyring.gpg
  {
    printf 'Types: deb\nURIs: %s\nSuites: bookworm\nComponents: main\nArchitectures: amd64 arm64 armhf i386\nSigned-By: %s\n\n' "$mirror" "$key"
    printf 'Types: deb-src\nURIs: %s\nSuites: bullseye trixie\nComponents: main\nSigned-By: %s\n' "$mirror" "$key"
  } > "$apt_root/etc/apt/sources.list.d/debian.sources"
  cat > "$apt_root/apt.conf" <<EOF
Dir "$apt_root";
Dir::State::status "$apt_root/var/lib/dpkg/status";
APT::Architecture "amd64";
APT::Architectures { "amd64"; "arm64"; "armhf"; "i386"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
EOF
  private_apt apt-get update -qq
  touch "$apt_root/.ready"
fi

mkdir -p "$dir/machines"
for machine in amd64 arm64 armhf i386; do
  [ -x "$dir/machines/$machine" ] && continue
  say "nginx for $machine"
  rm -rf "$dir/machines/part"
  mkdir "$dir/machines/part"
  (cd "$dir/machines/part" && private_apt apt-get download -qq "nginx:$machine/bookworm" && dpkg-deb -x ./*.deb .)
  mv "$dir/machines/part/usr/sbin/nginx" "$dir/machines/$machine"
  rm -rf "$dir/machines/part"
done

# The module packages are of the release that the machine runs, as its own nginx is.
if [ ! -d "$dir/modules" ]; then
  say "dynamic modules"
  rm -rf "$dir/modules.part"
  mkdir -p "$dir/modules.part/archives/partial" "$dir/modules.part/own"
  names=$(apt-cache search --names-only '^libnginx-mod-' | awk '{print $1}' | grep -v -e '-dev$' | sort)
  # shellcheck disable=SC2086 # a list of names
  (cd "$dir/modules.part/own" && apt-get download -qq $names 2>/dev/null)
  for package in "$dir"/modules.part/own/*.deb; do dpkg-deb -x "$package" "$dir/modules.part"; done
  # What they need and the machine does not have; the modules themselves are there already.
  # shellcheck disable=SC2086
  apt-get install -y -qq --download-only --no-install-recommends \
    -o Dir::Cache::archives="$dir/modules.part/archives" $names >/dev/null
  for package in "$dir"/modules.part/archives/*.deb; do dpkg-deb -x "$package" "$dir/modules.part/libraries"; done
  rm -rf "$dir/modules.part/archives" "$dir/modules.part/own"
  mv "$dir/modules.part" "$dir/modules"
fi

# source VERSION: the folder of that version's source, fetched by name.
sources=$dir/versions/sources
mkdir -p "$sources"
from_debian() { # RELEASE VERSION
  [ -d "$sources/$2" ] && return
  rm -rf "$sources/part" && mkdir "$sources/part"
  (cd "$sources/part" && private_apt apt-get source -qq --download-only --tar-only "nginx/$1" >/dev/null
   mkdir tree && tar xf nginx_*.orig.tar.gz -C tree --strip-components=1)
  mv "$sources/part/tree" "$sources/$2"
  rm -rf "$sources/part"
}
from_crate() { # CRATE-VERSION NGINX-VERSION
  [ -d "$sources/$2" ] && return
  rm -rf "$sources/part" && mkdir -p "$sources/part/src"
  : > "$sources/part/src/lib.rs"
  printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nnginx-src = "=%s"\n[workspace]\n' "$1" \
    > "$sources/part/Cargo.toml"
  manifest=$(cd "$sources/part" && cargo metadata -q --format-version 1 \
    | tr ',' '\n' | sed -n 's/.*"manifest_path":"\(.*nginx-src-[^"]*\)\/Cargo.toml".*/\1/p' | head -n 1)
  cp -r "${manifest:?no nginx-src}/nginx" "$sources/$2"
  rm -rf "$sources/part"
}

# build VERSION COMPILER LEVEL ARGUMENTS…: two programs of the same objects, one of them static, and what is to be loaded.
build() {
  local version=$1 compiler=$2 level=$3 name=$1-${2%%-*}-$3
  shift 3
  [ -x "$dir/versions/$name-static" ] && return
  say "nginx $name"
  local tree=$dir/versions/tree-$name
  rm -rf "$tree" && cp -r "$sources/$version/." "$tree"
  (cd "$tree"
   if [ -x ./configure ]; then configure=./configure; else configure="sh auto/configure"; fi
   $configure --with-cc="$compiler" --with-cc-opt="-$level" "$@"
   sed -i 's/ -Werror / /' objs/Makefile
   make -j"$(nproc)" -f objs/Makefile binary modules
   strip -s -o "$dir/versions/$name" objs/nginx
   for module in objs/*_module.so; do
     [ -f "$module" ] || continue
     strip -s -o "$dir/versions/$name.$(basename "$module")" "$module"
     cp "${module%.so}_modules.c" "$dir/versions/$name.$(basename "${module%.so}").list"
   done
   cp objs/ngx_modules.c "$dir/versions/$name.ngx_modules.c"
   rm objs/nginx
   make -f objs/Makefile binary LINK="$compiler -static"
   strip -s -o "$dir/versions/$name-static" objs/nginx) > "$dir/versions/$name.log" 2>&1 \
    || { tail -5 "$dir/versions/$name.log" >&2; exit 1; }
  cp "$dir/versions/$name.ngx_modules.c" "$dir/versions/$name-static.ngx_modules.c"
  rm -rf "$tree"
}
ln -sfn "$dir/src" "$sources/1.22.1"
from_debian bullseye 1.18.0
from_debian trixie 1.26.3
from_crate "1.28.1" 1.28.0
from_crate "1.28.3" 1.28.1
from_crate "1.28.4" 1.28.2
from_crate "1.28.5" 1.28.3
few="--without-pcre --without-http_rewrite_module"
export dir sources
side_by_side build say <<LIST
build 1.18.0 gcc O2 $few --with-http_gzip_static_module --with-stream --with-threads
build 1.18.0 clang-14 O0 $few --with-mail --with-http_v2_module --with-http_slice_module --without-http_grpc_module
build 1.22.1 gcc O0 --with-compat --with-http_realip_module --with-http_gunzip_module
build 1.22.1 clang-14 O2 $few --with-http_dav_module --with-http_flv_module --with-mail --with-stream=dynamic
build 1.26.3 gcc O2 --with-compat --with-file-aio --with-threads --with-http_v2_module --with-stream=dynamic --with-mail=dynamic
build 1.26.3 clang-14 O0 $few --with-http_auth_request_module --with-http_random_index_module --without-http-cache
build 1.28.0 gcc O0 --with-compat --with-threads --with-stream=dynamic --with-http_stub_status_module
build 1.28.0 clang-14 O2 $few --with-http_addition_module --with-http_sub_module --without-http_geo_module
build 1.28.1 gcc O2 --with-http_secure_link_module --with-http_mp4_module --with-stream --with-stream_realip_module
build 1.28.1 clang-14 O0 --with-compat --with-debug --with-stream=dynamic --without-http_upstream_zone_module
build 1.28.2 gcc O2 --with-http_ssl_module --with-http_v2_module --with-http_v3_module --with-stream_ssl_module --with-stream
build 1.28.2 clang-14 O0 $few --without-http_gzip_module --without-http_autoindex_module --without-http_upstream_random_module
build 1.28.3 gcc O0 $few --with-mail --without-mail_pop3_module --with-http_gunzip_module --with-http_degradation_module
build 1.28.3 clang-14 O2 --with-poll_module --with-select_module --with-threads --with-http_gzip_static_module
LIST

# The Lua module as OpenResty's wrapper configures it with --with-debug, and without.
build_lua() { # NAME CC-OPT
  [ -x "$dir/versions/$1" ] && return
  say "nginx $1"
  local tree=$dir/versions/tree-$1
  rm -rf "$tree" && cp -r "$sources/1.22.1/." "$tree"
  (cd "$tree"
   export LUAJIT_LIB LUAJIT_INC=/usr/include/luajit-2.1
   LUAJIT_LIB=/usr/lib/$(gcc -print-multiarch)
   ./configure --with-cc-opt="-w $2" --without-pcre2 --add-module="$sources/ndk" --add-module="$sources/lua"
   make -j"$(nproc)" -f objs/Makefile binary
   strip -s -o "$dir/versions/$1" objs/nginx) > "$dir/versions/$1.log" 2>&1 \
    || { tail -5 "$dir/versions/$1.log" >&2; exit 1; }
  rm -rf "$tree"
}
if [ ! -e "$dir/versions/.lua" ]; then
  apt-get install -y -qq --no-install-recommends libluajit-5.1-dev libpcre3-dev >/dev/null
  touch "$dir/versions/.lua"
fi
upstream_source libnginx-mod-http-ndk "$sources/ndk"
upstream_source libnginx-mod-http-lua "$sources/lua"
side_by_side build_lua say <<'LIST'
build_lua lua "-O0"
build_lua lua-assert "-O0 -DNGX_LUA_USE_ASSERT -DNGX_LUA_ABORT_AT_PANIC"
LIST
say "ready: $dir/versions"
