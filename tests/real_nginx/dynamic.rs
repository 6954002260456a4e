//! What is predicted of `load_module`, and what nginx says to it.

use super::corpus;
use flagaudit::audit::{self, Options};
use flagaudit::facts::{DynamicModule, Origin};
use flagaudit::target::Subject;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server in a folder of its own.
struct Server {
    program: PathBuf,
    conf: PathBuf,
    libraries: OsString,
}

impl Server {
    fn new(directory: &Path, name: &str, program: &Path) -> Self {
        let directory = directory.join(name);
        fs::create_dir_all(&directory).unwrap();
        let copy = directory.join("nginx");
        fs::copy(program, &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        Self { program: copy, conf: directory.join("nginx.conf"), libraries: libraries() }
    }

    fn configure(&self, modules: &[&Path]) {
        let directory = self.conf.parent().unwrap().display();
        let lines: Vec<String> = modules.iter().map(|m| format!("load_module {};\n", m.display())).collect();
        let lines = lines.concat();
        fs::write(&self.conf, format!("pid {directory}/pid;\n{lines}events {{}}\n")).unwrap();
    }

    /// What is predicted, in the order of the modules.
    fn predicted(&self, modules: &[&Path]) -> Vec<DynamicModule> {
        self.configure(modules);
        let options = Options { nginx_conf: Some(self.conf.clone()), ..Options::default() };
        let facts = audit::audit(&Subject::new(self.program.clone(), Origin::File), &options);
        facts.nginx.unwrap().dynamic_modules
    }

    /// Nothing if nginx takes the modules, else its reason.
    fn tested(&self, modules: &[&Path]) -> Option<String> {
        self.configure(modules);
        let output = Command::new(&self.program)
            .env("LD_LIBRARY_PATH", &self.libraries)
            .args(["-t", "-e", "stderr", "-p"])
            .arg(self.conf.parent().unwrap())
            .arg("-c")
            .arg(&self.conf)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return None;
        }
        let line = said.lines().find(|line| line.contains("[emerg]")).unwrap_or_else(|| panic!("{said}"));
        let (_, why) = line.split_once(": ").unwrap();
        Some(why.rsplit_once(" in ").map_or(why, |(why, _)| why).to_owned())
    }
}

/// Folders with the libraries that the modules need and the machine may not have.
fn libraries() -> OsString {
    let mut folders = BTreeSet::new();
    let mut left = vec![corpus().join("modules/libraries")];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                left.push(path);
            } else if path.to_string_lossy().contains(".so") {
                folders.insert(folder.clone());
            }
        }
    }
    std::env::join_paths(folders).unwrap()
}

fn modules() -> Vec<PathBuf> {
    let folder = corpus().join("modules/usr/lib/nginx/modules");
    let mut out: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    out.sort();
    assert!(out.len() >= 25, "only {} modules", out.len());
    out
}

/// Whether the prediction is nginx's answer: accepted, or refused for the same reason. Of symbols that are not to be
/// had, nginx names the first it meets.
fn agrees(predicted: &DynamicModule, said: Option<&str>) -> bool {
    let why = predicted.why_not.as_deref().unwrap_or_default();
    match (predicted.loadable, said) {
        (Some(true), None) => true,
        (Some(false), Some(said)) if why.contains("is linked statically") => said.starts_with("dlopen() "),
        (Some(false), Some(said)) => match said.split_once("undefined symbol: ") {
            Some((_, symbol)) => {
                let symbol = symbol.trim_end_matches(')');
                let listed = why.contains(&format!(" {symbol}")) || why.contains(" more)");
                why.starts_with("dlopen() ") && listed
            }
            None if said.starts_with("dlopen()") => why.starts_with("dlopen() "),
            None => why.starts_with(said),
        },
        _ => false,
    }
}

#[test]
#[ignore = "needs the corpus"]
fn every_module_of_debian_loads_in_debians_nginx_or_not_as_predicted() {
    let directory = tempfile::tempdir().unwrap();
    let corpus = corpus();
    let server = Server::new(directory.path(), "debian", &corpus.join("debian-nginx/usr/sbin/nginx"));
    let mut wrong = Vec::new();
    let mut alone = 0;
    let all = modules();
    for module in &all {
        let said = server.tested(&[module]);
        let predicted = server.predicted(&[module]);
        alone += usize::from(said.is_none());
        if predicted.len() != 1 || !agrees(&predicted[0], said.as_deref()) {
            wrong.push(format!("{}: nginx: {said:?}\n  flagaudit: {predicted:?}", module.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Those that need another one: with it, every package's module loads.
    let first = ["ndk_http_module.so", "ngx_stream_module.so"];
    let (mut order, rest): (Vec<&Path>, Vec<&Path>) =
        all.iter().map(PathBuf::as_path).partition(|path| first.iter().any(|name| path.ends_with(name)));
    order.extend(rest);
    assert_eq!(server.tested(&order), None);
    let predicted = server.predicted(&order);
    assert!(predicted.iter().all(|module| module.loadable == Some(true)), "{predicted:#?}");
    // And twice is refused.
    let twice = [order[2], order[2]];
    let (said, predicted) = (server.tested(&twice), server.predicted(&twice));
    assert!(agrees(&predicted[1], said.as_deref()), "{said:?} {predicted:?}");
    eprintln!("{} modules, {alone} of them alone", all.len());
    assert!(alone >= 20 && alone < all.len());
}

#[test]
#[ignore = "needs the corpus"]
fn other_builds_refuse_the_same_modules_for_the_reason_predicted() {
    let directory = tempfile::tempdir().unwrap();
    let corpus = corpus();
    let mut wrong = Vec::new();
    let mut reasons = BTreeSet::new();
    for (name, program) in [
        ("without-compat", "default"),
        ("without-pcre", "bare"),
        ("compat-of-another-version", "versions/1.26.3-gcc-O2"),
        ("newer-without-compat", "versions/1.28.1-gcc-O2"),
        ("static", "versions/1.22.1-gcc-O0-static"),
    ] {
        let server = Server::new(directory.path(), name, &corpus.join(program));
        for module in modules() {
            let said = server.tested(&[&module]);
            let predicted = server.predicted(&[&module]);
            if said.is_none() || predicted.len() != 1 || !agrees(&predicted[0], said.as_deref()) {
                wrong.push(format!(
                    "{name}: {}: nginx: {said:?}\n  flagaudit: {predicted:?}",
                    module.display()
                ));
            }
            let said = said.unwrap_or_default();
            for reason in ["is not binary compatible", " instead of ", "undefined symbol"] {
                if said.contains(reason) {
                    reasons.insert(reason);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(reasons.len(), 3, "{reasons:?}");
}

#[test]
#[ignore = "needs the corpus"]
fn modules_of_the_same_build_and_of_the_one_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let versions = corpus().join("versions");
    let module = versions.join("1.28.0-gcc-O0.ngx_stream_module.so");
    let same = Server::new(directory.path(), "same", &versions.join("1.28.0-gcc-O0"));
    assert_eq!(same.tested(&[&module]), None);
    assert_eq!(same.predicted(&[&module])[0].loadable, Some(true));
    let next = Server::new(directory.path(), "next", &versions.join("1.28.1-clang-O0"));
    let (said, predicted) = (next.tested(&[&module]), next.predicted(&[&module]));
    assert!(agrees(&predicted[0], said.as_deref()), "{said:?} {predicted:?}");
    assert!(said.is_some());
}
