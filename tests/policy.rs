//! Policies through the library's public interface: golden error messages, built-ins, extension, targets.

#![allow(clippy::unwrap_used)] // helpers of tests are not themselves marked as tests

use flagaudit::compiler::Level;
use flagaudit::finding::Severity;
use flagaudit::policy::{EntryKind, Ground, Known, Setting, TargetKey, load, schema, show};
use std::path::{Path, PathBuf};

const RULES: &[&str] = &[
    "unoptimized-code",
    "undetermined-optimization",
    "conflicting-evidence",
    "forbidden-flag",
    "missing-flag",
    "disallowed-compiler",
    "nonportable-cpu",
    "instrumented-build",
    "debug-build",
    "missing-lto",
    "missing-module",
    "forbidden-module",
    "unlisted-module",
    "missing-configure-argument",
    "forbidden-configure-argument",
    "incompatible-dynamic-module",
    "disallowed-product-version",
    "unapproved-build",
    "missing-pie",
    "partial-relro",
    "executable-stack",
    "missing-stack-protector",
    "missing-fortify",
    "missing-cet",
    "insecure-rpath",
    "text-relocation",
    "stale-process",
    "upstream-without-keepalive",
    "dynamic-gzip-of-static-files",
    "gzip-static-without-gunzip",
    "directive-without-module",
    "unsupported-by-build",
    "unused-policy-entry",
    "expired-waiver",
];

fn modules() -> Vec<String> {
    [
        "http",
        "http_core",
        "http_gzip_filter",
        "http_gzip_static",
        "http_gunzip_filter",
        "http_v2",
        "http_v2_filter",
        "http_v3",
        "http_ssl",
        "http_autoindex",
        "http_perl",
        "http_realip",
        "http_stub_status",
        "http_dav",
        "http_upstream_keepalive",
        "http_upstream_zone",
        "http_slice_filter",
        "http_auth_request",
        "http_sub_filter",
        "stream",
        "stream_ssl",
        "mail",
    ]
    .iter()
    .map(|short| format!("ngx_{short}_module"))
    .collect()
}

fn never_recorded(flag: &str) -> Option<String> {
    (flag.starts_with("-W") || flag.starts_with("-D"))
        .then(|| "compilers do not record warning options and definitions".to_owned())
}

fn options() -> Vec<String> {
    ["--with-threads", "--with-debug", "--with-file-aio", "--with-stream", "--with-cc-opt"]
        .map(str::to_owned)
        .to_vec()
}

fn known() -> Known<'static> {
    Known { rules: RULES, modules: &modules, options: &options, never_recorded: &never_recorded }
}

fn files_of(directory: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml" || ext == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{directory} holds no policies");
    files
}

/// Compares with the text kept beside the input; `FLAGAUDIT_BLESS=1` rewrites it.
fn golden(expected: &Path, actual: &str) -> Result<(), String> {
    if std::env::var_os("FLAGAUDIT_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(expected, actual).unwrap();
        return Ok(());
    }
    let text = std::fs::read_to_string(expected).unwrap_or_default();
    if text == actual {
        return Ok(());
    }
    Err(format!("{} differs; it should now be:\n{actual}", expected.display()))
}

#[test]
fn every_error_teaches() {
    let mut wrong = Vec::new();
    for path in files_of("testdata/policy/errors") {
        let Err(diagnostics) = load::load_path(&path, &known()) else {
            wrong.push(format!("{} was accepted", path.display()));
            continue;
        };
        assert!(diagnostics.has_errors(), "{}", path.display());
        let expected = path.with_extension(format!("{}.txt", path.extension().unwrap().to_string_lossy()));
        wrong.extend(golden(&expected, &diagnostics.render(false)).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Loads or panics with the rendered errors.
fn accepted(
    result: Result<flagaudit::policy::LoadedPolicy, flagaudit::policy::Diagnostics>,
) -> flagaudit::policy::LoadedPolicy {
    result.unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

fn inline(text: &str) -> flagaudit::policy::LoadedPolicy {
    accepted(load::load_str("inline.toml", text, None, &known()))
}

fn day() -> jiff::civil::Date {
    jiff::civil::date(2026, 11, 30)
}

#[test]
fn builtins_load_and_say_what_the_contract_says() {
    let release = accepted(load::load("builtin:release", &known()));
    let policy = release.base();
    assert_eq!((policy.name.as_str(), policy.path.as_str()), ("release", "builtin:release"));
    assert_eq!(policy.sha256.len(), 64);
    let optimization = &policy.optimization;
    assert_eq!(optimization.minimum.as_ref().unwrap().value, Level::O1);
    assert_eq!(optimization.recommended.as_ref().unwrap().value, Level::O2);
    assert_eq!(optimization.undetermined.value, Setting::Report(Severity::Error));
    assert_eq!(optimization.too_small.value, Setting::Report(Severity::Warning));
    assert_eq!(optimization.evidence.value, Ground::Corroborated);
    let forbidden: Vec<&str> = policy.instrumentation_forbid.iter().map(|word| word.value.as_str()).collect();
    assert_eq!(forbidden, ["sanitizers", "coverage", "profiling"]);
    assert_eq!(policy.rules["debug-build"].value, Setting::Report(Severity::Note));

    let gateway = accepted(load::load_builtin("nginx-gateway", &known()));
    let policy = gateway.base();
    assert_eq!(policy.optimization.minimum.as_ref().unwrap().value, Level::O2);
    assert_eq!(policy.optimization.allow[0].value, Level::Os);
    assert_eq!(policy.optimization.too_small.value, Setting::Report(Severity::Error));
    assert_eq!(policy.rules["debug-build"].value, Setting::Report(Severity::Warning));
    assert_eq!(policy.nginx.modules.require.len(), 2);
    // Values of the base keep their own place.
    let place = &policy.instrumentation_forbid[0].at;
    assert_eq!(place.path, "builtin:release");
    assert!(place.text.contains("sanitizers"));

    let hardened = accepted(load::load_builtin("hardened", &known()));
    assert_eq!(hardened.base().hardening["relro"].value, "full");
    assert_eq!(hardened.base().optimization.minimum.as_ref().unwrap().value, Level::O1);

    for (name, text) in load::BUILTINS {
        // Rule ids of built-ins are not checked when loading; here they are.
        accepted(load::load_str(name, text, None, &known()));
        let policy = accepted(load::load_builtin(name, &known()));
        let remarks = flagaudit::policy::validate(&policy, &known(), day());
        assert!(remarks.is_empty(), "{name}: {remarks}");
    }
}

#[test]
fn what_a_policy_does_not_say_has_a_default() {
    for text in ["", "{}"] {
        let policy = accepted(load::load_str("empty", text, None, &known()));
        let optimization = &policy.base().optimization;
        assert!(optimization.minimum.is_none());
        assert_eq!(optimization.undetermined.value, Setting::Report(Severity::Error));
        assert_eq!(optimization.undetermined.at.path, "builtin:defaults");
        assert_eq!(policy.name(), "empty");
    }
}

#[test]
fn toml_and_json_mean_the_same() {
    let toml = accepted(load::load_path(Path::new("testdata/policy/ok/full.toml"), &known()));
    let json = accepted(load::load_path(Path::new("testdata/policy/ok/full.json"), &known()));
    assert_eq!(as_json(&show::show(&toml)), as_json(&show::show(&json)));
    let place = &json.base().waivers[0].expires.as_ref().unwrap().at;
    assert!(place.line > 1 && place.column > 1 && place.text.contains("2027-03-31"), "{place:?}");
}

#[test]
fn later_keys_win_and_lists_are_replaced_or_changed() {
    let policy = inline(
        "extends = \"testdata/policy/ok/base.toml\"\n[optimization]\nminimum = \"O3\"\nexempt = { add = [\"b.c\"], remove = [\"a.c\"] }\n\
         [flags]\nforbid = [\"-pg\"]\nrequire = { add = [\"-fPIE\"] }\n[compiler]\nallow = { add = [\"clang\"] }\n",
    );
    let base = policy.base();
    let texts = |list: &[flagaudit::policy::At<flagaudit::policy::Pattern>]| {
        list.iter().map(|pattern| pattern.value.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(base.optimization.minimum.as_ref().unwrap().value, Level::O3);
    assert_eq!(texts(&base.optimization.exempt), ["**/*.S", "b.c"]);
    assert_eq!(base.optimization.exempt[0].at.path, "testdata/policy/ok/base.toml");
    assert_eq!(base.optimization.exempt[1].at.path, "inline.toml");
    assert_eq!(texts(&base.flags.forbid), ["-pg"]);
    assert_eq!(texts(&base.flags.require), ["-fPIE"]);
    assert_eq!(base.compilers[0].value.name, "clang");
    // Exceptions of the base stay in force.
    assert_eq!(base.waivers.len(), 1);
    assert_eq!(policy.applied(&TargetKey { path: "lib/libluajit.so", ..TargetKey::default() }).len(), 1);
    let dropped = inline("waiver = []\ntarget = []\nextends = \"testdata/policy/ok/base.toml\"\n");
    assert!(dropped.base().waivers.is_empty());
    assert_eq!(dropped.applied(&TargetKey { path: "lib/libluajit.so", ..TargetKey::default() }).len(), 0);
    // Removing what is not there is remarked on.
    let odd = inline(
        "extends = \"builtin:release\"\n[instrumentation]\nforbid = { remove = [\"coverage\", \"tracing\"] }\n",
    );
    assert_eq!(odd.warnings().counts(), (0, 1));
    assert_eq!(odd.base().instrumentation_forbid.len(), 2);
}

#[test]
fn targets_override_in_order() {
    let policy = inline(
        "[optimization]\nminimum = \"O2\"\nallow = [\"Os\"]\n\
         [[target]]\nmatch = { path = \"**/libluajit*\", product = \"luajit\" }\noptimization.minimum = \"O1\"\n\
         [[target]]\nmatch = { build_id = \"7F96C30D\" }\noptimization.minimum = \"O0\"\noptimization.allow = { add = [\"Oz\"] }\n\
         [[target]]\nmatch = { process = [\"nginx\"] }\nrules.debug-build = \"off\"\n",
    );
    let minimum = |key: TargetKey<'_>| policy.for_target(&key).optimization.minimum.unwrap().value;
    let path = |path| TargetKey { path, ..TargetKey::default() };
    assert_eq!(minimum(path("objs/nginx")), Level::O2);
    assert_eq!(minimum(path("./usr/lib/libluajit-5.1.so.2")), Level::O1);
    assert_eq!(minimum(TargetKey { member: Some("usr/lib/libluajit.so"), ..path("x.deb") }), Level::O1);
    assert_eq!(minimum(TargetKey { product: Some("luajit"), ..path("x") }), Level::O1);
    let both = TargetKey { product: Some("luajit"), build_id: Some("7f96c30d0000"), ..path("x") };
    assert_eq!(minimum(both), Level::O0);
    assert_eq!(policy.for_target(&both).optimization.allow.len(), 2);
    assert_eq!(policy.applied(&both).len(), 2);
    for command in ["nginx: master process /usr/sbin/nginx", "/usr/sbin/nginx -g daemon off;", "nginx"] {
        let rules = policy.for_target(&TargetKey { process: Some(command), ..path("pid:1") }).rules;
        assert_eq!(rules["debug-build"].value, Setting::Ignore, "{command}");
    }
    assert!(
        policy.for_target(&TargetKey { process: Some("/bin/nginx-agent"), ..path("pid:1") }).rules.is_empty()
    );
}

#[test]
fn entries_are_known_by_their_place() {
    let policy = accepted(load::load_path(Path::new("testdata/policy/ok/full.toml"), &known()));
    let entries = policy.entries();
    for waiver in &policy.base().waivers {
        assert!(entries.iter().any(|entry| entry.kind == EntryKind::Waiver && entry.at == waiver.at));
    }
    for pattern in &policy.base().optimization.exempt {
        assert!(entries.iter().any(|entry| entry.kind == EntryKind::Exempt && entry.at == pattern.at));
    }
    let targets = entries.iter().filter(|entry| entry.kind == EntryKind::Target).count();
    assert_eq!(targets, 2);
    let mut places: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.at.clone())).collect();
    let all = places.len();
    places.dedup();
    assert_eq!(places.len(), all);
}

#[test]
fn what_can_never_match_is_remarked_on() {
    let mut wrong = Vec::new();
    for path in files_of("testdata/policy/warnings") {
        let policy = accepted(load::load_path(&path, &known()));
        let remarks = flagaudit::policy::validate(&policy, &known(), day());
        let (errors, warnings) = remarks.counts();
        assert!(errors == 0 && warnings > 0, "{}: {remarks}", path.display());
        wrong.extend(golden(&path.with_extension("toml.txt"), &remarks.render(false)).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_shown_is_a_policy_that_means_the_same() {
    let mut files = files_of("testdata/policy/ok");
    files.extend(files_of("docs/policies"));
    for path in files {
        let policy = accepted(load::load_path(&path, &known()));
        let shown = show::show(&policy);
        let again = accepted(load::load_str("shown.toml", &shown, None, &known()));
        let bare = |text: &str| {
            text.lines()
                .skip(2)
                .map(|line| line.split(" # ").next().unwrap().trim_end().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(bare(&shown), bare(&show::show(&again)), "{}", path.display());
    }
    let gateway = show::show(&accepted(load::load_builtin("nginx-gateway", &known())));
    golden(Path::new("testdata/policy/show-nginx-gateway.txt"), &gateway).unwrap();
}

#[test]
fn example_policies_are_sound() {
    let files = files_of("docs/policies");
    assert_eq!(files.len(), 6);
    for path in files {
        let policy = accepted(load::load_path(&path, &known()));
        let remarks = flagaudit::policy::validate(&policy, &known(), day());
        assert!(remarks.is_empty(), "{remarks}");
    }
}

/// A TOML text as the JSON an editor's schema check sees.
fn as_json(text: &str) -> serde_json::Value {
    fn convert(value: toml::Value) -> serde_json::Value {
        match value {
            toml::Value::String(text) => text.into(),
            toml::Value::Integer(number) => number.into(),
            toml::Value::Float(number) => number.into(),
            toml::Value::Boolean(yes) => yes.into(),
            toml::Value::Datetime(when) => when.to_string().into(),
            toml::Value::Array(items) => items.into_iter().map(convert).collect(),
            toml::Value::Table(table) => {
                table.into_iter().map(|(key, value)| (key, convert(value))).collect()
            }
        }
    }
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).unwrap();
    }
    convert(toml::Value::Table(text.parse().unwrap()))
}

#[test]
fn the_schema_accepts_what_loads_and_refuses_what_does_not() {
    let validator = jsonschema::validator_for(&schema::schema(RULES)).unwrap();
    let mut good: Vec<(String, String)> =
        load::BUILTINS.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    for directory in ["testdata/policy/ok", "testdata/policy/warnings", "docs/policies"] {
        for path in files_of(directory) {
            good.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
    for (name, text) in good {
        let errors: Vec<String> =
            validator.iter_errors(&as_json(&text)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
    for name in [
        "unknown-key.toml",
        "unknown-level.toml",
        "level-as-number.toml",
        "unknown-severity.toml",
        "unknown-rule.toml",
        "wrong-type.toml",
        "waiver.toml",
        "waiver-single-bracket.toml",
        "target.toml",
        "schema.toml",
        "schema-type.toml",
        "extends-list.toml",
        "build-id.toml",
        "baseline.toml",
        "minified.json",
    ] {
        let text = std::fs::read_to_string(format!("testdata/policy/errors/{name}")).unwrap();
        assert!(!validator.is_valid(&as_json(&text)), "{name} should not pass the schema");
    }
}

#[test]
fn damaged_policies_never_panic() {
    // Prefixes, and characters replaced in turn: errors are fine, panics are not.
    for path in ["testdata/policy/ok/full.toml", "testdata/policy/ok/full.json"] {
        let text = std::fs::read_to_string(path).unwrap();
        for at in (0..text.len()).step_by(13).filter(|at| text.is_char_boundary(*at)) {
            let mut damaged = vec![text[..at].to_owned()];
            for byte in ["\"", "[", "}", "\u{0}", "é", "\n"] {
                let rest = text[at..].char_indices().nth(1).map_or("", |(next, _)| &text[at + next..]);
                damaged.push(format!("{}{byte}{rest}", &text[..at]));
            }
            for text in damaged {
                match load::load_str("p", &text, None, &known()) {
                    Ok(policy) => drop(flagaudit::policy::validate(&policy, &known(), day()).render(false)),
                    Err(diagnostics) => drop(diagnostics.render(at % 2 == 0)),
                }
            }
        }
    }
}

/// Every key of the schema, by its last word.
fn keys(schema: &serde_json::Value, found: &mut Vec<String>) {
    if let Some(properties) = schema.get("properties").and_then(|properties| properties.as_object()) {
        for (key, inner) in properties {
            found.push(key.clone());
            keys(inner, found);
        }
    }
    schema.get("items").into_iter().for_each(|inner| keys(inner, found));
}

#[test]
fn the_guide_holds_every_key_and_the_builtins_as_they_are() {
    let guide = std::fs::read_to_string("docs/policy.md").unwrap();
    for (name, text) in load::BUILTINS.iter().chain([&("defaults", load::builtin("defaults").unwrap())]) {
        assert!(guide.contains(text), "docs/policy.md does not show {name} as it is");
    }
    let mut found = Vec::new();
    keys(&schema::schema(&[]), &mut found);
    assert!(found.len() > 50, "{found:?}");
    for key in found {
        let ways = [
            format!("`{key}`"),
            format!("`{key}."),
            format!(".{key}`"),
            format!("[{key}]`"),
            format!("[{key}]]`"),
        ];
        assert!(ways.iter().any(|way| guide.contains(way)) || key == "match", "docs/policy.md lacks `{key}`");
    }
    // Examples in the guide are policies that load.
    let mut blocks = 0;
    for block in guide.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        accepted(load::load_str("docs/policy.md", text, None, &known()));
        blocks += 1;
    }
    assert!(blocks >= 14, "{blocks}");
}
#[test]
fn oversized_policies_are_refused_in_bounded_time() {
    let start = std::time::Instant::now();
    let keys = |count: usize, write: fn(usize) -> String| (0..count).map(write).collect::<String>();
    let many_keys = keys(60_000, |n| format!("k{n} = 1\n"));
    let json_keys = format!("{{{}\"z\":1}}", keys(60_000, |n| format!("\"k{n}\":1,")));
    let many_values = format!("{{\"optimization\":{{\"exempt\":[{}\"x\"]}}}}", "\"*.c\",".repeat(100_000));
    let table = keys(1_001, |n| format!("k{n} = 1\n"));
    for (text, words) in [
        (&many_keys, "more than 1000 keys in one table"),
        (&json_keys, "more than 1000 keys in one table"),
        (&table, "more than 1000 keys in one table"),
        (&many_values, "more than 20000 values"),
    ] {
        let diagnostics = load::load_str("p", text, None, &known()).unwrap_err();
        assert_eq!(diagnostics.counts(), (1, 0));
        assert!(diagnostics.to_string().contains(words), "{diagnostics}");
        assert!(format!("{diagnostics:?}").len() < 2_000, "the texts stay out of debug output");
    }
    // As many errors as can be, all in one line: found at once, and only the first are printed.
    let wrong = format!("{{\"flags\":{{\"forbid\":[{}\"x\"]}}}}", "1,".repeat(19_990));
    let diagnostics = load::load_str("p", &wrong, None, &known()).unwrap_err();
    assert_eq!(diagnostics.counts().0, 19_990);
    assert!(diagnostics.render(false).ends_with("and 19890 more\n\n"));
    // Generous, for slow machines under load; the walks that this guards against took a minute.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
