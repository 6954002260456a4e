//! ELF files and archives that are odd but lawful, and some whose headers lie: bounded, and never mistaken for clean.

#![allow(clippy::unwrap_used)]

mod common;

use common::bounded::{codes, inspect};
use common::{run, testdata};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

fn written(bytes: &[u8]) -> (i32, Value) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    inspect(&path)
}

/// The header of an archive member (`ar(5)`).
fn member(name: &str, size: usize) -> String {
    format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644)
}

#[test]
fn an_archive_of_five_thousand_members() {
    let object = std::fs::read(testdata("elf/tx1.o")).unwrap();
    let mut bytes = b"!<arch>\n".to_vec();
    for index in 0..5000 {
        bytes.extend_from_slice(member(&format!("m{index}.o/"), object.len()).as_bytes());
        bytes.extend_from_slice(&object);
        if object.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    let (status, target) = written(&bytes);
    assert_eq!((status, &target["status"]), (0, &"ok".into()), "{}", target["problems"]);
    assert_eq!((&target["unit_count"], &target["optimization"]["level"]), (&5000.into(), &"O0".into()));
    assert_eq!(target["units"][4999]["member"], "m4999.o");
}

#[test]
fn a_thin_archive_of_five_thousand_members() {
    let directory = tempfile::tempdir().unwrap();
    let object = std::fs::read(testdata("elf/tx2.o")).unwrap();
    let mut names = String::new();
    let mut members = String::new();
    for index in 0..5000 {
        let name = format!("member-{index}.o");
        std::fs::write(directory.path().join(&name), &object).unwrap();
        members += &member(&format!("/{}", names.len()), object.len());
        writeln!(names, "{name}/").unwrap();
    }
    if names.len() % 2 == 1 {
        names.push('\n');
    }
    let path = directory.path().join("libthin.a");
    let bytes = format!("!<thin>\n{}{names}{members}", member("//", names.len()));
    std::fs::write(&path, bytes).unwrap();
    let (status, target) = inspect(&path);
    assert_eq!((status, &target["status"]), (0, &"ok".into()), "{}", target["problems"]);
    assert_eq!((&target["unit_count"], &target["optimization"]["level"]), (&5000.into(), &"O3".into()));
}

/// An archive of files.
fn ar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in files {
        bytes.extend_from_slice(member(&format!("{name}/"), content.len()).as_bytes());
        bytes.extend_from_slice(content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

#[test]
fn archives_in_archives_are_read_and_what_lies_too_deep_is_said() {
    // lib.a has one object at -O0 and one at -O3, tx2.o is at -O3.
    let library = std::fs::read(testdata("elf/lib.a")).unwrap();
    let object = std::fs::read(testdata("elf/tx2.o")).unwrap();
    let mut nested = ar(&[("lib.a", &library), ("tx2.o", &object)]);
    let (status, target) = written(&nested);
    assert_eq!((status, &target["optimization"]["level"]), (0, &"O0".into()), "{}", target["problems"]);
    let members = |target: &Value| {
        let units = target["units"].as_array().unwrap().iter();
        units.map(|unit| unit["member"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(members(&target), ["lib.a!x1.o", "lib.a!x2.o", "tx2.o"]);
    for depth in 2..5 {
        nested = ar(&[("more.a", &nested), ("tx2.o", &object)]);
        let (status, target) = written(&nested);
        let read = depth <= 3;
        assert_eq!((status, codes(&target).contains(&"unread-member")), (0, !read), "{depth}");
        assert_eq!(target["status"], if read { "ok" } else { "partial" }, "{depth}");
    }
    let (_, target) = written(&nested);
    let said = target["problems"][0]["message"].as_str().unwrap();
    assert_eq!(said, "more.a!more.a!more.a!lib.a: archives in archives are read to a depth of 3");
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("deep.a");
    std::fs::write(&deep, &nested).unwrap();
    let line = run(["check".as_ref(), "-q".as_ref(), "--no-config".as_ref(), deep.as_os_str()]);
    let begins = format!("INCOMPLETE  {}  {said}; ", deep.display());
    assert!(line.status == 2 && line.stdout.starts_with(&begins), "{}{}", line.stdout, line.stderr);
    assert_eq!(line.stdout.lines().count(), 1);
    // A walk meets an archive of archives, too.
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("outer.a"), ar(&[("lib.a", &library)])).unwrap();
    let walk = run(["inspect".as_ref(), directory.path().as_os_str()]);
    assert!(walk.status == 0 && walk.stdout.contains("outer.a"), "{}{}", walk.stdout, walk.stderr);
}

#[test]
fn a_thin_archive_names_members_of_another() {
    // As `ar rcs --thin thin.a lib.a` writes it: the name of the other archive, and where in it the member's header lies.
    let directory = tempfile::tempdir().unwrap();
    let library = std::fs::read(testdata("elf/lib.a")).unwrap();
    std::fs::write(directory.path().join("lib.a"), &library).unwrap();
    let place = |name: &str| memchr::memmem::find(&library, format!("{name}/ ").as_bytes()).unwrap();
    let path = directory.path().join("thin.a");
    let thin = |places: &[usize]| {
        let members = places.iter().map(|place| member(&format!("/0:{place}"), 9));
        let bytes = format!("!<thin>\n{}lib.a/\n\n{}", member("//", 8), members.collect::<String>());
        std::fs::write(&path, bytes).unwrap();
        inspect(&path)
    };
    let (status, target) = thin(&[place("x1.o"), place("x2.o")]);
    assert_eq!((status, &target["status"]), (0, &"ok".into()), "{}", target["problems"]);
    assert_eq!(
        (&target["units"][0]["member"], &target["units"][0]["level"]),
        (&"lib.a!x1.o".into(), &"O0".into())
    );
    assert_eq!(target["units"][1]["member"], "lib.a!x2.o");
    let (_, target) = thin(&[place("x1.o"), 77]);
    assert_eq!(target["problems"][0]["message"], "member lib.a: it holds no member at 0x4d");
    // One that holds itself and another such, ten thousand times each, holds nothing and ends soon.
    let itself = format!("{}{}{}", member("/0", 9), member("/8", 9), member("/18", 9)).repeat(10_000);
    let own = "thin.a/\n./thin.a/\n./other.a/\n\n";
    let bytes = format!("!<thin>\n{}{own}{itself}", member("//", own.len()));
    std::fs::write(&path, &bytes).unwrap();
    std::fs::write(directory.path().join("other.a"), &bytes).unwrap();
    let (status, target) = inspect(&path);
    assert_eq!((status, &target["status"], codes(&target)), (2, &"failed".into(), vec!["no-elf-member"]));
}

/// Where, and the bytes that stand there afterwards.
type Change<'a> = (usize, &'a [u8]);

/// A program with some bytes of its headers replaced.
fn patched(name: &str, changes: &[Change<'_>]) -> Vec<u8> {
    let mut bytes = std::fs::read(testdata(name)).unwrap();
    for (at, new) in changes {
        bytes[*at..at + new.len()].copy_from_slice(new);
    }
    bytes
}

#[test]
fn section_headers_that_the_kernel_never_reads_may_be_anything() {
    // e_shoff, e_shentsize, e_shnum and e_shstrndx stand at 40, 58, 60 and 62.
    let cases: [(&str, Vec<Change<'_>>); 4] = [
        ("e_shoff", vec![(40, &[0xff; 8]), (60, &[0xff, 0xff])]),
        ("e_shstrndx", vec![(62, &[0x00, 0xff])]),
        ("e_shentsize", vec![(58, &[0x20, 0])]),
        ("e_shnum", vec![(60, &[0xff, 0xff])]),
    ];
    let whole = inspect(&testdata("elf/gcc12-O0")).1;
    for (name, changes) in cases {
        let bytes = patched("elf/gcc12-O0", &changes);
        let (status, target) = written(&bytes);
        assert_eq!((status, &target["status"]), (0, &"partial".into()), "{name}: {}", target["problems"]);
        // Segments and the dynamic table are still there.
        assert_eq!(target["elf"]["kind"], whole["elf"]["kind"], "{name}");
        assert_eq!(target["elf"]["build_id"], whole["elf"]["build_id"], "{name}");
        assert_eq!(target["elf"]["needed"], whole["elf"]["needed"], "{name}");
        assert_eq!(target["hardening"]["relro"], whole["hardening"]["relro"], "{name}");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(run(["check".as_ref(), path.as_os_str()]).status, 2, "{name}: never a clean pass");
    }
}

/// Sections beyond what 16 bits count: the number stands in the first header, and names need not be UTF-8.
#[test]
fn more_sections_than_the_header_can_count() {
    const SECTIONS: u64 = 66_012;
    let names = b"\0.shstrtab\0\xff\xfe\x80name\0";
    let mut bytes = vec![0u8; 64];
    bytes.extend_from_slice(names);
    let table = bytes.len() as u64;
    for index in 0..SECTIONS {
        let (name, kind, offset, size, link): (u32, u32, u64, u64, u32) = match index {
            0 => (0, 0, 0, SECTIONS, 1),
            1 => (1, 3, 64, names.len() as u64, 0),
            _ => (11, 1, 0, 0, 0),
        };
        let mut header = [0u8; 64];
        header[0..4].copy_from_slice(&name.to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&offset.to_le_bytes());
        header[32..40].copy_from_slice(&size.to_le_bytes());
        header[40..44].copy_from_slice(&link.to_le_bytes());
        bytes.extend_from_slice(&header);
    }
    bytes[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
    for (at, value) in [(16, 1u16), (18, 62), (20, 1), (52, 64), (58, 64), (60, 0), (62, 0xffff)] {
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    bytes[40..48].copy_from_slice(&table.to_le_bytes());
    let (status, target) = written(&bytes);
    assert_eq!((status, &target["status"]), (0, &"ok".into()), "{}", target["problems"]);
    // One section less than there are, and the last is cut off.
    bytes.truncate(bytes.len() - 64);
    let (_, target) = written(&bytes);
    assert_eq!(target["status"], "partial");
}

#[test]
fn sizes_near_the_end_of_all_numbers() {
    // The size that a compressed section says it has, behind the type and padding of its header.
    let name = "dwarf/gcc12-zlib";
    let whole = std::fs::read(testdata(name)).unwrap();
    let debug = section(Path::new(name), ".debug_info");
    for size in [u64::MAX, 1 << 63, 1 << 40] {
        let (status, target) = written(&patched(name, &[(debug + 8, &size.to_le_bytes())]));
        assert_eq!((status, &target["status"]), (0, &"partial".into()), "{size:#x}");
        assert!(codes(&target).iter().any(|code| code.ends_with("debug-info")), "{:?}", codes(&target));
    }
    // The length of a note's name and description.
    let note = memchr::memmem::find(&whole, b"\x14\0\0\0\x03\0\0\0GNU\0").unwrap() - 4;
    for (at, what) in [(note, "name"), (note + 4, "description")] {
        let (status, target) = written(&patched(name, &[(at, &[0xff; 4])]));
        assert_eq!((status, &target["status"]), (0, &"partial".into()), "{what}");
        assert!(codes(&target).contains(&"damaged-notes"), "{what}: {:?}", codes(&target));
        assert_eq!(target["elf"]["build_id"], Value::Null, "{what}");
    }
}

/// Where a section's data begin, by the section table of a sound 64-bit little-endian file.
fn section(name: &Path, wanted: &str) -> usize {
    let bytes = std::fs::read(testdata(name.to_str().unwrap())).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let half = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()) as usize;
    let (table, count, names) = (word(40), half(60), half(62));
    let strings = word(table + names * 64 + 24);
    (0..count)
        .map(|index| table + index * 64)
        .find(|at| {
            let name = strings + u32::from_le_bytes(bytes[*at..at + 4].try_into().unwrap()) as usize;
            bytes[name..].starts_with(wanted.as_bytes()) && bytes[name + wanted.len()] == 0
        })
        .map(|at| word(at + 24))
        .unwrap()
}

#[test]
fn a_package_of_split_units_that_is_older_than_the_program() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["stale.so", "stale.so.dwp", "stale-live.dwo"] {
        std::fs::copy(testdata("dwarf").join(name), directory.path().join(name)).unwrap();
    }
    // The package has the one unit, the file beside it the other, which was compiled anew.
    let path = directory.path().join("stale.so");
    let levels = |target: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let units = target["units"].as_array().unwrap();
        units.iter().map(|unit| (text(&unit["name"]), text(&unit["level"]))).collect()
    };
    let own = |name: &str, level: &str| (name.to_owned(), level.to_owned());
    let (status, target) = inspect(&path);
    assert_eq!((status, levels(&target)), (0, vec![own("u.c", "O2"), own("live.c", "O0")]));
    assert_eq!(target["debug_info"]["missing"], serde_json::json!([]));
    // Without it, what is missing is named.
    std::fs::remove_file(directory.path().join("stale-live.dwo")).unwrap();
    let (_, target) = inspect(&path);
    assert_eq!(levels(&target), [own("u.c", "O2"), own("stale-live.dwo", "unknown")]);
    assert_eq!(target["debug_info"]["missing"], serde_json::json!(["dwo missing: stale-live.dwo"]));
}

/// An archive of test objects under their own names.
fn library(objects: &[&str]) -> Vec<u8> {
    let read = |name: &&str| std::fs::read(testdata("elf").join(name)).unwrap();
    let bytes: Vec<Vec<u8>> = objects.iter().map(read).collect();
    ar(&objects.iter().copied().zip(bytes.iter().map(Vec::as_slice)).collect::<Vec<_>>())
}

/// Names of sanitizers, coverage and profiling.
fn instrumentation(bytes: &[u8]) -> [Value; 3] {
    let (_, target) = written(bytes);
    ["sanitizers", "coverage", "profiling"].map(|kind| target["instrumentation"][kind]["value"].clone())
}

#[test]
fn an_archive_is_instrumented_as_any_of_its_members_is() {
    let values = |sanitizers: &[&str], coverage: bool, profiling: bool| {
        [Value::from(sanitizers), Value::from(coverage), Value::from(profiling)]
    };
    for (object, expected) in [
        ("in-none.o", values(&[], false, false)),
        ("in-asan.o", values(&["address"], false, false)),
        ("in-tsan.o", values(&["thread"], false, false)),
        ("in-cov.o", values(&[], true, false)),
        ("in-pg.o", values(&[], false, true)),
        ("in-instr.o", values(&[], false, true)),
    ] {
        assert_eq!(instrumentation(&library(&[object])), expected, "{object}");
        assert_eq!(instrumentation(&library(&["in-none.o", object, "in-data.o"])), expected, "{object}");
        let inner = library(&[object]);
        assert_eq!(instrumentation(&ar(&[("inner.a", &inner)])), expected, "{object}");
    }
    let all = library(&["in-tsan.o", "in-cov.o", "in-none.o", "in-asan.o", "in-pg.o"]);
    assert_eq!(instrumentation(&all), values(&["address", "thread"], true, true));
    // One member that tells nothing leaves open what no other has.
    assert_eq!(
        instrumentation(&library(&["in-none.o", "in-bare.o"])),
        [Value::Null, Value::Null, Value::Null]
    );
    let some = instrumentation(&library(&["in-bare.o", "in-cov.o"]));
    assert_eq!(some, [Value::Null, true.into(), Value::Null]);
    let object = std::fs::read(testdata("elf/in-none.o")).unwrap();
    let slim = std::fs::read(testdata("dwarf/gcc12-slim.o")).unwrap();
    for other in [&b"BC\xc0\xde bitcode"[..], b"\x7fELF, cut off", slim.as_slice()] {
        let found = instrumentation(&ar(&[("none.o", &object), ("other.o", other)]));
        assert_eq!(found, [Value::Null, Value::Null, Value::Null]);
    }
    // What holds no code says nothing.
    assert_eq!(instrumentation(&library(&["in-data.o"])), values(&[], false, false));
}

#[test]
fn a_verdict_on_an_archive_names_the_member() {
    let directory = tempfile::tempdir().unwrap();
    let check = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let run = run(["check".as_ref(), "--no-config".as_ref(), path.as_os_str()]);
        // Lines are broken to the width of a terminal.
        (run.status, run.stdout.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (status, said) = check("libx.a", &library(&["in-none.o", "in-asan.o"]));
    assert!(status == 1 && said.contains("known structural: in-asan.o refers to __asan_init"), "{said}");
    assert!(said.contains("fix build with -g ") && !said.contains("unstripped"), "{said}");
    let (_, said) = check("libopen.a", &library(&["in-none.o", "in-bare.o"]));
    assert!(said.contains("built with coverage cannot be told: in-bare.o tells nothing of it"), "{said}");
    // In the run-time library itself the members call one another.
    let (status, said) = check("libasan.a", &library(&["in-asan.o"]));
    assert!(status == 0 && said.contains("run-time library of instrumentation itself"), "{said}");
}
