use crate::finding::FindingStatus;
use crate::nginx::version::Version;
use crate::rules::config_testing::*;
use crate::rules::testing::{assert_silent, judged, policy};

const ID: &str = "upstream-without-keepalive";

/// Every written case, against an nginx that keeps no connections by default and one that does. What real ones do is
/// tested in `tests/nginx_conf`.
#[test]
fn every_row() {
    let mut wrong = Vec::new();
    for (name, text) in cases("keepalive") {
        let text = text.replace("@LISTEN@", "127.0.0.1:80").replace("@UPSTREAM@", "127.0.0.1:81");
        for (key, build) in [("old", old()), ("new", new())] {
            let want = expected(&text, key).unwrap();
            let got = verdict(&with(build, &text), ID);
            // What nginx refuses is for the rules about that.
            if want != "refused" && want.split(' ').nth(1) != Some(got) {
                wrong.push(format!("{name} on {key}: {got}, not {want}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const UPSTREAM: &str = "upstream backend { server a; keepalive 8; }";

fn messages(build: crate::facts::Facts, http: &str) -> Vec<String> {
    findings(&with(build, &format!("http {{ {UPSTREAM}\n {http} }}")), ID)
        .into_iter()
        .map(|f| f.message)
        .collect()
}

#[test]
fn the_header_dropped_by_a_location_is_named_with_its_place() {
    let text = "events {}\nhttp { upstream backend { server a; keepalive 8; }\nproxy_http_version 1.1;\nproxy_set_header Connection \"\";\nserver { location / {\nproxy_set_header Host $host;\n  proxy_pass http://backend; } } }";
    let found = findings(&with(old(), text), ID);
    assert_eq!(found.len(), 1);
    let place = found[0].location.clone().unwrap();
    assert_eq!((place.path.as_str(), place.line, place.column), ("/etc/nginx.conf", 7, 3));
    assert_eq!(
        found[0].message,
        "proxy_pass → backend: connections not reused, the location drops Connection \"\" (/etc/nginx.conf:4): any proxy_set_header replaces all outer ones"
    );
    assert!(found[0].remedy.as_ref().unwrap().contains("beside the proxy_set_header at /etc/nginx.conf:6"));
    assert!(found[0].cost.as_ref().unwrap().contains("6,301"));
}

#[test]
fn one_upstream_is_one_finding() {
    let text = "http { upstream backend { server a; } server { location /a { proxy_pass http://backend; } location /b { proxy_pass http://backend; } } }";
    let found = findings(&with(old(), text), ID);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "upstream backend: connections not reused, it has no keepalive");
    let fix = found[0].remedy.clone().unwrap();
    assert!(fix.contains("keepalive 32") && fix.contains("proxy_http_version 1.1"), "{fix}");
    assert!(found[0].known[0].contains("/etc/nginx.conf:1"));
}

#[test]
fn what_was_not_seen_leaves_it_open() {
    let server = |inner: &str| format!("server {{ location / {{ {inner} proxy_pass http://backend; }} }}");
    let open = messages(old(), &server("include proxy_params;"));
    assert_eq!(
        open,
        [
            "proxy_pass → backend: whether connections are reused cannot be told: include proxy_params was not seen"
        ]
    );
    let closed = messages(
        old(),
        &server("include proxy_params; proxy_http_version 1.1; proxy_set_header Connection '';"),
    );
    assert!(closed.is_empty());
    let upstreams = format!("include upstreams.d/*.conf; {}", server(""));
    let named = |name: &str| messages(old(), &upstreams.replace("backend", name));
    assert_eq!(
        named("api"),
        [
            "proxy_pass → api: whether that is an upstream block which keeps connections cannot be told: include upstreams.d/*.conf was not seen"
        ]
    );
    assert!(named("127.0.0.1:80")[0].contains("a bare address keeps none"));
    assert!(messages(old(), &server("")).iter().all(|told| !told.contains("cannot be told")));
    let text = "http { upstream u { include servers; } server { location / { proxy_pass http://u; } } }";
    assert_eq!(verdict(&with(old(), text), ID), "undetermined");
}

#[test]
fn a_balancer_in_lua_is_left_open() {
    let text = "http { upstream u { server 0.0.0.1; balancer_by_lua_block { x = {} } } server { location / { proxy_http_version 1.1; proxy_set_header Connection ''; proxy_pass http://u; } } }";
    assert_eq!(verdict(&with(old(), text), ID), "undetermined");
}

#[test]
fn a_build_without_the_module_keeps_none() {
    let build = build(Version(1, 31, 3), &["ngx_http_upstream_keepalive_module"]);
    let text = "http { upstream u { server a; } server { location / { proxy_pass http://u; } } }";
    let found = findings(&with(build, text), ID);
    assert!(found[0].message.contains("no ngx_http_upstream_keepalive_module"));
    assert!(found[0].remedy.as_ref().unwrap().contains("--without-http_upstream_keepalive_module"));
}

#[test]
fn a_version_that_cannot_be_told_leaves_defaults_open() {
    let mut build = old();
    build.product.as_mut().unwrap().version = None;
    build.nginx.as_mut().unwrap().features.clear();
    let text = "http { upstream u { server a; } server { location / { proxy_pass http://u; } } }";
    assert_eq!(verdict(&with(build.clone(), text), ID), "undetermined");
    // freenginx counts on by itself.
    for (version, want) in [("1.31.3", "undetermined"), ("1.27.2", "violation")] {
        let product = build.product.as_mut().unwrap();
        (product.name, product.version) = ("freenginx".into(), Some(version.into()));
        assert_eq!(verdict(&with(build.clone(), text), ID), want);
    }
}

fn prints(facts: &crate::facts::Facts) -> Vec<String> {
    findings(facts, ID).into_iter().map(|finding| finding.fingerprint).collect()
}

/// A baseline tells findings by their fingerprints.
#[test]
fn places_and_causes_have_fingerprints_of_their_own() {
    let server = |listen: u16, more: &str| {
        format!(
            "server {{ listen {listen}; server_name x; location / {{ {more} proxy_pass http://backend; }} }}"
        )
    };
    let of = |servers: &str| prints(&with(old(), &format!("http {{ {UPSTREAM}\n {servers} }}")));
    let both = of(&format!("{}{}", server(80, ""), server(443, "")));
    assert_eq!(both.len(), 2);
    assert_ne!(both[0], both[1]);
    let moved = of(&format!("\n\n{}{}", server(80, ""), server(443, "")));
    assert_eq!(moved, both);
    let good = "proxy_http_version 1.1; proxy_set_header Connection '';";
    assert_eq!(of(&format!("{}{}", server(80, good), server(443, ""))), both[1..]);
    assert_ne!(of(&server(80, "")), of(&server(80, "proxy_http_version 1.1;")));
}

#[test]
fn streams_and_unused_upstreams_are_not_judged() {
    let text = "stream { upstream s { server a; } server { listen 1; proxy_pass s; } } http { upstream u { server a; } server { location / { } } }";
    assert_eq!(verdict(&with(old(), text), ID), "silent");
}

#[test]
fn without_a_configuration_it_is_not_checked_and_never_passed() {
    assert_silent(&old(), &policy(), ID);
    let mut wanted = policy();
    for rule in crate::rules::config_common::CONFIG_RULES {
        let setting = crate::policy::Setting::Report(crate::finding::Severity::Error);
        wanted.rules.insert(rule.into(), crate::rules::testing::at(setting, 60));
    }
    let judgement = judged(&old(), &wanted);
    assert_eq!(judgement.not_checked.len(), 5);
    assert_eq!(judgement.findings.len(), 1);
    assert_eq!(judgement.findings[0].message, "5 rules about the configuration not checked: no --nginx-conf");
    assert_eq!(judgement.findings[0].status, FindingStatus::NotChecked);
}
