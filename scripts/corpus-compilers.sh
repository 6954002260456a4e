#!/usr/bin/env bash
# Builds one small program with each compiler that Debian 12 and PyPI have, for the tests in tests/corpus_compilers.rs:
#   usage: scripts/corpus-compilers.sh DIR
# Called by scripts/corpus.sh. What is true of each file stands in its name and in the test. Nothing of it is committed.
set -euo pipefail
dir=$(mkdir -p "${1:?usage: scripts/corpus-compilers.sh DIR}" && cd "$1" && pwd)
[ -e "$dir/.ready" ] && exit
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
say() { printf 'corpus: %s\n' "$*" >&2; }

say "packages of compilers"
apt-get install -y -qq --no-install-recommends gcc g++ golang-go gnat gfortran gdc gccgo gm2 ldc nasm yasm tcc \
  musl-tools libc6-dev python3-pip >/dev/null 2>&1 || {
  # Not every mirror has every component.
  for package in golang-go gnat gfortran gdc gccgo gm2 ldc nasm yasm tcc musl-tools; do
    apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 || say "no package $package"
  done
}
cd "$dir"
has() { command -v "$1" >/dev/null; }

# A program of some twenty functions, so that its code can be judged, too.
python3 - <<'PY'
functions = "".join(
    f"int f{i}(const char *s, int n) {{ int sum = {i}; for (int j = 0; j < n; j++) "
    f"{{ sum += s[j] * {i + 3}; if (sum > {1000 + i}) sum -= s[0]; }} return sum; }}\n"
    for i in range(24)
)
calls = " + ".join(f"f{i}(argv[0], argc)" for i in range(24))
open("many.c", "w").write(functions)
open("main.c", "w").write(
    "#include <stdio.h>\n#include <string.h>\n"
    + "".join(f"int f{i}(const char *s, int n);\n" for i in range(24))
    + "int main(int argc, char **argv) { char buffer[64]; strncpy(buffer, argv[0], sizeof buffer - 1);\n"
    + f"printf(\"%s %d\\n\", buffer, {calls}); return 0; }}\n"
)
open("hello.go", "w").write('package main\n\nimport ("fmt"; "os")\n\nfunc main() { fmt.Println("hello", os.Args[0]) }\n')
open("cgo.go", "w").write(
    "package main\n\n"
    + "// #cgo CFLAGS: -Wno-unused\n// #include \"many.h\"\nimport \"C\"\n\nimport \"fmt\"\n\n"
    + "func main() { fmt.Println(C.f0(C.CString(\"x\"), 1), C.f7(C.CString(\"x\"), 1)) }\n"
)
open("many.h", "w").write("".join(f"int f{i}(const char *s, int n);\n" for i in range(24)))
open("hello.adb", "w").write(
    "with Ada.Text_IO;\nprocedure Hello is\n"
    "   function Twice (X : Integer) return Integer is (X * 2);\n"
    "begin\n   Ada.Text_IO.Put_Line (Integer'Image (Twice (21)));\nend Hello;\n"
)
open("f.f90", "w").write("subroutine twice(x)\n  integer, intent(inout) :: x\n  x = x * 2\nend subroutine\n")
open("d.d", "w").write("module d;\nint twice(int x) { return x * 2; }\n")
open("g.go", "w").write("package g\n\nfunc Twice(x int) int { return x * 2 }\n")
open("m.mod", "w").write(
    "IMPLEMENTATION MODULE m ;\nPROCEDURE Twice (x: INTEGER) : INTEGER ;\nBEGIN\n   RETURN x * 2\nEND Twice ;\nEND m.\n"
)
open("m.def", "w").write("DEFINITION MODULE m ;\nPROCEDURE Twice (x: INTEGER) : INTEGER ;\nEND m.\n")
open("n.asm", "w").write("section .text\nglobal twice\ntwice:\n  lea eax, [rdi+rdi]\n  ret\n")
PY

say "one program by every compiler"
gcc -g -O2 -static many.c main.c -o static-O2
gcc -O2 -static many.c main.c -o static-plain
gcc -O0 -static many.c main.c -o static-O0
strip -o static-O0-stripped static-O0
gcc -O2 -static-pie many.c main.c -o staticpie-O2
gcc -O2 -frecord-gcc-switches -c main.c -o main.o
gcc -O0 -c many.c -o many.o
gcc main.o many.o -o lone-record
strip -o lone-record-stripped lone-record
gcc -O2 -frecord-gcc-switches many.c main.c -o all-recorded
strip -o all-recorded-stripped all-recorded
has gfortran && { gfortran -g -O2 -c f.f90 -o fortran.o; gfortran -g -c f.f90 -o fortran-O0.o; }
has gnatmake && { gnatmake -q -g -O2 hello.adb -o ada-O2; cp hello.o ada.o; }
has gdc && gdc -g -O2 -c d.d -o d.o
has gccgo && gccgo -g -O2 -c g.go -o gccgo.o
has gm2 && gm2 -g -O2 -c m.mod -o m2.o
has ldc2 && { ldc2 -g -O2 -c d.d -of=ldc.o; ldc2 -g -O0 -c d.d -of=ldc-O0.o; }
has nasm && nasm -g -F dwarf -f elf64 n.asm -o nasm.o
has yasm && yasm -g dwarf2 -f elf64 n.asm -o yasm.o
has tcc && tcc -g -c many.c -o tcc.o
has musl-gcc && musl-gcc -O2 -static many.c main.c -o musl-static
if has go; then
  export GOPATH=$dir/gopath GOCACHE=$dir/gocache GOFLAGS=-mod=mod GO111MODULE=off
  go build -o go-default hello.go
  go build -gcflags='all=-N -l' -o go-noopt hello.go
  go build -trimpath -ldflags='-s -w' -o go-stripped hello.go
  go build -trimpath -ldflags='-w' -o go-symbols hello.go
  mkdir -p cgo && cp cgo.go many.c many.h cgo/
  for level in O0 O2; do
    (cd cgo && CGO_ENABLED=1 CGO_CFLAGS="-g -$level" go build -o "../cgo-$level" . \
      && CGO_ENABLED=1 CGO_CFLAGS="-g -$level" go build -ldflags='-s -w' -o "../cgo-$level-stripped" .)
  done
  rm -rf "$dir/gopath" "$dir/gocache" 2>/dev/null || chmod -R u+w "$dir/gocache" "$dir/gopath"
fi
if pip3 download -q --no-deps -d wheel ziglang >/dev/null 2>&1; then
  (cd wheel && python3 -m zipfile -e ./*.whl .)
  zig=$(find wheel -type f -name zig | head -n 1)
  chmod +x "$zig"
  export ZIG_GLOBAL_CACHE_DIR=$dir/zigcache ZIG_LOCAL_CACHE_DIR=$dir/zigcache
  "$zig" cc -target x86_64-linux-musl -g -O1 many.c main.c -o zig-O1
  # Objects are cached: what takes long, the C library, is compiled once.
  "$zig" cc -target x86_64-linux-musl -g -O0 many.c main.c -o zig-O0
  printf 'export fn twice(x: i32) i32 { return x * 2; }\n' > z.zig
  "$zig" build-obj -O ReleaseFast -target x86_64-linux-musl z.zig || say "no Zig object"
  rm -rf wheel zigcache
fi
touch .ready
