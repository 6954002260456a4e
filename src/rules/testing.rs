//! Facts and policies for tests of rules.
#![allow(clippy::missing_panics_doc)]

use crate::compiler::Level;
use crate::evidence::{Claim, Held, Scope, Source, Strength};
use crate::facts::*;
use crate::finding::{Finding, FindingStatus, PolicyPlace, Severity};
use crate::policy::*;
use crate::rules::{Judgement, judge};
use jiff::civil::Date;
use std::collections::BTreeMap;

/// The day of all tests.
pub fn today() -> Date {
    Date::constant(2026, 11, 30)
}

/// A value at a line of `test.toml`. The text makes places of one line that hold different values differ.
pub fn at<T: std::fmt::Debug>(value: T, line: u32) -> At<T> {
    let text = format!("{value:?}");
    At { value, at: PolicyPlace { path: "test.toml".into(), line, column: 1, text } }
}

/// A glob at a line.
pub fn glob(text: &str, line: u32) -> At<Pattern> {
    let matcher = match text.strip_prefix('/').and_then(|text| text.strip_suffix('/')) {
        Some(regex) => Matcher::Regex(regex::Regex::new(regex).unwrap()),
        None => Matcher::Glob(globset::Glob::new(text).unwrap().compile_matcher()),
    };
    At {
        value: Pattern { text: text.into(), matcher },
        at: PolicyPlace { path: "test.toml".into(), line, column: 1, text: text.into() },
    }
}

/// A policy that asks for -O2 and nothing else.
pub fn policy() -> Policy {
    Policy {
        name: "test".into(),
        path: "test.toml".into(),
        sha256: String::new(),
        optimization: OptimizationPolicy {
            minimum: Some(at(Level::O2, 6)),
            recommended: None,
            allow: Vec::new(),
            evidence: at(Ground::Corroborated, 8),
            undetermined: at(Setting::Report(Severity::Error), 9),
            optimized_unproven: at(Setting::Report(Severity::Warning), 10),
            too_small: at(Setting::Report(Severity::Warning), 11),
            exempt: Vec::new(),
            libraries: None,
        },
        flags: RequireForbid::default(),
        compilers: Vec::new(),
        cpu_baseline: None,
        hardening: BTreeMap::new(),
        instrumentation_forbid: Vec::new(),
        nginx: NginxPolicy::default(),
        builds: Vec::new(),
        rules: BTreeMap::new(),
        waivers: Vec::new(),
    }
}

/// A waiver for a rule, without any condition.
pub fn waiver(rule: &str, line: u32) -> Waiver {
    Waiver {
        rule: at(rule.into(), line),
        unit: None,
        function: None,
        module: None,
        upstream: None,
        file: None,
        target: None,
        fingerprint: None,
        reason: at("reason".into(), line),
        owner: None,
        expires: None,
        at: PolicyPlace { path: "test.toml".into(), line, column: 1, text: "[[waiver]]".into() },
    }
}

/// A source unit recorded by GCC at a level with 1000 bytes of text.
pub fn unit(name: &str, level: Level) -> Unit {
    Unit {
        comp_dir: Some("/build/nginx".into()),
        language: Some("C17".into()),
        compiler: Some("gcc 12.2.0".into()),
        level,
        strength: Strength::Recorded,
        sources: vec![Source::DwarfProducer],
        text_bytes: 1000,
        flags: vec!["-march=x86-64".into(), "-g".into(), level.flag()].into(),
        flags_recorded: true,
        ..Unit::unknown(name.into())
    }
}

/// A unit about whose level nothing tells.
pub fn silent_unit(name: &str) -> Unit {
    Unit {
        comp_dir: Some("/build/nginx".into()),
        language: Some("C17".into()),
        text_bytes: 1000,
        compiler: Some("clang 14.0.6".into()),
        note: Some("clang recorded no options".into()),
        ..Unit::unknown(name.into())
    }
}

/// A compiler that is named somewhere and made no unit.
pub fn seen(family: &str) -> CompilerSeen {
    CompilerSeen { family: family.into(), version: None, language: None, units: 0, raw: family.into() }
}

/// An nginx built by gcc with `units` units of a level.
pub fn nginx(units: usize, level: Level) -> Facts {
    let list: Vec<Unit> = (0..units).map(|n| unit(&format!("src/core/unit{n:03}.c"), level)).collect();
    with_units(list)
}

/// An nginx made of these units; the account of the text follows from them.
pub fn with_units(units: Vec<Unit>) -> Facts {
    let mut text = TextAccount::default();
    for unit in &units {
        text.bytes += unit.text_bytes;
        match unit.strength {
            Strength::Recorded => text.recorded += unit.text_bytes,
            Strength::Structural => text.structural += unit.text_bytes,
            Strength::Declared => text.declared += unit.text_bytes,
            Strength::Inferred => text.inferred += unit.text_bytes,
            Strength::None => text.unknown += unit.text_bytes,
        }
    }
    let known: Vec<&Unit> = units.iter().filter(|unit| unit.level != Level::Unknown).collect();
    Facts {
        path: "objs/nginx".into(),
        path_bytes: None,
        origin: Origin::File,
        member: None,
        process: None,
        library: None,
        status: Status::Ok,
        problems: Vec::new(),
        elf: Some(Elf {
            class: 64,
            endian: "little".into(),
            machine: "x86-64".into(),
            kind: Kind::Pie,
            is_static: false,
            stripped: false,
            sections: true,
            build_id: Some("7f96c30d".into()),
            interpreter: Some("/lib64/ld-linux-x86-64.so.2".into()),
            needed: vec!["libc.so.6".into()],
            soname: None,
            packed: false,
        }),
        product: Some(Product {
            name: "nginx".into(),
            version: Some("1.22.1".into()),
            base: None,
            build_text: None,
        }),
        debug_info: DebugInfo { present: true, source: DebugSource::Embedded, ..DebugInfo::default() },
        optimization: Optimization {
            level: known.iter().map(|unit| unit.level).min().unwrap_or(Level::Unknown),
            bound: Bound::Exact,
            complete: text.unknown == 0,
            strength: known.iter().map(|unit| unit.strength).min().unwrap_or_default(),
            text,
            ..Optimization::default()
        },
        conflicts: Vec::new(),
        compilers: vec![CompilerSeen {
            family: "gcc".into(),
            version: Some("12.2.0".into()),
            language: Some("C17".into()),
            units: units.len() as u64,
            raw: "GNU C17 12.2.0".into(),
        }],
        lto: Held::new("none".into(), Strength::Recorded, Source::DwarfProducer),
        pgo: Held::unknown(),
        unit_count: units.len() as u64,
        units: Some(units),
        functions: Functions { count: 1000, judged: 900, ..Functions::default() },
        flags: None,
        hardening: Hardening::default(),
        instrumentation: Instrumentation::default(),
        cpu: Cpu::default(),
        nginx: Some(Nginx {
            configure_arguments: Some(Vec::new()),
            compiler_line: Some("gcc 12.2.0".into()),
            modules: Some(vec![module("ngx_core_module"), module("ngx_http_gzip_static_module")]),
            ..Nginx::default()
        }),
        build_strings: Vec::new(),
    }
}

/// A stripped nginx without words: `judged` functions judged, text of 100,000 bytes all inferred.
pub fn stripped(level: Level) -> Facts {
    let mut facts = with_units(Vec::new());
    facts.debug_info = DebugInfo::default();
    facts.optimization.text = TextAccount { bytes: 100_000, inferred: 100_000, ..TextAccount::default() };
    facts.optimization.level = level;
    facts.optimization.strength = Strength::Inferred;
    facts.optimization.sources = vec![Source::CodeShape];
    facts.optimization.complete = true;
    facts
}

/// A claim about the level.
pub fn claim(value: &str, strength: Strength, source: Source, quote: &str) -> Claim {
    Claim {
        fact: "optimization.level".into(),
        value: value.into(),
        strength,
        source,
        scope: Scope::File,
        at: None,
        quote: Some(quote.into()),
    }
}

/// A static module of the product's own.
pub fn module(name: &str) -> Module {
    Module {
        name: name.into(),
        linkage: Linkage::Static,
        origin: ModuleOrigin::Builtin,
        sources: vec![Source::ModuleTable],
    }
}

/// A configure argument.
pub fn argument(name: &str, value: Option<&str>) -> ConfigureArgument {
    ConfigureArgument { name: name.into(), value: value.map(Into::into) }
}

/// A finding about nothing in particular.
pub fn finding(rule: &str, severity: Severity, status: FindingStatus) -> Finding {
    Finding {
        rule: rule.to_owned(),
        severity,
        status,
        message: "something is wrong".to_owned(),
        remedy: None,
        strength: Strength::None,
        sources: Vec::new(),
        units: Vec::new(),
        units_total: 0,
        ranges: Vec::new(),
        policy: None,
        location: None,
        waiver: None,
        fingerprint: String::new(),
        known: Vec::new(),
        cost: None,
    }
}

/// Judges on the day of all tests.
pub fn judged(facts: &Facts, policy: &Policy) -> Judgement {
    judge(facts, policy, today())
}

/// The findings of one rule.
pub fn of(facts: &Facts, policy: &Policy, rule: &str) -> Vec<Finding> {
    judged(facts, policy).findings.into_iter().filter(|finding| finding.rule == rule).collect()
}

/// The only finding of one rule.
pub fn only(facts: &Facts, policy: &Policy, rule: &str) -> Finding {
    let mut found = of(facts, policy, rule);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

/// Asserts that a rule was checked and passed, with no finding at all.
pub fn assert_passed(facts: &Facts, policy: &Policy, rule: &'static str) {
    let judgement = judged(facts, policy);
    let found: Vec<&Finding> = judgement.findings.iter().filter(|finding| finding.rule == rule).collect();
    assert!(found.is_empty(), "{found:#?}");
    assert!(judgement.passed.contains(&rule), "{rule} was not checked: {:?}", judgement.not_checked);
}

/// Asserts that a rule was not asked for.
pub fn assert_silent(facts: &Facts, policy: &Policy, rule: &'static str) {
    let judgement = judged(facts, policy);
    assert!(!judgement.findings.iter().any(|finding| finding.rule == rule));
    assert!(!judgement.passed.contains(&rule));
    assert!(!judgement.not_checked.iter().any(|(id, _)| *id == rule));
}

/// A policy with one key under `[hardening]`.
pub fn hardened(key: &str, value: &str) -> Policy {
    let mut wanted = policy();
    wanted.hardening.insert(key.into(), at(value.into(), 90));
    wanted
}

/// Asserts that a rule was asked for and had nothing to be checked on.
pub fn assert_not_checked(facts: &Facts, policy: &Policy, rule: &str) {
    let judgement = judged(facts, policy);
    assert!(judgement.not_checked.iter().any(|(id, _)| *id == rule), "{judgement:#?}");
    assert!(!judgement.findings.iter().any(|finding| finding.rule == rule && finding.counts()));
}

/// The cases every yes-or-no rule of hardening has: unknown, bad, good, not linked, switched on and off by `[rules]`.
pub fn hardening_cases(
    rule: &'static str,
    key: &str,
    value: &str,
    set: impl Fn(&mut Facts, Held<bool>),
    bad: bool,
) {
    use crate::finding::FindingStatus;
    let held = |value| Held::new(value, Strength::Structural, Source::Elf);
    let wanted = hardened(key, value);
    let mut facts = nginx(1, Level::O2);
    assert_eq!(only(&facts, &wanted, rule).status, FindingStatus::Undetermined);
    set(&mut facts, held(bad));
    let found = only(&facts, &wanted, rule);
    assert_eq!((found.status, found.severity), (FindingStatus::Violation, Severity::Error));
    assert_silent(&facts, &policy(), rule);
    let mut by_rule = policy();
    by_rule.rules.insert(rule.into(), at(Setting::Report(Severity::Warning), 91));
    let found = only(&facts, &by_rule, rule);
    assert_eq!((found.severity, found.policy.unwrap().line), (Severity::Warning, 91));
    set(&mut facts, held(!bad));
    assert_passed(&facts, &wanted, rule);
    facts.elf.as_mut().unwrap().kind = Kind::Relocatable;
    assert_not_checked(&facts, &wanted, rule);
}
