use crate::nginx::version::Version;
use crate::rules::config_testing::*;

const ID: &str = "gzip-static-without-gunzip";

// The rows of the table are tested with those of `dynamic-gzip-of-static-files`.

#[test]
fn a_build_without_the_filter_is_told_its_option() {
    let lacking = build(Version(1, 22, 1), &["ngx_http_gunzip_filter_module"]);
    let text = "http { server { server_name x.org; location /a { gzip_static always; } } }";
    let found = findings(&with(lacking, text), ID);
    assert_eq!(found[0].message, "location /a of x.org: gzip_static always, and this build has no gunzip");
    assert!(found[0].remedy.as_ref().unwrap().contains("--with-http_gunzip_module"));
}

#[test]
fn an_include_that_was_not_seen_leaves_it_open() {
    let text = |inner: &str| {
        format!("http {{ include {inner}; server {{ location /a {{ gzip_static always; }} }} }}")
    };
    assert_eq!(verdict(&with(old(), &text("more.conf")), ID), "undetermined");
    assert_eq!(verdict(&with(old(), &text("mime.types")), ID), "warning");
}
