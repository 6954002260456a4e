//! `--libraries`: what the loader would load is audited, too, each file by its own policy.

#![allow(clippy::unwrap_used)]

mod common;

use common::{corpus, json, run};
use flagaudit::image::Input;
use flagaudit::limits::Limits;
use flagaudit::target::libraries::Resolver;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles one file with gcc.
fn compile(folder: &Path, source: &str, arguments: &[&str]) {
    let file = folder.join("source.c");
    std::fs::write(&file, source).unwrap();
    let output = Command::new("gcc").current_dir(folder).arg(&file).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What glibc's loader says it would load.
fn traced(program: &Path) -> Option<BTreeSet<PathBuf>> {
    let output = Command::new("ldd").arg(program).env_remove("LD_LIBRARY_PATH").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    if !output.status.success() || text.contains("statically linked") || text.contains("not found") {
        return None;
    }
    let paths = text.lines().filter_map(|line| {
        let place = line.split("=> ").nth(1).unwrap_or(line).trim();
        let path = place.split(" (0x").next()?;
        path.starts_with('/').then(|| Path::new(path).canonicalize().unwrap())
    });
    Some(paths.collect())
}

fn resolved(resolver: &Resolver, program: &Path) -> Option<BTreeSet<PathBuf>> {
    let input = Input::file(std::fs::File::open(program).ok()?).ok()?;
    let loaded = resolver.resolve(&input, program, &[])?;
    assert_eq!(loaded.missing, [], "{}", program.display());
    Some(loaded.found.into_iter().map(|found| found.path.canonicalize().unwrap()).collect())
}

#[test]
#[ignore = "needs the corpus"]
fn the_same_libraries_as_the_loader_loads() {
    let resolver = Resolver::new(None, &Limits::default());
    let mut compared = 0;
    for folder in ["/usr/bin", "/usr/sbin", "/usr/lib/x86_64-linux-gnu", "/usr/libexec"] {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        for file in files.into_iter().filter(|file| file.is_file()).step_by(3) {
            let start = std::fs::read(&file).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"));
            // The loader itself is started otherwise by `ldd`.
            if !start || file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld")) {
                continue;
            }
            let (Some(expected), Some(mut found)) = (traced(&file), resolved(&resolver, &file)) else {
                continue;
            };
            // `ldd` leaves the interpreter out where nothing asks for it by name; ours is started by it all the same.
            found.retain(|path| expected.contains(path) || !path.to_string_lossy().contains("/ld-linux"));
            let expected: BTreeSet<PathBuf> = if found
                .iter()
                .any(|path| path.to_string_lossy().contains("/ld-linux"))
            {
                expected
            } else {
                // A library names no interpreter; `ldd` lends it one.
                expected.into_iter().filter(|path| !path.to_string_lossy().contains("/ld-linux")).collect()
            };
            assert_eq!(found, expected, "{}", file.display());
            compared += 1;
        }
    }
    assert!(compared >= 100, "only {compared} programs to compare");
}

#[test]
#[ignore = "needs the corpus"]
fn an_unoptimized_library_under_an_optimized_nginx_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let nginx = corpus("O2");
    // A root file system with the nginx, its libraries, and another zlib.
    std::fs::create_dir_all(root.join("usr/sbin")).unwrap();
    std::fs::copy(&nginx, root.join("usr/sbin/nginx")).unwrap();
    for library in traced(&nginx).unwrap() {
        let place = root.join(library.strip_prefix("/").unwrap());
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(&library, &place).unwrap();
    }
    for (link, target) in [("lib", "usr/lib"), ("lib64", "usr/lib/x86_64-linux-gnu")] {
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
    }
    let out = Command::new("ldconfig").arg("-n").arg(root.join("usr/lib/x86_64-linux-gnu")).status().unwrap();
    assert!(out.success());
    let root_text = root.to_str().unwrap();
    let target = root.join("usr/sbin/nginx");
    let arguments = ["check", "--no-config", "--libraries", "--root", root_text, target.to_str().unwrap()];
    let before = run(arguments);
    assert!(!before.stdout.contains("FAIL  "), "{}", before.stdout);
    let source = "int deflate(int a) { int b = a * 3; return b + 1; }\nint inflate(int a) { return deflate(a) - 1; }\n";
    compile(root, source, &["-O0", "-g", "-shared", "-fPIC", "-Wl,-soname,libz.so.1", "-o", "libz.so"]);
    let zlib = root.join("usr/lib/x86_64-linux-gnu/libz.so.1").canonicalize().unwrap();
    std::fs::copy(root.join("libz.so"), &zlib).unwrap();
    let after = run(arguments);
    assert_eq!(after.status, 1, "{}{}", after.stdout, after.stderr);
    let failed: Vec<&str> = after
        .stdout
        .lines()
        .filter(|line| line.starts_with("FAIL  ") && !line.contains(" passed; "))
        .collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0].contains("libz.so.1"), "{failed:?}");
    assert!(after.stdout.contains("libz.so.1: library of nginx, in a default directory"), "{}", after.stdout);
    // The policy may have a table for it.
    let policy = root.join("policy.toml");
    std::fs::write(
        &policy,
        "schema = 1\nextends = \"builtin:release\"\n[[target]]\nmatch = { path = \"**/libz.so*\" }\noptimization.minimum = \"O0\"\noptimization.recommended = \"O0\"\n",
    )
    .unwrap();
    let judged = run([
        "check",
        "-p",
        policy.to_str().unwrap(),
        "--libraries",
        "--root",
        root_text,
        target.to_str().unwrap(),
    ]);
    assert_eq!(judged.status, 0, "{}{}", judged.stdout, judged.stderr);
    // A library that is not there is named, and makes the audit incomplete.
    std::fs::remove_file(&zlib).unwrap();
    let missing = run(arguments);
    assert_eq!(missing.status, 2);
    assert!(missing.stderr.contains("libz.so.1 (needed by nginx): not found"), "{}", missing.stderr);
}

#[test]
#[ignore = "needs the corpus"]
fn run_paths_of_real_linkers_are_followed() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    for name in ["bin", "lib/deep"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    compile(
        folder,
        "int b(void) { return 2; }",
        &["-O0", "-g", "-shared", "-fPIC", "-o", "lib/deep/libb.so", "-Wl,-soname,libb.so"],
    );
    compile(
        folder,
        "int b(void); int a(void) { return b(); }",
        &[
            "-O2",
            "-g",
            "-shared",
            "-fPIC",
            "-o",
            "lib/liba.so",
            "lib/deep/libb.so",
            "-Wl,-rpath,$ORIGIN/deep",
            "-Wl,-soname,liba.so",
        ],
    );
    let main = "int a(void); int main(void) { return a(); }";
    let libraries =
        ["-O2", "-g", "-o", "bin/p", "lib/liba.so", "-Wl,-rpath-link,lib/deep", "-Wl,-rpath,$ORIGIN/../lib"];
    for tags in ["-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"] {
        compile(folder, main, &[&libraries[..], &[tags]].concat());
        let program = folder.join("bin/p");
        assert_eq!(resolved(&Resolver::new(None, &Limits::default()), &program), traced(&program));
        let (status, report) = json(["inspect".as_ref(), "--libraries".as_ref(), program.as_os_str()]);
        assert_eq!(status, 0);
        let list = report["targets"].as_array().unwrap();
        let libb = list.iter().find(|facts| facts["library"]["name"] == "libb.so");
        assert_eq!(libb.unwrap()["optimization"]["level"], "O0");
        assert_eq!(libb.unwrap()["library"]["needed_by"], "liba.so");
    }
}
