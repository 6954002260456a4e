use super::super::synthetic::{self, Program};
use super::*;
use crate::compiler::Level;
use crate::image::bytes::Format;
use crate::image::linkage;

const WIDE: Format = Format { is_64: true, little_endian: true };
const MODULES: [(&str, [u8; 4], &[&str]); 6] = [
    ("ngx_core_module", *b"CORE", &["daemon", "user"]),
    ("ngx_errlog_module", *b"CORE", &["error_log"]),
    ("ngx_conf_module", *b"CONF", &["include"]),
    ("ngx_http_module", *b"CORE", &["http"]),
    ("ngx_http_header_count_module", *b"HTTP", &[]),
    ("ngx_http_gzip_static_module", *b"HTTP", &["gzip_static"]),
];
const TEXTS: [&str; 6] = [
    "nginx version: nginx/1.22.1\n",
    "built by gcc 12.2.0 (Debian 12.2.0-14) \n",
    "built with OpenSSL 3.0.2 15 Mar 2022\n",
    "configure arguments: --with-cc-opt='-O2 -O0' --with-http_gzip_static_module --with-mail=dynamic\n",
    "\"debug_connection\" is ignored, you need to rebuild nginx using --with-debug option to enable it",
    "nginx was built without debug support",
];

fn facts(program: &Program) -> Option<NginxFacts> {
    facts_of(program.bytes())
}

fn facts_of(bytes: Vec<u8>) -> Option<NginxFacts> {
    let image = synthetic::image(bytes);
    let linkage = linkage::read(&image);
    read(&image, &linkage, &Symbols::new(), &Pointers::read(&image, &linkage))
}

fn names(facts: &NginxFacts, linkage: Linkage) -> Vec<&str> {
    let list = facts.nginx.modules.as_deref().unwrap();
    list.iter().filter(|m| m.linkage == linkage).map(|m| m.name.as_str()).collect()
}

#[test]
fn a_stripped_static_program_of_every_word_size_and_byte_order() {
    for (is_64, little_endian) in [(true, true), (false, true), (true, false), (false, false)] {
        let format = Format { is_64, little_endian };
        let got = facts(&synthetic::nginx(format, &MODULES, &[], &TEXTS)).unwrap();
        let want: Vec<&str> = MODULES.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names(&got, Linkage::Static), want);
        assert!(names(&got, Linkage::Dynamic).contains(&"ngx_mail_imap_module"));
        assert_eq!(got.product.version.as_deref(), Some("1.22.1"));
        assert_eq!(got.nginx.compiler_line.as_deref(), Some("gcc 12.2.0 (Debian 12.2.0-14)"));
        assert_eq!(got.nginx.openssl.built.as_deref(), Some("3.0.2"));
        assert_eq!(got.declared.as_ref().unwrap().level, Level::O0);
        assert_eq!(got.nginx.debug.value, Some(false));
        assert_eq!(got.nginx.debug.strength, Strength::Structural);
        assert_eq!(got.nginx.directives.as_ref().unwrap().len(), 6);
        assert_eq!(got.nginx.directives.as_ref().unwrap()[5].module, "ngx_http_gzip_static_module");
        assert!(got.nginx.disabled.contains(&"ngx_http_proxy_module".to_owned()));
        assert!(
            got.conflicts.is_empty() && got.problems.is_empty(),
            "{:?} {:?}",
            got.conflicts,
            got.problems
        );
        assert!(got.unmerged_modules.is_empty());
    }
}

#[test]
fn a_module_that_no_source_and_no_option_explains_is_a_patch() {
    let got = facts(&synthetic::nginx(WIDE, &MODULES, &[], &TEXTS)).unwrap();
    let origin = |facts: &NginxFacts| {
        let list = facts.nginx.modules.as_ref().unwrap();
        list.iter().find(|m| m.name == "ngx_http_header_count_module").unwrap().origin
    };
    assert_eq!(origin(&got), ModuleOrigin::DistroPatch);
    let added = ["nginx version: nginx/1.22.1\n", "configure arguments: --add-module=/src/counts\n"];
    let got = facts(&synthetic::nginx(WIDE, &MODULES, &[], &added)).unwrap();
    assert_eq!(origin(&got), ModuleOrigin::ThirdParty);
    let other = ["nginx version: nginx/1.22.1\n", "configure arguments: --add-module=/src/ngx_brotli\n"];
    let got = facts(&synthetic::nginx(WIDE, &MODULES, &[], &other)).unwrap();
    assert_eq!(origin(&got), ModuleOrigin::DistroPatch);
    let silent = ["nginx version: nginx/1.22.1\n"];
    let got = facts(&synthetic::nginx(WIDE, &MODULES, &[], &silent)).unwrap();
    assert_eq!(origin(&got), ModuleOrigin::Unknown);
    assert_eq!(got.nginx.configure_arguments, None);
}

#[test]
fn a_module_compiled_apart_keeps_its_own_signature() {
    let got = facts(&synthetic::nginx(WIDE, &MODULES, &[4], &TEXTS)).unwrap();
    assert_eq!(got.unmerged_modules, ["ngx_http_header_count_module"]);
    assert!(got.claims.iter().any(|c| c.source == Source::StringMerging && c.value == "O0"));
}

#[test]
fn edited_texts_are_a_conflict_and_missing_ones_are_unknown() {
    let mut texts = TEXTS;
    texts[0] = "nginx version: nginx/1.30.0\n";
    texts[3] = "configure arguments: --with-debug --with-http_dav_module --with-stream_ssl_module\n";
    let got = facts(&synthetic::nginx(WIDE, &MODULES, &[], &texts)).unwrap();
    let about: Vec<&str> = got.conflicts.iter().map(|c| c.fact.as_str()).collect();
    assert_eq!(about, ["nginx.modules", "product.version", "nginx.debug"]);
    assert_eq!(got.conflicts[0].claims[0].value, serde_json::json!(["ngx_http_dav_module"]));
    // That one is there, and the text has no option for it.
    assert_eq!(got.conflicts[0].claims[1].value, serde_json::json!(["ngx_http_gzip_static_module"]));
    assert_eq!(got.nginx.debug.value, Some(false));
    // Without any text the structures still tell the program and its version.
    let got = facts(&synthetic::nginx(WIDE, &MODULES, &[], &[])).unwrap();
    assert_eq!((got.product.name.as_str(), got.product.version.as_deref()), ("nginx", Some("1.22.1")));
    assert_eq!((got.nginx.debug.value, got.declared.is_none()), (None, true));
}

#[test]
fn one_concatenated_text_of_old_versions_and_a_table_without_names() {
    let mut p = Program::new(WIDE);
    p.text("nginx version: nginx/1.4.7\n");
    p.text("built by gcc 4.7.2\nTLS SNI support enabled\nconfigure arguments: --without-http\n");
    let want = [
        "ngx_core_module",
        "ngx_errlog_module",
        "ngx_conf_module",
        "ngx_events_module",
        "ngx_event_core_module",
        "ngx_epoll_module",
    ];
    let kinds = [*b"CORE", *b"CORE", *b"CONF", *b"CORE", *b"EVNT", *b"EVNT"];
    let directives: [&[&str]; 6] =
        [&["daemon"], &["error_log"], &["include"], &["events"], &["use"], &["epoll_events"]];
    let mut table = Vec::new();
    for (kind, names) in kinds.iter().zip(directives) {
        let commands = p.directives(names);
        table.push(p.old_module(*kind, commands));
    }
    let commands = p.directives(&["own_thing"]);
    table.push(p.old_module(*b"OWNS", commands));
    table.push(0);
    p.words(&table);
    let got = facts(&p).unwrap();
    let found = names(&got, Linkage::Static);
    assert_eq!(found[..6], want);
    assert_eq!(found[6], "(unnamed module with the directive own_thing)");
    assert_eq!(got.nginx.compiler_line.as_deref(), Some("gcc 4.7.2"));
    assert_eq!(got.nginx.configure_raw.as_deref(), Some(" --without-http"));
}

#[test]
fn a_program_that_only_speaks_of_nginx_is_none() {
    let mut p = Program::new(WIDE);
    p.text("usage: prints nginx version: nginx/1.22.1 and configure arguments: of a server");
    p.text("configure arguments:nginx version: Angie version: ");
    p.text("nginx version: nginx/1.22.1\n");
    p.words(&[0; 64]);
    assert!(facts(&p).is_none());
}

#[test]
fn no_flipped_byte_and_no_cut_makes_it_panic() {
    let whole = synthetic::nginx(WIDE, &MODULES, &[], &TEXTS).bytes();
    for at in (0..0x100).chain(0x1000..whole.len()) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        let image = Image::open(crate::image::Input::memory(bytes), &crate::limits::Limits::default());
        let Ok(image) = image else { continue };
        let linkage = linkage::read(&image);
        read(&image, &linkage, &Symbols::new(), &Pointers::read(&image, &linkage));
    }
    for cut in (64..whole.len()).step_by(97) {
        facts_of(whole[..cut].to_vec());
    }
}
