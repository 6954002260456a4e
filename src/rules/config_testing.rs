//! Builds and configurations for tests of the rules about configurations.

use super::testing::{at, judged, module, nginx, policy};
use crate::compiler::Level;
use crate::evidence::{Held, Source, Strength};
use crate::facts::{Directive, Facts, Linkage};
use crate::finding::{Finding, FindingStatus, Severity};
use crate::nginx::config::Model;
use crate::nginx::config::history::{Standing, standing};
use crate::nginx::version::{Family, Version};
use crate::nginx::{catalogue, vocabulary};
use crate::policy::Setting;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of a build with much in it.
const EXTRA: [&str; 16] = [
    "ngx_openssl_module",
    "ngx_http_ssl_module",
    "ngx_http_v2_module",
    "ngx_http_v2_filter_module",
    "ngx_http_grpc_module",
    "ngx_http_proxy_v2_module",
    "ngx_http_gzip_static_module",
    "ngx_http_gunzip_filter_module",
    "ngx_http_realip_module",
    "ngx_http_sub_filter_module",
    "ngx_http_addition_filter_module",
    "ngx_http_stub_status_module",
    "ngx_http_auth_request_module",
    "ngx_http_dav_module",
    "ngx_thread_pool_module",
    "ngx_http_slice_filter_module",
];

/// nginx of that version with the modules of its default build and [`EXTRA`], those it has, but without some.
pub fn build(version: Version, without: &[&str]) -> Facts {
    let mut facts = nginx(1, Level::O2);
    facts.product.as_mut().unwrap().version = Some(version.to_string());
    let has = |name: &&str| {
        catalogue::known(name).is_some_and(|known| known.exists_in(Family::Nginx, version))
            && !without.contains(name)
    };
    let names: Vec<&str> =
        catalogue::defaults(Family::Nginx, version).chain(EXTRA.iter().copied()).filter(has).collect();
    let own = facts.nginx.as_mut().unwrap();
    own.modules = Some(names.iter().map(|name| module(name)).collect());
    let directives = names.iter().flat_map(|module| {
        let list = vocabulary::directives_of(module).iter();
        list.filter(|name| standing(module, name, Family::Nginx, version) == Standing::There)
            .map(|name| Directive { name: (*name).to_owned(), module: (*module).to_owned() })
    });
    own.directives = Some(directives.collect());
    own.configure_arguments = Some(vec![crate::rules::testing::argument("--with-file-aio", None)]);
    let new = Held::new(version >= Version(1, 29, 7), Strength::Structural, Source::ModuleTable);
    own.features.insert("upstream_keepalive_default".to_owned(), new);
    facts
}

/// nginx 1.22.1.
pub fn old() -> Facts {
    build(Version(1, 22, 1), &[])
}

/// nginx 1.31.3.
pub fn new() -> Facts {
    build(Version(1, 31, 3), &[])
}

/// Adds a module that was built to be loaded.
pub fn dynamic(mut facts: Facts, name: &str) -> Facts {
    let mut added = module(name);
    added.linkage = Linkage::Dynamic;
    facts.nginx.as_mut().unwrap().modules.as_mut().unwrap().push(added);
    facts
}

/// The build with a configuration of files, of which the first is the main one.
pub fn with_files(mut facts: Facts, files: &[(&str, &str)]) -> Facts {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = directory.path();
    tree(&root.join("srv"));
    facts.problems.clear();
    let model = Model::read(&root.join(files[0].0), Some(root)).unwrap();
    facts.problems.extend(model.problems.clone());
    let own = facts.nginx.as_mut().unwrap();
    own.config = Some(model.facts());
    own.config_model = Some(Arc::new(model));
    // Rules look at the files while the facts are judged.
    KEPT.with(|kept| kept.borrow_mut().push(directory));
    facts
}

thread_local! {
    /// Directories that last as long as the test.
    static KEPT: std::cell::RefCell<Vec<tempfile::TempDir>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Files with their compressed ones (`full`), without (`missing`), with older ones (`stale`), and compressed ones alone.
fn tree(root: &std::path::Path) {
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for (directory, plain, packed) in
        [("full", true, true), ("missing", true, false), ("stale", true, true), ("only", false, true)]
    {
        let directory = root.join(directory);
        std::fs::create_dir_all(&directory).unwrap();
        for name in ["a.html", "a.css", "a.js", "a.png"] {
            if plain {
                std::fs::write(directory.join(name), "plain plain plain plain plain plain").unwrap();
            }
            if packed {
                let file = std::fs::File::create(directory.join(format!("{name}.gz"))).unwrap();
                if directory.ends_with("stale") {
                    file.set_modified(long_ago).unwrap();
                }
            }
        }
    }
}

/// The build with a configuration of one file, `nginx.conf`.
pub fn with(facts: Facts, text: &str) -> Facts {
    with_files(facts, &[("etc/nginx.conf", text)])
}

/// What a rule finds, at severity error where nothing caps it.
pub fn findings(facts: &Facts, rule: &str) -> Vec<Finding> {
    let mut wanted = policy();
    wanted.rules.insert(rule.to_owned(), at(Setting::Report(Severity::Error), 60));
    judged(facts, &wanted).findings.into_iter().filter(|finding| finding.rule == rule).collect()
}

/// The worst of what a rule finds in a word: `violation` for what no bound holds down, `warning`, `note`, `undetermined`,
/// `silent`.
pub fn verdict(facts: &Facts, rule: &str) -> &'static str {
    let found = findings(facts, rule);
    let word = |finding: &Finding| match (finding.status, finding.severity) {
        (FindingStatus::Violation, Severity::Error) => (4, "violation"),
        (FindingStatus::Violation, Severity::Warning) => (3, "warning"),
        (FindingStatus::Undetermined, _) => (2, "undetermined"),
        (FindingStatus::Violation, Severity::Note) => (1, "note"),
        _ => (0, "silent"),
    };
    found.iter().map(word).max().map_or("silent", |(_, word)| word)
}

/// Written cases in a directory of `testdata/nginx-conf`: name and text, sorted.
pub fn cases(directory: &str) -> Vec<(String, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/nginx-conf").join(directory);
    let mut out: Vec<(String, String)> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap())
        })
        .collect();
    out.sort();
    assert!(!out.is_empty());
    out
}

/// The line of a case that says what is expected: `# old: …`.
pub fn expected<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let start = format!("# {key}: ");
    text.lines().find_map(|line| line.strip_prefix(start.as_str())).map(str::trim)
}
