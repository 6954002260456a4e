use super::*;
use crate::evidence::Source;
use crate::facts::*;
use crate::policy::{Known, Policy, load, validate};

fn unit(name: &str, kind: UnitKind, level: Level, flags: &[&str]) -> Unit {
    Unit {
        name: name.into(),
        comp_dir: Some("/build".into()),
        member: None,
        language: Some("C17".into()),
        compiler: Some("gcc 12.2.0".into()),
        level,
        strength: Strength::Recorded,
        sources: vec![Source::DwarfProducer],
        kind,
        text_bytes: 100,
        overridden: Vec::new(),
        flags: std::sync::Arc::new(flags.iter().map(|flag| (*flag).to_owned()).collect()),
        ranges: Vec::new(),
        note: None,
        flags_recorded: true,
        intermediate: false,
    }
}

fn argument(name: &str, value: Option<&str>) -> ConfigureArgument {
    ConfigureArgument { name: name.into(), value: value.map(str::to_owned) }
}

fn module(name: &str, origin: ModuleOrigin) -> Module {
    Module { name: name.into(), linkage: Linkage::Static, origin, sources: vec![Source::ModuleTable] }
}

fn nginx() -> Facts {
    let yes = || Held::new(true, Strength::Structural, Source::Elf);
    let no = || Held::new(false, Strength::Structural, Source::Elf);
    let guard = ["-O2", "-fstack-protector-strong"];
    Facts {
        path: "objs/nginx\n[rules]".into(),
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
            build_id: Some("7f96c30d11aa22bb".into()),
            interpreter: None,
            needed: Vec::new(),
            soname: None,
            packed: false,
        }),
        product: Some(Product {
            name: "nginx".into(),
            version: Some("1.22.1".into()),
            base: None,
            build_text: None,
        }),
        debug_info: DebugInfo::default(),
        optimization: Optimization {
            level: Level::O2,
            complete: true,
            strength: Strength::Recorded,
            reason: "2 of 2 units\n[build]".into(),
            ..Optimization::default()
        },
        conflicts: Vec::new(),
        compilers: vec![
            CompilerSeen {
                family: "gcc".into(),
                version: Some("12.2.0".into()),
                language: None,
                units: 2,
                raw: String::new(),
            },
            CompilerSeen {
                family: "nvcc".into(),
                version: None,
                language: None,
                units: 1,
                raw: String::new(),
            },
        ],
        lto: Held::unknown(),
        pgo: Held::unknown(),
        unit_count: 2,
        units: Some(vec![
            unit("a.c", UnitKind::Source, Level::O2, &guard),
            unit("b.c", UnitKind::Source, Level::O2, &guard),
            unit("z/inflate.c", UnitKind::Library, Level::O0, &[]),
        ]),
        functions: Functions::default(),
        flags: None,
        hardening: Hardening {
            pie: yes(),
            relro: Held::new("full".into(), Strength::Structural, Source::Elf),
            bind_now: yes(),
            nx_stack: yes(),
            canary: no(),
            textrel: no(),
            ..Hardening::default()
        },
        instrumentation: Instrumentation { debug_build: no(), ..Instrumentation::default() },
        cpu: Cpu {
            baseline: Held::new("x86-64-v2".into(), Strength::Recorded, Source::DwarfProducer),
            flags: Vec::new(),
        },
        nginx: Some(Nginx {
            configure_arguments: Some(vec![
                argument("--prefix", Some("/etc/nginx")),
                argument("--http-log-path", Some("/var/log/x")),
                argument("--with-cc-opt", Some("-O2")),
                argument("--with-threads", None),
                argument("--with-stream", Some("dynamic")),
                argument("--add-module", Some("/src/brotli")),
                argument("--evil\"\nx", None),
            ]),
            modules: Some(vec![
                module("ngx_core_module", ModuleOrigin::Builtin),
                module("ngx_http_core_module", ModuleOrigin::Builtin),
                module("ngx_http_gzip_static_module", ModuleOrigin::Builtin),
                module("ngx_http_brotli_filter_module", ModuleOrigin::ThirdParty),
                module("evil\"\n", ModuleOrigin::Unknown),
            ]),
            ..Nginx::default()
        }),
        build_strings: Vec::new(),
    }
}

#[test]
fn dynamic_modules_are_not_asked_of_a_file_that_they_are_not_in() {
    let mut facts = nginx();
    let mut stream = module("ngx_stream_core_module", ModuleOrigin::Builtin);
    stream.linkage = crate::facts::Linkage::Dynamic;
    facts.nginx.as_mut().unwrap().modules.as_mut().unwrap().push(stream);
    let (text, policy) = loaded(&facts);
    assert!(policy.nginx.modules.require.iter().all(|one| one.value.text != "stream_core"), "{text}");
    assert!(policy.nginx.configure.require.iter().any(|one| one.value.text == "--with-stream=dynamic"));
    assert!(text.contains("# allow = [\"stream_core\"]\n"), "{text}");
}

fn loaded(facts: &Facts) -> (String, Policy) {
    let text = init(facts, "made \"up\"");
    let modules = || {
        ["ngx_core_module", "ngx_http_core_module", "ngx_http_gzip_static_module"].map(str::to_owned).to_vec()
    };
    let known = Known { modules: &modules, ..Known::nothing() };
    let policy = load::load_str("made.toml", &text, None, &known).unwrap_or_else(|e| panic!("{text}\n{e}"));
    // A third-party module is not known, and a build at -O0 is hardly a good one: nothing else may be remarked on.
    let remarks = validate(&policy, &known, crate::policy::dates::parse_date("2026-11-30").unwrap());
    let expected = |text: &str| text.contains("brotli") || text.contains("a minimum of O0");
    assert!(remarks.iter().all(|remark| expected(&remark.message)), "{remarks}");
    (text, policy.base().clone())
}

#[test]
fn a_good_nginx_makes_a_policy_that_catches_its_losses() {
    let (text, policy) = loaded(&nginx());
    assert_eq!(policy.name, "made \"up\"");
    assert_eq!(policy.optimization.minimum.unwrap().value, Level::O2);
    assert_eq!(policy.optimization.libraries.unwrap().minimum.unwrap().value, Level::O0);
    assert!(!text.contains("undetermined = \"warning\"  "), "complete facts need no leniency");
    let compilers: Vec<&str> = policy.compilers.iter().map(|c| c.value.text.as_str()).collect();
    assert_eq!(compilers, ["gcc = 12"]);
    let texts = |list: &[crate::policy::At<crate::policy::Pattern>]| {
        list.iter().map(|pattern| pattern.value.text.clone()).collect::<Vec<_>>()
    };
    // What only the record shows is offered, not asked for.
    assert!(policy.flags.require.is_empty() && policy.cpu_baseline.is_none());
    assert!(text.contains("# require = [\"-fstack-protector-strong\"]\n"), "{text}");
    assert!(text.contains("# baseline = \"x86-64-v2\"\n"), "{text}");
    assert_eq!(
        texts(&policy.nginx.modules.require),
        ["http_core", "http_gzip_static", "ngx_http_brotli_filter_module"]
    );
    assert_eq!(texts(&policy.nginx.configure.require), ["--with-stream=dynamic", "--with-threads"]);
    assert_eq!(texts(&policy.nginx.configure.forbid), ["--with-debug"]);
    let hardening: Vec<&str> = policy.hardening.keys().map(String::as_str).collect();
    assert_eq!(hardening, ["bind-now", "nx-stack", "pie", "relro", "rpath", "text-relocations"]);
    assert!(policy.builds.is_empty() && !text.contains("evil"));
    assert!(policy.rules.contains_key("debug-build"));
}

#[test]
fn what_the_binary_cannot_show_is_not_asked_for() {
    let mut facts = nginx();
    facts.cpu.baseline.strength = Strength::Structural;
    facts.optimization.level = Level::Unknown;
    facts.optimization.complete = false;
    facts.units = None;
    facts.compilers.clear();
    facts.elf = None;
    facts.hardening = Hardening::default();
    facts.nginx = None;
    facts.instrumentation.coverage = Held::new(true, Strength::Structural, Source::Symbols);
    let (text, policy) = loaded(&facts);
    assert_eq!(
        policy.optimization.undetermined.value,
        crate::policy::Setting::Report(crate::finding::Severity::Warning)
    );
    assert!(policy.hardening.is_empty() && policy.compilers.is_empty(), "{text}");
    assert_eq!(policy.cpu_baseline.unwrap().value, "x86-64-v2");
    let forbidden: Vec<&str> = policy.instrumentation_forbid.iter().map(|w| w.value.as_str()).collect();
    assert_eq!(forbidden, ["sanitizers", "profiling"]);
}

#[test]
fn a_unit_says_what_the_whole_does_not() {
    let mut facts = nginx();
    facts.optimization.level = Level::Unknown;
    facts.units.as_mut().unwrap()[1].level = Level::O0;
    facts.units.as_mut().unwrap()[0].compiler = None;
    let (text, policy) = loaded(&facts);
    assert_eq!(policy.optimization.minimum.unwrap().value, Level::O0);
    assert!(policy.compilers.is_empty() && text.contains("[compiler] allow is left out"), "{text}");
}

#[test]
fn every_level_makes_a_sound_policy() {
    for level in Level::NAMED.into_iter().chain([Level::Optimized, Level::Unknown]) {
        let mut facts = nginx();
        facts.optimization.level = level;
        let (text, policy) = loaded(&facts);
        let minimum = policy.optimization.minimum.unwrap().value;
        let allowed = policy.optimization.allow.iter().any(|allow| allow.value == level);
        let met = level.satisfies(minimum) == Satisfies::Yes || allowed || level == Level::Unknown;
        assert!(met, "{level}: {text}");
    }
}
