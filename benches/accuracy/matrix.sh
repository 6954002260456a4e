# shellcheck shell=bash
# Which builds are made. Sourced by ../accuracy.sh.
#
# Tier 0 is a sample that takes minutes: lua and zlib by two compilers at O0 and O2, one -O0 file after the other in lua.
# Tier 1 has every level with the two compilers that are met most and no further options, and a sample of the rest: the
# other compilers at O0 and O2, and the other variants at O0 and O2, where the verdict turns. Tier 2 has every compiler at
# every level, with and without frame pointers, and every variant with every compiler where builds are cheap.

# in_tier PROGRAM COMPILER LEVEL VARIANT: whether the build belongs to the tier that was asked for.
in_tier() {
  case $TIER-$1-$2-$3-$4 in
    0-lua-gcc-12-O[02]-plain|0-lua-clang-16-O[02]-plain|0-zlib-gcc-12-O[02]-plain|0-zlib-clang-16-O[02]-plain) ;;
    0-*) return 1 ;;
    # The large ones: two compilers at four levels, variants that change code most.
    [12]-sqlite-gcc-12-O[012s]-plain|[12]-redis-gcc-12-O[012s]-plain|[12]-haproxy-gcc-12-O[012s]-plain) ;;
    [12]-sqlite-clang-16-O[012s]-plain|[12]-redis-clang-16-O[012s]-plain|[12]-haproxy-clang-16-O[012s]-plain) ;;
    [12]-redis-gcc-12-O[02]-fp|[12]-sqlite-gcc-12-O[02]-fp|[12]-redis-*-O0-omitfp) ;;
    2-sqlite-aarch64-gcc-*-plain|2-sqlite-i686-gcc-*-plain|2-sqlite-*64*-*|2-sqlite-*686*-*) ;;
    2-sqlite-*-O[02]-plain|2-redis-*-O[02]-plain|2-haproxy-*-O[02]-plain) ;;
    2-sqlite-gcc-12-*-plain|2-sqlite-clang-16-*-plain|2-redis-gcc-12-*-plain|2-redis-clang-16-*-plain) ;;
    2-haproxy-gcc-12-*-plain|2-haproxy-clang-16-*-plain) ;;
    2-*-gcc-12-O[02]-fp|2-*-clang-16-O[02]-fp|2-*-gcc-12-O[02]-lto|2-*-clang-16-O[02]-lto) ;;
    2-redis-gcc-12-O[02]-distro|2-redis-clang-16-O[02]-distro|2-haproxy-gcc-12-O0-omitfp|2-haproxy-clang-16-O0-omitfp) ;;
    *-sqlite-*|*-redis-*|*-haproxy-*) return 1 ;;
    # nginx, lua, zlib
    1-*-gcc-12-*-plain|1-*-clang-16-*-plain|1-*-O[02]-plain) ;;
    1-nginx-gcc-12-O[012s]-fp|1-nginx-clang-16-O[012s]-fp) ;;
    1-nginx-gcc-12-O[02]-lto|1-nginx-gcc-12-O[02]-static|1-nginx-gcc-12-O[02]-distro|1-nginx-gcc-12-O0-omitfp) ;;
    1-nginx-clang-16-O0-lto|1-nginx-clang-16-O0-omitfp|1-nginx-clang-16-O2-nopie|1-nginx-gcc-12-O2-nopie) ;;
    1-nginx-*) return 1 ;;
    1-zlib-gcc-12-O[02]-fp|1-zlib-gcc-12-O[02]-lto|1-zlib-gcc-12-O[02]-static|1-zlib-gcc-12-O[02]-omitfp) ;;
    1-zlib-clang-16-O[02]-fp|1-zlib-clang-16-O[02]-lto|1-zlib-clang-16-O[02]-omitfp) ;;
    1-zlib-*) return 1 ;;
    1-*-gcc-12-O[02]-*|1-*-clang-16-O[02]-*) ;;
    1-*64*-O[02]-*|1-*686*-O[02]-*) ;;
    1-*) return 1 ;;
    2-nginx-gcc-12-*-*|2-nginx-clang-16-*-*|2-nginx-*-*-plain|2-nginx-*-O[02]-fp) ;;
    2-nginx-*-O[02]-lto|2-nginx-*-O[02]-static|2-nginx-*-O[02]-cet|2-nginx-*-O0-omitfp) ;;
    2-nginx-*) return 1 ;;
    2-*) ;;
  esac
}

levels="O0 O1 O2 O3 Os Og Ofast"
natives="gcc-12 clang-16 gcc-11 clang-14 clang-19"

matrix() { # PROGRAM
  local program=$1 compiler level variant
  for compiler in $natives aarch64-gcc i686-gcc aarch64-clang-16; do
    for level in $levels; do maybe "$program" "$compiler" "$level" plain; done
  done
  # Frame pointers kept on purpose, at every level.
  for compiler in $natives aarch64-gcc i686-gcc aarch64-clang-16; do
    for level in $levels; do maybe "$program" "$compiler" "$level" fp; done
  done
  for compiler in $natives; do
    for variant in omitfp lto nopie static cet ssp patchable retpoline distro; do
      for level in O0 O2; do maybe "$program" "$compiler" "$level" "$variant"; done
    done
  done
  for compiler in aarch64-gcc aarch64-clang-16; do
    for variant in omitfp ssp bti; do
      for level in O0 O2; do maybe "$program" "$compiler" "$level" "$variant"; done
    done
  done
  # Less common ones, for one compiler of each family, in small programs only.
  case $program in lua|zlib) ;; *) return 0 ;; esac
  for variant in pic sspall noeh autoinit clash sections v3 profilers gcov pg asan ubsan noplt thinlto; do
    for compiler in gcc-12 clang-16; do
      [ "$variant-$compiler" != thinlto-gcc-12 ] || continue
      for level in O0 O1 O2; do maybe "$program" "$compiler" "$level" "$variant"; done
    done
  done
}

maybe() { # PROGRAM COMPILER LEVEL VARIANT
  # Only nginx, lua, zlib and sqlite compile without libraries of the other machine.
  case $1-$2 in redis-aarch64*|haproxy-aarch64*|redis-i686*|haproxy-i686*) return 0 ;; esac
  if in_tier "$@"; then build "$@"; fi
}

# Builds whose objects are kept, to be linked again with one unit of another level.
keep_objects() { # PROGRAM COMPILER LEVEL VARIANT
  case $1-$2-$3-$4 in
    nginx-*-O[023s]-plain|nginx-gcc-12-O2-fp|nginx-clang-16-O2-fp|nginx-gcc-12-O2-lto|nginx-clang-16-O2-lto) ;;
    nginx-gcc-12-O2-nopie|nginx-clang-16-O2-nopie) ;;
    *-gcc-12-O2-plain|*-clang-16-O2-plain|lua-*-O[02]-plain|zlib-*-O[02]-plain) ;;
    *) return 1 ;;
  esac
}

# mixtures PROGRAM: one unit at -O0 in an optimized program, and the other way round.
mixtures() {
  local program=$1 compiler level variant unit
  if [ "$program" = nginx ] && [ "$TIER" != 0 ]; then
    unit=src/http/ngx_http_upstream.c
    for compiler in gcc-12 clang-16; do
      for level in O2 O3 Os; do mix nginx "$compiler" "$level" plain "$unit"; done
      for variant in lto nopie fp; do mix nginx "$compiler" O2 "$variant" "$unit"; done
      mix nginx "$compiler" O0 plain "$unit" O2
    done
    for compiler in gcc-11 clang-14 clang-19 aarch64-gcc; do mix nginx "$compiler" O2 plain "$unit"; done
  fi
  # How small may the -O0 part be: each unit in turn; of the larger programs every fourth (tier 1) or second (tier 2).
  local step=1 n=0
  case $TIER-$program in 0-lua) ;; 0-*|*-sqlite) return 0 ;; 1-lua|1-zlib) ;; 1-*) step=4 ;; 2-lua|2-zlib) ;; *) step=2 ;; esac
  for compiler in gcc-12 clang-16; do
    n=0
    while read -r unit <&3; do
      n=$((n + 1))
      [ $((n % step)) -eq 0 ] || continue
      mix "$program" "$compiler" O2 plain "$unit"
    done 3< "$dir/src/$program/units"
  done
}
