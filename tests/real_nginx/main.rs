//! nginx as it is really built: what is read from the file against what the build itself wrote down.
//!
//! Needs a folder named by `FLAGAUDIT_CORPUS`: `NAME` and `NAME-stripped` with `NAME.ngx_modules.c` (nginx 1.22.1 built at several
//! levels), `debian-nginx/` (Debian's package unpacked), `wheel/nginx` (a static nginx); `versions/` (other versions, dynamic
//! and static), `machines/` (Debian's packages for other machines), `modules/` (Debian's dynamic modules, unpacked).
#![allow(missing_docs, clippy::unwrap_used)]

mod dynamic;
mod family;

use flagaudit::compiler::Level;
use flagaudit::facts::{Linkage, ModuleOrigin};
use flagaudit::image::linkage;
use flagaudit::image::pointers::Pointers;
use flagaudit::image::symbols::Symbols;
use flagaudit::image::{Image, Input};
use flagaudit::limits::Limits;
use flagaudit::nginx::{self, NginxFacts};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    PathBuf::from(std::env::var_os("FLAGAUDIT_CORPUS").expect("FLAGAUDIT_CORPUS names the corpus folder"))
}

fn read(path: &Path) -> NginxFacts {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let image = Image::open(Input::file(file).unwrap(), &Limits::default()).unwrap();
    let linkage = linkage::read(&image);
    let pointers = Pointers::read(&image, &linkage);
    nginx::read(&image, &linkage, &Symbols::new(), &pointers)
        .unwrap_or_else(|| panic!("{} is not read as nginx", path.display()))
}

/// The array that the build wrote, in its order.
fn written(path: &Path) -> Vec<String> {
    let source = fs::read_to_string(path).unwrap();
    let array = source.split("ngx_modules[] = {").nth(1).unwrap().split("NULL").next().unwrap();
    array.split(',').filter_map(|word| word.trim().strip_prefix('&')).map(str::to_owned).collect()
}

fn static_names(facts: &NginxFacts) -> Vec<String> {
    let list = facts.nginx.modules.as_ref().expect("a module list");
    list.iter().filter(|m| m.linkage == Linkage::Static).map(|m| m.name.clone()).collect()
}

/// Programs of a folder with the array that the build of each wrote.
fn built(folder: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let list = entry.unwrap().path();
        let name = list.file_name().unwrap().to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".ngx_modules.c") else { continue };
        let want = written(&list);
        for file in [folder.join(name), folder.join(format!("{name}-stripped"))] {
            if file.is_file() {
                out.push((file, want.clone()));
            }
        }
    }
    out.sort();
    out
}

#[test]
#[ignore = "needs the corpus"]
fn module_lists_equal_what_each_build_wrote() {
    let programs = built(&corpus());
    for (file, want) in &programs {
        assert_eq!(static_names(&read(file)), *want, "{}", file.display());
    }
    assert!(programs.len() >= 4, "only {} programs in the corpus", programs.len());
}

#[test]
#[ignore = "needs the corpus"]
fn declared_levels_and_copies_of_the_signature() {
    let level = |name: &str| read(&corpus().join(name)).declared.unwrap().level;
    for (name, want) in [
        ("default-stripped", Level::O1),
        ("O0-stripped", Level::O0),
        ("O2-stripped", Level::O2),
        ("O2O0-stripped", Level::O0),
        ("envcflags", Level::Unknown),
    ] {
        assert_eq!(level(name), want, "{name}");
    }
    let unmerged = |name: &str| read(&corpus().join(name)).unmerged_modules.len();
    assert_eq!(unmerged("default-stripped"), 0);
    assert_eq!(unmerged("O0-stripped"), static_names(&read(&corpus().join("O0"))).len());
    assert_eq!(read(&corpus().join("mixed-stripped")).unmerged_modules, ["ngx_http_upstream_module"]);
}

#[test]
#[ignore = "needs the corpus"]
fn debians_nginx() {
    let facts = read(&corpus().join("debian-nginx/usr/sbin/nginx"));
    assert_eq!(facts.product.version.as_deref(), Some("1.22.1"));
    assert_eq!(facts.declared.as_ref().unwrap().level, Level::O2);
    assert_eq!(facts.nginx.debug.value, Some(true));
    assert_eq!(facts.nginx.compiler_line, None);
    assert!(facts.conflicts.is_empty() && facts.problems.is_empty());
    let names = static_names(&facts);
    assert_eq!(names.len(), 71);
    let list = facts.nginx.modules.as_ref().unwrap();
    let patched: Vec<&str> =
        list.iter().filter(|m| m.origin == ModuleOrigin::DistroPatch).map(|m| m.name.as_str()).collect();
    assert_eq!(patched, ["ngx_http_header_count_module"]);
    assert!(list.iter().any(|m| m.name == "ngx_stream_ssl_module" && m.linkage == Linkage::Dynamic));
    assert_eq!(facts.nginx.directives.as_ref().unwrap().len(), 538);
    assert_eq!(facts.nginx.signature.as_ref().unwrap().compat, Some(true));
    assert_eq!(facts.nginx.features["threads"].value, Some(true));
    let arguments = facts.nginx.configure_arguments.as_ref().unwrap();
    assert_eq!(arguments[0].name, "--with-cc-opt");
    assert!(arguments[0].value.as_ref().unwrap().ends_with("-D_FORTIFY_SOURCE=2"));
}

#[test]
#[ignore = "needs the corpus"]
fn a_static_program_without_dynamic_symbols() {
    let facts = read(&corpus().join("wheel/nginx"));
    assert_eq!(facts.product.version.as_deref(), Some("1.31.3"));
    let names = static_names(&facts);
    assert_eq!(names.len(), 98);
    assert_eq!(names[..2], ["ngx_core_module", "ngx_errlog_module"]);
    assert!(facts.problems.is_empty());
    assert_eq!(facts.declared.unwrap().level, Level::Os);
}

#[test]
#[ignore = "needs the corpus"]
fn connections_kept_by_default_are_seen_in_the_directive_itself() {
    let kept = |name: &str| read(&corpus().join(name)).nginx.features["upstream_keepalive_default"].value;
    assert_eq!(kept("debian-nginx/usr/sbin/nginx"), Some(false));
    assert_eq!(kept("wheel/nginx"), Some(true));
}

/// The filters found in the code that chains them are those that symbols call so, and stripping takes none away.
#[test]
#[ignore = "needs the corpus"]
fn filters_are_those_of_the_symbol_table() {
    for name in ["O0", "O2", "Os", "default", "clangO0", "clangO2"] {
        let path = corpus().join(name);
        let listed = std::process::Command::new("nm").arg(&path).output().unwrap().stdout;
        let named: BTreeMap<u64, String> = String::from_utf8(listed)
            .unwrap()
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let (address, kind, symbol) = (words.next()?, words.next()?, words.next()?);
                let code = matches!(kind, "t" | "T");
                (code && symbol.starts_with("ngx_http_") && symbol.ends_with("_filter"))
                    .then(|| Some((u64::from_str_radix(address, 16).ok()?, symbol.to_owned())))?
            })
            .collect();
        let found = read(&path).filters;
        let found_names: Vec<_> = found.iter().map(|address| named.get(address)).collect();
        assert!(found_names.iter().all(Option::is_some), "{name}: {found:x?} {found_names:?}");
        // These names are given to filters of the chain only; others end in `_filter`, too, and are called by name, as
        // are those of request bodies.
        let chained = |symbol: &str| {
            let ending = symbol.ends_with("_header_filter") || symbol.ends_with("_body_filter");
            ending && !symbol.contains("request_body")
        };
        let missed: Vec<_> =
            named.iter().filter(|(address, symbol)| chained(symbol) && !found.contains(address)).collect();
        assert!(missed.is_empty(), "{name}: {missed:x?}");
        let stripped = corpus().join(format!("{name}-stripped"));
        assert_eq!(found, read(&stripped).filters, "{name}, stripped");
    }
}
