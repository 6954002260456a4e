use super::*;
use std::os::unix::fs::symlink;

/// What a made object says.
#[derive(Clone, Default)]
struct Spec<'a> {
    needed: &'a [&'a str],
    soname: Option<&'a str>,
    rpath: Option<&'a str>,
    runpath: Option<&'a str>,
    flags_1: u64,
    interpreter: Option<&'a str>,
    /// Not for x86-64.
    foreign: bool,
}

/// A shared object of headers, a dynamic table and names (System V gABI).
fn object(spec: &Spec<'_>) -> Vec<u8> {
    let mut names = vec![0u8];
    let mut name = |text: &str| {
        let at = names.len() as u64;
        names.extend(text.bytes());
        names.push(0);
        at
    };
    let mut table: Vec<(u64, u64)> = spec.needed.iter().map(|needed| (1, name(needed))).collect();
    for (tag, text) in [(14, spec.soname), (15, spec.rpath), (29, spec.runpath)] {
        table.extend(text.map(|text| (tag, name(text))));
    }
    let interpreter = spec.interpreter.map(|text| (name(text), text.len() as u64 + 1));
    if spec.flags_1 != 0 {
        table.push((0x6fff_fffb, spec.flags_1));
    }
    let headers = 2 + u64::from(interpreter.is_some());
    let dynamic = 64 + 56 * headers;
    let strings = dynamic + 16 * (table.len() as u64 + 3);
    table.extend([(5, strings), (10, names.len() as u64), (0, 0)]);
    let size = strings + names.len() as u64;
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend(3u16.to_le_bytes());
    out.extend(if spec.foreign { 183u16 } else { 62 }.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    for word in [0u64, 64, 0] {
        out.extend(word.to_le_bytes());
    }
    out.extend(0u32.to_le_bytes());
    for half in [64u16, 56, headers as u16, 64, 0, 0] {
        out.extend(half.to_le_bytes());
    }
    let mut header = |kind: u32, offset: u64, size: u64| {
        out.extend(kind.to_le_bytes());
        out.extend(4u32.to_le_bytes());
        for word in [offset, offset, offset, size, size, 8] {
            out.extend(word.to_le_bytes());
        }
    };
    header(1, 0, size);
    header(2, dynamic, 16 * table.len() as u64);
    if let Some((at, len)) = interpreter {
        header(3, strings + at, len);
    }
    for (tag, value) in table {
        out.extend(tag.to_le_bytes());
        out.extend(value.to_le_bytes());
    }
    out.extend(names);
    out
}

/// A root file system.
struct Root(tempfile::TempDir);

impl Root {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, path: &str, bytes: &[u8]) -> &Self {
        let place = self.0.path().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, bytes).unwrap();
        self
    }

    fn library(&self, path: &str, spec: &Spec<'_>) -> &Self {
        self.put(path, &object(spec))
    }

    /// What the loader would load for a program: path and how it was found; and what is missing.
    fn load(&self, program: &str) -> (Vec<(String, FoundBy)>, Vec<String>) {
        let place = self.0.path().join(program);
        let input = Input::file(std::fs::File::open(&place).unwrap()).unwrap();
        let loaded =
            Resolver::new(Some(self.0.path()), &Limits::default()).resolve(&input, &place, &[]).unwrap();
        let inside = |path: &Path| path.strip_prefix(self.0.path()).unwrap().display().to_string();
        let found = loaded.found.iter().map(|found| (inside(&found.path), found.how)).collect();
        let missing = loaded.missing.iter().map(|m| format!("{} {}: {}", m.by, m.name, m.why)).collect();
        (found, missing)
    }
}

fn needs<'a>(needed: &'a [&'a str]) -> Spec<'a> {
    Spec { needed, ..Spec::default() }
}

#[test]
fn libraries_are_found_in_the_order_of_the_loader() {
    let root = Root::new();
    let spec = Spec { runpath: Some("$ORIGIN/../lib/own:/opt/lib"), ..needs(&["liba.so.1"]) };
    root.library("usr/bin/program", &spec);
    let take = |path: &str| root.library(path, &Spec::default());
    for (path, how) in [
        ("usr/lib/liba.so.1", FoundBy::Default),
        ("usr/lib/x86_64-linux-gnu/liba.so.1", FoundBy::Default),
        ("opt/conf/liba.so.1", FoundBy::Configuration),
        ("opt/lib/liba.so.1", FoundBy::Runpath),
        ("usr/lib/own/liba.so.1", FoundBy::Runpath),
    ] {
        // The file of configuration is there from the beginning.
        root.put("etc/ld.so.conf", b"include ld.so.conf.d/*.conf # others\n");
        root.put("etc/ld.so.conf.d/x.conf", b"# comment\n/opt/conf\n")
            .put("etc/ld.so.conf.d/x.off", b"/opt/off\n");
        take(path);
        assert_eq!(root.load("usr/bin/program"), (vec![(path.to_owned(), how)], vec![]));
    }
    // DT_RPATH goes before all of it, and does not count where there is a DT_RUNPATH.
    root.library("opt/r/liba.so.1", &Spec::default());
    root.library("usr/bin/program", &Spec { rpath: Some("/opt/r"), ..needs(&["liba.so.1"]) });
    assert_eq!(root.load("usr/bin/program").0, [("opt/r/liba.so.1".to_owned(), FoundBy::Rpath)]);
    let both = Spec { rpath: Some("/opt/r"), runpath: Some("/opt/lib"), ..needs(&["liba.so.1"]) };
    root.library("usr/bin/program", &both);
    assert_eq!(root.load("usr/bin/program").0, [("opt/lib/liba.so.1".to_owned(), FoundBy::Runpath)]);
}

#[test]
fn a_run_path_holds_for_the_object_and_an_rpath_also_for_what_it_brings() {
    let root = Root::new();
    root.library("opt/liba.so", &needs(&["libb.so"])).library("opt/libb.so", &Spec::default());
    root.library("p", &Spec { rpath: Some("/opt"), ..needs(&["liba.so"]) });
    let (found, missing) = root.load("p");
    assert_eq!((found.len(), missing), (2, vec![]));
    root.library("p", &Spec { runpath: Some("/opt"), ..needs(&["liba.so"]) });
    let (found, missing) = root.load("p");
    assert_eq!(found.len(), 1);
    assert_eq!(missing, ["liba.so libb.so: not found"]);
    // A library that was loaded before satisfies the name, whoever brought it.
    root.library("p", &Spec { runpath: Some("/opt"), ..needs(&["liba.so", "libb.so"]) });
    assert_eq!(root.load("p").1, Vec::<String>::new());
}

#[test]
fn circles_aliases_and_other_machines() {
    let root = Root::new();
    root.library("lib/liba.so.1.2", &Spec { soname: Some("liba.so.1"), ..needs(&["libb.so", "libnew.so"]) });
    symlink("liba.so.1.2", root.0.path().join("lib/liba.so.1")).unwrap();
    // A link that leads out of the root is seen as the loader inside sees it.
    symlink("/lib/liba.so.1.2", root.0.path().join("lib/libnew.so")).unwrap();
    root.library("lib/libb.so", &needs(&["liba.so.1"]));
    root.library("usr/lib/x86_64-linux-gnu/libb.so", &Spec { foreign: true, ..Spec::default() });
    root.library("p", &needs(&["liba.so.1"]));
    let (found, missing) = root.load("p");
    assert_eq!(
        found.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(),
        ["lib/liba.so.1.2", "lib/libb.so"]
    );
    assert_eq!(missing, Vec::<String>::new());
    std::fs::remove_file(root.0.path().join("lib/libb.so")).unwrap();
    assert_eq!(
        root.load("p").1,
        ["liba.so.1 libb.so: not found; /usr/lib/x86_64-linux-gnu/libb.so is for another machine"]
    );
}

#[test]
fn names_with_a_slash_and_no_default_directories() {
    let root = Root::new();
    root.library("opt/app/libx.so", &Spec::default()).library("usr/lib/liba.so", &Spec::default());
    root.library(
        "opt/app/p",
        &Spec { flags_1: DF_1_NODEFLIB, ..needs(&["$ORIGIN/libx.so", "liba.so", "./y.so"]) },
    );
    let (found, missing) = root.load("opt/app/p");
    assert_eq!(found, [("opt/app/libx.so".to_owned(), FoundBy::Path)]);
    assert_eq!(
        missing,
        ["p liba.so: not found", "p ./y.so: a path relative to the working directory of the process"]
    );
}

#[test]
fn the_interpreter_and_preloaded_objects_are_loaded_too() {
    let root = Root::new();
    root.library("lib64/ld.so.2", &Spec { soname: Some("ld.so.2"), ..Spec::default() });
    root.library("opt/early.so", &Spec::default()).put("etc/ld.so.preload", b"/opt/early.so # all\n");
    root.library("p", &Spec { interpreter: Some("/lib64/ld.so.2"), ..needs(&["ld.so.2"]) });
    assert_eq!(
        root.load("p").0,
        [("lib64/ld.so.2".to_owned(), FoundBy::Interpreter), ("opt/early.so".to_owned(), FoundBy::Preload)]
    );
}

#[test]
fn musl_has_its_own_rules() {
    let root = Root::new();
    let interpreter = Some("/lib/ld-musl-x86_64.so.1");
    root.library(
        "lib/ld-musl-x86_64.so.1",
        &Spec { soname: Some("libc.musl-x86_64.so.1"), ..Spec::default() },
    );
    root.library("opt/liba.so", &needs(&["libb.so", "libc.musl-x86_64.so.1"]));
    root.library("opt/libb.so", &Spec::default()).library("srv/libc.so", &Spec::default());
    root.library("p", &Spec { interpreter, runpath: Some("/opt"), ..needs(&["liba.so", "libc.so"]) });
    root.put("etc/ld.so.conf", b"/srv\n");
    let (found, missing) = root.load("p");
    // A run path of the program also holds for what its libraries need; /etc/ld.so.conf means nothing.
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(missing, ["p libc.so: not found"]);
    root.put("etc/ld-musl-x86_64.path", b"/lib:/srv\n");
    assert_eq!(root.load("p").1, Vec::<String>::new());
}

#[test]
fn tokens_are_put_with_and_without_braces() {
    let loader = Loader::of(&Linkage::default(), true, elf::EM_X86_64);
    let put = |text: &str| -> Vec<String> {
        let all = expand(text.as_bytes(), Some(Path::new("/opt/bin")), &loader);
        all.iter().map(|path| path.display().to_string()).collect()
    };
    assert_eq!(put("$ORIGIN/../lib"), ["/opt/bin/../lib"]);
    assert_eq!(put("${ORIGIN}x"), ["/opt/binx"]);
    assert_eq!(put("$ORIGINAL"), ["$ORIGINAL"]);
    assert_eq!(put("/a/$LIB"), ["/a/lib/x86_64-linux-gnu", "/a/lib64", "/a/lib"]);
    assert_eq!(put("/a/${PLATFORM}")[0], "/a/x86_64");
    assert!(put("").is_empty());
    assert!(expand(b"$ORIGIN/lib", None, &loader).is_empty());
}
