//! Every format over every kind of report. With `FLAGAUDIT_FORMATS_DIR` set, the documents are also written there,
//! for the validators that `scripts/validate-formats.sh` runs over them.

#![allow(clippy::unwrap_used)]

use flagaudit::diff;
use flagaudit::finding::Severity;
use flagaudit::policy::load::load_str;
use flagaudit::policy::{Known, init};
use flagaudit::report::{
    CheckReport, InspectReport, github, html, json, junit, markdown, prometheus, sarif, text,
};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;

#[path = "common/nasty.rs"]
mod nasty;
#[path = "common/reports.rs"]
mod reports;

/// The lines as a run prints them.
fn check_lines(report: &CheckReport) -> String {
    let lines: String = report.targets.iter().map(|target| json::target_line(target).unwrap()).collect();
    lines + &json::check_summary(report).unwrap()
}

fn inspect_lines(report: &InspectReport) -> String {
    let lines: String = report.targets.iter().map(|target| json::target_line(target).unwrap()).collect();
    lines + &json::inspect_summary(report.summary).unwrap()
}

/// Made once: some are long.
fn scenarios() -> &'static [(&'static str, CheckReport)] {
    static ALL: OnceLock<Vec<(&'static str, CheckReport)>> = OnceLock::new();
    ALL.get_or_init(reports::scenarios)
}

/// File name ending and content of every format.
fn check_documents(report: &CheckReport) -> Vec<(&'static str, String)> {
    vec![
        ("check.json", json::render(report).unwrap()),
        ("check.ndjson", check_lines(report)),
        (
            "check.sarif",
            sarif::check(report, &reports::rules(), Some(Path::new("/home/me/project"))).unwrap(),
        ),
        ("check.junit.xml", junit::check(report, Severity::Error)),
        ("check.github.txt", github::check(report)),
        ("check.md", markdown::check(report)),
        ("check.prom", prometheus::check(report)),
        ("check.html", html::check(report).unwrap()),
    ]
}

fn inspect_documents(report: &InspectReport) -> Vec<(&'static str, String)> {
    vec![
        ("inspect.json", json::render(report).unwrap()),
        ("inspect.ndjson", inspect_lines(report)),
        ("inspect.sarif", sarif::inspect(report, None).unwrap()),
        ("inspect.junit.xml", junit::inspect(report)),
        ("inspect.github.txt", github::inspect(report)),
        ("inspect.md", markdown::inspect(report)),
        ("inspect.prom", prometheus::inspect(report)),
        ("inspect.html", html::inspect(report).unwrap()),
    ]
}

/// What people read, and what goes elsewhere than to the report.
fn words(report: &CheckReport) -> Vec<(&'static str, String)> {
    let inspected = reports::inspected(report);
    let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
    let mut all = vec![("check.summary.md", github::summary(report))];
    for (quiet, verbose) in [(false, true), (false, false), (true, false)] {
        let options = text::Options { quiet, verbose, width: 60 };
        all.push(("check.txt", plain(text::check(report, options))));
        all.push(("inspect.txt", plain(text::inspect(&inspected, options))));
    }
    for pair in inspected.targets.windows(2) {
        let changes = diff::compare(&pair[0], &pair[1]);
        let options = text::Options { quiet: false, verbose: true, width: 60 };
        all.push(("diff.txt", plain(text::diff(&changes, options))));
        all.push(("diff.md", text::diff_markdown(&changes)));
        all.push(("diff.json", json::render(&changes).unwrap()));
    }
    all
}

fn documents(report: &CheckReport) -> Vec<(&'static str, String)> {
    let mut all = check_documents(report);
    all.extend(inspect_documents(&reports::inspected(report)));
    all
}

#[test]
fn every_report_renders_twice_alike_without_colour_or_control_characters() {
    let directory = std::env::var_os("FLAGAUDIT_FORMATS_DIR");
    for (name, report) in scenarios() {
        let again = documents(report);
        for ((ending, text), (_, second)) in documents(report).into_iter().zip(again) {
            assert_eq!(text, second, "{name}.{ending} differs from itself");
            let bad = text.chars().find(|c| c.is_control() && *c != '\n');
            // JSON may carry what its escapes need not cover: DEL and the C1 controls.
            let json = ending.ends_with("json") && bad.is_some_and(|c| c as u32 >= 0x7f);
            assert!(bad.is_none() || json, "{name}.{ending} has {bad:?}");
            assert!(text.is_empty() || text.ends_with('\n'), "{name}.{ending} has no end of line");
            if let Some(directory) = &directory {
                std::fs::write(Path::new(directory).join(format!("{name}.{ending}")), text).unwrap();
            }
        }
    }
    if let Some(directory) = &directory {
        for (file, schema) in json::schemas() {
            std::fs::write(Path::new(directory).join(file), schema.to_string()).unwrap();
        }
    }
}

#[test]
fn what_people_read_has_no_controls_either() {
    for (name, report) in scenarios() {
        for (ending, text) in words(report) {
            let bad = text.chars().find(|c| c.is_control() && *c != '\n');
            let json = ending.ends_with("json") && bad.is_some_and(|c| c as u32 >= 0x7f);
            assert!(bad.is_none() || json, "{name} {ending} has {bad:?}");
            if ending.ends_with("json") {
                continue;
            }
            // Overrides of direction, and characters that take no room. In Markdown one of them keeps `@all` from calling
            // anybody.
            let unseen = ["\u{202a}", "\u{202c}", "\u{202e}", "\u{2066}", "\u{2060}", "\u{feff}", "\u{2028}"];
            let line = text.lines().find(|line| unseen.iter().any(|c| line.contains(c)));
            assert!(line.is_none(), "{name} {ending}: {:?}", line.unwrap_or_default());
            // A line is begun by this program and not by a name.
            let line = text.lines().find(|line| line.starts_with("::") || line.starts_with("##["));
            assert!(line.is_none(), "{name} {ending}: {line:?}");
            if ending.ends_with("md") {
                let outside = code_spans_removed(&text);
                assert!(
                    !outside.contains(['<', '>']) && !outside.contains("@everyone"),
                    "{name} {ending}: {outside}"
                );
            }
        }
    }
}

#[test]
fn colours_are_this_programs_own() {
    let scenarios: BTreeMap<_, _> = scenarios().iter().map(|(name, report)| (*name, report)).collect();
    let options = text::Options { quiet: false, verbose: true, width: 60 };
    let report = scenarios["nasty"];
    for text in [text::check(report, options), text::inspect(&reports::inspected(report), options)] {
        assert!(text.contains("\x1b[") && text.contains("u{1b}[31mred"));
        let line = text.lines().find(|line| line.contains("\x1b[31mred\x1b[0m") || line.contains("\x1b]"));
        assert!(line.is_none(), "{:?}", line.unwrap_or_default());
    }
}

#[test]
fn a_policy_made_from_hostile_strings_can_be_read() {
    let known = Known {
        rules: &flagaudit::rules::ids(),
        modules: &Vec::new,
        options: &Vec::new,
        never_recorded: &|_| None,
    };
    let scenarios: BTreeMap<_, _> = scenarios().iter().map(|(name, report)| (*name, report)).collect();
    for target in &scenarios["nasty"].targets {
        let text = init::init(&target.facts, "made");
        let unknown_names = |why: &str| why.contains("unknown module") || why.contains("no module");
        if let Err(errors) = load_str("made.toml", &text, None, &known) {
            let why = errors.render(false);
            assert!(unknown_names(&why), "{why}\n{text}");
        }
    }
}

#[test]
fn json_is_of_its_schema() {
    let schemas: BTreeMap<_, _> = json::schemas().into_iter().collect();
    let check = jsonschema::validator_for(&schemas["check.schema.json"]).unwrap();
    let inspect = jsonschema::validator_for(&schemas["inspect.schema.json"]).unwrap();
    for (name, report) in scenarios() {
        let value = serde_json::to_value(report).unwrap();
        assert!(check.is_valid(&value), "{name}: {:?}", check.iter_errors(&value).next());
        let value = serde_json::to_value(reports::inspected(report)).unwrap();
        assert!(inspect.is_valid(&value), "{name}: {:?}", inspect.iter_errors(&value).next());
    }
}

fn sarif_of(report: &CheckReport) -> serde_json::Value {
    let text = sarif::check(report, &reports::rules(), Some(Path::new("/home/me/project"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_sarif_result_has_a_relative_uri_a_line_a_rule_and_a_fingerprint_of_its_own() {
    for (name, report) in scenarios() {
        let log = sarif_of(report);
        assert_eq!(log["runs"].as_array().unwrap().len(), 1);
        let run = &log["runs"][0];
        let results = run["results"].as_array().unwrap();
        assert!(results.len() <= 5000, "{name}: {}", results.len());
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let mut prints = HashSet::new();
        for result in results {
            let locations = result["locations"].as_array().unwrap();
            assert!(!locations.is_empty() && locations.len() <= 100);
            for location in locations {
                let place = &location["physicalLocation"];
                let uri = place["artifactLocation"]["uri"].as_str().unwrap();
                assert!(!uri.is_empty() && uri.is_ascii() && !uri.starts_with('/'), "{uri}");
                assert!(!uri.contains([':', ' ', '?', '#', '\\']) && !uri.contains("//"), "{uri}");
                assert!(!uri.split('/').any(|part| part == ".."), "{uri}");
                assert!(place["region"]["startLine"].as_u64().unwrap() >= 1);
            }
            let index = result["ruleIndex"].as_u64().unwrap() as usize;
            assert_eq!(rules[index]["id"], result["ruleId"]);
            assert!(!rules[index]["help"]["markdown"].as_str().unwrap().is_empty());
            let print = result["partialFingerprints"]["primaryLocationLineHash"].as_str().unwrap();
            assert!(prints.insert(print.to_owned()), "{name}: {print} twice");
        }
    }
}

#[test]
fn sarif_says_what_is_waived_what_was_not_read_and_where_a_configuration_is_wrong() {
    let scenarios: BTreeMap<_, _> = scenarios().iter().map(|(name, report)| (*name, report)).collect();
    let log = sarif_of(scenarios["fail"]);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let levels: Vec<&str> = results.iter().map(|r| r["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["error", "error", "warning", "note", "note"]);
    assert_eq!(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "usr/sbin/nginx");
    assert_eq!(results[0]["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 6);
    let configuration = &results[2]["locations"][0]["physicalLocation"];
    assert_eq!(configuration["artifactLocation"]["uri"], "conf/api.conf");
    assert_eq!(configuration["region"], serde_json::json!({ "startLine": 14, "startColumn": 5 }));
    assert_eq!(results[3]["suppressions"][0]["justification"], "miscompiled at -O2, upstream bug 123");
    assert_eq!(results[4]["ruleId"], "unused-policy-entry");
    let notes = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    assert!(
        notes[0]["message"]["text"]
            .as_str()
            .unwrap()
            .starts_with("gzip-static-without-gunzip was not checked")
    );

    let log = sarif_of(scenarios["error"]);
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert_eq!(invocation["toolExecutionNotifications"][0]["level"], "error");
}

#[test]
fn sarif_fingerprints_know_neither_the_path_nor_the_run() {
    let scenarios: BTreeMap<_, _> = scenarios().iter().map(|(name, report)| (*name, report)).collect();
    let mut moved: CheckReport = scenarios["partial"].clone();
    moved.targets[0].facts.path = "/elsewhere/cut".to_owned();
    moved.targets[0].facts.elf.as_mut().unwrap().build_id = None;
    let prints =
        |report: &CheckReport| sarif_of(report)["runs"][0]["results"][0]["partialFingerprints"].clone();
    assert_eq!(prints(scenarios["partial"]), prints(&moved));
}

#[test]
fn sarif_keeps_the_worst_and_counts_the_rest() {
    let scenarios: BTreeMap<_, _> = scenarios().iter().map(|(name, report)| (*name, report)).collect();
    let log = sarif_of(scenarios["findings-12000"]);
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 5000);
    let counted: u64 = results.iter().filter_map(|result| result["properties"]["aggregated"].as_u64()).sum();
    let single = results.iter().filter(|result| result["properties"]["aggregated"].is_null()).count() as u64;
    assert_eq!(counted + single, 12_000);
    let rest: Vec<(&str, &str)> = results
        .iter()
        .filter(|result| !result["properties"]["aggregated"].is_null())
        .map(|result| (result["ruleId"].as_str().unwrap(), result["level"].as_str().unwrap()))
        .collect();
    assert_eq!(rest, [("missing-module", "warning"), ("unoptimized-code", "error")]);
}

#[test]
fn junit_counts_are_true_and_cases_are_distinct() {
    for (name, report) in scenarios() {
        for text in [junit::check(report, Severity::Error), junit::inspect(&reports::inspected(report))] {
            let count = |what: &str| text.matches(what).count();
            let header = text.lines().nth(1).unwrap();
            let total = format!(
                "tests=\"{}\" failures=\"{}\" errors=\"{}\">",
                count("<testcase "),
                count("<failure "),
                count("<error ")
            );
            assert!(header.contains(&total), "{name}: {header} is not {total}");
            let cases: Vec<&str> = text
                .lines()
                .filter(|line| line.trim_start().starts_with("<testcase "))
                .map(|line| line.trim_end_matches("/>").trim_end_matches('>'))
                .collect();
            let distinct: HashSet<&&str> = cases.iter().collect();
            assert_eq!(distinct.len(), cases.len(), "{name}");
            assert!(!text.contains("]]>"), "{name}");
        }
    }
}

#[test]
fn junit_fails_what_the_threshold_says_and_skips_what_is_waived() {
    let scenarios: BTreeMap<_, _> = scenarios().iter().map(|(name, report)| (*name, report)).collect();
    let count = |fail_on| junit::check(scenarios["fail"], fail_on).matches("<failure ").count();
    assert_eq!((count(Severity::Error), count(Severity::Warning), count(Severity::Note)), (2, 3, 4));
    let text = junit::check(scenarios["fail"], Severity::Error);
    assert!(text.contains("<skipped message=\"waived: miscompiled at -O2, upstream bug 123\"/>"), "{text}");
    let text = junit::check(scenarios["error"], Severity::Error);
    assert!(text.contains("<error type=\"not-elf\" message=\"not audited: not an ELF file"), "{text}");
    assert!(
        junit::check(scenarios["partial"], Severity::Error).contains("<error type=\"damaged-debug-info\"")
    );
}

#[test]
fn annotations_are_one_command_a_line_and_no_more_than_are_shown() {
    for (name, report) in scenarios() {
        for text in [github::check(report), github::inspect(&reports::inspected(report))] {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for line in text.lines() {
                let command = ["::error ", "::warning ", "::notice "].iter().find(|c| line.starts_with(**c));
                *counts.entry(command.unwrap_or_else(|| panic!("{name}: {line}"))).or_default() += 1;
                let (properties, message) = line[2..].split_once("::").unwrap();
                assert!(!message.is_empty());
                for property in properties.split_once(' ').unwrap().1.split(',') {
                    let known = ["file=", "line=", "col=", "title="].iter().any(|p| property.starts_with(p));
                    assert!(known, "{name}: {property}");
                }
            }
            assert!(counts.values().all(|count| *count <= 10), "{name}: {counts:?}");
        }
    }
    let scenarios: BTreeMap<_, _> = scenarios().iter().map(|(name, report)| (*name, report)).collect();
    let text = github::check(scenarios["findings-12000"]);
    assert!(text.contains("::error title=flagaudit%3A 5%2C991 more errors::"), "{text}");
    let text = github::check(scenarios["fail"]);
    assert!(text.contains(
        "::warning file=conf/api.conf,line=14,col=5,title=flagaudit%3A upstream-without-keepalive::"
    ));
}

#[test]
fn markdown_can_be_posted_and_holds_no_markup_of_others() {
    for (name, report) in scenarios() {
        for text in [markdown::check(report), markdown::inspect(&reports::inspected(report))] {
            assert!(text.len() <= 65_536, "{name}: {} bytes", text.len());
            let outside = code_spans_removed(&text);
            assert!(!outside.contains(['<', '>']) && !outside.contains("@everyone"), "{name}: {outside}");
            let columns: HashSet<usize> = text
                .split("\n\n")
                .filter(|block| block.starts_with('|'))
                .map(str::lines)
                .flat_map(|lines| {
                    lines.filter(|l| l.starts_with('|')).map(|l| l.replace("\\|", "").matches('|').count())
                })
                .collect();
            assert!(columns.iter().all(|n| [5, 6].contains(n)), "{name}: {columns:?}");
        }
    }
}

/// The text without its code spans, by the rules of `CommonMark` (section 6.1).
fn code_spans_removed(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            let fence = rest.len() - rest.trim_start_matches('`').len();
            if c == '\\' {
                let width = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                rest = &rest[width..];
            } else if fence == 0 {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            } else {
                let runs = rest[fence..].match_indices('`').map(|(at, _)| at);
                let end = runs.filter(|at| !rest[..fence + at].ends_with('`') || *at == 0).find(|at| {
                    let run = &rest[fence + at..];
                    run.len() - run.trim_start_matches('`').len() == fence
                });
                rest = &rest[end.unwrap_or_else(|| panic!("open code span: {line}")) + 2 * fence..];
            }
        }
        out.push('\n');
    }
    out
}

/// Series of a Prometheus text, as name with labels.
fn series(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap().0).collect()
}

#[test]
fn prometheus_series_are_distinct_and_every_one_names_its_target() {
    for (name, report) in scenarios() {
        for text in [prometheus::check(report), prometheus::inspect(&reports::inspected(report))] {
            let all = series(&text);
            let distinct: HashSet<&&str> = all.iter().collect();
            assert_eq!(distinct.len(), all.len(), "{name}");
            assert!(all.iter().all(|one| one.contains("{target=\"")), "{name}");
        }
    }
    let scenarios: BTreeMap<_, _> = scenarios().iter().map(|(name, report)| (*name, report)).collect();
    let text = prometheus::check(scenarios["repeated"]);
    assert!(text.contains(
        "flagaudit_target_verdict{target=\"objs/nginx\",policy=\"edge gateway release\",verdict=\"fail\"} 1"
    ));
    assert!(text.contains("target=\"pid:811\"") && text.contains("target=\"pid:812\""));
}

#[test]
fn prometheus_help_is_the_same_in_every_file() {
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    for (_, report) in scenarios() {
        for text in [prometheus::check(report), prometheus::inspect(&reports::inspected(report))] {
            for line in text.lines().filter(|line| line.starts_with("# HELP ")) {
                let (metric, help) = line[7..].split_once(' ').unwrap();
                assert_eq!(helps.entry(metric.to_owned()).or_insert_with(|| help.to_owned()), help);
            }
        }
    }
    assert!(helps.len() >= 8);
}

/// What stands between the tags of the page, as a reader without scripts gets it.
#[test]
fn html_is_one_file_that_says_everything_without_scripts_and_asks_for_nothing() {
    for (name, report) in scenarios() {
        for text in [html::check(report).unwrap(), html::inspect(&reports::inspected(report)).unwrap()] {
            for forbidden in ["<img", "<link", "<iframe", "<object", "<form", " style=", " on", "javascript:"]
            {
                let tags = text.split('<').skip(1).filter_map(|tag| tag.split('>').next());
                let found: Vec<&str> = tags
                    .map(|tag| tag.split('"').step_by(2).collect::<Vec<_>>())
                    .flat_map(|parts| parts.into_iter().filter(|part| format!("<{part}").contains(forbidden)))
                    .filter(|part| !part.contains(['{', ';', '(']))
                    .collect();
                assert!(found.is_empty(), "{name}: {forbidden} in {found:?}");
            }
            assert_eq!(text.matches("<script").count(), 2, "{name}");
            assert_eq!(text.matches("</script").count(), 2, "{name}");
            assert!(text.contains("default-src 'none'"), "{name}");
        }
    }
    let scenarios: BTreeMap<_, _> = scenarios().iter().map(|(name, report)| (*name, report)).collect();
    let text = html::check(scenarios["fail"]).unwrap();
    let (body, _) = text.split_once("<script").unwrap();
    for said in [
        "<span class=\"verdict fail\">FAIL</span>",
        "src/http/modules/ngx_array_3.c",
        "ngx_http_gzip_static_module",
        "--with-cc-opt",
        "-O2 -O0",
        "Evidence that disagrees",
        "miscompiled at -O2, upstream bug 123",
        "<path class=\"cells f-O0\"",
        "fill=\"url(#stripes)\"",
    ] {
        assert!(body.contains(said), "{said}");
    }
    assert!(
        html::check(scenarios["error"]).unwrap().contains("not an ELF file, and not the text of nginx -V")
    );
    assert!(html::check(scenarios["empty"]).unwrap().contains("No target was audited."));
}

#[test]
fn html_of_very_much_stays_small_enough_to_open() {
    let scenarios: BTreeMap<_, _> = scenarios().iter().map(|(name, report)| (*name, report)).collect();
    let size = |name: &str| html::check(scenarios[name]).unwrap().len();
    assert!(size("units-5000") < 1_000_000, "{}", size("units-5000"));
    assert!(size("units-30000") < 6_000_000, "{}", size("units-30000"));
    assert!(size("findings-12000") < 2_000_000, "{}", size("findings-12000"));
}
