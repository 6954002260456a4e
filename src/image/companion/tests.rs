use super::*;
use crate::evidence::testing::{open, path};
use crate::image::identity::hexadecimal;
use crate::image::notes;
use std::fs;
use std::time::Instant;

/// A root with a binary in `usr/bin`, and options that look nowhere else.
fn root(binary: &str) -> (tempfile::TempDir, Options) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { root: Some(directory.path().to_path_buf()), cache: None, ..Options::default() };
    put(&directory, binary, "usr/bin/prog");
    (directory, options)
}

fn put(directory: &tempfile::TempDir, from: &str, to: &str) {
    put_bytes(directory, &fs::read(path(from)).unwrap(), to);
}

fn put_bytes(directory: &tempfile::TempDir, bytes: &[u8], to: &str) {
    let to = directory.path().join(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::write(to, bytes).unwrap();
}

fn find(directory: &tempfile::TempDir, binary: &str, options: &Options) -> Search {
    let image = open(binary);
    let place = directory.path().join("usr/bin/prog");
    debug_file(&image, &notes::read(&image), &place, options, &Limits::default())
}

const BY_ID: &str = "usr/lib/debug/.build-id/3e/5bee70";

fn by_id(image: &Image) -> String {
    let id = hexadecimal(&notes::build_id(image).unwrap());
    assert!(BY_ID.ends_with(&id[2..8]));
    format!("usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..])
}

#[test]
fn every_place_of_the_order_is_found() {
    let id_path = by_id(&open("gcc12-stripped"));
    for (place, how) in [
        (id_path.as_str(), How::BuildId),
        ("usr/bin/gcc12-stripped.debug", How::Link),
        ("usr/bin/.debug/gcc12-stripped.debug", How::Link),
        ("usr/lib/debug/usr/bin/gcc12-stripped.debug", How::Link),
        ("usr/lib/debug/bin/gcc12-stripped.debug", How::Link),
        ("usr/lib/debug/gcc12-stripped.debug", How::Link),
    ] {
        let (directory, options) = root("gcc12-stripped");
        put(&directory, "gcc12-stripped.debug", place);
        let search = find(&directory, "gcc12-stripped", &options);
        let found = search.found.unwrap_or_else(|| panic!("{place}: {:?}", search.problems));
        assert_eq!((found.path, found.how), (directory.path().join(place), how));
        assert_eq!((search.missing, search.problems.len()), (None, 0));
    }
}

#[test]
fn what_is_not_there_is_named() {
    let (directory, options) = root("gcc12-stripped");
    let search = find(&directory, "gcc12-stripped", &options);
    assert!(search.found.is_none());
    assert_eq!(search.missing.as_deref(), Some("debug file missing: gcc12-stripped.debug"));
    assert_eq!(search.problems, [], "nothing was asked of the network");
}

#[test]
fn a_file_with_another_identity_is_refused() {
    // The right name, and the debug information of another build.
    let (directory, options) = root("gcc12-stripped");
    put(&directory, "gcc12-O0", "usr/bin/gcc12-stripped.debug");
    let search = find(&directory, "gcc12-stripped", &options);
    assert!(search.found.is_none() && search.missing.is_some());
    assert_eq!(search.problems[0].code, "debug-file-mismatch");
    assert!(!search.problems[0].loses_facts);
    // The binary itself, and a copy of it without debug information, are no debug files.
    let (directory, options) = root("gcc12-stripped");
    std::os::unix::fs::symlink("prog", directory.path().join("usr/bin/gcc12-stripped.debug")).unwrap();
    put(&directory, "gcc12-stripped", "usr/lib/debug/gcc12-stripped.debug");
    let search = find(&directory, "gcc12-stripped", &options);
    assert!(search.found.is_none());
    assert_eq!(search.problems, []);
}

/// A binary without build-id whose debug link has the checksum of `debug`.
fn linked_to(debug: &[u8]) -> Vec<u8> {
    let mut bytes = fs::read(path("gcc12-stripped")).unwrap();
    let note = memchr::memmem::find(&bytes, b"\x14\0\0\0\x03\0\0\0GNU\0").unwrap();
    bytes[note + 4] = 0x7f;
    let link = memchr::memmem::find(&bytes, b"gcc12-stripped.debug\0").unwrap();
    bytes[link + 24..link + 28].copy_from_slice(&crc32fast::hash(debug).to_le_bytes());
    bytes
}

#[test]
fn without_a_build_id_the_checksum_decides() {
    let debug = fs::read(path("gcc12-stripped.debug")).unwrap();
    let binary = linked_to(&debug);
    let image = Image::open(Input::memory(binary.clone()), &Limits::default()).unwrap();
    let notes = notes::read(&image);
    assert_eq!(notes.build_id, None);
    let (directory, options) = root("gcc12-stripped");
    put_bytes(&directory, &binary, "usr/bin/prog");
    put_bytes(&directory, &debug, "usr/bin/.debug/gcc12-stripped.debug");
    let place = directory.path().join("usr/bin/prog");
    let limits = Limits::default();
    let search = debug_file(&image, &notes, &place, &options, &limits);
    assert!(search.found.is_some_and(|found| found.how == How::Link));
    // Replaced by one of another build: its level must not be believed.
    put(&directory, "gcc12-O0", "usr/bin/.debug/gcc12-stripped.debug");
    let search = debug_file(&image, &notes, &place, &options, &limits);
    assert!(search.found.is_none() && search.missing.is_some());
    assert!(search.problems[0].message.contains("checksum"), "{:?}", search.problems);
}

#[test]
fn nothing_outside_the_root_is_taken() {
    let (directory, mut options) = root("gcc12-stripped");
    let outside = tempfile::tempdir().unwrap();
    put(&outside, "gcc12-stripped.debug", "gcc12-stripped.debug");
    let target = outside.path().join("gcc12-stripped.debug");
    std::os::unix::fs::symlink(&target, directory.path().join("usr/bin/gcc12-stripped.debug")).unwrap();
    let search = find(&directory, "gcc12-stripped", &options);
    assert!(search.found.is_none(), "a link that leaves");
    // A folder that the user names may lie outside.
    options.debug_dirs.push(outside.path().to_path_buf());
    assert!(find(&directory, "gcc12-stripped", &options).found.is_some());
    options.debug_dirs.clear();
    options.debug_files = vec![path("gcc12-O0"), target];
    let search = find(&directory, "gcc12-stripped", &options);
    assert_eq!(search.found.map(|found| found.how), Some(How::Named));
    assert_eq!(search.problems, [], "files for other binaries are no news");
}

#[test]
fn a_debug_link_that_is_a_path_is_not_followed() {
    for (name, good) in [
        ("a.debug", true),
        ("../a.debug", false),
        ("/etc/a", false),
        ("..", false),
        ("a/b", false),
        ("a/", false),
    ] {
        assert_eq!(base_name(name.as_bytes()).is_some(), good, "{name}");
    }
}

#[test]
fn the_cache_is_read_and_an_empty_file_there_means_nobody_has_it() {
    let (directory, mut options) = root("gcc12-stripped");
    let cache = tempfile::tempdir().unwrap();
    options.cache = Some(cache.path().to_path_buf());
    let id = hexadecimal(&notes::build_id(&open("gcc12-stripped")).unwrap());
    put_bytes(&cache, b"", &format!("{id}/debuginfo"));
    let search = find(&directory, "gcc12-stripped", &options);
    assert!(search.found.is_none() && search.problems.is_empty());
    put(&cache, "gcc12-stripped.debug", &format!("{id}/debuginfo"));
    let search = find(&directory, "gcc12-stripped", &options);
    assert_eq!(search.found.map(|found| found.how), Some(How::Cache));
}

#[test]
fn an_answer_that_does_not_come_is_not_waited_for() {
    let (directory, mut options) = root("gcc12-stripped");
    options.client = path("clients/late");
    let quiet = find(&directory, "gcc12-stripped", &options);
    assert_eq!(quiet.problems, [], "not asked unless allowed");
    options.debuginfod = true;
    options.patience = Duration::from_millis(200);
    let start = Instant::now();
    for _ in 0..5 {
        let search = find(&directory, "gcc12-stripped", &options);
        assert_eq!(search.problems[0].code, "not-fetched");
        assert!(search.found.is_none() && search.missing.is_some());
    }
    assert!(start.elapsed() < Duration::from_secs(2), "the first wait in vain is the last");
}

#[test]
fn what_is_fetched_must_be_the_right_file_too() {
    let (directory, mut options) = root("gcc12-stripped");
    options.debuginfod = true;
    options.client = path("clients/right");
    let found = find(&directory, "gcc12-stripped", &options).found.unwrap();
    assert_eq!((found.path.file_name(), found.how), (Some(OsStr::new("gcc12-stripped.debug")), How::Fetched));
    for (client, code) in
        [("wrong", "debug-file-mismatch"), ("fails", "not-fetched"), ("device", "not-fetched")]
    {
        options.client = path("clients").join(client);
        let search = find(&directory, "gcc12-stripped", &options);
        assert!(search.found.is_none());
        assert_eq!(search.problems[0].code, code, "{client}");
    }
    options.client = directory.path().join("no-such-client");
    assert!(find(&directory, "gcc12-stripped", &options).problems[0].message.contains("not installed"));
}

#[test]
fn a_supplementary_file_is_known_by_its_build_id() {
    let image = open("gcc12-dwz1");
    let link = notes::read(&image).supplementary.unwrap();
    let limits = Limits::default();
    for place in ["usr/bin/gcc12-dwz-alt.debug", "usr/lib/debug/.dwz/gcc12-dwz-alt.debug"] {
        let (directory, options) = root("gcc12-dwz1");
        let binary = directory.path().join("usr/bin/prog");
        let search = supplementary(&link, &binary, &options, &limits);
        assert_eq!(search.missing.as_deref(), Some("alt file missing: gcc12-dwz-alt.debug"));
        put(&directory, "gcc12-dwz-alt.debug", place);
        let found = supplementary(&link, &binary, &options, &limits).found;
        assert_eq!(found.map(|found| found.path), Some(directory.path().join(place)));
        put(&directory, "gcc12-dwz1", place);
        let search = supplementary(&link, &binary, &options, &limits);
        assert!(search.found.is_none() && search.problems[0].code == "debug-file-mismatch");
    }
}

#[test]
fn a_dwo_file_is_found_by_its_folder_or_its_name_and_tested() {
    let limits = Limits::default();
    for (name, folder, place) in [
        ("t.dwo", Some("/build/src"), "build/src/t.dwo"),
        ("sub/t.dwo", Some("/build/src"), "build/src/sub/t.dwo"),
        ("/build/t.dwo", None, "build/t.dwo"),
        ("obj/t.dwo", Some("/gone"), "usr/bin/t.dwo"),
        ("obj/t.dwo", Some("/gone"), "usr/lib/debug/t.dwo"),
    ] {
        let (directory, options) = root("gcc12-split");
        let binary = directory.path().join("usr/bin/prog");
        let search = |yes: bool| {
            let folder = folder.map(str::as_bytes);
            dwo(name.as_bytes(), folder, &binary, &options, &limits, &|_| yes)
        };
        assert_eq!(search(true).missing, Some(format!("dwo missing: {name}")));
        put(&directory, "gcc12-split-t.dwo", place);
        assert_eq!(search(true).found.map(|found| found.path), Some(directory.path().join(place)));
        let refused = search(false);
        assert!(refused.found.is_none() && refused.problems[0].message.contains("another build"));
    }
}
