#!/bin/bash
# How often the verdict read from machine code is right: builds programs at known levels, strips them, adds the
# programs of this machine (distributions do not ship -O0), asks flagaudit and prints a table.
#
# usage: benches/accuracy.sh DIR [build|collect|measure]…      without steps: all three. Resumable: what is there is not rebuilt.
# FLAGAUDIT   command to ask (default: target/release/flagaudit inspect --format json)
# Needs Debian 12 with a source entry in its apt sources, gcc, clang-14/16/19, gcc-aarch64-linux-gnu, python3,
# and the development packages of nginx and memcached (libpcre2-dev zlib1g-dev libssl-dev libevent-dev).
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
D=$(mkdir -p "${1:?directory}" && cd "$1" && pwd); shift
[ $# -gt 0 ] || set -- build collect measure
mkdir -p "$D/src" "$D/bin" "$D/log"
export LC_ALL=C
NICE="nice -n 19"

# source PACKAGE DIRECTORY: unpacks the upstream source of a Debian source package.
source_of() {
  [ -d "$D/src/$2" ] && return
  (cd "$D/src" && { ls "$1"_*.orig.tar.* >/dev/null 2>&1 || apt-get source -qq --download-only "$1" >/dev/null; }
   mkdir "$2.part" && tar xf "$(ls "$1"_*.orig.tar.* | grep -v -e asc -e orig- | head -1)" -C "$2.part" --strip-components=1 && mv "$2.part" "$2")
}

truth() { # NAME TRUTH PROGRAM COMPILER: strips the build and notes what it is
  [ -f "$D/bin/$1" ] || { echo "failed: $1" >&2; return 0; }
  [ -f "$D/bin/$1.stripped" ] || "${STRIP:-strip}" --strip-all -o "$D/bin/$1.stripped" "$D/bin/$1"
  printf '%s\t%s\t%s\t%s\n' "$D/bin/$1.stripped" "$2" "$3" "$4" >> "$D/truth.tsv"
}

# make_one NAME TRUTH PROGRAM COMPILER FLAGS LINKFLAGS FILES…: compiles in one go
make_one() {
  local name=$1 level=$2 program=$3 cc=$4 flags=$5 link=$6; shift 6
  # shellcheck disable=SC2086
  [ -f "$D/bin/$name" ] || $NICE $cc $flags -w -o "$D/bin/$name" "$@" $link >"$D/log/$name" 2>&1 || true
  truth "$name" "$level" "$program" "$cc"
}

nginx() { # NAME TRUTH CC FLAGS
  local tree=$D/src/nginx
  if [ ! -f "$D/bin/$1" ]; then
    (cd "$tree" && sed -i 's/ -Werror / /' objs/Makefile && rm -rf "objs-$1" && cp -r objs "objs-$1" && sed -i "s#objs/#objs-$1/#g; s#-I objs#-I objs-$1#" "objs-$1/Makefile" &&
      $NICE make -j2 -f "objs-$1/Makefile" "objs-$1/nginx" CC="$3" LINK="$3" CFLAGS="-pipe -W -w $4" && cp "objs-$1/nginx" "$D/bin/$1" && rm -rf "objs-$1") >"$D/log/$1" 2>&1 || true
  fi
  truth "$1" "$2" nginx "$3"
}

build_nginx() {
  source_of nginx nginx
  [ -f "$D/src/nginx/objs/Makefile" ] || (cd "$D/src/nginx" && ./configure --with-http_ssl_module --with-http_v2_module --with-http_gzip_static_module --with-http_sub_module --with-stream --with-threads >"$D/log/nginx-configure" 2>&1)
  local l cc
  for l in O0 O1 O2 Os Og O3; do nginx "nginx-gcc-$l" $l gcc "-$l"; done
  for l in O0 O2; do nginx "nginx-clang-16-$l" $l clang-16 -$l; nginx "nginx-gcc-$l-fp" $l gcc "-$l -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer"; done
  for cc in clang-14 clang-19; do for l in O0 O2; do nginx "nginx-$cc-$l" $l $cc -$l; done; done
}

# Options that change the shape of code without changing the level, and the pitfalls each stands for.
build_variants() {
  local p l cc with
  for p in lua lz4 bzip2 ninja; do for l in O0 O2; do
    # Runtimes of sanitizers and of coverage are linked in and optimized.
    [ $l = O0 ] && with=O0+runtime || with=$l
    for cc in gcc clang-16; do
      small $p $l $cc "-$l -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer" "$p-$cc-$l-fp"
      small $p $l $cc "-$l -fomit-frame-pointer" "$p-$cc-$l-omitfp"
      small $p $l $cc "-$l -fstack-protector-all -fcf-protection=full -D_FORTIFY_SOURCE=2" "$p-$cc-$l-ssp"
      small $p $l $cc "-$l -fno-asynchronous-unwind-tables -fno-unwind-tables" "$p-$cc-$l-noeh"
      small $p $with $cc "-$l -fsanitize=address" "$p-$cc-$l-asan"
      small $p $with $cc "-$l -fsanitize=undefined" "$p-$cc-$l-ubsan"
      small $p $l $cc "-$l -fpatchable-function-entry=16,8" "$p-$cc-$l-patchable"
      small $p $with $cc "-$l --coverage" "$p-$cc-$l-gcov"
      small $p $l $cc "-$l -march=x86-64-v3" "$p-$cc-$l-v3"
      small $p $l $cc "-$l -pg" "$p-$cc-$l-pg"
      small $p $l $cc "-$l -fno-pie -no-pie" "$p-$cc-$l-nopie"
      small $p $l $cc "-$l -ffloat-store" "$p-$cc-$l-floatstore"
    done
    small $p $l gcc "-$l -mfunction-return=thunk -mindirect-branch=thunk" "$p-gcc-$l-thunk"
    small $p $l clang-16 "-$l -mretpoline" "$p-clang-16-$l-retpoline"
    small $p $l gcc "-$l -finstrument-functions" "$p-gcc-$l-instrument"
    small $p $l gcc "-$l -flto" "$p-gcc-$l-lto"
    small $p $l gcc "-$l -ffunction-sections -Wl,--gc-sections" "$p-gcc-$l-gcsections"
    small $p $l gcc "-$l -fstack-clash-protection" "$p-gcc-$l-clash"
  done; done
  # A statically linked C library is optimized, whatever the program is.
  for p in lua bzip2; do small $p mixed gcc "-O0 -static" "$p-gcc-O0-static"; small $p O2 gcc "-O2 -static" "$p-gcc-O2-static"; done
}

small() { # PROGRAM TRUTH-LEVEL COMPILER FLAGS NAME
  local S=$D/src
  case $1 in
    zlib) make_one "$5" "$2" zlib "$3" "$4 -fPIC -DHAVE_UNISTD_H -DHAVE_STDARG_H" "" "$S"/zlib/{adler32,crc32,deflate,infback,inffast,inflate,inftrees,trees,zutil,compress,uncompr,gzclose,gzlib,gzread,gzwrite}.c "$S/zlib/test/minigzip.c" ;;
    lua) make_one "$5" "$2" lua "$3" "$4 -DLUA_USE_LINUX" "-lm -ldl" $(ls "$S"/lua/src/*.c | grep -v luac) ;;
    bzip2) make_one "$5" "$2" bzip2 "$3" "$4" "" "$S"/bzip2/{blocksort,huffman,crctable,randtable,compress,decompress,bzlib,bzip2}.c ;;
    lz4) make_one "$5" "$2" lz4 "$3" "$4 -DLZ4_VERSION_STRING -I$S/lz4/lib" "" "$S"/lz4/lib/*.c "$S"/lz4/programs/*.c ;;
    sqlite) make_one "$5" "$2" sqlite "$3" "$4 -DSQLITE_THREADSAFE=0" "-lm -ldl" "$S/sqlite/sqlite3.c" "$S/sqlite/shell.c" ;;
    ninja) make_one "$5" "$2" ninja "${3/gcc/g++}" "$(echo "$4" | sed 's/^/-x c++ -std=c++17 /')" "-lstdc++ -lpthread" $(ls "$S"/ninja/src/*.cc | grep -v -e test -e win32 -e perf -e minidump -e msvc -e browse -e re2c -e hash_collision -e "\.in\.cc") ;;
  esac
}

build_small() {
  source_of zlib zlib; source_of lua5.4 lua; source_of bzip2 bzip2; source_of lz4 lz4; source_of ninja-build ninja; source_of memcached memcached
  if [ ! -d "$D/src/sqlite" ]; then
    source_of sqlite3 sqlite-tree
    (cd "$D/src/sqlite-tree" && ./configure --disable-tcl && make sqlite3.c shell.c) >"$D/log/sqlite-configure" 2>&1 && mkdir "$D/src/sqlite" && cp "$D"/src/sqlite-tree/{sqlite3.c,sqlite3.h,shell.c} "$D/src/sqlite/"
  fi
  local p l cc
  for p in zlib lua bzip2 lz4 ninja; do
    for cc in gcc clang-16; do for l in O0 O1 O2 Os; do small $p $l $cc -$l "$p-$cc-$l"; done; done
    small $p Og gcc -Og "$p-gcc-Og"
  done
  for l in O0 O2; do small sqlite $l gcc -$l "sqlite-gcc-$l"; small sqlite $l clang-19 -$l "sqlite-clang-19-$l"; done
  for p in zlib lua bzip2 lz4; do for l in O0 O1 O2 Os; do STRIP=aarch64-linux-gnu-strip small $p $l aarch64-linux-gnu-gcc -$l "$p-aarch64-$l"; done; done
  for p in zlib lua bzip2; do for l in O0 O2; do STRIP=aarch64-linux-gnu-strip small $p $l "clang-16 --target=aarch64-linux-gnu" -$l "$p-aarch64-clang-$l"; done; done
  for p in zlib lua bzip2 lz4; do for l in O0 O1 O2; do STRIP=i686-linux-gnu-strip small $p $l i686-linux-gnu-gcc -$l "$p-i386-$l"; done; done
  if [ ! -f "$D/src/memcached/config.h" ]; then (cd "$D/src/memcached" && ./configure) >"$D/log/memcached-configure" 2>&1 || true; fi
  for cc in gcc clang-16; do for l in O0 O2; do
    [ -f "$D/bin/memcached-$cc-$l" ] || (cd "$D/src/memcached" && rm -f ./*.o && $NICE make -k -j2 memcached CC=$cc CFLAGS="-$l -w -pthread" && cp memcached "$D/bin/memcached-$cc-$l") >"$D/log/memcached-$cc-$l" 2>&1 || true
    truth "memcached-$cc-$l" $l memcached $cc
  done; done
}

# One file of an -O2 build at -O0, and an archive at -O0 in an -O2 program.
build_mixed() {
  local S=$D/src cc n
  for cc in gcc clang-16; do
    n=lua-$cc-mixed
    if [ ! -f "$D/bin/$n" ]; then
      mkdir -p "$D/obj-$n"; (cd "$D/obj-$n" && $cc -O2 -w -DLUA_USE_LINUX -c $(ls "$S"/lua/src/*.c | grep -v luac) && $cc -O0 -w -DLUA_USE_LINUX -c "$S"/lua/src/lstrlib.c && $cc -o "$D/bin/$n" ./*.o -lm -ldl) >"$D/log/$n" 2>&1 || true; rm -rf "$D/obj-$n"
    fi
    truth "$n" mixed lua $cc
    n=minigzip-$cc-zlibO0
    if [ ! -f "$D/bin/$n" ]; then
      mkdir -p "$D/obj-$n"; (cd "$D/obj-$n" && $cc -O0 -w -DHAVE_UNISTD_H -DHAVE_STDARG_H -c "$S"/zlib/{adler32,crc32,deflate,infback,inffast,inflate,inftrees,trees,zutil,compress,uncompr,gzclose,gzlib,gzread,gzwrite}.c && mv ./*.o . 2>/dev/null; $cc -O2 -w -DLUA_USE_LINUX -c $(ls "$S"/lua/src/*.c | grep -v luac) && $cc -o "$D/bin/$n" ./*.o -lm -ldl) >"$D/log/$n" 2>&1 || true; rm -rf "$D/obj-$n"
    fi
    truth "$n" mixed lua+zlib $cc
  done
}

collect() { # what the machine has, and what DISTRO_DIRS name
  local f
  for f in /usr/bin/* /usr/sbin/* /usr/lib/x86_64-linux-gnu/*.so* ${DISTRO_DIRS:+$(find $DISTRO_DIRS -type f)}; do
    [ -f "$f" ] && [ ! -L "$f" ] || continue
    [ "$(head -c 4 "$f" 2>/dev/null | tr -d '\0')" = $'\177ELF' ] || continue
    printf '%s\tdistro\t%s\tdistro\n' "$f" "$(basename "$f")" >> "$D/truth.tsv"
  done
}

for step in "$@"; do
  case $step in
    build) : > "$D/truth.tsv"; build_small; build_mixed; build_variants; build_nginx ;;
    collect) grep -v '	distro	' "$D/truth.tsv" > "$D/truth.own" || true; mv "$D/truth.own" "$D/truth.tsv"; collect ;;
    measure) python3 "$HERE/accuracy.py" "$D/truth.tsv" ${FLAGAUDIT:-"$HERE/../target/release/flagaudit" inspect --format json} ;;
    *) echo "unknown step: $step" >&2; exit 64 ;;
  esac
done
