//! Tests of `undetermined-optimization`.

use super::*;
use crate::facts::{Bound, LevelShare};
use crate::finding::FindingStatus;
use crate::policy::Policy;
use crate::rules::testing::*;

const ID: &str = "undetermined-optimization";

fn ground(ground: Ground) -> Policy {
    let mut wanted = policy();
    wanted.optimization.evidence = at(ground, 8);
    wanted
}

#[test]
fn recorded_units_pass_on_every_ground() {
    for each in [Ground::Recorded, Ground::Corroborated, Ground::Declared] {
        assert_passed(&nginx(3, Level::O2), &ground(each), ID);
    }
}

#[test]
fn units_of_unknown_level_are_one_error_with_reasons() {
    let facts = with_units(vec![
        unit("src/a.c", Level::O2),
        silent_unit("src/b.c"),
        silent_unit("src/c.c"),
        unit("src/d.c", Level::O2),
    ]);
    let found = only(&facts, &policy(), ID);
    assert_eq!(found.message, "nothing tells the level of 2 of 4 units, 50.0 % of the text");
    assert_eq!((found.severity, found.status), (Severity::Error, FindingStatus::Undetermined));
    assert_eq!(found.known, ["src/b.c and 1 more: clang recorded no options"]);
    assert_eq!(found.policy.unwrap().line, 9);
    let mut easy = policy();
    easy.optimization.undetermined = at(Setting::Ignore, 9);
    assert_passed(&facts, &easy, ID);
    easy = policy();
    easy.optimization.exempt = vec![glob("src/[bc].c", 12)];
    assert_passed(&facts, &easy, ID);
}

#[test]
fn text_that_no_unit_describes_is_reported_with_its_share() {
    let mut facts = nginx(20, Level::O2);
    facts.optimization.text.bytes += 20_000;
    facts.optimization.text.unknown = 20_000;
    let found = only(&facts, &policy(), ID);
    assert_eq!(found.message, "nothing tells the level of 20,000 bytes of code, 50.0 % of the text");
    assert_eq!(found.severity, Severity::Error);

    let mut facts = nginx(200, Level::O2);
    facts.optimization.text.bytes += 600;
    facts.optimization.text.unknown = 600;
    assert_eq!(only(&facts, &policy(), ID).severity, Severity::Note, "a remnant");

    let mut facts = nginx(2, Level::O2);
    facts.optimization.text.bytes += 6000;
    facts.optimization.text.unknown = 6000;
    facts.elf.as_mut().unwrap().kind = Kind::SeparateDebug;
    assert_eq!(only(&facts, &policy(), ID).severity, Severity::Note, "the code lies elsewhere");
}

#[test]
fn small_code_without_words_has_a_severity_of_its_own() {
    let mut facts = stripped(Level::Unknown);
    facts.optimization.strength = Strength::None;
    facts.optimization.text = TextAccount { bytes: 500, unknown: 500, ..TextAccount::default() };
    facts.functions.count = 4;
    facts.functions.judged = 2;
    let found = only(&facts, &policy(), ID);
    assert_eq!((found.severity, found.policy.unwrap().line), (Severity::Warning, 11));

    facts.functions.count = 5000;
    facts.functions.judged = 0;
    facts.optimization.text = TextAccount { bytes: 500_000, unknown: 500_000, ..TextAccount::default() };
    assert_eq!(only(&facts, &policy(), ID).severity, Severity::Error, "not read is not small");
}

#[test]
fn optimized_is_not_proven_above_o1_unless_a_declaration_agrees() {
    let facts = stripped(Level::Optimized);
    let found = only(&facts, &policy(), ID);
    assert_eq!(found.message, "the code is optimized, but -O2 is not proven (policy: at least O2)");
    assert_eq!((found.severity, found.policy.unwrap().line), (Severity::Warning, 10));
    let mut low = policy();
    low.optimization.minimum = Some(at(Level::O1, 6));
    assert_passed(&facts, &low, ID);

    let mut agreed = facts.clone();
    agreed.optimization.claims =
        vec![claim("O2", Strength::Declared, Source::ConfigureArguments, "--with-cc-opt=-O2")];
    assert_passed(&agreed, &policy(), ID);

    let mut bound = stripped(Level::O2);
    bound.optimization.bound = Bound::AtLeast;
    assert_passed(&bound, &policy(), ID);
    let mut high = policy();
    high.optimization.minimum = Some(at(Level::O3, 6));
    assert!(only(&bound, &high, ID).message.contains("at least to -O2"));
}

#[test]
fn a_higher_minimum_does_not_loosen_the_ground_it_needs() {
    let recorded = |minimum| {
        let mut policy = ground(Ground::Recorded);
        policy.optimization.minimum = Some(at(minimum, 6));
        policy
    };
    let mut small = stripped(Level::Unknown);
    small.optimization.text = TextAccount { bytes: 500, unknown: 500, ..TextAccount::default() };
    (small.functions.count, small.functions.judged) = (4, 2);
    let mut marked = unit("src/a.c", Level::Optimized);
    marked.strength = Strength::Structural;
    for minimum in [Level::O1, Level::O2, Level::O3] {
        for facts in [stripped(Level::Optimized), small.clone(), with_units(vec![marked.clone()])] {
            let found = only(&facts, &recorded(minimum), ID);
            assert_eq!(found.severity, Severity::Error, "{minimum:?}: {}", found.message);
        }
    }
}

#[test]
fn marked_units_and_code_beside_them_are_not_proven() {
    let mut marked = unit("src/a.c", Level::Optimized);
    marked.strength = Strength::Structural;
    let mut facts = with_units(vec![marked, unit("src/b.c", Level::O2)]);
    facts.optimization.by_level =
        vec![LevelShare { level: Level::Optimized, units: 1, functions: 0, text_bytes: 1500 }];
    let found = only(&facts, &policy(), ID);
    assert_eq!(
        found.message,
        "1 of 2 units and 500 bytes beside them are optimized, but -O2 is not proven (policy: at least O2)"
    );
}

#[test]
fn a_declaration_alone_passes_only_where_the_policy_says_so() {
    let mut facts = stripped(Level::O2);
    facts.optimization.strength = Strength::Declared;
    facts.optimization.sources = vec![Source::ConfigureArguments];
    facts.optimization.text = TextAccount { bytes: 100_000, declared: 100_000, ..TextAccount::default() };
    facts.functions = crate::facts::Functions::default();
    let found = only(&facts, &policy(), ID);
    assert!(found.message.starts_with("-O2 is only declared"), "{}", found.message);
    assert!(found.remedy.unwrap().contains("--debug-file"));
    assert_passed(&facts, &ground(Ground::Declared), ID);

    facts.optimization.text = TextAccount { bytes: 100_000, inferred: 100_000, ..TextAccount::default() };
    facts.functions.count = 900;
    facts.functions.judged = 800;
    assert_passed(&facts, &policy(), ID);
    facts.functions.o0_shaped = 500;
    assert_eq!(of(&facts, &policy(), ID).len(), 1, "the code does not agree");
}

#[test]
fn a_skeleton_and_an_ambiguous_line_are_questions() {
    let mut skeleton = silent_unit("t.c");
    skeleton.kind = UnitKind::Skeleton;
    skeleton.note = None;
    let mut ambiguous = unit("u.c", Level::Unknown);
    ambiguous.note = Some("-O0 may be part of an option's value".into());
    let found = only(&with_units(vec![skeleton, ambiguous]), &policy(), ID);
    assert_eq!(found.units_total, 2);
    assert!(found.known.iter().any(|line| line == "t.c: its .dwo file was not found"), "{:?}", found.known);
    assert_eq!(found.units[0].level, Level::Unknown);
}

#[test]
fn code_found_unoptimized_is_not_also_a_question() {
    let mut silent = silent_unit("src/b.c");
    silent.ranges.push(0x1000..0x2000);
    let mut facts = with_units(vec![unit("src/a.c", Level::O2), silent]);
    facts.functions.runs = vec![crate::facts::FunctionRun {
        start: 0x1000,
        end: 0x2000,
        name: None,
        unit: None,
        module: None,
        level: Level::O0,
        functions: 30,
    }];
    assert_eq!(of(&facts, &policy(), "unoptimized-code").len(), 1);
    assert!(of(&facts, &policy(), ID).is_empty());
}

#[test]
fn libraries_are_asked_about_by_their_own_key() {
    let mut library = silent_unit("deflate.c");
    library.kind = UnitKind::Library;
    let facts = with_units(vec![unit("src/a.c", Level::O2), library]);
    assert_passed(&facts, &policy(), ID);
    let mut wanted = policy();
    wanted.optimization.libraries = Some(crate::policy::LibrariesPolicy {
        minimum: None,
        undetermined: Some(at(Setting::Report(Severity::Warning), 13)),
    });
    assert_eq!(only(&facts, &wanted, ID).message, "nothing tells the level of 1 of 1 library unit");
}

#[test]
fn damage_that_lost_units_leaves_a_question() {
    let mut facts = nginx(3, Level::O2);
    facts.status = crate::facts::Status::Partial;
    facts.optimization.text.bytes += 9000;
    facts.optimization.text.unknown = 9000;
    assert_eq!(only(&facts, &policy(), ID).severity, Severity::Error);
}

#[test]
fn a_link_time_partition_is_spoken_for_by_its_sources_or_by_nobody() {
    let mut partition = silent_unit("<artificial>");
    partition.kind = UnitKind::LtoPartition;
    partition.text_bytes = 90_000;
    let mut source = unit("a.c", Level::O2);
    source.text_bytes = 0;
    std::sync::Arc::make_mut(&mut source.flags).push("-flto".into());
    let plain = unit("b.c", Level::O2);
    assert_passed(&with_units(vec![partition.clone(), source, plain.clone()]), &policy(), ID);
    let found = only(&with_units(vec![partition, plain]), &policy(), ID);
    assert!(found.message.starts_with("nothing tells the level of 90,000 bytes"), "{}", found.message);
}

#[test]
fn an_object_file_without_words_is_a_question() {
    let mut facts = with_units(Vec::new());
    facts.elf.as_mut().unwrap().kind = Kind::Relocatable;
    facts.functions.count = 0;
    facts.functions.judged = 0;
    let found = only(&facts, &policy(), ID);
    assert_eq!((found.severity, found.status), (Severity::Error, FindingStatus::Undetermined));

    let mut skeleton = silent_unit("t.c");
    skeleton.text_bytes = 0;
    let mut facts = with_units(vec![skeleton]);
    facts.elf.as_mut().unwrap().kind = Kind::Relocatable;
    assert_eq!(only(&facts, &policy(), ID).message, "nothing tells the level of 1 of 1 unit");
}
