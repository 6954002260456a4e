use super::*;
use crate::compiler::producer::parse;

const GCC: &str = "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2";

fn kind(producer: &str, name: &str, comp_dir: &str) -> UnitKind {
    unit_kind(&parse(producer.as_bytes()), name, Some(comp_dir), None)
}

#[test]
fn a_name_alone_proves_nothing() {
    for name in
        ["init.c", "start.c", "elf-init.c", "libgcc2.c", "crtstuff.c", "src/crypto/aes.c", "crt/crt1.c"]
    {
        assert_eq!(kind(GCC, name, "/home/me/project/csu"), UnitKind::Source, "{name}");
        assert_eq!(kind(GCC, name, ""), UnitKind::Source, "{name}");
    }
    assert_eq!(kind(GCC, "openssl.c", "/home/me/mod_openssl"), UnitKind::Source);
    assert_eq!(kind(GCC, "src/openssl-3.c", "/home/me/project"), UnitKind::Source);
    assert_eq!(kind(GCC, "src/event/ngx_event_openssl.c", "/build/nginx-1.22.1"), UnitKind::Source);
    assert_eq!(kind(GCC, "libgcc.c", "/home/me/libgcc"), UnitKind::Source);
    // A program built below a directory that is named after a library.
    assert_eq!(kind(GCC, "src/core/nginx.c", "/home/me/openssl"), UnitKind::Source);
    assert_eq!(kind(GCC, "src/core/nginx.c", "/build/openssl-3.0.15/nginx-1.22.1"), UnitKind::Source);
    assert_eq!(kind(GCC, "../nginx/src/core/nginx.c", "/build/openssl-3.0.15"), UnitKind::Source);
}

#[test]
fn toolchain_units() {
    assert_eq!(
        kind("GNU AS 2.31.1", "../sysdeps/x86_64/start.S", "/build/glibc-fWwxX8/glibc-2.28/csu"),
        UnitKind::Toolchain
    );
    assert_eq!(kind("GNU AS 2.40", "../sysdeps/x86_64/start.S", "./csu"), UnitKind::Toolchain);
    assert_eq!(kind(GCC, "init.c", "/build/glibc-fWwxX8/glibc-2.28/csu"), UnitKind::Toolchain);
    assert_eq!(kind(GCC, "elf-init.c", "/usr/src/debug/glibc-2.17-c758a686/csu"), UnitKind::Toolchain);
    assert_eq!(
        kind(
            "GNU C17 12.2.0 -g -O2 -fbuilding-libgcc -fno-stack-protector",
            "../../../src/libgcc/libgcc2.c",
            "/build/reproducible-path/gcc-12-12.2.0/build/x86_64-linux-gnu/libgcc"
        ),
        UnitKind::Toolchain
    );
    assert_eq!(
        kind(
            GCC,
            "../../../src/libgcc/config/i386/crtfastmath.c",
            "/build/gcc-12-12.2.0/build/x86_64-linux-gnu/libgcc"
        ),
        UnitKind::Toolchain
    );
    assert_eq!(
        kind(
            "GNU C++14 12.2.0 -O2 -fPIC",
            "../../../../src/libsanitizer/asan/asan_preinit.cpp",
            "/build/reproducible-path/gcc-12-12.2.0/build/x86_64-linux-gnu/libsanitizer/asan"
        ),
        UnitKind::Toolchain
    );
    assert_eq!(kind(GCC, "crt/Scrt1.c", "/build/musl-1.2.3"), UnitKind::Toolchain);
    assert_eq!(
        kind("clang version 17.0.6", "/llvm/compiler-rt/lib/builtins/divti3.c", "/llvm/build"),
        UnitKind::Toolchain
    );
}

#[test]
fn start_files_of_musl_and_zig() {
    let start = |name: &str, range: std::ops::Range<u64>, entry: u64| {
        is_start_unit(name, std::slice::from_ref(&range), entry)
    };
    assert!(start("crt/Scrt1.c", 0x1020..0x1043, 0x1008));
    assert!(!start("crt/Scrt1.c", 0x9020..0x9043, 0x1008), "the program begins elsewhere");
    assert!(!start("crt/Scrt1.c", 0x1020..0x9043, 0x1020), "more than a start file holds");
    assert!(!start("main.c", 0x1020..0x1043, 0x1020));
    assert_eq!(kind("zig 0.17.1", "compiler_rt", "/opt/zig-linux-0.17.1/lib"), UnitKind::Toolchain);
    assert_eq!(kind("zig 0.17.1", "main", "/home/me/zig/lib"), UnitKind::Source);
    assert_eq!(kind(GCC, "compiler_rt", "/opt/zig/lib"), UnitKind::Source);
}

#[test]
fn library_units() {
    assert_eq!(kind(GCC, "libc-start.c", "/build/glibc-fWwxX8/glibc-2.28/csu"), UnitKind::Library);
    assert_eq!(kind(GCC, "crypto/aes/aes_core.c", "/build/openssl-3.0.15"), UnitKind::Library);
    assert_eq!(kind(GCC, "/src/openssl/ssl/s3_lib.c", "/src/build"), UnitKind::Library);
    assert_eq!(kind(GCC, "src/string/memcpy.c", "/build/musl-1.2.3"), UnitKind::Library);
    assert_eq!(
        kind(
            "GNU C11 12.2.0 -g -O2 -std=gnu11 -fgnu89-inline -fmerge-all-constants -frounding-math",
            "pthread_create.c",
            "./nptl"
        ),
        UnitKind::Library
    );
    assert_eq!(kind(GCC, "pthread_create.c", "./nptl"), UnitKind::Source);
    let rustc = "clang LLVM (rustc version 1.95.0 (59807616e 2026-04-14))";
    let hash = "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860";
    let std = format!("{hash}/library/std/src/lib.rs/@/std.e28293b1aa0f68bd-cgu.0");
    assert_eq!(kind(rustc, &std, hash), UnitKind::Library);
    assert_eq!(kind(rustc, "library/core/src/lib.rs/@/core.abc-cgu.0", hash), UnitKind::Library);
    assert_eq!(
        kind(rustc, "/rust/deps/memchr-2.7.6/src/lib.rs/@/m-cgu.0", "/rust/deps/memchr-2.7.6"),
        UnitKind::Library
    );
    assert_eq!(kind(rustc, "library/std/src/lib.rs", "/usr/src/rustc-1.63.0"), UnitKind::Library);
    assert_eq!(
        kind(rustc, "src/main.rs/@/h.fbdfbb88bc56c414-cgu.0", "/home/me/rustc/library"),
        UnitKind::Source
    );
}

#[test]
fn assembly_and_link_time_units() {
    assert_eq!(kind("GNU AS 2.40", "crypto/aes-x86_64.s", "/home/me"), UnitKind::Assembly);
    assert_eq!(kind("NASM 2.16.01", "n.asm", "/w/"), UnitKind::Assembly);
    assert_eq!(kind("yasm 1.3.0", "n.asm", "/w/"), UnitKind::Assembly);
    assert_eq!(kind("Debian clang version 14.0.6", "src/f.S", "/w"), UnitKind::Assembly);
    // `clang -x c src/f.S`
    let of =
        |language| unit_kind(&parse(b"Debian clang version 14.0.6"), "src/f.S", Some("/w"), Some(language));
    assert_eq!(of(gimli::DW_LANG_Mips_Assembler), UnitKind::Assembly);
    assert_eq!(of(gimli::DW_LANG_C99), UnitKind::Source);
    assert_eq!(kind("Debian clang version 14.0.6", "src/f.c", "/w"), UnitKind::Source);
    assert_eq!(kind("GNU GIMPLE 12.2.0 -g -O2 -fltrans", "<artificial>", "/w"), UnitKind::LtoPartition);
}

#[test]
fn a_library_knows_its_own_file() {
    let library = library_of(&parse(GCC.as_bytes()), "ssl/s3_lib.c", Some("/build/openssl-3.0.15")).unwrap();
    assert_eq!(library.name, "openssl");
    assert!(library.is_named("libcrypto.so.3") && library.is_named("/usr/lib/libssl.so.1.1"));
    assert!(!library.is_named("libcryptopp.so.8") && !library.is_named("nginx"));
    assert!(GLIBC.is_named("libc-2.31.so"));
}

#[test]
fn a_letter_lost_of_a_name_makes_no_other_kind() {
    // Either the producer or the name tells what the link-time optimizer made, and its own -O is never the level.
    assert_eq!(kind("GNU GIMPLE 12.2.0 -O3 -fltrans", "<artifisial>", "/w"), UnitKind::LtoPartition);
    assert_eq!(kind("GNU GKMPLE 12.2.0 -O3 -fltrans", "<artificial>", "/w"), UnitKind::LtoPartition);
    assert_eq!(kind("\u{fffd}NU GIMPLE 12.2.0 -O3 -fltrans", "<artificial>", "/w"), UnitKind::LtoPartition);
    // C code is no assembly, whatever its file is called.
    assert_eq!(kind("GNU C17 12.2.0 -g -O0", "l1.s", "/w"), UnitKind::Source);
}
