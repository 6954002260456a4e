use crate::facts::Facts;
use crate::finding::{Finding, FindingStatus, Severity};
use crate::nginx::version::Version;
use crate::rules::config_testing::*;
use crate::rules::testing::{judged, policy};

const ID: &str = "dynamic-gzip-of-static-files";

/// Every written case of the two rules about compressed files. What real nginx sends is tested in `tests/nginx_conf`.
#[test]
fn every_row() {
    let mut wrong = Vec::new();
    for (name, text) in cases("gzip") {
        let text = text.replace("@LISTEN@", "127.0.0.1:80").replace("@ROOT@", "/srv");
        let rule = expected(&text, "rule").unwrap();
        let got = verdict(&with(old(), &text), rule);
        let want = expected(&text, "verdict").unwrap();
        if got != want {
            wrong.push(format!("{name}: {got}, not {want}: {:?}", findings(&with(old(), &text), rule)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What the rule finds at its own severities.
fn found(build: Facts, http: &str) -> Vec<Finding> {
    let facts = with(build, &format!("events {{}}\nhttp {{\ntypes {{ text/css css; }}\n{http}\n}}"));
    judged(&facts, &policy()).findings.into_iter().filter(|finding| finding.rule == ID).collect()
}

const SERVED: &str = "gzip on;\ngzip_types text/css application/javascript;\nserver { location / { root /srv/full; } location /b { } }";

#[test]
fn one_line_is_one_finding_with_its_places() {
    let list = found(old(), SERVED);
    assert_eq!(list.len(), 1, "{list:#?}");
    assert_eq!(list[0].message, "gzip level 1 on static css, js; gzip_static compiled in, off");
    assert_eq!((list[0].severity, list[0].location.as_ref().unwrap().line), (Severity::Warning, 4));
    assert!(
        list[0].known[0].contains("location / (/etc/nginx.conf:6)")
            && list[0].known[0].contains("location /b")
    );
    assert!(list[0].cost.as_ref().unwrap().contains("270,000"));
}

#[test]
fn high_levels_are_errors_and_a_build_without_it_needs_two_steps() {
    let list = found(old(), &format!("gzip_comp_level 6; {SERVED}"));
    assert_eq!(
        (list[0].severity, list[0].message.as_str()),
        (Severity::Error, "gzip level 6 on static css, js; gzip_static compiled in, off")
    );
    let lacking = build(Version(1, 22, 1), &["ngx_http_gzip_static_module"]);
    let list = found(lacking, &format!("gzip_comp_level 9; {SERVED}"));
    assert_eq!(list[0].severity, Severity::Warning);
    assert!(list[0].message.ends_with("gzip_static not compiled in"));
    assert!(
        list[0].remedy.as_ref().unwrap().starts_with("first configure with --with-http_gzip_static_module")
    );
}

#[test]
fn files_out_of_sight_are_said_and_left() {
    let list = found(
        old(),
        "gzip on; gzip_types text/css; server { root /nowhere; location / { gzip_static on; } }",
    );
    assert_eq!(list.len(), 1);
    assert_eq!((list[0].status, list[0].severity), (FindingStatus::NotChecked, Severity::Note));
    assert!(list[0].message.contains(".gz presence not checked"));
}

#[test]
fn types_compressed_already_are_a_warning_of_their_own() {
    let list = found(
        old(),
        "gzip on; gzip_types text/css font/woff2 image/svg+xml application/zip; server { location / { } }",
    );
    assert_eq!(list.len(), 2);
    assert_eq!(
        list[1].message,
        "gzip_types names font/woff2 application/zip: such files are compressed already, and cost time for nothing"
    );
}

#[test]
fn servers_of_one_name_have_fingerprints_of_their_own() {
    let of = |listen: &str, inner: &str| {
        format!("server {{ listen {listen}; server_name x; {inner} location / {{ }} }}")
    };
    let on = "gzip on; gzip_types text/css;";
    let prints = |text: &str| -> Vec<String> {
        found(old(), text).into_iter().map(|finding| finding.fingerprint).collect()
    };
    let both = prints(&format!("{}{}", of("80", on), of("443", on)));
    assert_eq!(both.len(), 2);
    assert_ne!(both[0], both[1]);
    assert_eq!(prints(&format!("{}\n{}", of("80", ""), of("443", on))), both[1..]);
    // One line is one finding, whatever else is served.
    let above = |more: &str| prints(&format!("{on} {more} {}", of("80", "")));
    assert_eq!(above(""), above("server { listen 1; }"));
}

#[test]
fn an_include_that_was_not_seen_leaves_it_open() {
    let list = found(old(), "include tuning.conf; server { location / { } }");
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].status, FindingStatus::Undetermined);
    assert!(found(old(), "include mime.types; gzip off; server { location / { } }").is_empty());
}
