//! Configurations held against builds: what the rules say, and what real nginx does.
//!
//! The tests marked as needing the corpus run nginx itself on the loopback, over the written cases in
//! `testdata/nginx-conf` and the configurations of Debian's packages.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod processes;
mod real;
mod upstreams;

use flagaudit::audit::{self, Options};
use flagaudit::facts::{Facts, Origin};
use flagaudit::finding::{Finding, FindingStatus, Severity};
use flagaudit::nginx::config::Model;
use flagaudit::policy::target::TargetKey;
use flagaudit::policy::{Known, load};
use flagaudit::rules;
use flagaudit::target::Subject;
use real::{Nginx, contained, free_port, get};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const UNKNOWN: &str = "directive-without-module";
const UNSUPPORTED: &str = "unsupported-by-build";

/// A program of the corpus with what the audit holds about it.
struct Audited {
    nginx: Nginx,
    facts: Facts,
}

fn audited(directory: &Path) -> Vec<Audited> {
    real::programs(directory)
        .into_iter()
        .map(|nginx| {
            let subject = Subject::new(nginx.path.clone(), Origin::File);
            let facts = audit::audit(&subject, &Options::default());
            assert!(facts.nginx.is_some(), "{}", nginx.name);
            Audited { nginx, facts }
        })
        .collect()
}

impl Audited {
    /// What the rules find in a configuration, with the configuration rules as errors where nothing caps them.
    fn findings(&self, conf: &Path) -> Vec<Finding> {
        let mut facts = self.facts.clone();
        let model = Model::read(conf, None).unwrap();
        facts.nginx.as_mut().unwrap().config_model = Some(Arc::new(model));
        let text = "schema = 1\nname = \"t\"\n[rules]\nupstream-without-keepalive = \"error\"\ndynamic-gzip-of-static-files = \"error\"\ngzip-static-without-gunzip = \"error\"\n";
        let file = conf.with_extension("policy.toml");
        std::fs::write(&file, text).unwrap();
        let policy = load::load(file.to_str().unwrap(), &Known::nothing()).unwrap();
        let today = "2026-11-30".parse().unwrap();
        rules::judge(&facts, &policy.for_target(&TargetKey::of(&facts)), today).findings
    }

    fn has_module(&self, short: &str) -> bool {
        let modules = self.facts.nginx.as_ref().unwrap().modules.as_ref().unwrap();
        modules.iter().any(|m| {
            m.linkage == flagaudit::facts::Linkage::Static
                && flagaudit::nginx::catalogue::module_names_match(short, &m.name)
        })
    }
}

fn of<'f>(findings: &'f [Finding], rule: &str) -> Vec<&'f Finding> {
    findings
        .iter()
        .filter(|f| f.rule == rule && f.status == FindingStatus::Violation && f.severity > Severity::Note)
        .collect()
}

/// The worst of what a rule finds in a word.
fn verdict(findings: &[Finding], rule: &str) -> &'static str {
    let word = |finding: &Finding| match (finding.status, finding.severity) {
        (FindingStatus::Violation, Severity::Error) => (4, "violation"),
        (FindingStatus::Violation, Severity::Warning) => (3, "warning"),
        (FindingStatus::Undetermined, _) => (2, "undetermined"),
        (FindingStatus::Violation, Severity::Note) => (1, "note"),
        _ => (0, "silent"),
    };
    findings.iter().filter(|f| f.rule == rule).map(word).max().map_or("silent", |(_, word)| word)
}

fn cases(directory: &str) -> Vec<PathBuf> {
    let path = common::testdata("nginx-conf").join(directory);
    let mut out: Vec<PathBuf> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "conf"))
        .collect();
    out.sort();
    out
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn expected<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let start = format!("# {key}: ");
    text.lines().find_map(|line| line.strip_prefix(start.as_str())).map(str::trim)
}

/// Holds `nginx -t` against the rule: an unknown directive is the first that the rule names, and where nginx knows
/// all directives the rule names none.
fn same_unknown(audited: &Audited, conf: &Path, wrong: &mut Vec<String>) -> bool {
    let tested = audited.nginx.test(conf);
    let findings = audited.findings(conf);
    let found = of(&findings, UNKNOWN);
    let place = |f: &Finding| f.location.clone().map(|l| (l.path, l.line));
    let case = format!("{} on {}", conf.display(), audited.nginx.name);
    match &tested.unknown {
        Some((directive, file, line)) => {
            let first = found.first();
            let same = first.is_some_and(|f| {
                // nginx names the line on which the directive ends, flagaudit the one on which it begins.
                f.message.starts_with(&format!("{directive}: "))
                    && place(f).is_some_and(|(path, begins)| path == *file && begins <= *line)
            });
            if !same {
                wrong.push(format!("{case}: nginx: {}\n  flagaudit: {found:#?}", tested.said));
            }
        }
        None if !found.is_empty() => {
            wrong.push(format!("{case}: nginx: {}\n  flagaudit: {found:#?}", tested.said));
        }
        None => {}
    }
    tested.unknown.is_some()
}

#[test]
#[ignore = "needs the corpus"]
fn unknown_directives_are_those_that_nginx_refuses() {
    let directory = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    let (mut pairs, mut refused) = (0, 0);
    for include in ["types.inc", "unknown.inc", "good.inc"] {
        std::fs::copy(
            common::testdata("nginx-conf/directives").join(include),
            directory.path().join(include),
        )
        .unwrap();
    }
    let cases = cases("directives");
    assert!(cases.len() >= 40);
    for audited in audited(directory.path()) {
        for case in &cases {
            let text = std::fs::read_to_string(case).unwrap().replace("@LISTEN@", "127.0.0.1:8099");
            let conf = directory.path().join(format!("{}.conf", name(case)));
            std::fs::write(&conf, contained(&text)).unwrap();
            refused += usize::from(same_unknown(&audited, &conf, &mut wrong));
            pairs += 1;
        }
    }
    eprintln!("{pairs} pairs of configuration and program, {refused} with an unknown directive");
    assert!(wrong.is_empty(), "{} of {pairs} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused > 100);
}

#[test]
#[ignore = "needs the corpus"]
fn what_a_build_cannot_do_is_refused_by_nginx() {
    let directory = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    let (mut pairs, mut refused) = (0, 0);
    for audited in audited(directory.path()) {
        for case in cases("unsupported") {
            let text = std::fs::read_to_string(&case).unwrap().replace("@LISTEN@", "127.0.0.1:8099");
            let conf = directory.path().join(format!("{}.conf", name(&case)));
            std::fs::write(&conf, contained(&text)).unwrap();
            let tested = audited.nginx.test(&conf);
            let findings = audited.findings(&conf);
            // Where a directive itself is unknown, nginx stops there; that is the other rule.
            if tested.unknown.is_some() {
                if of(&findings, UNKNOWN).is_empty() {
                    wrong.push(format!("{} on {}: {}", name(&case), audited.nginx.name, tested.said));
                }
                continue;
            }
            pairs += 1;
            refused += usize::from(!tested.accepted);
            if tested.accepted != of(&findings, UNSUPPORTED).is_empty() {
                let found = of(&findings, UNSUPPORTED);
                wrong.push(format!(
                    "{} on {}: nginx: {}\n  flagaudit: {found:#?}",
                    name(&case),
                    audited.nginx.name,
                    tested.said
                ));
            }
        }
    }
    eprintln!("{pairs} pairs of configuration and program, {refused} refused");
    assert!(wrong.is_empty(), "{} of {pairs} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused > 10);
}

/// Two nginx as the table knows them: one that keeps no upstream connections by default, and one that does.
fn old_and_new(directory: &Path) -> Vec<(&'static str, Audited)> {
    audited(directory)
        .into_iter()
        .filter_map(|audited| match audited.nginx.name {
            "debian" => Some(("old", audited)),
            "wheel" => Some(("new", audited)),
            _ => None,
        })
        .collect()
}

#[test]
#[ignore = "needs the corpus"]
fn upstream_connections_are_counted_as_the_rule_says() {
    const REQUESTS: usize = 20;
    let directory = tempfile::tempdir().unwrap();
    let pair = old_and_new(directory.path());
    // An nginx that names the connection it is asked on is the upstream for HTTP/1 and HTTP/2.
    let ports = [free_port(), free_port(), free_port()];
    let listen = ports.map(|port| format!("listen 127.0.0.1:{port};")).concat();
    let conf = directory.path().join("upstream.conf");
    let text = format!(
        "\nevents {{}}\nhttp {{ http2 on; keepalive_requests 100000; server {{ {listen} return 200 $connection; }} }}"
    );
    std::fs::write(&conf, contained(&text)).unwrap();
    let new = &pair.iter().find(|(key, _)| *key == "new").unwrap().1;
    let _upstream = new.nginx.start(&conf, ports[0]).expect("the upstream starts");

    let mut wrong = Vec::new();
    let mut rows = 0;
    for case in cases("keepalive") {
        let text = std::fs::read_to_string(&case).unwrap();
        let port = match expected(&text, "upstream").unwrap() {
            "fastcgi" => upstreams::start(upstreams::Speech::Fastcgi),
            "uwsgi" => upstreams::start(upstreams::Speech::Uwsgi),
            "scgi" => upstreams::start(upstreams::Speech::Scgi),
            "memcached" => upstreams::start(upstreams::Speech::Memcached),
            _ => ports[0],
        };
        for (key, audited) in &pair {
            let listen = free_port();
            let text = text
                .replace("@LISTEN@", &format!("127.0.0.1:{listen}"))
                .replace("@UPSTREAM2@", &format!("127.0.0.1:{}", ports[1]))
                .replace("@UPSTREAM3@", &format!("127.0.0.1:{}", ports[2]))
                .replace("@UPSTREAM@", &format!("127.0.0.1:{port}"));
            let conf = directory.path().join(format!("{}.conf", name(&case)));
            std::fs::write(&conf, contained(&text)).unwrap();
            let want = expected(&text, key).unwrap();
            let findings = audited.findings(&conf);
            let said = verdict(&findings, "upstream-without-keepalive");
            let seen = match audited.nginx.start(&conf, listen) {
                None => "refused".to_owned(),
                Some(_running) => {
                    let answers: Vec<_> = (0..REQUESTS)
                        .map(|n| {
                            let path = if n % 2 == 0 { "/" } else { "/other" };
                            get(listen, &format!("{path}?up=127.0.0.1:{port}"), "")
                        })
                        .collect();
                    if answers.iter().all(|a| a.status == 400) {
                        format!("400 {said}")
                    } else {
                        let bad = answers.iter().find(|a| a.status != 200).map(|a| a.status);
                        assert_eq!(bad, None, "{} on {key}", name(&case));
                        let connections: BTreeSet<&[u8]> =
                            answers.iter().map(|a| a.body.as_slice()).collect();
                        format!("{} {said}", connections.len())
                    }
                }
            };
            rows += 1;
            let refused_and_said = seen == "refused" && {
                let all: Vec<&Finding> =
                    of(&findings, UNSUPPORTED).into_iter().chain(of(&findings, UNKNOWN)).collect();
                !all.is_empty()
            };
            if seen != want || (seen == "refused" && !refused_and_said) {
                wrong.push(format!("{} on {key}: {seen}, not {want}", name(&case)));
            }
        }
    }
    eprintln!("{rows} rows");
    assert!(wrong.is_empty(), "{} of {rows} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Files as the cases about compression want them; `.gz` files hold other words than their sources.
fn tree(root: &Path) {
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let packed = |words: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, words.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    for (directory, plain, gz) in
        [("full", true, true), ("missing", true, false), ("stale", true, true), ("only", false, true)]
    {
        let directory = root.join(directory);
        std::fs::create_dir_all(&directory).unwrap();
        for name in ["a.html", "a.css", "a.js", "a.png"] {
            if plain {
                std::fs::write(directory.join(name), "plain plain plain plain plain plain").unwrap();
            }
            if gz {
                let path = directory.join(format!("{name}.gz"));
                std::fs::write(&path, packed("packed before")).unwrap();
                if directory.ends_with("stale") {
                    std::fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
                }
            }
        }
    }
}

#[test]
#[ignore = "needs the corpus"]
fn compressed_answers_are_as_the_rules_say() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("srv");
    tree(&root);
    let mut wrong = Vec::new();
    let mut rows = 0;
    for audited in audited(directory.path()) {
        for case in cases("gzip") {
            let text = std::fs::read_to_string(&case).unwrap();
            let needs = expected(&text, "needs").unwrap_or_default();
            let mut lacking = needs.split_whitespace().filter(|module| !audited.has_module(module));
            if lacking.next().is_some() || (text.contains("rewrite ") && !audited.has_module("http_rewrite"))
            {
                continue;
            }
            let listen = free_port();
            let text = text
                .replace("@LISTEN@", &format!("127.0.0.1:{listen}"))
                .replace("@ROOT@", &root.display().to_string());
            let conf = directory.path().join(format!("{}.conf", name(&case)));
            std::fs::write(&conf, contained(&text)).unwrap();
            let findings = audited.findings(&conf);
            if !of(&findings, UNKNOWN).is_empty() || !of(&findings, UNSUPPORTED).is_empty() {
                assert!(!audited.nginx.test(&conf).accepted, "{} on {}", name(&case), audited.nginx.name);
                continue;
            }
            let Some(_running) = audited.nginx.start(&conf, listen) else {
                wrong.push(format!("{} on {}: does not start", name(&case), audited.nginx.name));
                continue;
            };
            let mut accept =
                if expected(&text, "accept") == Some("gzip") { "Accept-Encoding: gzip\r\n" } else { "" }
                    .to_owned();
            if let Some(header) = expected(&text, "send") {
                accept.push_str(header);
                accept.push_str("\r\n");
            }
            // Requests of HTTP/1.0 are compressed only if the configuration says so.
            let answer = real::get_with(listen, expected(&text, "get").unwrap(), &accept, "1.1");
            let seen = what_was_sent(&answer, text.contains("/stale"));
            let said = verdict(&findings, expected(&text, "rule").unwrap());
            if let Some(want) = expected(&text, "vary") {
                assert_eq!(
                    answer.headers.contains("vary: accept-encoding"),
                    want == "yes",
                    "{}",
                    name(&case)
                );
            }
            rows += 1;
            let want = (expected(&text, "sees").unwrap(), expected(&text, "verdict").unwrap());
            if (seen.as_str(), said) != want {
                wrong.push(format!(
                    "{} on {}: {seen} {said}, not {want:?}\n{}",
                    name(&case),
                    audited.nginx.name,
                    answer.headers
                ));
            }
        }
    }
    eprintln!("{rows} rows");
    assert!(wrong.is_empty(), "{} of {rows} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rows >= 60, "{rows}");
}

/// What an answer shows: `static` (the bytes of the `.gz` file), `stale` (an old one's), `dynamic` (compressed now),
/// `unpacked` (the `.gz` file's contents, plain), `plain`, or a status. The `.gz` files hold words of their own.
fn what_was_sent(answer: &real::Answer, stale: bool) -> String {
    if answer.status != 200 {
        return answer.status.to_string();
    }
    let is_packed = answer.headers.contains("content-encoding: gzip");
    let mut words = String::new();
    if is_packed {
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(answer.body.as_slice()), &mut words)
            .unwrap();
    } else {
        words = String::from_utf8_lossy(&answer.body).into_owned();
    }
    match (is_packed, words.contains("packed before")) {
        (true, true) if stale => "stale",
        (true, true) => "static",
        (true, false) => "dynamic",
        (false, true) => "unpacked",
        (false, false) => "plain",
    }
    .to_owned()
}

/// Debian's default configuration, below a directory.
fn debian_default(directory: &Path) -> PathBuf {
    let etc = directory.join("etc/nginx");
    let from = common::corpus("debian-nginx-common/etc/nginx");
    copy_tree(&from, &etc);
    std::fs::create_dir_all(etc.join("modules-enabled")).unwrap();
    std::fs::create_dir_all(etc.join("sites-enabled")).unwrap();
    std::fs::copy(etc.join("sites-available/default"), etc.join("sites-enabled/default")).unwrap();
    etc.join("nginx.conf")
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else if entry.path().is_file() {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
#[ignore = "needs the corpus"]
fn debians_own_configuration_is_clean_and_its_examples_agree() {
    let directory = tempfile::tempdir().unwrap();
    let main = debian_default(directory.path());
    let place = directory.path().display().to_string();
    let inside = |text: &str| {
        text.replace("/etc/nginx", &format!("{place}/etc/nginx"))
            .replace("/var/log/nginx", &place)
            .replace("/run/nginx.pid", &format!("{place}/nginx.pid"))
    };
    let site = main.parent().unwrap().join("sites-enabled/default");
    std::fs::write(&site, inside(&std::fs::read_to_string(&site).unwrap())).unwrap();
    std::fs::write(&main, contained(&inside(&std::fs::read_to_string(&main).unwrap()))).unwrap();
    let programs = audited(directory.path());
    let debian = programs.iter().find(|a| a.nginx.name == "debian").unwrap();
    assert!(debian.nginx.test(&main).accepted, "{}", debian.nginx.test(&main).said);
    let loud: Vec<Finding> = debian
        .findings(&main)
        .into_iter()
        .filter(|f| rules::find(&f.rule).is_some_and(|r| r.keys.iter().any(|k| k.starts_with("rules."))))
        .filter(|f| f.counts() && f.severity > Severity::Note && f.location.is_some())
        .collect();
    assert!(loud.is_empty(), "{loud:#?}");
    // The examples of nginx-doc: whole files as they are, servers and locations inside what they need around them.
    let mut wrong = Vec::new();
    let mut seen = 0;
    let examples = common::corpus("debian-nginx-doc/usr/share/doc/nginx/examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(examples).unwrap().map(|e| e.unwrap().path()).collect();
    files.extend(
        std::fs::read_dir(common::corpus("debian-nginx-common/etc/nginx/snippets"))
            .unwrap()
            .map(|e| e.unwrap().path()),
    );
    files.push(common::corpus("debian-nginx-common/etc/nginx/sites-available/default"));
    for file in files {
        let text = inside(&std::fs::read_to_string(&file).unwrap_or_default());
        if text.starts_with("#!") {
            continue;
        }
        let has = |start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
        let whole = if has("events") {
            text.clone()
        } else if has("http {") || has("mail {") || has("http{") {
            format!("events {{}}\n{text}")
        } else if has("server {") || has("server{") {
            format!("events {{}}\nhttp {{\n{text}\n}}")
        } else {
            format!("events {{}}\nhttp {{\nserver {{\n{text}\n}}\n}}")
        };
        let conf = directory.path().join(format!("example-{}.conf", name(&file)));
        std::fs::write(&conf, contained(&whole)).unwrap();
        for audited in &programs {
            // Where nginx stops for another reason (files that are not there), it says nothing of what follows.
            let tested = audited.nginx.test(&conf);
            if tested.accepted || tested.unknown.is_some() {
                same_unknown(audited, &conf, &mut wrong);
                seen += 1;
            }
        }
    }
    for audited in &programs {
        same_unknown(audited, &main, &mut wrong);
    }
    eprintln!("{seen} pairs of example and program");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 20);
}

#[test]
#[ignore = "needs the corpus"]
fn a_loaded_module_brings_its_directives() {
    const STREAM: &str = "events {}\nstream { server { listen 1; ssl_preread on; return x; } }\n";
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let nginx = root.join("usr/sbin/nginx");
    std::fs::create_dir_all(nginx.parent().unwrap()).unwrap();
    std::fs::copy(common::corpus("debian-nginx/usr/sbin/nginx"), &nginx).unwrap();
    copy_tree(
        &common::corpus("debian-nginx-stream/usr/lib/nginx/modules"),
        &root.join("usr/lib/nginx/modules"),
    );
    let judge = |text: &str| {
        let conf = root.join("nginx.conf");
        std::fs::write(&conf, text).unwrap();
        let options = Options {
            nginx_conf: Some(conf),
            companions: flagaudit::image::companion::Options {
                root: Some(root.to_path_buf()),
                ..flagaudit::image::companion::Options::default()
            },
            ..Options::default()
        };
        let facts = audit::audit(&Subject::new(nginx.clone(), Origin::File), &options);
        let policy = load::load("builtin:nginx-gateway", &Known::nothing()).unwrap();
        let findings =
            rules::judge(&facts, &policy.for_target(&TargetKey::of(&facts)), "2026-11-30".parse().unwrap())
                .findings;
        let modules = facts.nginx.unwrap().dynamic_modules;
        let said: Vec<String> = findings
            .into_iter()
            .filter(|f| f.rule == UNKNOWN && f.severity > Severity::Note)
            .map(|f| f.message)
            .collect();
        (said, modules)
    };
    let (said, _) = judge(STREAM);
    assert_eq!(
        said,
        [
            "stream: ngx_stream_module was built to be loaded (ngx_stream_module.so), and no load_module names it"
        ]
    );
    let (said, modules) =
        judge(&format!("load_module /usr/lib/nginx/modules/ngx_stream_module.so;\n{STREAM}"));
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(modules.iter().map(|m| m.loadable).collect::<Vec<_>>(), [Some(true)]);
    let (said, _) = judge(&format!("load_module modules/ngx_stream_module.so;\n{STREAM}"));
    assert!(said[0].contains("ngx_stream_module.so, which could not be read"), "{said:?}");
}

mod command_line {
    use super::common;

    const TEXT: &str = "nginx version: nginx/1.22.1\nconfigure arguments: --with-http_ssl_module\n";

    fn check(conf: &str, more: &[&str]) -> (i32, serde_json::Value) {
        let directory = tempfile::tempdir().unwrap();
        let text = directory.path().join("version");
        let path = directory.path().join("nginx.conf");
        std::fs::write(&text, TEXT).unwrap();
        std::fs::write(&path, conf).unwrap();
        let mut arguments = vec![
            "check".into(),
            text.into_os_string(),
            "--no-config".into(),
            "--nginx-conf".into(),
            path.into_os_string(),
        ];
        arguments.extend(more.iter().map(Into::into));
        common::json(arguments)
    }

    fn findings<'d>(document: &'d serde_json::Value, rule: &str) -> Vec<&'d serde_json::Value> {
        document["targets"][0]["findings"].as_array().unwrap().iter().filter(|f| f["rule"] == rule).collect()
    }

    #[test]
    fn a_configuration_is_judged_by_the_text_of_the_version_and_by_any_policy() {
        let conf =
            "http {\n  server {\n    gzip_static on;\n    listen 443 http2;\n  }\n  include gone.conf;\n}\n";
        let (status, document) = check(conf, &[]);
        assert_eq!(status, 1);
        let found = findings(&document, "directive-without-module");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["location"]["line"], 3);
        assert_eq!(found[0]["strength"], "declared");
        let unsupported = findings(&document, "unsupported-by-build");
        assert_eq!(unsupported[0]["location"]["line"], 4);
        let config = &document["targets"][0]["nginx"]["config"];
        assert_eq!(config["not_seen"], serde_json::json!(["gone.conf"]));
        assert!(config["files"][0].as_str().unwrap().ends_with("/nginx.conf"));
        assert_eq!(document["targets"][0]["problems"][0]["code"], "include-not-seen");
    }

    #[test]
    fn a_dump_is_read_like_the_files_it_was_made_from() {
        let dump = "nginx: the configuration file /etc/nginx/nginx.conf syntax is ok\n# configuration file /etc/nginx/nginx.conf:\nhttp {\n  include conf.d/*.conf;\n}\n\n# configuration file /etc/nginx/conf.d/a.conf:\nserver {\n  gzip_static on;\n}\n";
        let (_, document) = check(dump, &[]);
        let found = findings(&document, "directive-without-module");
        assert_eq!(found[0]["location"]["path"], "/etc/nginx/conf.d/a.conf");
        assert_eq!(found[0]["location"]["line"], 2);
    }

    #[test]
    fn a_broken_configuration_makes_the_audit_incomplete() {
        let (status, document) = check("http {\n  gzip on\n}\n", &[]);
        assert_eq!(status, 2);
        let problems = document["targets"][0]["problems"].to_string();
        assert!(problems.contains("nginx.conf:3: unexpected"), "{problems}");
        assert_eq!(document["targets"][0]["status"], "partial");
    }

    #[test]
    fn a_file_that_is_not_there_is_bad_usage() {
        let run = common::run(["check", "Cargo.toml", "--nginx-conf", "/no/such/file"]);
        assert_eq!(run.status, 2);
        assert!(run.stderr.contains("/no/such/file: no such configuration file"), "{}", run.stderr);
    }

    #[test]
    fn rules_can_be_turned_off_and_waived_by_file_and_upstream() {
        let conf =
            "http { upstream backend { server a; } server { location / { proxy_pass http://backend; } } }";
        let rule = "upstream-without-keepalive";
        let directory = tempfile::tempdir().unwrap();
        let policy = |text: &str| {
            let path = directory.path().join("policy.toml");
            std::fs::write(&path, format!("schema = 1\nname = \"t\"\n{text}")).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (_, document) = check(conf, &[]);
        assert_eq!(findings(&document, rule)[0]["severity"], "warning");
        let (_, document) = check(conf, &["-p", &policy("[rules]\nupstream-without-keepalive = \"off\"\n")]);
        assert!(findings(&document, rule).is_empty());
        for condition in ["upstream = \"back*\"", "file = \"**/nginx.conf\""] {
            let text = format!("[[waiver]]\nrule = \"{rule}\"\n{condition}\nreason = \"measured\"\n");
            let (_, document) = check(conf, &["-p", &policy(&text)]);
            assert_eq!(findings(&document, rule)[0]["status"], "waived", "{condition}");
        }
    }
}
