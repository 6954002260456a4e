use crate::facts::Facts;
use crate::finding::{Finding, FindingStatus, Severity};
use crate::nginx::config::{Loaded, LoadedModule, Place};
use crate::nginx::version::Version;
use crate::rules::config_testing::*;
use crate::rules::testing::argument;
use std::sync::Arc;

const ID: &str = "directive-without-module";

/// The findings that are no note about unused modules.
fn found(build: Facts, text: &str) -> Vec<Finding> {
    findings(&with(build, text), ID).into_iter().filter(|f| f.severity != Severity::Note).collect()
}

fn one(build: Facts, text: &str) -> (String, String) {
    let list = found(build, text);
    assert_eq!(list.len(), 1, "{list:#?}");
    (list[0].message.clone(), list[0].remedy.clone().unwrap_or_default())
}

#[test]
fn a_module_that_is_missing_is_named_with_its_option() {
    let lacking = build(Version(1, 22, 1), &["ngx_http_gzip_static_module"]);
    let text =
        "events {}\nhttp {\n  server {\n    gzip_static on; location / { gzip_static always; }\n  }\n}";
    let list = found(lacking, text);
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].message, "gzip_static: this build has no ngx_http_gzip_static_module");
    assert_eq!(
        list[0].remedy.as_deref(),
        Some("configure with --with-http_gzip_static_module; make clean; rebuild")
    );
    let place = list[0].location.as_ref().unwrap();
    assert_eq!((place.path.as_str(), place.line, place.column), ("/etc/nginx.conf", 4, 5));
    assert_eq!(list[0].known, ["also at /etc/nginx.conf:4"]);
    let lacking = build(Version(1, 22, 1), &["ngx_http_charset_filter_module"]);
    let (_, remedy) = one(lacking, "http { charset utf-8; }");
    assert!(remedy.contains("configure without --without-http_charset_module"), "{remedy}");
}

#[test]
fn directives_of_other_versions_are_not_missing_modules() {
    assert_eq!(
        one(old(), "http { server { http2 on; } }"),
        (
            "http2: nginx 1.22.1 does not have this directive; it comes with 1.25.1".to_owned(),
            "upgrade to nginx 1.25.1 or newer; here: `listen … http2`".to_owned()
        )
    );
    assert_eq!(
        one(new(), "http { server { ssl on; } }"),
        (
            "ssl: was removed in nginx 1.25.1; this is nginx 1.31.3".to_owned(),
            "use `listen … ssl` instead".to_owned()
        )
    );
    assert!(found(old(), "http { server { ssl on; } }").is_empty());
    assert!(found(new(), "http { server { http2 on; } }").is_empty());
}

#[test]
fn modules_built_to_be_loaded_ask_for_load_module_and_their_package() {
    let mut build = dynamic(old(), "ngx_stream_module");
    let own = build.nginx.as_mut().unwrap();
    own.configure_arguments = Some(vec![argument("--modules-path", Some("/usr/lib/nginx/modules"))]);
    own.configure_raw = Some(
        " --prefix=/usr/share/nginx --modules-path=/usr/lib/nginx/modules --with-stream=dynamic".to_owned(),
    );
    let text = "stream { server { unknown; } }";
    let (message, remedy) = one(build, text);
    assert!(message.starts_with("stream: ngx_stream_module was built to be loaded"), "{message}");
    assert!(remedy.contains("`load_module /usr/lib/nginx/modules/ngx_stream_module.so;`"));
    assert!(remedy.ends_with("in the package libnginx-mod-stream"), "{remedy}");
}

fn loading(build: Facts, text: &str, module: Result<LoadedModule, String>) -> Vec<Finding> {
    let mut facts = with(build, text);
    let own = facts.nginx.as_mut().unwrap();
    let mut model = (**own.config_model.as_ref().unwrap()).clone();
    model.loaded.push(Loaded { path: "/m/ngx_stream_module.so".to_owned(), at: Place::default(), module });
    own.config_model = Some(Arc::new(model));
    findings(&facts, ID).into_iter().filter(|f| f.severity != Severity::Note).collect()
}

#[test]
fn what_is_loaded_counts_and_what_could_not_be_read_leaves_it_open() {
    let text = "stream { own_directive x; }";
    let module = LoadedModule {
        names: vec!["ngx_stream_module".to_owned()],
        directives: vec!["stream".to_owned(), "own_directive".to_owned()],
    };
    assert!(loading(old(), text, Ok(module)).is_empty());
    let open = loading(dynamic(old(), "ngx_stream_module"), text, Err("not there".to_owned()));
    assert_eq!((open.len(), open[0].status), (1, FindingStatus::Undetermined));
    assert!(open[0].message.contains("ngx_stream_module.so, which could not be read"));
    let open = loading(old(), "http { own_thing on; }", Err("not there".to_owned()));
    assert_eq!(open[0].status, FindingStatus::Undetermined);
    // A module of nginx's own does not come out of another's file.
    let lacking = build(Version(1, 22, 1), &["ngx_http_gzip_static_module"]);
    let certain = loading(lacking, "http { gzip_static on; }", Err("not there".to_owned()));
    assert_eq!(certain[0].status, FindingStatus::Violation);
}

#[test]
fn keys_and_lua_are_no_directives_and_quotes_do_not_matter() {
    for text in [
        "http { types { own/type own_thing; } map $a $b { own_key 1; } geo $c { default own; } split_clients $a $d { 50% own; } }",
        "http { charset_map a b { 80 E282AC ; } }",
        "http { \"gzip\" on; 'gzip_types' text/css; }",
        "http { include none-*.conf; }",
    ] {
        assert!(found(old(), text).is_empty(), "{text}");
    }
    let (message, _) = one(old(), "http { server { content_by_lua_block { own_call() } } }");
    assert!(message.contains("lua-nginx-module brings it"), "{message}");
    let (message, _) = one(old(), "http { gzip_typse x; }");
    assert!(message.contains("did you mean gzip_types?"), "{message}");
}

#[test]
fn a_text_of_the_version_does_for_nginx_s_own_modules() {
    let mut text_only = build(Version(1, 22, 1), &["ngx_http_gzip_static_module"]);
    text_only.nginx.as_mut().unwrap().directives = None;
    let list = found(text_only.clone(), "http { gzip_static on; gzip on; own_thing on; }");
    assert_eq!(list.len(), 2);
    let status = |word: &str| list.iter().find(|f| f.message.starts_with(word)).unwrap().status;
    assert_eq!(status("gzip_static"), FindingStatus::Violation);
    assert_eq!(status("own_thing"), FindingStatus::Undetermined);
    text_only.nginx.as_mut().unwrap().modules = None;
    assert_eq!(
        found(text_only, "http { gzip on; }")[0].message,
        "the directives this nginx knows cannot be read"
    );
}

#[test]
fn a_text_without_tls_or_cache_has_none_of_their_directives() {
    let text_only = |without: &[&str], option: Option<&str>| {
        let mut facts = build(Version(1, 22, 1), without);
        let own = facts.nginx.as_mut().unwrap();
        own.directives = None;
        own.configure_arguments.as_mut().unwrap().extend(option.map(|name| argument(name, None)));
        facts
    };
    let used = "http { proxy_cache off; server { grpc_ssl_name x; } }";
    assert!(found(text_only(&[], None), used).is_empty());
    assert_eq!(
        one(text_only(&["ngx_http_ssl_module"], None), used),
        (
            "grpc_ssl_name: ngx_http_grpc_module is in this build, but without this directive, which needs ngx_http_ssl_module".to_owned(),
            "configure with --with-http_ssl_module; make clean; rebuild".to_owned()
        )
    );
    assert_eq!(
        one(text_only(&[], Some("--without-http-cache")), used),
        (
            "proxy_cache: ngx_http_proxy_module is in this build, but without this directive, which --without-http-cache takes out".to_owned(),
            "configure without --without-http-cache; make clean; rebuild".to_owned()
        )
    );
}

#[test]
fn modules_never_used_are_a_note_if_all_was_seen() {
    let note = |text: &str| {
        let list = findings(&with(old(), text), ID);
        list.into_iter().find(|f| f.severity == Severity::Note).map(|f| f.message)
    };
    let message = note("http { server { listen 443 ssl; gunzip on; } }").unwrap();
    assert!(message.contains("http_gzip_static") && message.contains("http_realip"), "{message}");
    assert!(
        !message.contains("http_ssl") && !message.contains("gunzip") && !message.contains("charset"),
        "{message}"
    );
    assert_eq!(note("http { include gone.conf; }"), None);
}
