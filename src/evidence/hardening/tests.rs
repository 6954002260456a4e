use super::*;
use crate::evidence::comment;
use crate::evidence::testing::open;
use crate::image::{linkage, notes};

fn hardening(name: &str) -> Hardening {
    let image = open(name);
    let linkage = linkage::read(&image);
    read(&image, &linkage, &Symbols::new(), &notes::read(&image), &comment::read(&image))
}

#[test]
fn a_checked_function_is_not_the_stack_protector() {
    for name in ["__printf_chk", "__memset_chk", "__open_2", "__fprintf_chkieee128", "__longjmp_chk"] {
        assert!(is_fortified(name.as_bytes()), "{name}");
    }
    for name in
        ["__stack_chk_fail", "__stack_chk_fail_local", "__stack_chk_guard", "my_chk", "__mine_chk", "_chk"]
    {
        assert!(!is_fortified(name.as_bytes()), "{name}");
    }
    // The program protects its stack and calls nothing that could be checked.
    let ssp = hardening("h_ssp");
    assert_eq!(ssp.canary.value, Some(true));
    assert_eq!(ssp.canary.sources, [Source::Imports]);
    assert_ne!(ssp.fortify.value.as_deref(), Some("yes"));
}

#[test]
fn fortify_shows_by_its_functions_only() {
    for (name, expected) in [
        ("h_fort2", "yes"),
        ("h_fort3", "yes"),
        // printf is always replaced in fortified code.
        ("gcc12-O0", "no"),
        ("h_relro", "no"),
        // These prove nothing.
        ("musl-dynamic", "unknown"),
        ("musl-static", "unknown"),
        ("cet", "unknown"),
        ("gcc12-slim.o", "unknown"),
        // Compiled with -D_FORTIFY_SOURCE=2: the headers do not replace printf for clang's C++.
        ("clang14-fortify-cxx", "unknown"),
    ] {
        let fortify = hardening(name).fortify;
        assert_eq!(fortify.value.as_deref(), Some(expected), "{name}");
        assert_eq!(fortify.strength == Strength::None, expected == "unknown", "{name}");
    }
}

#[test]
fn the_start_file_of_profiled_programs_is_no_stack_protector() {
    let canary = hardening("h_pg").canary;
    assert_eq!((canary.value, canary.sources), (Some(false), vec![Source::CodeShape]));
    assert_eq!(hardening("pg-ssp").canary.value, Some(true));
}

#[test]
fn a_library_with_its_own_stack_protector_is_told_by_its_code() {
    let canary = hardening("own-ssp.so").canary;
    assert_eq!((canary.value, canary.sources), (Some(true), vec![Source::CodeShape]));
    assert_eq!(hardening("own-nossp.so").canary.value, Some(false));
}

#[test]
fn a_static_c_library_says_nothing_of_the_program() {
    let hardening = hardening("musl-static");
    assert_eq!(hardening.canary, Held::unknown());
    assert_eq!(hardening.pie.value, Some(false));
}

#[test]
fn only_set_properties_prove_anything() {
    let cet = hardening("cet");
    assert_eq!((cet.ibt.value, cet.shstk.value, cet.bti.value), (Some(true), Some(true), None));
    assert_eq!(cet.ibt.sources, [Source::GnuProperty]);
    let arm = hardening("a64-bti.so");
    assert_eq!((arm.bti.value, arm.pac.value, arm.ibt.value), (Some(true), Some(true), None));
    assert_eq!(hardening("gcc12-O0").ibt, Held::unknown(), "start files lack the property");
}

#[test]
fn what_the_linker_did() {
    assert_eq!(hardening("h_execstack").nx_stack.value, Some(false));
    assert_eq!(hardening("h_relro").relro.value.as_deref(), Some("full"));
    assert_eq!(hardening("h_norelro").relro.value.as_deref(), Some("none"));
    assert_eq!(hardening("h_nopie").pie.value, Some(false));
    assert_eq!(hardening("cet").pie, Held::unknown(), "a library is not meant to be one");
    assert_eq!(hardening("textrel-i386.so").textrel.value, Some(true));
    let none = hardening("h_relro").runpath;
    assert_eq!((none.value, none.strength), (None, Strength::Structural), "known not to be there");
    let runpath = hardening("runpath.so");
    assert_eq!(runpath.runpath.value.as_deref(), Some("$ORIGIN/lib:/opt/lib"));
    assert_eq!(hardening("rpath.so").rpath.value.as_deref(), Some("/tmp/lib"));
}

#[test]
fn separate_debug_files_and_damage_claim_nothing() {
    let debug = hardening("gcc12-stripped.debug");
    assert_eq!((debug.canary, debug.relro, debug.nx_stack), Default::default());
    let cut = hardening("v_trunc");
    assert_eq!((cut.canary.value, cut.relro.value, cut.textrel.value), (None, None, None));
}
