//! Tests of what is the same for all rules.

use super::testing::*;
use super::*;
use crate::compiler::Level;
use crate::finding::FindingStatus;
use crate::policy::Setting;

/// The headings every rule's documentation has, in this order.
const HEADINGS: [&str; 6] =
    ["What it checks", "Why it matters", "How to fix", "Policy keys", "Evidence", "Limits"];

#[test]
fn every_rule_is_documented_alike() {
    for rule in TABLE {
        let doc = rule.doc();
        let headings: Vec<&str> = doc.lines().filter_map(|line| line.strip_prefix("# ")).collect();
        assert_eq!(headings, HEADINGS, "{}", rule.id);
        let (example, rest) =
            doc.split_once("```text\n").map(|(_, rest)| rest.split_once("```").unwrap()).unwrap();
        assert!(example.contains(&format!("[{}]", rule.id)), "{}: the example is of another rule", rule.id);
        assert!(!rest.contains("```"), "{}: one example", rule.id);
        let severity = example.lines().next().unwrap().split('[').next().unwrap();
        assert_eq!(severity, rule.severity.as_str(), "{}: the example shows another severity", rule.id);
        assert!(
            rule.summary().ends_with('.') && rule.summary().len() < 110,
            "{}: {}",
            rule.id,
            rule.summary()
        );
        for key in rule.keys {
            assert!(doc.contains(key.split('.').next_back().unwrap()), "{}: {key} is not explained", rule.id);
        }
    }
}

#[test]
fn ids_are_unique_and_name_their_files() {
    let mut ids: Vec<&str> = TABLE.iter().map(|rule| rule.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), TABLE.len());
    assert_eq!(find("missing-pie").map(|rule| rule.id), Some("missing-pie"));
    assert!(find("missing_pie").is_none());
}

#[test]
fn every_file_of_a_rule_is_in_the_table() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rules");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let id = path.file_stem().unwrap().to_str().unwrap().replace('_', "-");
            assert_eq!(text.contains("\npub const RULE: Rule"), find(&id).is_some(), "{id}");
        }
    }
}

#[test]
fn explain_prints_the_documentation() {
    let text = explain("partial-relro").unwrap();
    assert!(
        text.starts_with("# partial-relro\n\nDefault severity: error\n\nThe tables of the dynamic linker")
    );
    assert!(text.contains("# Limits"));
    assert!(explain("no-such-rule").is_none());
    let table = markdown_table();
    assert_eq!(table.lines().count(), TABLE.len() + 2);
    assert!(
        table.contains(
            "| `missing-pie` | error | `hardening.pie` | A program is linked to a fixed address. |"
        )
    );
}

#[test]
fn a_rule_can_be_turned_off_and_its_severity_changed() {
    let facts = nginx(2, Level::O0);
    let mut wanted = policy();
    wanted.rules.insert("unoptimized-code".into(), at(Setting::Report(Severity::Warning), 90));
    assert_eq!(only(&facts, &wanted, "unoptimized-code").severity, Severity::Warning);
    wanted.rules.insert("unoptimized-code".into(), at(Setting::Ignore, 90));
    assert_silent(&facts, &wanted, "unoptimized-code");
}

#[test]
fn raising_a_rule_does_not_raise_what_is_only_recommended() {
    let mut wanted = policy();
    wanted.optimization.minimum = Some(at(Level::O1, 6));
    wanted.optimization.recommended = Some(at(Level::O2, 7));
    wanted.rules.insert("unoptimized-code".into(), at(Setting::Report(Severity::Error), 90));
    assert_eq!(only(&nginx(2, Level::O1), &wanted, "unoptimized-code").severity, Severity::Warning);
}

#[test]
fn a_waiver_for_units_splits_the_finding() {
    let facts = nginx(4, Level::O0);
    let mut wanted = policy();
    let mut one = waiver("unoptimized-code", 100);
    one.unit = Some(glob("src/core/unit00[01].c", 101));
    wanted.waivers = vec![one];
    let found = of(&facts, &wanted, "unoptimized-code");
    assert_eq!(found.len(), 2);
    let waived = found.iter().find(|one| one.status == FindingStatus::Waived).unwrap();
    let rest = found.iter().find(|one| one.status == FindingStatus::Violation).unwrap();
    assert_eq!(waived.message, "2 of 4 units are -O0 (policy: at least O2)");
    assert_eq!(waived.waiver.as_ref().unwrap().reason, "reason");
    assert_eq!((rest.units_total, rest.units[0].name.as_str()), (2, "src/core/unit002.c"));
    assert_ne!(waived.fingerprint, rest.fingerprint);
    assert_eq!(verdict(Status::Ok, &found, Severity::Error), Verdict::Fail);

    let mut two = waiver("unoptimized-code", 110);
    two.unit = Some(glob("/build/nginx/src/core/*", 111));
    wanted.waivers.push(two);
    let found = of(&facts, &wanted, "unoptimized-code");
    assert!(found.iter().all(|one| one.status == FindingStatus::Waived), "{found:#?}");
    assert_eq!(verdict(Status::Ok, &found, Severity::Note), Verdict::Pass);
}

#[test]
fn all_that_a_waiver_names_must_match() {
    let facts = nginx(1, Level::O0);
    let print = only(&facts, &policy(), "unoptimized-code").fingerprint;
    let status = |change: &dyn Fn(&mut crate::policy::Waiver)| {
        let mut one = waiver("unoptimized-code", 100);
        change(&mut one);
        let mut wanted = policy();
        wanted.waivers = vec![one];
        only(&facts, &wanted, "unoptimized-code").status
    };
    assert_eq!(status(&|_| ()), FindingStatus::Waived);
    assert_eq!(status(&|one| one.target = Some(glob("objs/*", 101))), FindingStatus::Waived);
    assert_eq!(status(&|one| one.target = Some(glob("**/nginx", 101))), FindingStatus::Waived);
    assert_eq!(status(&|one| one.target = Some(glob("nginx", 101))), FindingStatus::Waived);
    assert_eq!(status(&|one| one.target = Some(glob("ng*", 101))), FindingStatus::Violation);
    assert_eq!(status(&|one| one.target = Some(glob("other", 101))), FindingStatus::Violation);
    assert_eq!(status(&|one| one.module = Some(glob("*", 101))), FindingStatus::Violation);
    assert_eq!(status(&|one| one.upstream = Some(glob("*", 101))), FindingStatus::Violation);
    assert_eq!(status(&|one| one.file = Some(glob("*", 101))), FindingStatus::Violation);
    assert_eq!(status(&|one| one.function = Some(glob("*", 101))), FindingStatus::Violation);
    assert_eq!(status(&|one| one.fingerprint = Some(at(print.clone(), 101))), FindingStatus::Waived);
    assert_eq!(status(&|one| one.fingerprint = Some(at("0".into(), 101))), FindingStatus::Violation);
    assert_eq!(status(&|one| one.rule.value = "missing-pie".into()), FindingStatus::Violation);
    let both = |one: &mut crate::policy::Waiver| {
        one.target = Some(glob("**/nginx", 101));
        one.unit = Some(glob("no/such/unit.c", 102));
    };
    assert_eq!(status(&both), FindingStatus::Violation);
}

#[test]
fn a_waiver_for_units_leaves_the_code_no_unit_describes() {
    let mut facts = with_units(vec![unit("a.c", Level::O2), silent_unit("b.c")]);
    facts.optimization.text.bytes += 50_000;
    facts.optimization.text.unknown += 50_000;
    let mut wanted = policy();
    let mut one = waiver("undetermined-optimization", 100);
    one.unit = Some(glob("b.c", 101));
    wanted.waivers = vec![one];
    let found = of(&facts, &wanted, "undetermined-optimization");
    assert_eq!(found.len(), 2);
    let rest = found.iter().find(|one| one.counts()).unwrap();
    assert!(rest.message.starts_with("nothing tells the level of 50,000 bytes of code"), "{}", rest.message);
}

#[test]
fn fingerprints_do_not_depend_on_path_build_id_or_run() {
    let facts = nginx(3, Level::O0);
    let print = |facts: &Facts| only(facts, &policy(), "unoptimized-code").fingerprint;
    let mut other = facts.clone();
    other.path = "/somewhere/else/nginx".into();
    other.elf.as_mut().unwrap().build_id = Some("0000".into());
    for unit in other.units.as_mut().unwrap() {
        unit.name = format!("/home/me/tree/{}", unit.name);
        unit.comp_dir = Some("/home/me/tree".into());
    }
    assert_eq!(print(&facts), print(&other));
    other.elf.as_mut().unwrap().soname = Some("libx.so.1".into());
    assert_ne!(print(&facts), print(&other));
}

#[test]
fn a_baseline_accepts_the_same_and_less_but_not_more_or_worse() {
    let findings = |units: Vec<crate::facts::Unit>| of(&with_units(units), &policy(), "unoptimized-code");
    let two = || vec![unit("a.c", Level::O1), unit("b.c", Level::O1), unit("c.c", Level::O2)];
    let old = findings(two());
    assert!(!is_new(&findings(two())[0], &old));
    let mut fewer = two();
    fewer[0] = unit("a.c", Level::O2);
    assert!(!is_new(&findings(fewer)[0], &old));
    let mut more = two();
    more[2] = unit("c.c", Level::O1);
    assert!(is_new(&findings(more)[0], &old));
    let mut worse = two();
    worse[0] = unit("a.c", Level::O0);
    assert!(is_new(&findings(worse)[0], &old));
    let mut swapped = two();
    swapped[0] = unit("a.c", Level::O2);
    swapped[2] = unit("c.c", Level::O1);
    assert!(is_new(&findings(swapped)[0], &old));
}

#[test]
fn a_baseline_does_not_accept_more_functions_nor_other_facts_of_one_rule() {
    use crate::evidence::{Held, Source, Strength};
    let functions = |count: u64| {
        let mut found = of(&nginx(1, Level::O1), &policy(), "unoptimized-code");
        found[0].units_total = 0;
        found[0].units.clear();
        found[0].ranges =
            vec![crate::finding::RangeRef { start: 16, end: 16 + count * 64, functions: count, name: None }];
        found
    };
    assert!(is_new(&functions(110)[0], &functions(9)));
    assert!(!is_new(&functions(9)[0], &functions(9)) && !is_new(&functions(3)[0], &functions(9)));

    let relro = |value: &str| {
        let mut facts = nginx(1, Level::O2);
        facts.hardening.relro = Held::new(value.into(), Strength::Structural, Source::Elf);
        of(&facts, &hardened("relro", "full"), "partial-relro")
    };
    assert!(is_new(&relro("none")[0], &relro("partial")) && !is_new(&relro("none")[0], &relro("none")));

    let mut forbidding = policy();
    forbidding.instrumentation_forbid = vec![at("sanitizers".into(), 25)];
    let sanitizers = |names: &[&str]| {
        let mut facts = nginx(1, Level::O2);
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        facts.instrumentation.sanitizers = Held::new(names, Strength::Structural, Source::Imports);
        of(&facts, &forbidding, "instrumented-build")
    };
    let one = sanitizers(&["undefined"]);
    assert!(is_new(&sanitizers(&["address", "undefined"])[0], &one) && !is_new(&one[0], &one));

    let mut forbidding = policy();
    forbidding.flags.forbid = vec![glob("-fno-*", 30)];
    let flags = |flags: &[&str]| {
        let mut unit = unit("a.c", Level::O2);
        unit.flags = std::sync::Arc::new(flags.iter().map(|flag| (*flag).to_owned()).collect());
        of(&with_units(vec![unit]), &forbidding, "forbidden-flag")
    };
    let one = flags(&["-O2", "-fno-inline"]);
    let two = flags(&["-O2", "-fno-inline", "-fno-common"]);
    assert!(is_new(&two[0], &one) && !is_new(&one[0], &one));
    assert_eq!(two[0].known.len(), 2, "{:?}", two[0].known);
}

#[test]
fn what_is_proven_is_new_where_nothing_told_before() {
    let fortify = |value: &str| {
        let mut facts = nginx(1, Level::O2);
        let (strength, source) = (crate::evidence::Strength::Structural, crate::evidence::Source::Imports);
        facts.hardening.fortify = crate::evidence::Held::new(value.into(), strength, source);
        of(&facts, &hardened("fortify", "true"), "missing-fortify")
    };
    let (open, proven) = (fortify("unknown"), fortify("no"));
    assert_eq!(open[0].fingerprint, proven[0].fingerprint);
    assert!(is_new(&proven[0], &open));
    assert!(!is_new(&open[0], &proven) && !is_new(&proven[0], &proven) && !is_new(&open[0], &open));
}

#[test]
fn an_incomplete_audit_is_never_a_pass() {
    assert_eq!(verdict(Status::Ok, &[], Severity::Error), Verdict::Pass);
    assert_eq!(verdict(Status::Partial, &[], Severity::Error), Verdict::Error);
    assert_eq!(verdict(Status::Failed, &[], Severity::Error), Verdict::Error);
    let mut facts = nginx(1, Level::O0);
    assert_eq!(verdict(Status::Ok, &judged(&facts, &policy()).findings, Severity::Error), Verdict::Fail);
    let mut soft = policy();
    soft.rules.insert("unoptimized-code".into(), at(Setting::Report(Severity::Warning), 90));
    let findings = judged(&facts, &soft).findings;
    assert_eq!(verdict(Status::Ok, &findings, Severity::Error), Verdict::Pass);
    assert_eq!(verdict(Status::Ok, &findings, Severity::Warning), Verdict::Fail);
    facts.status = Status::Failed;
    assert_eq!(judged(&facts, &policy()), Judgement::default());
}

#[test]
fn findings_come_worst_first_and_the_same_way_each_time() {
    let mut facts = nginx(2, Level::O1);
    facts.nginx.as_mut().unwrap().debug = crate::evidence::Held::new(
        true,
        crate::evidence::Strength::Structural,
        crate::evidence::Source::BuildString,
    );
    let mut wanted = policy();
    wanted.nginx.modules.require = vec![glob("http_v2", 40)];
    let first = judged(&facts, &wanted);
    let rules: Vec<&str> = first.findings.iter().map(|finding| finding.rule.as_str()).collect();
    assert_eq!(rules, ["unoptimized-code", "missing-module", "debug-build"]);
    assert_eq!(first, judged(&facts, &wanted));
}
