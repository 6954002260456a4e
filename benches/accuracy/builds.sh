# shellcheck shell=bash
# One build: compile every translation unit once, link, strip, note the truth. Sourced by ../accuracy.sh.

# Options that change the shape of code without changing its level. `link` gets those the linker needs, too.
variant_flags() { # VARIANT COMPILER
  compile='' link=''
  case $1 in
    plain) ;;
    fp) compile="-fno-omit-frame-pointer" ; case $2 in i686*) ;; *) compile="$compile -mno-omit-leaf-frame-pointer" ;; esac ;;
    omitfp) compile="-fomit-frame-pointer" ;;
    lto) compile="-flto" ; case $2 in *clang*) link="-flto -fuse-ld=lld" ;; *) link="-flto" ;; esac ;;
    thinlto) compile="-flto=thin" link="-flto=thin -fuse-ld=lld" ;;
    nopie) compile="-fno-pie" link="-no-pie" ;;
    pic) compile="-fPIC" ;;
    static) link="-static" ;;
    cet) compile="-fcf-protection=full" ;;
    ssp) compile="-fstack-protector-strong" ;;
    sspall) compile="-fstack-protector-all" ;;
    patchable) compile="-fpatchable-function-entry=16,8" ;;
    retpoline) case $2 in *clang*) compile="-mretpoline" ;; *) compile="-mindirect-branch=thunk -mfunction-return=thunk" ;; esac ;;
    # What distributions of 2024 and later build with.
    distro) compile="-g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -D_FORTIFY_SOURCE=2" ;;
    # No unwind tables: functions are found in the code alone.
    noeh) compile="-fno-asynchronous-unwind-tables -fno-unwind-tables" ;;
    autoinit) compile="-ftrivial-auto-var-init=zero" ;;
    clash) compile="-fstack-clash-protection" ;;
    sections) compile="-ffunction-sections -fdata-sections" link="-Wl,--gc-sections" ;;
    v3) compile="-march=x86-64-v3" ;;
    profilers) compile="-fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline" ;;
    gcov) compile="--coverage -fprofile-update=single" link="--coverage" ;;
    pg) compile="-pg" link="-pg" ;;
    asan) compile="-fsanitize=address" link="-fsanitize=address" ;;
    ubsan) compile="-fsanitize=undefined" link="-fsanitize=undefined" ;;
    bti) compile="-mbranch-protection=standard" ;;
    noplt) compile="-fno-plt" link="-Wl,-z,now" ;;
    *) say "unknown variant: $1"; exit 64 ;;
  esac
}

compiler_command() {
  case $1 in
    aarch64-gcc) command="aarch64-linux-gnu-gcc" strip="aarch64-linux-gnu-strip" nm="aarch64-linux-gnu-nm" ;;
    aarch64-clang*) command="clang-${1##*-} --target=aarch64-linux-gnu" strip="aarch64-linux-gnu-strip" nm="aarch64-linux-gnu-nm" ;;
    i686-gcc) command="i686-linux-gnu-gcc" strip="i686-linux-gnu-strip" nm="i686-linux-gnu-nm" ;;
    *) command=$1 strip=strip nm=nm ;;
  esac
}

# settings PROGRAM COMPILER LEVEL VARIANT: everything a build needs, in variables.
settings() {
  name=$1-$2-$3-$4
  at=$dir/src/$1
  compiler_command "$2"
  variant_flags "$4" "$2"
  # Variants that differ in linking only share their objects.
  objects=$dir/obj/$1-$2-$3-$([ -n "$compile" ] && echo "$4" || echo plain)
  local cross=
  case $2 in aarch64-*|i686-*) [ ! -f "$at/units-cross" ] || cross=-cross ;; esac
  units=$at/units$cross
  flags="-w -pipe -$3 $compile $(cat "$at/cflags$cross")"
  libs="-$3 $link $(cat "$at/libs$cross")"
}

# compile: the units of the current settings that are not compiled yet, into $objects.
compile() {
  mkdir -p "$objects"
  local unit object
  # shellcheck disable=SC2094 # the list is only read
  while read -r unit; do
    object=$objects/${unit//\//_}.o
    [ -f "$object" ] || printf '%s\0%s\0' "$unit" "$object"
  done < "$units" |
    (cd "$at" && xargs -0 -r -n 2 -P "$JOBS" nice -n $NICE sh -c "$command $flags -c \"\$0\" -o \"\$1.part\" && mv \"\$1.part\" \"\$1\"")
}

# link_to OUTPUT [UNIT OBJECT]: links the objects of the current settings in the order of the units, one of them replaced.
link_to() {
  local unit list=()
  while read -r unit; do
    if [ "$unit" = "${2:-}" ]; then list+=("$3"); else list+=("$objects/${unit//\//_}.o"); fi
  done < "$units"
  eval "nice -n $NICE $command -w -o \"\$1\" \"\${list[@]}\" $libs"
}

# build PROGRAM COMPILER LEVEL VARIANT: a stripped program and its line in the list of truths.
build() {
  settings "$@"
  local out=$dir/bin/$name
  if [ ! -f "$out" ]; then
    say "$name"
    if { compile && link_to "$out.part"; } >"$dir/log/$name" 2>&1; then
      $strip --strip-all "$out.part" && mv "$out.part" "$out"
    else
      say "failed: $name (log/$name)"
    fi
    keep_objects "$@" || rm -rf "$objects"
  fi
}

# mix PROGRAM COMPILER LEVEL VARIANT UNIT [OTHER-LEVEL]: the same with one unit compiled at another level (default: O0),
# and the addresses of that unit's functions beside it.
mix() {
  local unit=$5 other=${6:-O0}
  settings "$1" "$2" "$3" "$4"
  local mixed=$name--$other-${unit//\//_}
  local out=$dir/mixed/$mixed odd=$dir/obj/$mixed
  [ ! -f "$out" ] || return 0
  say "$mixed"
  {
    compile
    (cd "$at" && eval "nice -n $NICE $command $flags -$other -c '$unit' -o '$odd.o'")
    # Names of functions, from an object that is no intermediate code.
    case $compile in
      *-flto*) (cd "$at" && eval "nice -n $NICE $command $flags -$other -fno-lto -c '$unit' -o '$odd.plain.o'") ;;
      *) cp "$odd.o" "$odd.plain.o" ;;
    esac
    if link_to "$out.part" "$unit" "$odd.o"; then
      $nm --defined-only "$odd.plain.o" | awk '$2 ~ /^[tTwW]$/ { print $3 }' | sort -u > "$odd.names"
      $nm -S --defined-only "$out.part" | awk 'NR == FNR { wanted[$1]; next } $4 in wanted && $3 ~ /^[tTwW]$/ { print $1, $2 }' "$odd.names" - > "$out.ranges"
      $strip --strip-all "$out.part" && mv "$out.part" "$out"
    fi
    rm -f "$odd".*
  } >"$dir/log/$mixed" 2>&1 || say "failed: $mixed (log/$mixed)"
}
