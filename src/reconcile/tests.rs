use super::*;
use serde_json::json;

fn with_note(noted: Range<u64>) -> Outcome {
    let claim = Claim {
        fact: "optimization.level".to_owned(),
        value: json!(Level::O2),
        strength: Strength::Recorded,
        source: Source::Annobin,
        scope: Scope::Ranges,
        at: None,
        quote: None,
    };
    reconcile(Witnessed {
        account: Account { bytes: 1000, undescribed: vec![0..100, 100..1000], ..Account::default() },
        code: CodeSeen { whole: Whole::Optimized, ..optimized(&[0..100, 100..1000]) },
        recorded_ranges: vec![(noted, Level::O2)],
        claims: vec![claim],
        ..Witnessed::default()
    })
}

fn optimized(functions: &[Range<u64>]) -> CodeSeen {
    let functions = functions.iter().map(|range| (range.clone(), State::Optimized)).collect();
    CodeSeen { functions, ..CodeSeen::default() }
}

#[test]
fn a_note_on_a_little_code_does_not_speak_of_the_rest() {
    let little = with_note(0..100);
    let share = little.optimization.by_level.iter().find(|share| share.level == Level::O2).unwrap();
    assert_eq!(share.text_bytes, 100);
    assert_eq!(little.optimization.level, Level::Optimized);
    // A program built with notes has code of other origin in it, too: there it is the analogy that holds.
    assert_eq!(with_note(100..1000).optimization.level, Level::O2);
}

/// A build text without any -O, as a program leaves it that was not built by its own Makefile.
#[test]
fn a_text_that_declares_o0_does_not_speak_for_code_that_is_optimized() {
    let declared = |level: Level| {
        let claim = Claim {
            fact: "optimization.level".to_owned(),
            value: json!(level),
            strength: Strength::Declared,
            source: Source::BuildString,
            scope: Scope::File,
            at: None,
            quote: Some("haproxy: x".to_owned()),
        };
        reconcile(Witnessed {
            account: Account { bytes: 1000, undescribed: vec![0..100, 100..1000], ..Account::default() },
            code: CodeSeen { whole: Whole::Optimized, ..optimized(&[0..100, 100..1000]) },
            declared: Some(claim),
            ..Witnessed::default()
        })
    };
    let contradicted = declared(Level::O0);
    assert_eq!(contradicted.optimization.level, Level::Optimized);
    assert_eq!(contradicted.optimization.sources, [Source::CodeShape]);
    assert_eq!(contradicted.conflicts.len(), 1);
    assert_eq!(declared(Level::O2).optimization.level, Level::O2);
}

#[test]
fn optimized_code_is_no_source_of_a_recorded_o0() {
    let recorded = |level: Level| {
        let claim = Claim {
            fact: "optimization.level".to_owned(),
            value: json!(level),
            strength: Strength::Recorded,
            source: Source::GccCommandLine,
            scope: Scope::File,
            at: None,
            quote: None,
        };
        reconcile(Witnessed {
            account: Account { bytes: 1000, undescribed: vec![0..100, 100..1000], ..Account::default() },
            code: CodeSeen { whole: Whole::Optimized, ..optimized(&[0..100, 100..1000]) },
            claims: vec![claim],
            ..Witnessed::default()
        })
        .optimization
    };
    assert_eq!(recorded(Level::O2).sources, [Source::GccCommandLine, Source::CodeShape]);
    let contradicted = recorded(Level::O0);
    assert_eq!((contradicted.level, &contradicted.sources[..]), (Level::O0, &[Source::GccCommandLine][..]));
}

/// A unit as the reader of debug information gives it.
fn dwarf_unit(
    name: &str,
    comp_dir: &str,
    producer: Option<&str>,
) -> crate::evidence::dwarf_producer::DwarfUnit {
    crate::evidence::dwarf_producer::DwarfUnit {
        name: name.into(),
        comp_dir: comp_dir.as_bytes().into(),
        producer: producer.map(|words| words.as_bytes().into()),
        language: None,
        version: 5,
        ranges: Vec::new(),
        kind: crate::evidence::dwarf_producer::DwarfUnitKind::Compile,
        dwo_id: None,
        macros: None,
        defined: None,
        at: crate::evidence::Place { section: ".debug_info".into(), offset: 0 },
        section: 1,
    }
}

#[test]
fn a_unit_without_producer_does_not_shift_the_libraries_of_the_others() {
    let gcc = "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g";
    let units = [
        dwarf_unit("a.c", "/w", None),
        dwarf_unit("crypto/evp/e_aes.c", "/build/openssl-3.0.9", Some(gcc)),
        dwarf_unit("main.c", "/w", Some(gcc)),
    ];
    let mut understood = units::understand(&units, None, 1);
    assert_eq!(understood.libraries.len(), understood.units.len());
    assert_eq!(understood.units[1].kind, UnitKind::Library);
    understood.own_library(Some(b"libcrypto.so.3"));
    assert!(understood.units.iter().all(|unit| unit.kind == UnitKind::Source), "{:?}", understood.units);
}

#[test]
fn units_are_understood_alike_by_any_number_of_threads() {
    let gcc = "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2";
    let producers = [Some(gcc), Some("Debian clang version 16.0.6"), Some("GNU AS 2.40"), None];
    let units: Vec<_> =
        (0..2000).map(|n| dwarf_unit(&format!("src/u{n}.c"), "/w", producers[n % 7 % 4])).collect();
    let told = |workers: usize| {
        let understood = units::understand(&units, None, workers);
        let units: Vec<_> =
            understood.units.iter().map(|unit| serde_json::to_string(unit).unwrap()).collect();
        (units, understood.compilers, understood.origins, understood.libraries)
    };
    let one = told(1);
    assert_eq!(one.0.len(), 2000);
    assert!([2, 3, 8].into_iter().all(|workers| told(workers) == one));
}

#[test]
fn damaged_producers_are_told_alike_by_any_number_of_threads_and_each_once() {
    // Many texts that differ behind what is shown of them, then some that differ in it.
    let gcc = "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2 -fasynchronous-unwind-tables";
    let words = |n: usize| match n {
        0..1000 => format!("{gcc}-{n}\u{1}x"),
        _ => format!("GNU C17 12.2.{n}\u{1}x"),
    };
    let units: Vec<_> =
        (0..2000).map(|n| dwarf_unit(&format!("u{n}.c"), "/w", Some(words(n).as_str()))).collect();
    let told = |workers: usize| units::understand(&units, None, workers).problems;
    let one = told(1);
    let mut messages: Vec<_> = one.iter().map(|problem| &problem.message).collect();
    messages.dedup();
    assert_eq!((one.len(), messages.len()), (8, 8), "{one:?}");
    assert!([2, 3, 5, 8].into_iter().all(|workers| told(workers) == one));
}

#[test]
fn a_processor_is_known_only_if_every_unit_tells() {
    let gcc = "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2";
    let of = |second: &str| {
        let mut understood = units::understand(
            &[dwarf_unit("a.c", "/w", Some(gcc)), dwarf_unit("b.c", "/w", Some(second))],
            None,
            1,
        );
        understood.units.iter_mut().for_each(|unit| unit.text_bytes = 100);
        let mut cpu = crate::facts::Cpu::default();
        units::cpu(&understood.units, &mut cpu);
        cpu.baseline.value
    };
    assert_eq!(of(&gcc.replace("x86-64", "x86-64-v3")).as_deref(), Some("x86-64-v3"));
    assert_eq!(of("Debian clang version 16.0.6"), None, "records nothing");
    assert_eq!(of(&gcc.replace("x86-64", "some-later-processor")), None);
}
