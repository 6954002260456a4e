use crate::facts::Facts;
use crate::finding::Finding;
use crate::nginx::version::Version;
use crate::rules::config_testing::*;

const ID: &str = "unsupported-by-build";

fn lacking(modules: &[&str]) -> Facts {
    build(Version(1, 22, 1), modules)
}

fn found(build: Facts, http: &str) -> Vec<Finding> {
    findings(&with(build, &format!("events {{}}\nhttp {{ {http} }}")), ID)
}

/// Asserts that a text is refused by one build, with these words, and taken by another.
fn differs(without: Facts, having: Facts, http: &str, words: &str) {
    let list = found(without, http);
    assert_eq!(list.len(), 1, "{http}: {list:#?}");
    assert!(list[0].message.contains(words), "{}", list[0].message);
    assert_eq!(list[0].location.as_ref().unwrap().line, 2);
    let list = found(having, http);
    assert!(list.is_empty(), "{http}: {list:#?}");
}

#[test]
fn parameters_and_schemes_need_their_modules() {
    let ssl = || lacking(&["ngx_http_ssl_module"]);
    differs(
        ssl(),
        old(),
        "server { listen 443 ssl; }",
        "listen … ssl: this build has no ngx_http_ssl_module",
    );
    differs(lacking(&["ngx_http_v2_module"]), old(), "server { listen 443 http2; }", "ngx_http_v2_module");
    differs(ssl(), old(), "server { location / { proxy_pass https://x; } }", "proxy_pass https://");
    differs(ssl(), old(), "server { location / { grpc_pass grpcs://x; } }", "grpc_pass grpcs://");
    differs(
        old(),
        build(Version(1, 31, 3), &[]),
        "upstream u { server a resolve; }",
        "comes with nginx 1.27.3",
    );
    differs(old(), new(), "server { location / { proxy_http_version 2; } }", "comes with nginx 1.29.4");
    differs(old(), new(), "upstream u { server a; keepalive 0; }", "comes with nginx 1.29.7");
    differs(old(), new(), "upstream u { server a; keepalive 8 local; }", "second argument");
    let quic = found(old(), "server { listen 443 quic; }");
    assert!(quic[0].message.contains("comes with nginx 1.25.0"));
    let quic = found(new(), "server { listen 443 quic; }");
    assert_eq!(quic[0].remedy.as_deref(), Some("configure with --with-http_v3_module; make clean; rebuild"));
}

#[test]
fn access_to_files_needs_features() {
    let mut without = lacking(&["ngx_thread_pool_module"]);
    without.nginx.as_mut().unwrap().configure_arguments = Some(Vec::new());
    differs(without.clone(), old(), "aio on;", "no asynchronous file access");
    differs(without.clone(), old(), "aio threads=default;", "no threads");
    assert!(found(without, "aio off;").is_empty());
}

#[test]
fn patterns_need_pcre() {
    let bare = || lacking(&["ngx_regex_module"]);
    for http in [
        "server { location ~ \\.php$ { } }",
        "server { location ~* \\.php$ { } }",
        "server { server_name ~^www; }",
        "server { location / { valid_referers ~x; } }",
    ] {
        differs(bare(), old(), http, "no PCRE");
    }
    // Without PCRE `map` takes such a key for a text.
    let plain =
        "map $uri $x { ~^/a 1; } server { server_name *.x.org; location ^~ /a { } location = /b { } }";
    assert!(found(bare(), plain).is_empty());
}

#[test]
fn variables_need_their_modules_unless_defined() {
    let bare = || lacking(&["ngx_http_ssl_module"]);
    differs(
        bare(),
        old(),
        "log_format a '$remote_addr ${ssl_protocol}';",
        "$ssl_protocol: this build has no ngx_http_ssl_module",
    );
    assert!(found(bare(), "map $uri $ssl_own { default 1; } server { add_header X $ssl_own; }").is_empty());
    assert!(
        found(
            bare(),
            "server { location ~ ^/(?<ssl_own>a) { set $geoip_own 1; return 200 $ssl_own$geoip_own; } }"
        )
        .is_empty()
    );
    let geoip = found(dynamic(old(), "ngx_http_geoip_module"), "log_format a $geoip_country_code;");
    assert!(geoip[0].remedy.as_ref().unwrap().contains("load_module modules/ngx_http_geoip_module.so"));
}

#[test]
fn one_thing_at_many_places_is_one_finding() {
    let list = found(
        lacking(&["ngx_http_ssl_module"]),
        "server { listen 1 ssl;\nlisten 2 ssl; }\nserver { listen 3 ssl; }",
    );
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].known, ["also at /etc/nginx.conf:3, /etc/nginx.conf:4"]);
}
