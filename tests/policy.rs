//! Policies through the library's public interface: golden error messages, built-ins, extension, targets.

use flagaudit::policy::{Known, load};
use std::path::{Path, PathBuf};

const RULES: &[&str] = &[
    "unoptimized-code",
    "undetermined-optimization",
    "conflicting-evidence",
    "forbidden-flag",
    "missing-flag",
    "disallowed-compiler",
    "nonportable-cpu",
    "instrumented-build",
    "debug-build",
    "missing-lto",
    "missing-module",
    "forbidden-module",
    "unlisted-module",
    "missing-configure-argument",
    "forbidden-configure-argument",
    "incompatible-dynamic-module",
    "disallowed-product-version",
    "unapproved-build",
    "missing-pie",
    "partial-relro",
    "executable-stack",
    "missing-stack-protector",
    "missing-fortify",
    "missing-cet",
    "insecure-rpath",
    "text-relocation",
    "stale-process",
    "upstream-without-keepalive",
    "dynamic-gzip-of-static-files",
    "gzip-static-without-gunzip",
    "directive-without-module",
    "unsupported-by-build",
    "unused-policy-entry",
    "expired-waiver",
];

fn modules() -> Vec<String> {
    [
        "http",
        "http_core",
        "http_gzip_filter",
        "http_gzip_static",
        "http_gunzip_filter",
        "http_v2",
        "http_v2_filter",
        "http_v3",
        "http_ssl",
        "http_autoindex",
        "http_perl",
        "http_realip",
        "http_stub_status",
        "http_dav",
        "http_upstream_keepalive",
        "http_upstream_zone",
        "http_slice_filter",
        "http_auth_request",
        "http_sub_filter",
        "stream",
        "stream_ssl",
        "mail",
    ]
    .iter()
    .map(|short| format!("ngx_{short}_module"))
    .collect()
}

fn never_recorded(flag: &str) -> Option<String> {
    (flag.starts_with("-W") || flag.starts_with("-D"))
        .then(|| "compilers do not record warning options and definitions".to_owned())
}

fn known() -> Known<'static> {
    Known { rules: RULES, modules: &modules, never_recorded: &never_recorded }
}

fn files_of(directory: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml" || ext == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{directory} holds no policies");
    files
}

/// Compares with the text kept beside the input; `FLAGAUDIT_BLESS=1` rewrites it.
fn golden(expected: &Path, actual: &str) -> Result<(), String> {
    if std::env::var_os("FLAGAUDIT_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(expected, actual).unwrap();
        return Ok(());
    }
    let text = std::fs::read_to_string(expected).unwrap_or_default();
    if text == actual {
        return Ok(());
    }
    Err(format!("{} differs; it should now be:\n{actual}", expected.display()))
}

#[test]
fn every_error_teaches() {
    let mut wrong = Vec::new();
    for path in files_of("testdata/policy/errors") {
        let diagnostics = match load::load_path(&path, &known()) {
            Ok(_) => {
                wrong.push(format!("{} was accepted", path.display()));
                continue;
            }
            Err(diagnostics) => diagnostics,
        };
        assert!(diagnostics.has_errors(), "{}", path.display());
        let expected = path.with_extension(format!("{}.txt", path.extension().unwrap().to_string_lossy()));
        wrong.extend(golden(&expected, &diagnostics.render(false)).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
