use super::*;
use crate::facts::Bound;
use proptest::prelude::*;

mod shapes;

fn p(text: &str) -> Producer {
    parse(text.as_bytes())
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
