//! Tests of where a level comes from.

use super::*;
use crate::evidence::Source;
use crate::facts::Facts;
use crate::rules::testing::{argument, claim, nginx, policy, today, unit, with_units};

#[test]
fn what_was_handed_to_the_inner_compiler_is_shown() {
    let of = |inner: &str| Unit {
        flags: vec!["-g".to_owned(), "-O2".to_owned(), format!("-Xclang {inner}"), "-Xclang -fx".to_owned()]
            .into(),
        ..unit("a.c", Level::O0)
    };
    for inner in ["-O0", "-disable-llvm-passes"] {
        let want = format!(
            "recorded: the compiler wrote \"-g -O2 -Xclang {inner}\"; what -Xclang hands on comes last"
        );
        assert_eq!(recorded_line(&of(inner)), want);
    }
}

fn said(facts: &Facts, level: Level) -> String {
    let policy = policy();
    let context = Context::new(facts, &policy, today());
    let units: Vec<UnitHit<'_>> = facts.units.as_deref().unwrap().iter().map(UnitHit::from).collect();
    remedy(&context, &units, level, Level::O2)
}

fn with_flags(flags: &[&str], level: Level, cc_opt: Option<&str>) -> Facts {
    let mut one = unit("src/core/nginx.c", level);
    one.flags = std::sync::Arc::new(flags.iter().map(|flag| (*flag).to_owned()).collect());
    let mut facts = with_units(vec![one]);
    let arguments: Vec<ConfigureArgument> =
        cc_opt.map(|value| argument("--with-cc-opt", Some(value))).into_iter().collect();
    facts.nginx.as_mut().unwrap().configure_arguments = Some(arguments);
    facts
}

#[test]
fn the_remedy_names_the_argument_that_holds_the_level() {
    let facts = with_flags(&["-g", "-O", "-O2", "-O0"], Level::O0, Some("-O2 -O0"));
    assert_eq!(said(&facts, Level::O0), "drop -O0 from --with-cc-opt; make clean; rebuild");
    let facts = with_flags(&["-g", "-O", "-O0"], Level::O0, Some("-g -O0"));
    assert!(said(&facts, Level::O0).starts_with("write -O2 for -O0 in --with-cc-opt"));
    let facts = with_flags(&["-g"], Level::O0, None);
    assert!(said(&facts, Level::O0).starts_with("CFLAGS was set without a -O"));
    let facts = with_flags(&["-O", "-g"], Level::O1, None);
    assert!(said(&facts, Level::O1).starts_with("-O is nginx's own default"));
    let facts = with_flags(&["-g", "-O0"], Level::O0, None);
    assert!(said(&facts, Level::O0).starts_with("-O0 is in no configure argument"));
    let facts = with_flags(&["-O", "-O2", "-O0"], Level::O0, Some("-O2"));
    assert!(said(&facts, Level::O0).starts_with("--with-cc-opt says -O2, so something behind it"));
    let facts = with_flags(&["-g"], Level::O0, Some("-O2"));
    assert!(said(&facts, Level::O0).contains("by a Makefile of their own"));
}

#[test]
fn of_an_argument_given_twice_the_last_is_quoted() {
    let list = [
        argument("--with-cc-opt", Some("-O0")),
        argument("--with-pcre-opt", Some("-O3 -g")),
        argument("--with-cc-opt", Some("-Wno-ignored-qualifiers")),
    ];
    assert_eq!(optimizing_arguments(&list), ["--with-pcre-opt='-O3 -g'"]);
    assert_eq!(optimizing_arguments(&list[..1]), ["--with-cc-opt=-O0"]);
}

#[test]
fn openresty_and_bundled_libraries_have_their_own_terms() {
    let mut facts = with_flags(&["-g", "-O", "-O2", "-O0"], Level::O0, Some("-O2 -O0"));
    facts.product.as_mut().unwrap().name = "openresty".into();
    assert!(said(&facts, Level::O0).contains("OpenResty's wrapper"));

    let mut facts = with_flags(&["-g"], Level::O0, Some("-O2"));
    facts.units.as_mut().unwrap()[0].comp_dir = Some("/src/zlib-1.2.13".into());
    facts
        .nginx
        .as_mut()
        .unwrap()
        .configure_arguments
        .as_mut()
        .unwrap()
        .push(argument("--with-zlib-opt", Some("-g")));
    assert!(said(&facts, Level::O0).contains("write --with-zlib-opt='-g -O2'"));
    // Without debug information: the code of zlib is a range of addresses in an optimized program.
    facts.units = Some(Vec::new());
    let arguments = facts.nginx.as_mut().unwrap().configure_arguments.as_mut().unwrap();
    arguments.push(argument("--with-zlib", Some("../zlib")));
    assert!(said(&facts, Level::O0).contains("write --with-zlib-opt='-g -O2'"));
    facts.nginx.as_mut().unwrap().configure_arguments.as_mut().unwrap().pop();
    assert!(!said(&facts, Level::O0).contains("zlib"));
}

#[test]
fn a_program_that_is_no_nginx_gets_general_advice() {
    let mut facts = with_flags(&["-march=x86-64-v2", "-g"], Level::O0, None);
    facts.nginx = None;
    assert!(said(&facts, Level::O0).starts_with("no -O was given"));
    facts.units.as_mut().unwrap()[0].compiler = Some("rustc 1.95.0".into());
    assert!(said(&facts, Level::O0).contains("cargo build --release"));
}

#[test]
fn what_is_known_is_quoted_with_what_was_overridden() {
    let mut facts = with_flags(&["-march=x86-64", "-g", "-O", "-O2", "-O0"], Level::O0, Some("-O2 -O0"));
    facts.optimization.claims = vec![
        claim("O0", Strength::Declared, Source::ConfigureArguments, "--with-cc-opt='-O2 -O0'"),
        claim("O0", Strength::Inferred, Source::StringMerging, "57 copies of the module signature"),
        claim("optimized", Strength::Inferred, Source::CodeShape, "900 functions"),
    ];
    let policy = policy();
    let context = Context::new(&facts, &policy, today());
    let units: Vec<UnitHit<'_>> = facts.units.as_deref().unwrap().iter().map(UnitHit::from).collect();
    assert_eq!(
        known(&context, &units, Level::O0),
        [
            "recorded: the compiler wrote \"-g -O -O2 -O0\"; the last -O wins",
            "declared: --with-cc-opt='-O2 -O0'",
            "agrees:  57 copies of the module signature",
            "differs: 900 functions",
        ]
    );
    assert_eq!(
        known(&context, &[], Level::O0)[..2],
        ["inferred: 57 copies of the module signature", "declared: --with-cc-opt='-O2 -O0'",]
    );
    assert_eq!(cost(&units, Level::O1), Some("no tail calls, so deeper stacks"));
    assert_eq!(cost(&units, Level::O2), None);
    assert!(said(&nginx(1, Level::O1), Level::O1).contains("-O1 is in no configure argument"));
}
