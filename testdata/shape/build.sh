#!/bin/sh
# Rebuilds the inputs beside this script from the sources there. Needs gcc 12, clang 16 and the cross compilers
# for aarch64 and i686 (Debian 12's packages were used), and binutils.
set -eu
cd "$(dirname "$0")"
OUT=${1:-.}
LINK="-shared -nostdlib -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,--hash-style=gnu -Wl,-z,max-page-size=4096 -s"
one() { # NAME COMPILER OPTIONS…
  name=$1 cc=$2; shift 2
  $cc -fPIC "$@" $LINK -o "$OUT/$name" "${SOURCE:-shapes.c}"
}
one gcc-O0 gcc -O0
one gcc-O0-omitfp gcc -O0 -fomit-frame-pointer
one gcc-O1 gcc -O1
one gcc-O2 gcc -O2
one gcc-O2-fp gcc -O2 -fno-omit-frame-pointer
one gcc-Os gcc -Os
one clang-O0 clang-16 -O0
one clang-O2 clang-16 -O2
one gcc-O0-noeh gcc -O0 -fno-asynchronous-unwind-tables -fno-unwind-tables
one gcc-O2-noeh gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables
one gcc-O0-thunk gcc -O0 -mfunction-return=thunk -mindirect-branch=thunk
one gcc-O2-thunk gcc -O2 -mfunction-return=thunk -mindirect-branch=thunk
one aarch64-O0 aarch64-linux-gnu-gcc -O0
one aarch64-O2 aarch64-linux-gnu-gcc -O2
one i386-O0 i686-linux-gnu-gcc -O0
one i386-O2 i686-linux-gnu-gcc -O2
SOURCE=once.c one once-O0-omitfp gcc -O0 -fomit-frame-pointer
SOURCE=once32.c one i386-once-O0 "gcc -m32" -O0
SOURCE=once32.c one i386-once-O2 "gcc -m32" -O2
# one file of a program unoptimized
gcc -fPIC -O2 -DPART=1 -c -o part1.o shapes.c
gcc -fPIC -O0 -DPART=2 -c -o part2.o shapes.c
gcc $LINK -o "$OUT/gcc-mixed" part1.o part2.o
rm -f part1.o part2.o
# one file of a program unoptimized by a pragma, which no record tells
MAP="-ffile-prefix-map=$PWD=/w -g"
for cc in gcc clang-16; do
  $cc $MAP -fPIC -O2 -DPART=1 -c -o part1.o shapes.c
  $cc $MAP -fPIC -O2 -DPART=2 -c -o part2.o pragma.c
  $cc ${LINK% -s} -o "$OUT/pragma-$cc" part1.o part2.o
done
# all of it
gcc $MAP -fPIC -O2 ${LINK% -s} -o "$OUT/pragma-all" pragma.c
clang-16 $MAP -fPIC -O2 ${LINK% -s} -o "$OUT/pragma-all-clang-16" pragma.c
rm -f part1.o part2.o
