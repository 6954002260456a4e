//! Many versions, compilers and machines; what a build can do; and the words of `nginx -V` beside the binary.

use super::{built, corpus, read, static_names, written};
use flagaudit::facts::{ModuleOrigin, Problem};
use flagaudit::nginx::{self, NginxFacts};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Problems that lose something, or that doubt what was found.
fn doubts(facts: &NginxFacts) -> Vec<&Problem> {
    facts.problems.iter().filter(|problem| problem.code != "option-without-effect").collect()
}

#[test]
#[ignore = "needs the corpus"]
fn versions_compilers_levels_and_static_programs() {
    let folder = corpus().join("versions");
    let programs = built(&folder);
    let mut versions = BTreeSet::new();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for (file, want) in &programs {
        let facts = read(file);
        let name = name(file);
        assert_eq!(static_names(&facts), *want, "{name}");
        assert!(doubts(&facts).is_empty(), "{name}: {:?}", facts.problems);
        assert!(facts.conflicts.is_empty(), "{name}: {:?}", facts.conflicts);
        let version = facts.product.version.unwrap();
        assert!(name.starts_with(&format!("{version}-")), "{name} is {version}");
        versions.insert(version.clone());
        let kind = name.trim_start_matches(&version).to_owned();
        *kinds.entry(kind).or_default() += 1;
    }
    eprintln!("{} programs of {versions:?}: {kinds:?}", programs.len());
    assert!(versions.len() >= 6, "{versions:?}");
    for kind in ["-gcc-O0", "-gcc-O2", "-clang-O0", "-clang-O2"] {
        assert!(kinds.contains_key(kind) && kinds.contains_key(&format!("{kind}-static")), "{kind}");
    }
    // The module files that the same builds made.
    let mut modules = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let list = entry.unwrap().path();
        let name = name(&list);
        let Some(file) = name.strip_suffix(".list") else { continue };
        let facts = read(&folder.join(format!("{file}.so")));
        let names: Vec<String> = facts.nginx.modules.unwrap().into_iter().map(|module| module.name).collect();
        assert_eq!(names, written(&list), "{file}");
        assert_eq!(facts.product.name, "nginx-module", "{file}");
        modules += 1;
    }
    assert!(modules >= 4, "{modules}");
}

#[test]
#[ignore = "needs the corpus"]
fn the_same_package_for_four_machines() {
    let mut lists = BTreeSet::new();
    for machine in ["amd64", "arm64", "armhf", "i386"] {
        let facts = read(&corpus().join("machines").join(machine));
        let names = static_names(&facts);
        assert_eq!(names.len(), 71, "{machine}");
        assert!(facts.conflicts.is_empty() && facts.problems.is_empty(), "{machine}: {:?}", facts.conflicts);
        assert_eq!(facts.nginx.directives.unwrap().len(), 538, "{machine}");
        lists.insert(names);
    }
    assert_eq!(lists.len(), 1);
}

#[test]
#[ignore = "needs the corpus"]
fn features_are_seen_with_and_without() {
    const DEBIAN: &str = "debian-nginx/usr/sbin/nginx";
    let corpus = corpus();
    let held = |file: &str, feature: &str| {
        read(&corpus.join(file)).nginx.features.get(feature).and_then(|held| held.value)
    };
    for (file, feature, want) in [
        (DEBIAN, "threads", Some(true)),
        ("bare", "threads", Some(false)),
        ("versions/1.26.3-gcc-O2", "file_aio", Some(true)),
        ("versions/1.26.3-gcc-O2-static", "file_aio", Some(true)),
        (DEBIAN, "file_aio", Some(false)),
        (DEBIAN, "pcre", Some(true)),
        ("bare", "pcre", Some(false)),
        (DEBIAN, "pcre_jit", Some(true)),
        // What a library that is part of the program can do is not told by the program.
        ("versions/1.26.3-gcc-O2-static", "pcre_jit", None),
        ("bare", "pcre_jit", None),
        (DEBIAN, "http_v2", Some(true)),
        ("bare", "http_v2", Some(false)),
        ("versions/1.28.2-gcc-O2", "http_v3", Some(true)),
        ("versions/1.28.2-gcc-O2-static", "http_v3", Some(true)),
        (DEBIAN, "http_v3", Some(false)),
        (DEBIAN, "ktls", Some(true)),
        ("bare", "ktls", None),
        (DEBIAN, "reuseport", Some(true)),
        (DEBIAN, "upstream_keepalive_default", Some(false)),
        ("wheel/nginx", "upstream_keepalive_default", Some(true)),
        ("bare", "upstream_keepalive_default", None),
        ("versions/lua", "lua_assertions", Some(false)),
        ("versions/lua-assert", "lua_assertions", Some(true)),
        ("versions/lua", "lua_abort_at_panic", Some(false)),
        ("versions/lua-assert", "lua_abort_at_panic", Some(true)),
        (DEBIAN, "lua_assertions", None),
        (DEBIAN, "lua_abort_at_panic", None),
    ] {
        assert_eq!(held(file, feature), want, "{feature} of {file}");
    }
    for (file, want) in [
        (DEBIAN, true),
        ("versions/1.28.1-clang-O0", true),
        ("bare", false),
        ("versions/1.28.1-gcc-O2", false),
    ] {
        assert_eq!(read(&corpus.join(file)).nginx.debug.value, Some(want), "{file}");
    }
    // Each rests on a source in the file.
    let facts = read(&corpus.join(DEBIAN));
    assert!(facts.nginx.features.values().all(|held| !held.sources.is_empty()));
}

/// The text that a program itself prints.
fn printed(program: &Path, directory: &Path) -> String {
    // Files of a wheel are not executable. Another process copies it: a child that some other thread starts meanwhile would
    // hold this one's writable handle, and a program that is open for writing cannot be started.
    let copy = directory.join("nginx");
    let copied = Command::new("cp").arg("-f").arg(program).arg(&copy).status().unwrap();
    assert!(copied.success(), "{}", program.display());
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(&copy).arg("-V").stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
#[ignore = "needs the corpus"]
fn the_printed_text_and_the_binary_give_the_same_answer() {
    let directory = tempfile::tempdir().unwrap();
    let corpus = corpus();
    let mut programs: Vec<PathBuf> =
        built(&corpus).into_iter().chain(built(&corpus.join("versions"))).map(|(file, _)| file).collect();
    programs
        .extend(["debian-nginx/usr/sbin/nginx", "wheel/nginx", "envcflags"].map(|file| corpus.join(file)));
    for program in &programs {
        let binary = read(program);
        let text = nginx::read_text(printed(program, directory.path()).as_bytes()).unwrap().unwrap();
        let file = program.display();
        assert_eq!(text.product, binary.product, "{file}");
        assert_eq!(text.nginx.configure_raw, binary.nginx.configure_raw, "{file}");
        assert_eq!(text.nginx.configure_arguments, binary.nginx.configure_arguments, "{file}");
        assert_eq!(
            text.nginx.compiler_line.as_deref().map(str::trim),
            binary.nginx.compiler_line.as_deref(),
            "{file}"
        );
        assert_eq!(text.nginx.openssl.built, binary.nginx.openssl.built, "{file}");
        assert_eq!(
            text.declared.as_ref().map(|d| d.level),
            binary.declared.as_ref().map(|d| d.level),
            "{file}"
        );
        // A patch adds its module to no option, and files of third parties register what they like.
        let own = |facts: &NginxFacts| -> BTreeSet<String> {
            let modules = facts.nginx.modules.iter().flatten();
            modules.filter(|m| m.origin == ModuleOrigin::Builtin).map(|m| m.name.clone()).collect()
        };
        let (said, mut shown) = (own(&text), own(&binary));
        // Whether this one is there is up to the kernel's headers.
        if !said.contains("ngx_quic_bpf_module") {
            shown.remove("ngx_quic_bpf_module");
        }
        assert_eq!(said, shown, "{file}");
    }
    assert!(programs.len() >= 30, "{}", programs.len());
}

#[test]
#[ignore = "needs the corpus"]
fn an_edited_text_is_told_by_the_module_table() {
    let mut bytes = fs::read(corpus().join("O2-stripped")).unwrap();
    let (from, to) = (&b"--with-http_gzip_static_module"[..], b"--with-http_secure_link_module");
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nginx");
    fs::write(&path, bytes).unwrap();
    let facts = read(&path);
    assert_eq!(facts.conflicts.len(), 1, "{:?}", facts.conflicts);
    let conflict = &facts.conflicts[0];
    let values: Vec<String> = conflict.claims.iter().map(|claim| claim.value.to_string()).collect();
    assert_eq!(conflict.fact, "nginx.modules");
    assert_eq!(values, ["[\"ngx_http_secure_link_module\"]", "[\"ngx_http_gzip_static_module\"]"]);
}
