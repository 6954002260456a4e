//! Reports as a run would make them, for the renderers' tests: each kind of outcome, very long ones, hostile ones.

#![allow(dead_code)]

use crate::nasty;
use flagaudit::compiler::Level;
use flagaudit::evidence::{Claim, Held, Place, Scope, Source, Strength};
use flagaudit::facts::*;
use flagaudit::finding::{
    Finding, FindingStatus, Location, PolicyPlace, RangeRef, Severity, UnitRef, WaiverRef,
};
use flagaudit::report::{CheckReport, Checked, InspectReport, PolicyRef, RuleDoc, Summary, Tool, Verdict};

pub fn rules() -> Vec<RuleDoc> {
    ["unoptimized-code", "undetermined-optimization", "missing-module", "unused-policy-entry"]
        .into_iter()
        .map(|id| RuleDoc {
            id: id.to_owned(),
            summary: format!("What {id} looks at."),
            help_markdown: format!("What {id} looks at.\n\n# How to fix\n\nDo `this` and [that].\n"),
            severity: Severity::Error,
        })
        .collect()
}

/// A target of which nothing is known yet.
pub fn facts(path: &str) -> Facts {
    Facts {
        path: path.to_owned(),
        path_bytes: None,
        origin: Origin::File,
        member: None,
        process: None,
        library: None,
        status: Status::Ok,
        problems: Vec::new(),
        elf: Some(Elf {
            class: 64,
            endian: "little".to_owned(),
            machine: "x86-64".to_owned(),
            kind: Kind::Pie,
            is_static: false,
            stripped: false,
            sections: true,
            build_id: Some("7f96c30d51a24b3bb2a2c7a6c9b2b3e1c0ffee00".to_owned()),
            interpreter: Some("/lib64/ld-linux-x86-64.so.2".to_owned()),
            needed: vec!["libc.so.6".to_owned()],
            soname: None,
            packed: false,
        }),
        product: Some(Product {
            name: "nginx".to_owned(),
            version: Some("1.22.1".to_owned()),
            base: None,
            build_text: None,
        }),
        debug_info: DebugInfo { present: true, source: DebugSource::Embedded, ..DebugInfo::default() },
        optimization: Optimization::default(),
        conflicts: Vec::new(),
        compilers: vec![CompilerSeen {
            family: "gcc".to_owned(),
            version: Some("12.2.0".to_owned()),
            language: Some("C".to_owned()),
            units: 137,
            raw: "GNU C17 12.2.0".to_owned(),
        }],
        lto: Held::new("none".to_owned(), Strength::Recorded, Source::DwarfProducer),
        pgo: Held::unknown(),
        unit_count: 0,
        units: Some(Vec::new()),
        functions: Functions::default(),
        flags: Some(vec![FlagCount { flag: "-O2".to_owned(), units: 120 }]),
        hardening: Hardening {
            pie: Held::new(true, Strength::Structural, Source::Elf),
            relro: Held::new("partial".to_owned(), Strength::Structural, Source::Elf),
            ..Hardening::default()
        },
        instrumentation: Instrumentation::default(),
        cpu: Cpu::default(),
        nginx: None,
        build_strings: Vec::new(),
    }
}

pub fn unit(name: &str, level: Level, bytes: u64) -> Unit {
    Unit {
        name: name.to_owned(),
        comp_dir: Some("/build/nginx-1.22.1".into()),
        member: None,
        language: Some("C".into()),
        compiler: Some("gcc 12.2.0".into()),
        level,
        strength: if level == Level::Unknown { Strength::None } else { Strength::Recorded },
        sources: vec![Source::DwarfProducer],
        kind: UnitKind::Source,
        text_bytes: bytes,
        overridden: if level == Level::O0 { vec!["-O".to_owned(), "-O2".to_owned()] } else { Vec::new() },
        flags: vec!["-g".to_owned(), level.flag()].into(),
        ranges: Vec::new(),
        note: None,
        flags_recorded: true,
        intermediate: false,
    }
}

/// Gives the target these units and the account that follows from them.
pub fn with_units(mut facts: Facts, units: Vec<Unit>) -> Facts {
    let mut by_level: std::collections::BTreeMap<Level, LevelShare> = std::collections::BTreeMap::new();
    for unit in &units {
        let share = by_level.entry(unit.level).or_insert(LevelShare {
            level: unit.level,
            units: 0,
            functions: 0,
            text_bytes: 0,
        });
        share.units += 1;
        share.functions += 10;
        share.text_bytes += unit.text_bytes;
    }
    let total: u64 = units.iter().map(|unit| unit.text_bytes).sum();
    let unknown = by_level.get(&Level::Unknown).map_or(0, |share| share.text_bytes);
    facts.unit_count = units.len() as u64;
    facts.optimization = Optimization {
        level: by_level.keys().next().copied().unwrap_or_default(),
        complete: unknown == 0,
        strength: Strength::Recorded,
        sources: vec![Source::DwarfProducer],
        reason: format!("the compiler recorded the level of {} units", units.len()),
        by_level: by_level.into_values().collect(),
        text: TextAccount {
            bytes: total + 2048,
            padding: 1024,
            runtime: 1024,
            recorded: total - unknown,
            unknown,
            ..TextAccount::default()
        },
        ..Optimization::default()
    };
    facts.functions.count = facts.unit_count * 10;
    facts.units = Some(units);
    facts
}

/// Unit names as nginx has them, so that pictures look like the real thing.
pub fn nginx_units(count: usize, level: impl Fn(usize) -> Level) -> Vec<Unit> {
    const FOLDERS: [&str; 6] =
        ["src/core", "src/event", "src/http", "src/http/modules", "src/os/unix", "src/stream"];
    const WORDS: [&str; 12] = [
        "array", "buf", "chain", "conf", "cycle", "gzip", "hash", "log", "proxy", "request", "times",
        "upstream",
    ];
    (0..count)
        .map(|i| {
            let name = format!("{}/ngx_{}_{i}.c", FOLDERS[i % 6], WORDS[(i / 6) % 12]);
            let size = 400 + ((i as u64).wrapping_mul(2_654_435_761) % 9000) * (1 + (i as u64 % 7));
            unit(&name, level(i), size)
        })
        .collect()
}

pub fn nginx_part() -> Nginx {
    let argument = |name: &str, value: Option<&str>| ConfigureArgument {
        name: name.to_owned(),
        value: value.map(str::to_owned),
    };
    let module = |name: &str, linkage, origin| Module {
        name: name.to_owned(),
        linkage,
        origin,
        sources: vec![Source::ModuleTable],
    };
    Nginx {
        configure_arguments: Some(vec![
            argument("--with-threads", None),
            argument("--with-http_gzip_static_module", None),
            argument("--with-cc-opt", Some("-O2 -O0")),
        ]),
        configure_raw: Some(
            "--with-threads --with-http_gzip_static_module --with-cc-opt='-O2 -O0'".to_owned(),
        ),
        compiler_line: Some("gcc 12.2.0 (Debian 12.2.0-14)".to_owned()),
        modules: Some(vec![
            module("ngx_core_module", Linkage::Static, ModuleOrigin::Builtin),
            module("ngx_http_gzip_static_module", Linkage::Static, ModuleOrigin::Builtin),
            module("ngx_http_geoip_module", Linkage::Dynamic, ModuleOrigin::Builtin),
            module("ngx_http_lua_module", Linkage::Static, ModuleOrigin::ThirdParty),
        ]),
        disabled: vec!["ngx_http_autoindex_module".to_owned()],
        debug: Held::new(false, Strength::Structural, Source::ModuleTable),
        ..Nginx::default()
    }
}

pub fn finding(rule: &str, severity: Severity, status: FindingStatus) -> Finding {
    Finding {
        rule: rule.to_owned(),
        severity,
        status,
        message: "137 of 137 units are -O0 (policy: at least O2)".to_owned(),
        remedy: Some("drop -O0 from --with-cc-opt; make clean; rebuild".to_owned()),
        strength: Strength::Recorded,
        sources: vec![Source::DwarfProducer, Source::ConfigureArguments],
        units: vec![UnitRef { name: "src/core/nginx.c".to_owned(), level: Level::O0 }],
        units_total: 137,
        ranges: vec![RangeRef { start: 0x1000, end: 0x2000, functions: 3, name: None }],
        policy: Some(PolicyPlace {
            path: "edge.toml".to_owned(),
            line: 6,
            column: 1,
            text: "minimum = \"O2\"".to_owned(),
        }),
        location: None,
        waiver: None,
        fingerprint: format!("{rule}/nginx/abcdef"),
        known: vec!["recorded: the compiler wrote \"-g -O -O2 -O0\"; the last -O wins".to_owned()],
        cost: Some("no inlining, no tail calls".to_owned()),
    }
}

pub fn checked(facts: Facts, verdict: Verdict, findings: Vec<Finding>) -> Checked {
    Checked { facts, verdict, findings }
}

pub fn report(targets: Vec<Checked>) -> CheckReport {
    let mut summary = Summary::default();
    for target in &targets {
        summary.count(target.facts.status);
    }
    CheckReport {
        schema: "flagaudit/check/1".to_owned(),
        tool: Tool::this(),
        policy: PolicyRef {
            name: "edge gateway release".to_owned(),
            path: "edge.toml".to_owned(),
            sha256: "00".repeat(32),
            evaluated_on: "2026-11-30".to_owned(),
        },
        verdict: targets.iter().map(|target| target.verdict).max().unwrap_or(Verdict::Error),
        targets,
        policy_findings: Vec::new(),
        summary,
    }
}

/// The `inspect` document of the same targets.
pub fn inspected(report: &CheckReport) -> InspectReport {
    InspectReport {
        schema: "flagaudit/inspect/1".to_owned(),
        tool: report.tool.clone(),
        targets: report.targets.iter().map(|target| target.facts.clone()).collect(),
        summary: report.summary,
    }
}

fn mixed(index: usize) -> Level {
    match index % 23 {
        3 => Level::O0,
        7 => Level::Os,
        11 => Level::O3,
        _ => Level::O2,
    }
}

fn pass() -> CheckReport {
    let mut facts = with_units(facts("objs/nginx"), nginx_units(137, |_| Level::O2));
    facts.nginx = Some(nginx_part());
    report(vec![checked(
        facts,
        Verdict::Pass,
        vec![finding("missing-module", Severity::Error, FindingStatus::Passed)],
    )])
}

fn fail() -> CheckReport {
    let mut bad = with_units(facts("/usr/sbin/nginx"), nginx_units(137, mixed));
    bad.nginx = Some(nginx_part());
    let claim = |value: &str, source, strength| Claim {
        fact: "optimization.level".to_owned(),
        value: value.into(),
        strength,
        source,
        scope: Scope::File,
        at: Some(Place { section: ".debug_info".into(), offset: 12 }),
        quote: Some("GNU C17 12.2.0 -g -O -O2 -O0".to_owned()),
    };
    bad.conflicts.push(Conflict {
        fact: "optimization.level".to_owned(),
        claims: vec![
            claim("O0", Source::DwarfProducer, Strength::Recorded),
            claim("O2", Source::ConfigureArguments, Strength::Declared),
        ],
    });
    let waived = Finding {
        waiver: Some(WaiverRef {
            reason: "miscompiled at -O2, upstream bug 123".to_owned(),
            owner: Some("edge team".to_owned()),
            expires: Some("2027-03-31".to_owned()),
        }),
        ..finding("unoptimized-code", Severity::Error, FindingStatus::Waived)
    };
    let configuration = Finding {
        location: Some(Location { path: "conf/api.conf".to_owned(), line: 14, column: 5 }),
        units: Vec::new(),
        units_total: 0,
        ranges: Vec::new(),
        message: "connections to backend are not reused".to_owned(),
        ..finding("upstream-without-keepalive", Severity::Warning, FindingStatus::Violation)
    };
    let undetermined = finding("undetermined-optimization", Severity::Error, FindingStatus::Undetermined);
    let not_checked = finding("gzip-static-without-gunzip", Severity::Note, FindingStatus::NotChecked);
    let good = with_units(facts("objs/good"), nginx_units(20, |_| Level::O3));
    let mut report = report(vec![
        checked(good, Verdict::Pass, Vec::new()),
        checked(
            bad,
            Verdict::Fail,
            vec![
                finding("unoptimized-code", Severity::Error, FindingStatus::Violation),
                undetermined,
                configuration,
                waived,
                not_checked,
            ],
        ),
    ]);
    report.policy_findings.push(Finding {
        units: Vec::new(),
        units_total: 0,
        ranges: Vec::new(),
        known: Vec::new(),
        cost: None,
        message: "the waiver in line 40 matched nothing".to_owned(),
        ..finding("unused-policy-entry", Severity::Note, FindingStatus::Violation)
    });
    report
}

fn partial() -> CheckReport {
    let mut facts = with_units(facts("objs/cut"), nginx_units(60, mixed));
    facts.status = Status::Partial;
    facts.problems.push(Problem::damage("damaged-debug-info", "unit 61 runs past the end of .debug_info"));
    report(vec![checked(
        facts,
        Verdict::Error,
        vec![finding("unoptimized-code", Severity::Error, FindingStatus::Violation)],
    )])
}

fn error() -> CheckReport {
    let mut facts = facts("notes.txt");
    facts.status = Status::Failed;
    facts.elf = None;
    facts.product = None;
    facts.compilers = Vec::new();
    facts.problems.push(Problem::damage("not-elf", "not an ELF file, and not the text of nginx -V"));
    report(vec![checked(facts, Verdict::Error, Vec::new())])
}

fn stripped() -> CheckReport {
    let mut facts = facts("pid:812");
    facts.origin = Origin::Process;
    facts.units = Some(Vec::new());
    facts.optimization = Optimization {
        level: Level::Optimized,
        bound: Bound::AtLeast,
        complete: true,
        strength: Strength::Inferred,
        sources: vec![Source::CodeShape],
        reason: "0 of 1,630 judged functions are shaped like -O0".to_owned(),
        by_level: vec![LevelShare {
            level: Level::Optimized,
            units: 0,
            functions: 1630,
            text_bytes: 900_000,
        }],
        text: TextAccount { bytes: 910_000, padding: 10_000, inferred: 900_000, ..TextAccount::default() },
        ..Optimization::default()
    };
    facts.functions.runs = (0..40u64)
        .map(|i| FunctionRun {
            start: 0x1000 + i * 0x4000,
            end: 0x1000 + (i + 1) * 0x4000,
            name: Some(format!("ngx_function_{i}")),
            unit: None,
            module: (i % 5 == 0).then(|| "ngx_http_core_module".to_owned()),
            level: if i == 17 { Level::O0 } else { Level::Optimized },
            functions: 40,
        })
        .collect();
    report(vec![checked(facts, Verdict::Pass, Vec::new())])
}

/// No units, but functions judged one by one.
fn functions() -> CheckReport {
    let mut report = stripped();
    let facts = &mut report.targets[0].facts;
    facts.functions.list = Some(
        (0..3000u64)
            .map(|i| FunctionSeen {
                start: 0x1000 + i * 0x140,
                end: 0x1000 + i * 0x140 + 0x20 + (i * 37 % 0x120),
                name: (i % 3 > 0).then(|| format!("ngx_function_{i}")),
                level: match i % 97 {
                    5 => Level::O0,
                    6 => Level::Unknown,
                    _ => Level::Optimized,
                },
            })
            .collect(),
    );
    report
}

/// 30,000 failing units in one target.
pub fn many_units(count: usize) -> CheckReport {
    let facts = with_units(facts("objs/huge"), nginx_units(count, |_| Level::O0));
    let mut found = finding("unoptimized-code", Severity::Error, FindingStatus::Violation);
    found.message = format!("{count} of {count} units are -O0 (policy: at least O2)");
    found.units = facts
        .units
        .iter()
        .flatten()
        .take(50)
        .map(|unit| UnitRef { name: unit.name.clone(), level: unit.level })
        .collect();
    found.units_total = count as u64;
    report(vec![checked(facts, Verdict::Fail, vec![found])])
}

/// More findings than any service takes: 6,000 targets of two findings each.
fn many_findings() -> CheckReport {
    report(
        (0..6_000)
            .map(|i| {
                let facts = with_units(facts(&format!("lib/part{i}.so")), nginx_units(2, mixed));
                let error = finding("unoptimized-code", Severity::Error, FindingStatus::Violation);
                let warning = finding("missing-module", Severity::Warning, FindingStatus::Violation);
                checked(facts, Verdict::Fail, vec![error, warning])
            })
            .collect(),
    )
}

/// The same target three times, once worse, and two processes of one program.
fn repeated() -> CheckReport {
    let one = || with_units(facts("objs/nginx"), nginx_units(12, mixed));
    let found = || vec![finding("unoptimized-code", Severity::Error, FindingStatus::Violation)];
    let process = |pid: u32| {
        let mut facts = one();
        facts.path = format!("pid:{pid}");
        facts.origin = Origin::Process;
        checked(facts, Verdict::Fail, found())
    };
    report(vec![
        checked(one(), Verdict::Pass, Vec::new()),
        checked(one(), Verdict::Fail, [found(), found(), found()].concat()),
        checked(one(), Verdict::Pass, Vec::new()),
        process(811),
        process(812),
    ])
}

/// Every string of a target and its findings, hostile.
fn hostile(text: &str, index: usize) -> Checked {
    let own = || text.to_owned();
    let some = || Some(text.to_owned());
    let mut facts = with_units(facts(text), vec![unit(text, Level::O0, 100), unit("b.c", Level::O2, 50)]);
    facts.path_bytes = (index % 2 == 1).then(|| "/2b/".to_owned());
    facts.member = index.is_multiple_of(3).then(own);
    facts.problems.push(Problem::notice(text, text));
    if let Some(elf) = &mut facts.elf {
        elf.build_id = some();
        elf.machine = own();
        elf.interpreter = some();
        elf.needed = vec![own()];
        elf.soname = some();
    }
    facts.product = Some(Product {
        name: own(),
        version: some(),
        base: Some(Base { name: own(), version: some() }),
        build_text: some(),
    });
    facts.compilers =
        vec![CompilerSeen { family: own(), version: some(), language: some(), units: 1, raw: own() }];
    facts.optimization.reason = own();
    facts.lto = Held::new(own(), Strength::Recorded, Source::DwarfProducer);
    facts.hardening.rpath = Held::new(own(), Strength::Structural, Source::Elf);
    facts.instrumentation.sanitizers = Held::new(vec![own()], Strength::Structural, Source::Imports);
    facts.flags = Some(vec![FlagCount { flag: own(), units: 1 }]);
    for unit in facts.units.iter_mut().flatten() {
        unit.comp_dir = some().map(Into::into);
        unit.member = some();
        unit.language = some().map(Into::into);
        unit.compiler = some().map(Into::into);
        unit.overridden = vec![own()];
        unit.flags = vec![own()].into();
        unit.note = some();
    }
    facts.functions.runs.push(FunctionRun {
        start: u64::MAX - 1,
        end: 0,
        name: some(),
        unit: some(),
        module: some(),
        level: Level::Unknown,
        functions: 1,
    });
    facts.conflicts.push(Conflict {
        fact: own(),
        claims: vec![Claim {
            fact: own(),
            value: text.into(),
            strength: Strength::Declared,
            source: Source::BuildString,
            scope: Scope::Some,
            at: Some(Place { section: own().into(), offset: u64::MAX }),
            quote: some(),
        }],
    });
    let mut nginx = nginx_part();
    nginx.configure_arguments = Some(vec![ConfigureArgument { name: own(), value: some() }]);
    nginx.configure_raw = some();
    nginx.compiler_line = some();
    for module in nginx.modules.iter_mut().flatten() {
        module.name = own();
    }
    nginx.disabled = vec![own()];
    facts.nginx = Some(nginx);
    facts.build_strings = vec![BuildString { program: own(), key: own(), value: own() }];
    let mut found = finding("unoptimized-code", Severity::Error, FindingStatus::Violation);
    found.message = own();
    found.remedy = some();
    found.units = vec![UnitRef { name: own(), level: Level::O0 }];
    found.policy = Some(PolicyPlace { path: own(), line: 0, column: 0, text: own() });
    found.location = index.is_multiple_of(2).then(|| Location { path: own(), line: 0, column: 0 });
    found.fingerprint = own();
    found.known = vec![own()];
    found.cost = some();
    let mut waived = found.clone();
    waived.status = FindingStatus::Waived;
    waived.waiver = Some(WaiverRef { reason: own(), owner: some(), expires: some() });
    let mut unchecked = found.clone();
    unchecked.status = FindingStatus::NotChecked;
    let mut strange = found.clone();
    // Rule ids are the program's own; a renderer that trusts that is one edit away from being wrong.
    strange.rule = format!("x{text}");
    checked(facts, Verdict::Fail, vec![found, waived, unchecked, strange])
}

fn nasty_report() -> CheckReport {
    let strings = nasty::all();
    let mut report = report(strings.iter().enumerate().map(|(i, text)| hostile(text, i)).collect());
    let everything = strings.concat();
    report.policy.name.clone_from(&everything);
    report.policy.path.clone_from(&everything);
    report.policy_findings = report.targets.iter().flat_map(|target| target.findings.clone()).collect();
    report
}

/// Every kind of report, by name.
pub fn scenarios() -> Vec<(&'static str, CheckReport)> {
    vec![
        ("pass", pass()),
        ("fail", fail()),
        ("partial", partial()),
        ("error", error()),
        ("empty", report(Vec::new())),
        ("stripped", stripped()),
        ("functions", functions()),
        ("units-5000", many_units(5_000)),
        ("repeated", repeated()),
        ("units-30000", many_units(30_000)),
        ("findings-12000", many_findings()),
        ("nasty", nasty_report()),
    ]
}
