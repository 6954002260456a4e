use super::*;
use crate::nginx::configure;

#[test]
fn every_line_of_the_table_is_read() {
    let lines =
        include_str!("../modules.tsv").lines().filter(|l| !l.starts_with('#') && !l.is_empty()).count();
    let c = &*CATALOGUE;
    assert_eq!(c.modules.len() + c.options.len() + c.bundled.len() + c.added.len(), lines);
    for row in modules() {
        for option in row.with.iter().chain(row.without.iter().map(|(o, _)| o)) {
            assert!(is_configure_option(option), "{option} of {}", row.name);
        }
    }
}

#[test]
fn default_sets_have_the_measured_sizes() {
    let count = |v: Version| defaults(Family::Nginx, v).count();
    for (version, want) in [
        (Version(1, 0, 0), 43),
        (Version(1, 4, 0), 46),
        (Version(1, 8, 0), 47),
        (Version(1, 9, 11), 48),
        (Version(1, 12, 0), 48),
        (Version(1, 14, 0), 50),
        (Version(1, 22, 1), 51),
        (Version(1, 29, 4), 51),
        (Version(1, 30, 0), 52),
        (Version(1, 31, 4), 54),
    ] {
        assert_eq!(count(version), want, "{version}");
    }
    assert_eq!(defaults(Family::Tengine, Version(1, 31, 3)).count(), 60);
    assert_eq!(defaults(Family::Angie, Version(1, 31, 2)).count(), 62);
}

#[test]
fn names_in_policies() {
    for (pattern, symbol) in [
        ("http_gzip_static", "ngx_http_gzip_static_module"),
        ("ngx_http_gzip_static_module", "ngx_http_gzip_static_module"),
        ("http_gzip_static_module", "ngx_http_gzip_static_module"),
        ("http_sub", "ngx_http_sub_filter_module"),
        ("ngx_http_sub_module", "ngx_http_sub_filter_module"),
        ("http_gunzip", "ngx_http_gunzip_filter_module"),
        ("http_headers_more", "ngx_http_headers_more_filter_module"),
        ("ngx_devel_kit", "ndk_http_module"),
        ("http_upstream_*", "ngx_http_upstream_zone_module"),
        ("ngx_*_module", "ngx_core_module"),
        ("http_v2", "ngx_http_v2_module"),
    ] {
        assert!(module_names_match(pattern, symbol), "{pattern} {symbol}");
    }
    for (pattern, symbol) in [
        ("http_gzip", "ngx_http_gzip_static_module"),
        ("http_v2", "ngx_http_v2_filter_module"),
        ("http", "ngx_http_core_module"),
        ("http_upstream", "ngx_http_upstream_zone_module"),
        ("stream_*", "ngx_http_upstream_zone_module"),
    ] {
        assert!(!module_names_match(pattern, symbol), "{pattern} {symbol}");
    }
    assert_eq!(symbols_named("http_sub"), ["ngx_http_sub_filter_module"]);
    assert!(module_names().contains(&"http_gzip_static"));
}

#[test]
fn remedies_name_the_option_of_that_version() {
    let v = |text: &str| Some(text.parse().unwrap());
    assert_eq!(remedy_option("http_gzip_static", v("1.22.1")), Some("--with-http_gzip_static_module"));
    assert_eq!(remedy_option("ngx_http_sub_filter_module", None), Some("--with-http_sub_module"));
    assert_eq!(remedy_option("http_grpc", v("1.22.1")), Some("--with-http_v2_module"));
    assert_eq!(remedy_option("stream_map", v("1.22.1")), Some("--with-stream"));
    assert_eq!(remedy_option("openssl", v("1.22.1")), Some("--with-http_ssl_module"));
    assert_eq!(remedy_option("http_upstream_keepalive", v("1.22.1")), None);
    assert_eq!(
        remedy("http_upstream_keepalive", Family::Nginx, v("1.22.1")),
        Some(Remedy::Drop("--without-http_upstream_keepalive_module"))
    );
    assert_eq!(remedy("http_v3", Family::Nginx, v("1.22.1")), Some(Remedy::NeedsVersion(Version(1, 25, 0))));
    assert_eq!(remedy("http_spdy", Family::Nginx, None), Some(Remedy::RemovedIn(Version(1, 9, 5))));
    assert_eq!(remedy("no_such", Family::Nginx, None), None);
}

#[test]
fn what_configure_makes_of_arguments() {
    let list = configure::parse(
        "--modules-path=/usr/lib/angie/modules --with-http_geoip_module=dynamic --with-stream_ssl_module --without-http_ssi_module",
    )
    .list;
    let got = expected(Family::Nginx, Some(Version(1, 22, 1)), &list);
    let find = |name: &str| got.iter().find(|(row, _)| row.name == name).map(|(_, dynamic)| *dynamic);
    assert_eq!(find("ngx_http_geoip_module"), Some(true));
    assert_eq!(find("ngx_stream_ssl_module"), Some(false));
    assert_eq!(find("ngx_http_ssi_filter_module"), None);
    assert_eq!(find("ngx_http_postpone_filter_module"), Some(false));
    assert_eq!(find("ngx_http_gzip_static_module"), None);
}

#[test]
fn directories() {
    assert_eq!(symbols_of_directory("../ngx_devel_kit-0.3.1rc1"), ["ndk_http_module"]);
    assert_eq!(symbols_of_directory("/src/ngx_brotli/").len(), 2);
    assert_eq!(directory_stem("../ngx_lua-0.10.5"), "ngx_lua");
    assert_eq!(directory_stem("/x/headers-more-nginx-module"), "headers-more-nginx-module");
    assert_eq!(symbols_of_directory("../njs-0.8.4/nginx"), ["ngx_http_js_module", "ngx_stream_js_module"]);
    assert_eq!(directory_stem("/src/my-gate/nginx/"), "nginx");
    assert!(symbols_of_directory("").is_empty());
}
