use super::*;
use crate::facts::Bound;
use proptest::prelude::*;

fn p(text: &str) -> Producer {
    parse(text.as_bytes())
}

/// (producer, family, version, language, standard, raw, level)
type Row = (&'static str, Family, &'static str, &'static str, &'static str, &'static str, Level);

#[test]
fn every_shape() {
    use Family as F;
    use Level as L;
    let rows: &[Row] = &[
        (
            "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2 -fasynchronous-unwind-tables",
            F::Gcc,
            "12.2.0",
            "C",
            "C17",
            "GNU C17 12.2.0",
            L::O2,
        ),
        (
            "GNU C17 9.3.0 -mtune=generic -march=x86-64 -g -O2",
            F::Gcc,
            "9.3.0",
            "C",
            "C17",
            "GNU C17 9.3.0",
            L::O2,
        ),
        ("GNU C17 10.2.1 20210110 -g -O0", F::Gcc, "10.2.1", "C", "C17", "GNU C17 10.2.1 20210110", L::O0),
        ("GNU C23 15.3.0 -D _FORTIFY_SOURCE=3 -g -O2", F::Gcc, "15.3.0", "C", "C23", "GNU C23 15.3.0", L::O2),
        ("GNU C89 12.2.0 -g -O2 -ansi", F::Gcc, "12.2.0", "C", "C89", "GNU C89 12.2.0", L::O2),
        ("GNU C++17 12.2.0 -g -O3", F::Gcc, "12.2.0", "C++", "C++17", "GNU C++17 12.2.0", L::O3),
        ("GNU C++98 12.2.0 -g", F::Gcc, "12.2.0", "C++", "C++98", "GNU C++98 12.2.0", L::O0),
        (
            "GNU C 4.8.5 20150623 (Red Hat 4.8.5-36) -mtune=generic -march=x86-64 -g -O0",
            F::Gcc,
            "4.8.5",
            "C",
            "",
            "GNU C 4.8.5 20150623 (Red Hat 4.8.5-36)",
            L::O0,
        ),
        (
            "GNU C 4.8.4 20140526 (release) [ARM/embedded-4_8-branch revision 211358] -fpreprocessed -mthumb -Os",
            F::Gcc,
            "4.8.4",
            "C",
            "",
            "GNU C 4.8.4 20140526 (release) [ARM/embedded-4_8-branch revision 211358]",
            L::Os,
        ),
        (
            "GNU C89 10.3.1 20210422 (Red Hat 10.3.1-1) -m64 -mtune=generic -O3",
            F::Gcc,
            "10.3.1",
            "C",
            "C89",
            "GNU C89 10.3.1 20210422 (Red Hat 10.3.1-1)",
            L::O3,
        ),
        (
            "GNU Fortran2008 12.2.0 -g -O2 -fintrinsic-modules-path /usr/lib/gcc/x86_64-linux-gnu/12/finclude -fpre-include=/usr/x.h",
            F::Gcc,
            "12.2.0",
            "Fortran",
            "Fortran2008",
            "GNU Fortran2008 12.2.0",
            L::O2,
        ),
        ("GNU Fortran 12.2.0 -g -O2 -std=f95", F::Gcc, "12.2.0", "Fortran", "", "GNU Fortran 12.2.0", L::O2),
        (
            "GNU Ada 12.2.0 -O2 -g -gnatp -mtune=generic -march=x86-64",
            F::Gcc,
            "12.2.0",
            "Ada",
            "",
            "GNU Ada 12.2.0",
            L::O2,
        ),
        ("GNU D 12.2.0 -g -O2", F::Gcc, "12.2.0", "D", "", "GNU D 12.2.0", L::O2),
        ("GNU Go 12.2.0 -g -O2", F::Gcc, "12.2.0", "Go", "", "GNU Go 12.2.0", L::O2),
        (
            "GNU Modula-2 14.2.0 -g -O2 -fm2-pathname=- -fm2-pathnameI. -fplugin=m2rte -c",
            F::Gcc,
            "14.2.0",
            "Modula-2",
            "",
            "GNU Modula-2 14.2.0",
            L::O2,
        ),
        ("GCC COBOL 15.3.0 -mtune=generic -O1", F::Gcc, "15.3.0", "COBOL", "", "GCC COBOL 15.3.0", L::O1),
        ("GNU Algol 68 16.2.0 -O2", F::Gcc, "16.2.0", "Algol 68", "", "GNU Algol 68 16.2.0", L::O2),
        (
            "GNU GIMPLE 12.2.0 -g -g -O2 -O2 -fno-openmp -fPIC -flto-partition=1to1 -fltrans",
            F::Gcc,
            "12.2.0",
            "",
            "",
            "GNU GIMPLE 12.2.0",
            L::Unknown,
        ),
        ("GNU C17 12.2.0", F::Gcc, "12.2.0", "C", "C17", "GNU C17 12.2.0", L::Unknown),
        ("GNU AS 2.40", F::Gas, "2.40", "Assembly", "", "GNU AS 2.40", L::Unknown),
        ("GNU AS 2.47.50", F::Gas, "2.47.50", "Assembly", "", "GNU AS 2.47.50", L::Unknown),
        (
            "Debian clang version 14.0.6",
            F::Clang,
            "14.0.6",
            "",
            "",
            "Debian clang version 14.0.6",
            L::Unknown,
        ),
        (
            "Debian clang version 16.0.6 (15~deb12u1)",
            F::Clang,
            "16.0.6",
            "",
            "",
            "Debian clang version 16.0.6 (15~deb12u1)",
            L::Unknown,
        ),
        ("clang version 9.0.1-16.1 ", F::Clang, "9.0.1", "", "", "clang version 9.0.1-16.1", L::Unknown),
        (
            "clang version 9.0.1-16.1  /usr/lib/llvm-9/bin/clang -g -O2 -grecord-command-line -c t.c -o t.o",
            F::Clang,
            "9.0.1",
            "",
            "",
            "clang version 9.0.1-16.1",
            L::O2,
        ),
        (
            r#"Debian clang version 19.1.7 (3~deb12u1) /usr/lib/llvm-19/bin/clang -g -O3 -O1 -grecord-command-line -D X="a\ b" -I /tmp/x\ y t.c -o o.o"#,
            F::Clang,
            "19.1.7",
            "",
            "",
            "Debian clang version 19.1.7 (3~deb12u1)",
            L::O1,
        ),
        (
            r"clang version 21.1.0 /opt/my\ llvm/bin/clang -grecord-command-line t.c",
            F::Clang,
            "21.1.0",
            "",
            "",
            "clang version 21.1.0",
            L::O0,
        ),
        ("clang version 22.1.8", F::Clang, "22.1.8", "", "", "clang version 22.1.8", L::Unknown),
        ("zig 0.17.1", F::Zig, "0.17.1", "Zig", "", "zig 0.17.1", L::Unknown),
        (
            "clang LLVM (rustc version 1.95.0 (59807616e 2026-04-14))",
            F::Rustc,
            "1.95.0",
            "Rust",
            "",
            "clang LLVM (rustc version 1.95.0 (59807616e 2026-04-14))",
            L::Unknown,
        ),
        (
            "Go cmd/compile go1.24.4; regabi",
            F::Go,
            "1.24.4",
            "Go",
            "",
            "Go cmd/compile go1.24.4",
            L::Optimized,
        ),
        (
            "Go cmd/compile go1.24.4; -N -l regabi",
            F::Go,
            "1.24.4",
            "Go",
            "",
            "Go cmd/compile go1.24.4",
            L::O0,
        ),
        (
            "Go cmd/compile go1.24.4; -l regabi",
            F::Go,
            "1.24.4",
            "Go",
            "",
            "Go cmd/compile go1.24.4",
            L::Optimized,
        ),
        ("Go cmd/compile go1.16.5", F::Go, "1.16.5", "Go", "", "Go cmd/compile go1.16.5", L::Optimized),
        ("Go cmd/compile go1.9.7", F::Go, "1.9.7", "Go", "", "Go cmd/compile go1.9.7", L::Unknown),
        ("NASM 2.16.01", F::Nasm, "2.16.01", "Assembly", "", "NASM 2.16.01", L::Unknown),
        ("yasm 1.3.0", F::Yasm, "1.3.0", "Assembly", "", "yasm 1.3.0", L::Unknown),
        (
            "Apple clang version 17.0.0 (clang-1700.6.4.2)",
            F::Clang,
            "17.0.0",
            "",
            "",
            "Apple clang version 17.0.0 (clang-1700.6.4.2)",
            L::Unknown,
        ),
        (
            "Apple clang version 3.0 (tags/Apple/clang-211.10.1) (based on LLVM 3.0svn)",
            F::Clang,
            "3.0",
            "",
            "",
            "Apple clang version 3.0 (tags/Apple/clang-211.10.1) (based on LLVM 3.0svn)",
            L::Unknown,
        ),
        (
            "AMD clang version 17.0.0 (https://github.com/RadeonOpenCompute/llvm-project roc-5.7.0 23352 d1e13c532a947d0cbfc94759c00dcf152294aa13) /opt/rocm/bin/clang -O2 -O0 -c a.c",
            F::Clang,
            "17.0.0",
            "",
            "",
            "AMD clang version 17.0.0 (https://github.com/RadeonOpenCompute/llvm-project roc-5.7.0 23352 d1e13c532a947d0cbfc94759c00dcf152294aa13)",
            L::O0,
        ),
        (
            "AMD clang version 17.0.6 (AOCC_5.1.0-Build#1994 2025_12_23)",
            F::Clang,
            "17.0.6",
            "",
            "",
            "AMD clang version 17.0.6 (AOCC_5.1.0-Build#1994 2025_12_23)",
            L::Unknown,
        ),
        (
            "AMD clang version 13.0.0 (CLANG: AOCC_3.2.0-Build#128 2021_11_12) (based on LLVM Mirror.Version.13.0.0)",
            F::Clang,
            "13.0.0",
            "",
            "",
            "AMD clang version 13.0.0 (CLANG: AOCC_3.2.0-Build#128 2021_11_12) (based on LLVM Mirror.Version.13.0.0)",
            L::Unknown,
        ),
        (
            "Android (8481493, based on r416183c2) clang version 12.0.9 (https://android.googlesource.com/toolchain/llvm-project c935d99d7cf2016289302412d708641d52d2f7ee)",
            F::Clang,
            "12.0.9",
            "",
            "",
            "Android (8481493, based on r416183c2) clang version 12.0.9 (https://android.googlesource.com/toolchain/llvm-project c935d99d7cf2016289302412d708641d52d2f7ee)",
            L::Unknown,
        ),
        (
            "Component: Arm Compiler for Embedded 6.19 Tool: armclang [5e73cb00]",
            F::Armclang,
            "6.19",
            "",
            "",
            "Component: Arm Compiler for Embedded 6.19 Tool: armclang [5e73cb00]",
            L::Unknown,
        ),
        (
            "Component: ARM Compiler 6.16 Tool: armclang [5d1234]",
            F::Armclang,
            "6.16",
            "",
            "",
            "Component: ARM Compiler 6.16 Tool: armclang [5d1234]",
            L::Unknown,
        ),
        (
            "Swift version 6.0 (swift-6.0-RELEASE)",
            F::Swift,
            "6.0",
            "Swift",
            "",
            "Swift version 6.0 (swift-6.0-RELEASE)",
            L::Unknown,
        ),
        (
            "Swift version 5.7-dev (LLVM 8ff2f5b, Swift 2a1e6d9)",
            F::Swift,
            "5.7",
            "Swift",
            "",
            "Swift version 5.7-dev (LLVM 8ff2f5b, Swift 2a1e6d9)",
            L::Unknown,
        ),
        (
            "Intel(R) C Intel(R) 64 Compiler for applications running on Intel(R) 64, Version 19.0.5.281 Build 20190815",
            F::Icc,
            "19.0.5.281",
            "C",
            "",
            "Intel(R) C Intel(R) 64 Compiler for applications running on Intel(R) 64, Version 19.0.5.281 Build 20190815",
            L::Unknown,
        ),
        (
            "Intel(R) C++ Intel(R) 64 Compiler Classic for applications running on Intel(R) 64, Version 2021.6.0 Build 20220226 -g -O3 -O0",
            F::Icc,
            "2021.6.0",
            "C++",
            "",
            "Intel(R) C++ Intel(R) 64 Compiler Classic for applications running on Intel(R) 64, Version 2021.6.0 Build 20220226",
            L::O0,
        ),
        (
            "Intel(R) oneAPI DPC++/C++ Compiler 2024.0.0 (2024.0.0.20231017)",
            F::Icc,
            "2024.0.0",
            "",
            "",
            "Intel(R) oneAPI DPC++/C++ Compiler 2024.0.0 (2024.0.0.20231017)",
            L::Unknown,
        ),
        ("LDC 1.30.0 (LLVM 14.0.6)", F::Ldc, "1.30.0", "D", "", "LDC 1.30.0 (LLVM 14.0.6)", L::Unknown),
        ("Digital Mars D v2.109.1", F::Dmd, "2.109.1", "D", "", "Digital Mars D v2.109.1", L::Unknown),
        ("tcc 0.9.28rc", F::Tcc, "0.9.28", "C", "", "tcc 0.9.28rc", L::O0),
        (
            "The Glorious Glasgow Haskell Compilation System 9.0.2 -O2",
            F::Unknown,
            "",
            "",
            "",
            "The Glorious Glasgow Haskell Compilation System 9.0.2 -O2",
            L::Unknown,
        ),
        ("", F::Unknown, "", "", "", "", L::Unknown),
    ];
    for (text, family, version, language, standard, raw, level) in rows {
        let got = p(text);
        let shown = (
            got.family,
            got.version.as_deref().unwrap_or(""),
            got.language.as_deref().unwrap_or(""),
            got.standard.as_deref().unwrap_or(""),
            got.raw.as_str(),
            got.level.level,
        );
        assert_eq!(shown, (*family, *version, *language, *standard, *raw, *level), "{text}");
        assert_eq!(got.level.ambiguous, None, "{text}");
        assert!(
            got.level.level != Level::Unknown || got.level.note.is_some(),
            "unknown without a reason: {text}"
        );
    }
}

#[test]
fn options_recorded_or_not_are_different_states() {
    assert_eq!(p("GNU C17 12.2.0").options, Recorded::NotRecorded);
    assert_eq!(p("Debian clang version 14.0.6").options, Recorded::NotRecorded);
    assert!(p("GNU C17 12.2.0 -mtune=generic -march=x86-64").options.is_known());
    assert_eq!(p("GNU C17 12.2.0 -mtune=generic -march=x86-64").level.level, Level::O0);
    assert_eq!(p("Go cmd/compile go1.24.4; regabi").options, Recorded::Known(Vec::new()));
}

#[test]
fn options_in_brackets_are_not_options() {
    let got = p("GNU C17 12.2.0 (vendor -O0 build [x -O1]) -O3");
    assert_eq!((got.level.level, got.options.list().len()), (Level::O3, 1));
    // A bracket that never closes hides what follows: nothing is claimed.
    assert_eq!(p("GNU C17 12.2.0 (vendor -O3").level.level, Level::Unknown);
    assert_eq!(p("clang version 14.0.6 (vendor /usr/bin/clang -O3").level.level, Level::Unknown);
    // Once options have begun, a bracket is part of a value.
    assert_eq!(p("GNU C17 12.2.0 -frandom-seed=( -O3").level.level, Level::O3);
}

#[test]
fn clang_s_recorded_line_is_unescaped() {
    let got = p(
        r#"Debian clang version 19.1.7 (3~deb12u1) /usr/lib/llvm-19/bin/clang -g -O3 -O1 -grecord-command-line -D X="a\ b" -I /tmp/x\ y t.c -o /ex/o"#,
    );
    let options: Vec<&str> = got.options.list().iter().map(|option| option.text.as_str()).collect();
    assert_eq!(
        options,
        ["-g", "-O3", "-O1", "-grecord-command-line", r#"-D X="a b""#, "-I /tmp/x y", "-o /ex/o"]
    );
    assert_eq!(got.level.overridden, ["-O3"]);
    assert_eq!(got.level.winner.as_deref(), Some("-O1"));
}

#[test]
fn bare_o_is_o1_and_old_clang_is_told() {
    assert_eq!(p("GNU C17 12.2.0 -g -O").level.level, Level::O1);
    let new = p("clang version 14.0.6 /usr/bin/clang -O -c a.c -grecord-command-line");
    assert_eq!((new.level.level, new.level.bound, new.level.note), (Level::O1, Bound::Exact, None));
    let old = p("clang version 9.0.1 /usr/bin/clang -O -c a.c -grecord-command-line");
    assert_eq!((old.level.level, old.level.bound), (Level::O1, Bound::AtLeast));
    assert!(old.level.note.is_some_and(|note| note.contains("-O2")));
}

#[test]
fn a_stray_word_in_gcc_s_options_is_told() {
    let got = p("GNU C17 12.2.0 -mtune=generic -march=x86-64 -O2 -frandom-seed=a -O0 b");
    assert_eq!(got.level.level, Level::Unknown);
    assert!(got.level.ambiguous.is_some());
}

#[test]
fn roles() {
    assert_eq!(p("GNU GIMPLE 12.2.0 -O2 -O0").role, Role::LtoPartition);
    assert_eq!(p("GNU AS 2.40").role, Role::Assembler);
    assert_eq!(p("Component: Arm Compiler 6.19 Tool: armasm [5e73cb00]").role, Role::Assembler);
    assert_eq!(p("GNU C17 12.2.0 -O2").role, Role::Source);
}

#[test]
fn names_for_lists() {
    assert_eq!(p("GNU C17 10.2.1 20210110 -O2").name(), "gcc 10.2.1");
    assert_eq!(p("whatever").name(), "unknown");
    assert_eq!(p("GNU C17 10.2.1 20210110 -O2").major(), Some(10));
}

#[test]
fn bytes_that_are_not_text_are_kept_safely() {
    let got = parse(b"GNU C17 12.2.0 -O2 -frandom-seed=\xff\xfe -O3\0\0");
    assert_eq!(got.level.level, Level::O3);
    let unknown = parse(b"\xff\xfe -O2");
    assert_eq!((unknown.family, unknown.level.level), (Family::Unknown, Level::Unknown));
}

#[test]
fn identification_strings() {
    for (ident, family, version) in [
        ("GCC: (Debian 12.2.0-14+deb12u1) 12.2.0", Family::Gcc, Some("12.2.0")),
        ("GCC: (GNU) 4.8.5 20150623 (Red Hat 4.8.5-44)", Family::Gcc, Some("4.8.5")),
        ("GCC: (never closed 4.8.5", Family::Gcc, None),
        ("Debian clang version 14.0.6", Family::Clang, Some("14.0.6")),
        ("rustc version 1.95.0 (59807616e 2026-04-14)", Family::Rustc, Some("1.95.0")),
        ("Linker: Debian LLD 19.1.7", Family::Unknown, None),
        ("", Family::Unknown, None),
    ] {
        assert_eq!(parse_ident(ident.as_bytes()), (family, version.map(str::to_owned)), "{ident}");
    }
}

proptest! {
    #[test]
    fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = (parse(&bytes), parse_ident(&bytes), parse_command_line(&bytes));
    }

    #[test]
    fn never_panics_on_near_misses(
        start in prop_oneof![
            Just("GNU "), Just("GNU C17 "), Just("GCC "), Just("clang version "), Just("x clang version 1"), Just("Go cmd/compile "),
            Just("Intel(R) "), Just("Component: "), Just("Component: Arm"), Just("Swift version "), Just("a(rustc "), Just("tcc ")
        ],
        rest in "[ -\\[\\]()0-9.a-zA-Zé\\\\;=]{0,80}",
    ) {
        let got = p(&format!("{start}{rest}"));
        prop_assert!(got.level.level != Level::Unknown || got.level.note.is_some() || got.level.ambiguous.is_some());
    }

    #[test]
    fn the_last_level_wins_in_any_gcc_producer(levels in proptest::collection::vec("-O[0-3sg]?", 1..8)) {
        let got = p(&format!("GNU C17 12.2.0 -mtune=generic -g {} -fPIC", levels.join(" ")));
        prop_assert_eq!(got.level.winner.as_ref(), levels.last());
        prop_assert_eq!(&got.level.overridden[..], &levels[..levels.len() - 1]);
    }
}

#[test]
fn words_that_no_compiler_writes_are_garbled() {
    for sound in [
        &b"GNU C17 12.2.0 -mtune=generic -O2 -O0\0"[..],
        b"GNU C17 12.2.0 -fprofile-use=/home/j\xfcrgen/x -O2",
        "GNU C17 12.2.0 -frandom-seed=\u{e4} -O2".as_bytes(),
        b"clang version 16.0.6 -DX=a\tb \xff.c",
        b"The Netwide Assembler 2.15.05",
        b"",
    ] {
        assert!(!is_garbled(sound), "{}", String::from_utf8_lossy(sound));
    }
    for damaged in [
        &b"GNU G\x1eMPLE 12.2.0 -O3"[..],
        b"GNU C17 12.2.0 -O3 \xadO0",
        b"GNU C17 12.2.0 -O3 -O0\xff\xff -march=x86-64",
        b"clang version 16.0.6 -O2 -O\x10",
    ] {
        assert!(is_garbled(damaged), "{}", String::from_utf8_lossy(damaged));
    }
}
