//! Packages and images as targets: members are named, hostile ones refused by name, and nothing is written.

#![allow(clippy::unwrap_used)]

mod common;

use common::{json, run, testdata};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

fn program() -> Vec<u8> {
    std::fs::read(testdata("dwarf/gcc12-O2")).expect("the fixture")
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().expect("gnu").name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(bytes.len() as u64);
        header.set_mode(0o755);
        header.set_cksum();
        builder.append(&header, *bytes).expect("appended");
    }
    builder.into_inner().expect("an archive")
}

/// An archive as `ar` makes it.
fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in members {
        bytes.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, "100644", content.len()).bytes(),
        );
        bytes.extend(*content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// Compresses with a program that every system with packages has; `None` if it is not there.
fn compressed(program: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    use std::io::Write;
    let mut child = std::process::Command::new(program)
        .arg("-c")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().ok()?;
    writer.join().expect("no panic").expect("written");
    output.status.success().then_some(output.stdout)
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, bytes).expect("written");
    path
}

#[test]
fn programs_of_packages_are_named_by_package_and_member() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = tar(&[("./usr/sbin/nginx", &program()), ("./usr/share/doc/x", b"text\n")]);
    let mut targets = vec![write(directory.path(), "plain.tar", &data)];
    for (tool, ending) in
        [("gzip", "gz"), ("xz", "xz"), ("zstd", "zst"), ("bzip2", "bz2"), ("lzma", "lzma"), ("lz4", "lz4")]
    {
        let Some(bytes) = compressed(tool, &data) else { continue };
        targets.push(write(directory.path(), &format!("a.tar.{ending}"), &bytes));
        let inner = tar(&[(&format!("inner.tar.{ending}"), &bytes)]);
        let inner = write(directory.path(), &format!("{ending}.tar"), &inner);
        let (status, report) = json(["inspect".as_ref(), inner.as_os_str()]);
        let member = format!("/inner.tar.{ending}!/usr/sbin/nginx");
        assert_eq!((status, &report["targets"][0]["member"]), (0, &member.into()));
        let name = format!("data.tar.{ending}");
        let deb = ar(&[("debian-binary", b"2.0\n"), ("control.tar.gz", b""), (&name, &bytes)]);
        targets.push(write(directory.path(), &format!("{ending}.deb"), &deb));
    }
    assert!(targets.len() >= 3, "gzip is everywhere");
    for target in &targets {
        let (status, report) = json(["inspect".as_ref(), target.as_os_str()]);
        assert_eq!(status, 0, "{}", target.display());
        let facts = &report["targets"][0];
        assert_eq!(facts["origin"], "archive");
        assert_eq!(facts["path"], target.to_string_lossy().as_ref());
        assert_eq!(facts["member"], "/usr/sbin/nginx");
        assert_eq!(facts["optimization"]["level"], "O2");
        assert_eq!((&report["summary"]["targets"], &report["summary"]["skipped"]), (&1.into(), &1.into()));
        let text = run(["inspect".as_ref(), target.as_os_str()]).stdout;
        assert!(text.starts_with(&format!("{}!/usr/sbin/nginx\n", target.display())), "{text}");
    }
    // On standard input, too.
    let file = std::fs::File::open(&targets[1]).expect("opened");
    let output = common::flagaudit().args(["inspect", "-", "-f", "json"]).stdin(file).output().expect("runs");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["targets"][0]["member"], "/usr/sbin/nginx");
}

#[test]
fn compressed_programs_are_met_in_a_walk_and_named_by_their_paths() {
    let directory = tempfile::tempdir().expect("a directory");
    let bytes = program();
    let mut names = Vec::new();
    for (tool, ending) in [("gzip", "gz"), ("xz", "xz"), ("zstd", "zst"), ("bzip2", "bz2"), ("lz4", "lz4")] {
        let Some(packed) = compressed(tool, &bytes) else { continue };
        names.push(write(directory.path(), &format!("module.ko.{ending}"), &packed).display().to_string());
        let text = compressed(tool, b"a text").expect("compressed before");
        write(directory.path(), &format!("text.{ending}"), &text);
    }
    names.sort();
    let (status, report) = json(["inspect".as_ref(), directory.path().as_os_str()]);
    assert_eq!((status, &report["summary"]["skipped"]), (0, &names.len().into()), "{report}");
    for (facts, name) in report["targets"].as_array().expect("a list").iter().zip(&names) {
        assert_eq!((facts["path"].as_str(), &facts["origin"]), (Some(name.as_str()), &"directory".into()));
        assert_eq!((&facts["optimization"]["level"], &facts["member"]), (&"O2".into(), &().into()));
        let (status, one) = json(["inspect", name]);
        assert_eq!((status, &one["targets"][0]["path"]), (0, &name.as_str().into()));
        assert_eq!(one["targets"][0]["optimization"], facts["optimization"]);
    }
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(names.len()));
    // More than a program may have, and one that is cut off: lines of their own, the others are audited.
    let limited = run(["inspect", "--limit", "stream-bytes=100", directory.path().to_str().expect("a name")]);
    assert_eq!(limited.status, 2);
    assert!(limited.stderr.contains("module.ko.gz: more than 100 bytes"), "{}", limited.stderr);
    let gzip = compressed("gzip", &bytes).expect("gzip is everywhere");
    write(directory.path(), "cut.ko.gz", &gzip[..gzip.len() / 2]);
    let (status, cut) = json(["inspect".as_ref(), directory.path().as_os_str()]);
    assert_eq!((status, &cut["summary"]["failed"]), (2, &1.into()));
    assert_eq!(cut["targets"][0]["problems"][0]["message"], "its gzip data is cut off");
}

#[test]
fn a_damaged_compressed_program_is_told_by_its_name_in_a_walk() {
    // So small that nothing of it is left where its end is missing.
    let program = std::fs::read(testdata("elf/tx2.o")).unwrap();
    let text = b"some words of a log, and the same words of a log\n".repeat(20);
    let tools =
        [("gzip", "gz"), ("xz", "xz"), ("zstd", "zst"), ("bzip2", "bz2"), ("lz4", "lz4"), ("lzma", "lzma")];
    for (tool, ending) in tools {
        let directory = tempfile::tempdir().unwrap();
        let walk = |options: &[&str]| {
            let all = [&["inspect", "-f", "json"], options, &[directory.path().to_str().unwrap()]].concat();
            let run = run(all);
            let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            (run.status, report["summary"].clone(), run.stderr)
        };
        let Some(packed) = compressed(tool, &program) else { continue };
        let log = compressed(tool, &text).unwrap();
        // Neither a sound text nor a damaged one is a target, whose name says nothing of a program.
        write(directory.path(), &format!("ld.so.8.{ending}"), &log);
        write(directory.path(), &format!("a.log.{ending}"), &log);
        write(directory.path(), &format!("b.log.1.{ending}"), &log[..log.len() * 9 / 10]);
        let (status, summary, stderr) = walk(&["--allow-empty"]);
        assert_eq!((status, &summary["targets"], &summary["skipped"]), (0, &0.into(), &3.into()), "{stderr}");
        write(directory.path(), &format!("sound.{ending}"), &packed);
        let (status, summary, stderr) = walk(&[]);
        assert_eq!((status, &summary["ok"], &summary["skipped"]), (0, &1.into(), &3.into()), "{stderr}");
        for name in ["cut.ko", "libcut.so", "libcut.so.1.2"] {
            let name = format!("{name}.{ending}");
            let path = write(directory.path(), &name, &packed[..packed.len() * 9 / 10]);
            let (status, summary, stderr) = walk(&[]);
            assert_eq!((status, &summary["ok"], &summary["failed"]), (2, &1.into(), &1.into()), "{stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
            assert!(stderr.contains(&name) && stderr.contains(" data is cut off"), "{stderr}");
            std::fs::remove_file(path).unwrap();
        }
        // Whatever a byte makes of the beginning of the program, a checksum tells; lzma has none.
        let flipped = (20..packed.len()).step_by(packed.len() / 16).filter(|_| ending != "lzma");
        for at in flipped {
            let mut bytes = packed.clone();
            bytes[at] ^= 0x55;
            write(directory.path(), &format!("flipped.ko.{ending}"), &bytes);
            let (status, summary, stderr) = walk(&[]);
            assert_eq!((status, &summary["failed"]), (2, &1.into()), "{ending} at {at}: {stderr}");
        }
    }
}

#[test]
fn a_walk_counts_the_packages_that_it_leaves_closed() {
    let directory = tempfile::tempdir().unwrap();
    let package = tar(&[("usr/bin/a", &program())]);
    let check = || run(["check".as_ref(), "--no-config".as_ref(), directory.path().as_os_str()]);
    write(directory.path(), "tool", &program());
    write(directory.path(), "notes.txt", b"no package");
    write(directory.path(), "notes.gz", &compressed("gzip", b"no package").unwrap());
    let none = check();
    assert!(none.stdout.contains("; 2 not ELF, 0 unreadable"), "{}", none.stdout);
    write(directory.path(), "one.deb", &ar(&[("debian-binary", b"2.0\n"), ("data.tar", &package)]));
    let layer = compressed("gzip", &package).unwrap();
    write(directory.path(), "two.tar.gz", &layer);
    // A layout is one image, whatever it is made of.
    let (aa, bb) = ("image/blobs/sha256/aa", "image/blobs/sha256/bb");
    unpack(directory.path(), &[("image/oci-layout", b"{}"), (aa, &layer), (bb, &package)]);
    let some = check();
    assert_eq!(some.status, none.status);
    let said = "; 7 not ELF (3 of them packages or images, not opened), 0 unreadable";
    assert!(some.stdout.contains(said), "{}", some.stdout);
    let (_, report) = json(["inspect".as_ref(), directory.path().as_os_str()]);
    assert_eq!(report["summary"]["skipped"], 7);
    assert!(report["summary"].get("packages").is_none());
}

#[test]
fn a_hostile_entry_is_refused_by_name_and_the_rest_is_audited() {
    let directory = tempfile::tempdir().expect("a directory");
    let inside = directory.path().join("inside");
    std::fs::create_dir(&inside).expect("made");
    let bytes = tar(&[("../escaped", &program()), ("good", &program())]);
    let target = write(&inside, "hostile.tar", &bytes);
    let run = run(["check".as_ref(), "--no-config".as_ref(), target.as_os_str()]);
    assert_eq!(run.status, 2, "{}", run.stdout);
    assert!(
        run.stderr.contains("hostile.tar!../escaped") && run.stderr.contains("leads out"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("PASS  ") && run.stdout.contains("hostile.tar!/good"), "{}", run.stdout);
    let names = |folder: &Path| std::fs::read_dir(folder).expect("a folder").count();
    assert_eq!((names(directory.path()), names(&inside)), (1, 1), "nothing is unpacked");
}

#[test]
fn a_package_that_was_not_opened_does_not_pass() {
    let directory = tempfile::tempdir().expect("a directory");
    let inner = tar(&[("innermost.tar", &tar(&[("bad", &program())])), ("text", b"text")]);
    let bytes = tar(&[("good", &program()), ("inner.tar", &inner)]);
    let target = write(directory.path(), "mix.tar", &bytes);
    let whole: [&OsStr; 3] = ["check".as_ref(), "--no-config".as_ref(), target.as_os_str()];
    let run = common::run(whole);
    assert_eq!(run.status, 2, "{}{}", run.stdout, run.stderr);
    let named = "mix.tar!/inner.tar!/innermost.tar";
    let why = "a package inside a package of this one, not opened";
    assert!(run.stderr.contains(named) && run.stderr.contains(why), "{}", run.stderr);
    assert!(run.stdout.contains("1 not ELF"), "the text: {}", run.stdout);
    let (status, report) = json(whole);
    assert_eq!((status, &report["summary"]["skipped"]), (2, &1.into()), "{report}");
    assert_ne!(report["verdict"], "pass");
    // The others may be named.
    let good = format!("{}!/good", target.display());
    assert_eq!(common::run(["check", "--no-config", &good]).status, 0);
}

#[test]
fn a_damaged_package_is_status_2_and_keeps_what_was_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut bytes = tar(&[("good", &program()), ("late", &program())]);
    bytes.truncate(bytes.len() - 4096);
    let target = write(directory.path(), "cut.tar", &bytes);
    let (status, report) = json(["inspect".as_ref(), target.as_os_str()]);
    assert_eq!(status, 2);
    let list = report["targets"].as_array().expect("a list");
    assert!(list.iter().any(|facts| facts["member"] == "/good" && facts["status"] == "ok"), "{report}");
    assert!(list.iter().any(|facts| facts["status"] == "failed"));
    let deb = write(directory.path(), "no-data.deb", &ar(&[("debian-binary", b"2.0\n")]));
    let run1 = run(["inspect".as_ref(), deb.as_os_str()]);
    assert_eq!(run1.status, 2);
    assert!(run1.stderr.contains("no data.tar"), "{}", run1.stderr);
    let texts = write(directory.path(), "texts.tar", &tar(&[("readme", b"hello\n")]));
    let run2 = run(["inspect".as_ref(), texts.as_os_str()]);
    assert_eq!(run2.status, 2);
    assert!(run2.stderr.contains("no ELF file in this package"), "{}", run2.stderr);
    assert_eq!(run(["inspect".as_ref(), "--allow-empty".as_ref(), texts.as_os_str()]).status, 0);
}

#[test]
fn a_debug_file_beside_its_program_is_no_second_program() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["gcc12-stripped", "gcc12-stripped.debug"] {
        std::fs::copy(testdata("elf").join(name), directory.path().join(name)).expect("copied");
    }
    let (status, report) = json(["inspect".as_ref(), directory.path().as_os_str()]);
    assert_eq!(status, 0);
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!((&report["summary"]["targets"], &report["summary"]["skipped"]), (&1.into(), &1.into()));
    assert_eq!(report["targets"][0]["debug_info"]["source"], "separate");
    // Alone, it is what was asked for.
    std::fs::remove_file(directory.path().join("gcc12-stripped")).expect("removed");
    let (_, report) = json(["inspect".as_ref(), directory.path().as_os_str()]);
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(1));
}

/// Adds a link of a kind to an archive.
fn link(builder: &mut tar::Builder<Vec<u8>>, kind: tar::EntryType, name: &str, target: &str) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(0);
    header.set_mode(0o777);
    builder.append_link(&mut header, name, target).expect("appended");
}

#[test]
fn a_program_of_a_package_is_found_by_each_of_its_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut layer = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    let bytes = program();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o755);
    layer.append_data(&mut header, "usr/sbin/nginx", bytes.as_slice()).expect("appended");
    link(&mut layer, tar::EntryType::Link, "usr/bin/hard", "usr/sbin/nginx");
    link(&mut layer, tar::EntryType::Symlink, "usr/bin/soft", "../sbin/nginx");
    link(&mut layer, tar::EntryType::Symlink, "sbin", "usr/sbin");
    link(&mut layer, tar::EntryType::Symlink, "usr/bin/gone", "elsewhere");
    header.set_size(5);
    layer.append_data(&mut header, "etc/text", &b"hello"[..]).expect("appended");
    let layer = layer.into_inner().expect("an archive");
    let manifest = br#"[{"RepoTags":["a:1"],"Layers":["l/layer.tar"]}]"#;
    let image = tar(&[("l/layer.tar", &layer), ("manifest.json", manifest)]);
    for (file, bytes) in [("plain.tar", &layer), ("image.tar", &image)] {
        let target = write(directory.path(), file, bytes);
        let name = |member: &str| format!("{}!{member}", target.display());
        // Hard links are one program, which is listed once; it may be asked for by any name.
        let (_, all) = json(["inspect".to_owned(), target.display().to_string()]);
        assert_eq!(all["targets"].as_array().map(Vec::len), Some(1), "{all}");
        for member in ["/usr/bin/hard", "/usr/sbin/nginx", "usr/sbin/nginx", "/usr/bin/soft", "/sbin/nginx"] {
            let (status, report) = json(["inspect".to_owned(), name(member)]);
            assert_eq!((status, report["targets"].as_array().map(Vec::len)), (0, Some(1)), "{member}");
            let slash = format!("/{}", member.trim_start_matches('/'));
            assert_eq!(report["targets"][0]["member"], slash, "{file}");
            assert_eq!(report["targets"][0]["status"], "ok", "{file}!{member}");
        }
        for (member, why) in [
            ("/usr/bin/gone", "a symbolic link to /usr/bin/elsewhere, which is not in the package"),
            ("/etc/text", "no program, but something else has this name"),
            ("/usr/sbin/other", "no program of this name in the package"),
        ] {
            let run = run(["check".to_owned(), name(member)]);
            assert_eq!(run.status, 2);
            assert!(run.stderr.contains(&format!("{}: {why}", name(member))), "{}", run.stderr);
        }
    }
}

#[test]
fn a_directory_of_packages_says_that_they_are_to_be_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let package = tar(&[("usr/bin/a", &program())]);
    write(directory.path(), "one.tar", &package);
    write(directory.path(), "notes.txt", b"no package");
    let run_on = || run(["check".as_ref(), directory.path().as_os_str()]);
    let one = run_on();
    assert_eq!(one.status, 2);
    assert!(one.stderr.contains("no ELF file in this directory, but a package, which"), "{}", one.stderr);
    write(directory.path(), "two.deb", &ar(&[("debian-binary", b"2.0\n"), ("data.tar", &package)]));
    let two = run_on();
    assert!(two.stderr.contains("but 2 packages, which a walk does not open: name them"), "{}", two.stderr);
    write(directory.path(), "oci-layout", b"{}");
    let layout = run_on();
    assert_eq!(layout.status, 2);
    let said = "an OCI layout, whose index names no image that can be read";
    assert!(layout.stderr.contains(said), "{}", layout.stderr);
}

/// Writes files below a directory.
fn unpack(directory: &Path, files: &[(&str, &[u8])]) {
    for (name, bytes) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, bytes).expect("written");
    }
}

#[test]
fn an_unpacked_oci_layout_is_read_as_the_archive_of_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let lower = tar(&[("usr/sbin/nginx", &program()), ("usr/bin/gone", &program())]);
    let lower = compressed("gzip", &lower).expect("gzip is everywhere");
    let upper = tar(&[("usr/bin/.wh.gone", b""), ("usr/bin/tool", &program())]);
    let index = br#"{"schemaVersion":2,"manifests":[{"digest":"sha256:aa"}]}"#;
    let manifest = br#"{"config":{"digest":"sha256:dd"},"layers":[
        {"digest":"sha256:bb","mediaType":"application/vnd.oci.image.layer.v1.tar+gzip"},
        {"digest":"sha256:cc","mediaType":"application/vnd.oci.image.layer.v1.tar"}]}"#;
    let files: Vec<(&str, &[u8])> = vec![
        ("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#),
        ("index.json", index),
        ("blobs/sha256/aa", manifest),
        ("blobs/sha256/bb", &lower),
        ("blobs/sha256/cc", &upper),
        ("blobs/sha256/dd", b"{}"),
    ];
    let layout = directory.path().join("layout");
    unpack(&layout, &files);
    let packed = write(directory.path(), "layout.tar", &tar(&files));
    let members = |target: &Path| {
        let (status, mut report) = json(["inspect".as_ref(), target.as_os_str()]);
        assert_eq!(status, 0, "{report}");
        for facts in report["targets"].as_array_mut().expect("a list") {
            assert_eq!(facts["path"], target.to_string_lossy().as_ref());
            facts["path"] = ().into();
        }
        report["targets"].take()
    };
    let found = members(&layout);
    assert_eq!(found, members(&packed));
    assert_eq!(
        (&found[0]["member"], &found[1]["member"]),
        (&"/usr/bin/tool".into(), &"/usr/sbin/nginx".into())
    );
    let one = format!("{}!/usr/sbin/nginx", layout.display());
    let (status, report) = json(["inspect", &one]);
    assert_eq!((status, &report["targets"][0]["member"]), (0, &"/usr/sbin/nginx".into()), "{report}");
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(1));
    let none = run(["inspect", &format!("{}!/usr/bin/gone", layout.display())]);
    assert_eq!(none.status, 2);
    assert!(none.stderr.contains("no program of this name in the package"), "{}", none.stderr);
    // What is missing is said; what else lies there is audited, too; no link leads out.
    std::fs::remove_file(layout.join("blobs/sha256/cc")).expect("removed");
    write(&layout, "stray", &program());
    let missing = run(["inspect".as_ref(), layout.as_os_str()]);
    assert_eq!(missing.status, 2, "{}", missing.stdout);
    assert!(missing.stderr.contains("the layer /blobs/sha256/cc is missing"), "{}", missing.stderr);
    assert!(missing.stdout.contains("layout/stray") && missing.stdout.contains("layout!/usr/bin/gone"));
    std::os::unix::fs::symlink(directory.path().join("layout.tar"), layout.join("blobs/sha256/cc"))
        .expect("a link");
    assert_eq!(run(["inspect".as_ref(), layout.as_os_str()]).status, 2);
    std::fs::write(layout.join("index.json"), b"no index").expect("written");
    let unread = run(["check".as_ref(), "--no-config".as_ref(), layout.as_os_str()]);
    assert_eq!(unread.status, 2, "{}", unread.stdout);
    assert!(unread.stderr.contains("an OCI layout, whose index names no image"), "{}", unread.stderr);
}

#[test]
fn one_program_of_a_package_may_be_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let bytes = tar(&[("usr/bin/a", &program()), ("usr/bin/b", &program())]);
    let target = write(directory.path(), "two.tar", &bytes);
    let name = |member: &str| format!("{}!{member}", target.display());
    let (status, report) = json(["inspect".to_owned(), name("/usr/bin/b")]);
    assert_eq!((status, report["targets"].as_array().map(Vec::len)), (0, Some(1)));
    assert_eq!(report["targets"][0]["member"], "/usr/bin/b");
    let missing = run(["inspect".to_owned(), name("/usr/bin/c")]);
    assert_eq!(missing.status, 2);
    assert!(missing.stderr.contains("no program of this name in the package"), "{}", missing.stderr);
    // Nor is a file that is no package the member it is asked for, and what was asked for by name may not be missing.
    let plain = testdata("dwarf/gcc12-O2").display().to_string();
    assert_eq!(run(["check".to_owned(), format!("{plain}!/usr/sbin/nginx")]).status, 2);
    let text = write(directory.path(), "text.tar", &tar(&[("readme", b"nothing to run")]));
    let member = format!("{}!/usr/sbin/nginx", text.display());
    assert_eq!(run(["check".to_owned(), member, "--allow-empty".to_owned()]).status, 2);
    // Two builds in packages are compared so.
    let same = run(["diff".to_owned(), name("/usr/bin/a"), name("/usr/bin/b"), "--exit-code".to_owned()]);
    assert_eq!(same.status, 0, "{}{}", same.stdout, same.stderr);
    let which = run(["diff".to_owned(), target.display().to_string(), name("/usr/bin/b")]);
    assert_eq!(which.status, 0, "the member of the same name: {}{}", which.stdout, which.stderr);
    // Also if it has that name by a link, and is listed under another.
    for kind in [tar::EntryType::Link, tar::EntryType::Symlink] {
        let mut builder = tar::Builder::new(Vec::new());
        let bytes = program();
        for file in ["opt/a.real", "usr/bin/other"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o755);
            builder.append_data(&mut header, file, bytes.as_slice()).expect("appended");
        }
        let to = if kind == tar::EntryType::Link { "opt/a.real" } else { "../../opt/a.real" };
        link(&mut builder, kind, "usr/bin/b", to);
        let layer = builder.into_inner().expect("an archive");
        let manifest = br#"[{"RepoTags":["a:1"],"Layers":["l/layer.tar"]}]"#;
        let image = tar(&[("l/layer.tar", &layer), ("manifest.json", manifest)]);
        let nested = tar(&[("inner.tar", &layer)]);
        for (file, bytes) in [("plain", &layer), ("image", &image), ("nested", &nested)] {
            let linked = write(directory.path(), &format!("{file}.tar"), bytes).display().to_string();
            let (_, all) = json(["inspect", &linked]);
            assert_eq!(all["targets"].as_array().map(Vec::len), Some(2), "{file}");
            if file == "nested" && kind == tar::EntryType::Symlink {
                continue;
            }
            let found = run(["diff".to_owned(), name("/usr/bin/b"), linked.clone()]);
            assert_eq!(found.status, 0, "{file} {kind:?}: {}{}", found.stdout, found.stderr);
            assert!(
                found.stdout.contains("usr/bin/b") && !found.stdout.contains("a.real"),
                "{}",
                found.stdout
            );
            let inner = if file == "nested" { "/inner.tar!" } else { "" };
            let (status, report) = json(["inspect", &format!("{linked}!{inner}/usr/bin/b")]);
            assert_eq!((status, &report["targets"][0]["status"]), (0, &"ok".into()), "{file} {report}");
            assert_eq!(report["targets"][0]["member"], format!("{inner}/usr/bin/b"));
        }
    }
}

#[test]
fn a_stream_that_asks_for_much_memory_is_refused() {
    let data = tar(&[("./usr/sbin/nginx", &program())]);
    let directory = tempfile::tempdir().expect("a directory");
    let plain = write(directory.path(), "plain.tar", &data);
    let output =
        std::process::Command::new("xz").args(["-c", "--lzma2=preset=0,dict=400MiB"]).arg(plain).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else { return };
    let target = write(directory.path(), "greedy.tar.xz", &output.stdout);
    let (status, report) = json(["inspect".as_ref(), target.as_os_str()]);
    assert_eq!((status, &report["targets"][0]["status"]), (2, &"failed".into()), "{report}");
}

#[test]
fn the_rest_of_a_stream_that_was_too_large_is_not_taken_for_the_whole() {
    use std::io::Write as _;
    let mut child = common::flagaudit()
        .args(["inspect", "--limit", "stream-bytes=65536", "-f", "json", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = vec![0; 65537];
    input.extend(program());
    // It may stop reading.
    let _ = child.stdin.take().expect("a pipe").write_all(&input);
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("\"failed\"") && !text.contains("gcc"), "{text}");
}
