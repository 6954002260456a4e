# shellcheck shell=bash
# The programs: where their sources are, and how their translation units are compiled and linked.
# A program becomes a directory with three files: units (one a line), cflags, libs. Sourced by ../accuracy.sh.

# prepare PROGRAM: makes $dir/src/PROGRAM and its units, cflags and libs, once.
prepare() {
  local at=$dir/src/$1
  [ ! -f "$at/libs" ] || return 0
  "prepare_$1" "$at" >"$dir/log/prepare-$1" 2>&1 || { tail -5 "$dir/log/prepare-$1" >&2; exit 1; }
}

prepare_lua() {
  upstream_source lua5.4 "$1"
  (cd "$1" && find src -name '*.c' ! -name luac.c | sort > units)
  echo "-DLUA_USE_LINUX" > "$1/cflags"
  echo "-lm -ldl -Wl,-E" > "$1/libs"
}

prepare_zlib() {
  upstream_source zlib "$1"
  (cd "$1" && printf '%s.c\n' adler32 compress crc32 deflate gzclose gzlib gzread gzwrite infback inffast inflate \
    inftrees trees uncompr zutil test/minigzip > units)
  echo "-DHAVE_UNISTD_H -DHAVE_STDARG_H -I." > "$1/cflags"
  echo "" > "$1/libs"
}

# The whole of SQLite is one file of 240,000 lines and its shell.
prepare_sqlite() {
  upstream_source sqlite3 "$1"
  (cd "$1" && ./configure && make sqlite3.c shell.c && printf '%s\n' sqlite3.c shell.c > units)
  echo "-DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_MATH_FUNCTIONS" > "$1/cflags"
  echo "-lm -ldl -lpthread" > "$1/libs"
}

nginx_modules="--with-http_ssl_module --with-http_v2_module --with-http_gzip_static_module --with-http_gunzip_module
  --with-http_sub_module --with-stream --with-threads"

# nginx is configured twice: with its libraries, and for cross compilers without any (pretending a native build; the
# result is never run).
prepare_nginx() {
  upstream_source nginx "$1"
  # shellcheck disable=SC2086 # the list is meant to be split
  (cd "$1" && ./configure $nginx_modules
   ./configure --builddir=objs-cross --without-http_rewrite_module --without-http_gzip_module --with-stream --with-threads
   { grep -oE 'src/[a-z0-9_/]+\.c' objs/Makefile | sort -u; echo objs/ngx_modules.c; } > units
   { grep -oE 'src/[a-z0-9_/]+\.c' objs-cross/Makefile | sort -u; echo objs-cross/ngx_modules.c; } > units-cross)
  local dirs="-Isrc/core -Isrc/event -Isrc/event/modules -Isrc/os/unix -Isrc/http -Isrc/http/modules -Isrc/http/v2 -Isrc/stream"
  echo "$dirs -Iobjs" > "$1/cflags"
  echo "$dirs -Iobjs-cross" > "$1/cflags-cross"
  echo "-Wl,--unresolved-symbols=ignore-all" > "$1/libs-cross"
  echo "-lcrypt -lpcre2-8 -lssl -lcrypto -lz -ldl -lpthread -Wl,-E" > "$1/libs"
}

prepare_redis() {
  upstream_source redis "$1"
  (cd "$1" && (cd src && sh ./mkreleasehdr.sh)
   sed -n 's/^REDIS_SERVER_OBJ=//p' src/Makefile | tr ' ' '\n' | sed -n 's#^\(.*\)\.o$#src/\1.c#p' > units
   find deps/lua/src -name '*.c' ! -name lua.c ! -name luac.c ! -name print.c | sort >> units
   printf 'deps/hiredis/%s.c\n' alloc net hiredis sds async read sockcompat >> units
   printf '%s\n' deps/linenoise/linenoise.c deps/hdr_histogram/hdr_histogram.c >> units)
  echo "-std=gnu11 -Ideps/hiredis -Ideps/linenoise -Ideps/lua/src -Ideps/hdr_histogram -DLUA_USE_MKSTEMP -DENABLE_CJSON_GLOBAL '-DHDR_MALLOC_INCLUDE=\"hdr_redis_malloc.h\"'" > "$1/cflags"
  echo "-lm -ldl -lpthread -rdynamic" > "$1/libs"
}

prepare_haproxy() {
  upstream_source haproxy "$1"
  (cd "$1" && make -n TARGET=linux-glibc USE_OPENSSL=1 USE_PCRE2=1 USE_ZLIB=1 V=1 > commands
   grep -oE '(src|addons)/[A-Za-z0-9_/.-]*\.c$' commands | sort -u | grep -v -e haterm -e dlmalloc > units
   grep -m1 -- ' -c -o src/ev_poll.o' commands | grep -oE -- '-(fwrapv|I[^ ]+|D[A-Za-z0-9_]+(=[^ ]+)?)' | grep -v HAPROXY_ | tr '\n' ' ' > cflags
   printf '%s\n' "-Iinclude '-DCONFIG_HAPROXY_VERSION=\"2\"' '-DCONFIG_HAPROXY_DATE=\"2\"' '-DBUILD_TARGET=\"x\"' '-DBUILD_CC=\"x\"' '-DBUILD_CFLAGS=\"x\"' '-DBUILD_OPTIONS=\"x\"' '-DBUILD_DEBUG=\"x\"' '-DBUILD_FEATURES=\"x\"'" >> cflags)
  echo "-lcrypt -lpcre2-8 -lssl -lcrypto -lz -ldl -lrt -lpthread -Wl,-E" > "$1/libs"
}
