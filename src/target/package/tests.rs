use super::*;
use std::io::Write;
use std::path::Path;

mod compressed;

mod hostile;

const ELF: &[u8] = b"\x7fELF\x02\x01\x01 program";

/// A tar archive of files.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        append(&mut builder, name, bytes);
    }
    builder.into_inner().unwrap()
}

/// Writes any name at all, also one that the builder would refuse.
fn append(builder: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(bytes.len() as u64);
    header.set_mode(0o755);
    header.set_cksum();
    builder.append(&header, bytes).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn open_bytes(bytes: Vec<u8>, limits: &Limits) -> Result<Package, Box<Subject>> {
    let subject = Subject { input: Some(Input::memory(bytes)), ..Subject::new("a.tar", Origin::File) };
    open(subject, limits)
}

/// Names of what was found, and names with reasons of what was refused.
fn seen(bytes: Vec<u8>, limits: &Limits) -> (Vec<String>, Vec<(String, String)>) {
    let package = open_bytes(bytes, limits).unwrap();
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for subject in package.subjects {
        assert_eq!((subject.path.as_path(), subject.origin), (Path::new("a.tar"), Origin::Archive));
        let name = subject.member.clone().unwrap_or_default();
        if let Some(why) = &subject.refused {
            refused.push((name, why.clone()));
        } else {
            let input = subject.open(&Limits::default()).unwrap();
            assert!(input.read_vec(0, 4, 4, "magic").unwrap() == b"\x7fELF");
            found.push(name);
        }
    }
    (found, refused)
}

#[test]
fn programs_are_found_in_place_and_in_streams() {
    let plain = tar(&[("./usr/sbin/nginx", ELF), ("./etc/nginx.conf", b"events {}\n"), ("bin/a", ELF)]);
    for bytes in [plain.clone(), gzip(&plain)] {
        assert_eq!(open_bytes(bytes.clone(), &Limits::default()).unwrap().skipped, 1);
        assert_eq!(
            seen(bytes, &Limits::default()),
            (vec!["/bin/a".into(), "/usr/sbin/nginx".into()], vec![])
        );
    }
    // What is no package is given back; a compressed program is that program.
    assert!(open_bytes(ELF.to_vec(), &Limits::default()).is_err());
    assert!(open_bytes(gzip(b"hello"), &Limits::default()).is_err());
    let single = open_bytes(gzip(ELF), &Limits::default()).unwrap_err();
    assert_eq!(single.open(&Limits::default()).unwrap().len(), ELF.len() as u64);
}

#[test]
fn hard_links_are_one_program_and_packages_are_opened_once() {
    let mut builder = tar::Builder::new(Vec::new());
    append(&mut builder, "a", ELF);
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Link);
    header.set_path("b").unwrap();
    header.set_link_name("a").unwrap();
    header.set_size(0);
    header.set_cksum();
    builder.append(&header, &[][..]).unwrap();
    let innermost = tar(&[("deep", ELF)]);
    let packed = gzip(ELF);
    let inner = tar(&[
        ("c", ELF),
        ("d.gz", &packed),
        ("innermost.tar", &innermost),
        ("innermost.tgz", &gzip(&innermost)),
        ("text.gz", &gzip(b"text")),
    ]);
    append(&mut builder, "inner.tar.gz", &gzip(&inner));
    append(&mut builder, "texts.tar", &tar(&[("text.gz", &gzip(b"text")), ("text", b"text")]));
    let bytes = builder.into_inner().unwrap();
    let package = open_bytes(bytes.clone(), &Limits::default()).unwrap();
    assert_eq!(package.skipped, 3, "three texts");
    let (found, refused) = seen(bytes, &Limits::default());
    assert_eq!(found, ["/a", "/inner.tar.gz!/c", "/inner.tar.gz!/d.gz"]);
    let why = "a package inside a package of this one, not opened";
    let innermost = ["tar", "tgz"].map(|end| (format!("/inner.tar.gz!/innermost.{end}"), why.to_owned()));
    assert_eq!(refused, innermost);
}

#[test]
fn packages_that_are_not_opened_are_bounded_in_number() {
    let innermost = tar(&[("deep", ELF)]);
    let names: Vec<String> = (0..MOST_REFUSED + 3).map(|number| format!("{number}.tar")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &innermost[..])).collect();
    let (_, refused) = seen(tar(&[("inner.tar", &tar(&files))]), &Limits::default());
    assert_eq!(refused.len(), MOST_REFUSED + 1);
    assert_eq!(refused.last().unwrap().1, "3 more entries are refused");
}

fn symlink(builder: &mut tar::Builder<Vec<u8>>, name: &str, target: &str) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    builder.append_link(&mut header, name, target).unwrap();
}

#[test]
fn layers_lie_over_each_other() {
    let mut first = tar::Builder::new(Vec::new());
    symlink(&mut first, "bin", "usr/bin");
    append(&mut first, "usr/bin/gone", ELF);
    append(&mut first, "usr/bin/kept", ELF);
    append(&mut first, "opt/old/a", ELF);
    append(&mut first, "opt/old/b", ELF);
    let first = first.into_inner().unwrap();
    // The whiteout goes through a link of the layer below; the opaque mark spares what its own layer brings.
    let second =
        tar(&[("bin/.wh.gone", b""), ("bin/new", ELF), ("opt/old/c", ELF), ("opt/old/.wh..wh..opq", b"")]);
    let expected = vec!["/opt/old/c".to_owned(), "/usr/bin/kept".to_owned(), "/usr/bin/new".to_owned()];
    let manifest = br#"[{"Config":"c.json","RepoTags":["edge:1"],"Layers":["1/layer.tar","2/layer.tar"]}]"#;
    // The list of layers may come last, and its order is the one that holds.
    let saved = tar(&[("2/layer.tar", &gzip(&second)), ("1/layer.tar", &first), ("manifest.json", manifest)]);
    for bytes in [saved.clone(), gzip(&saved)] {
        assert_eq!(seen(bytes, &Limits::default()), (expected.clone(), vec![]));
    }
    let index = br#"{"schemaVersion":2,"manifests":[{"digest":"sha256:aa"}]}"#;
    let oci = br#"{"layers":[{"digest":"sha256:bb"},{"digest":"sha256:cc"}]}"#;
    let layout = tar(&[
        ("index.json", index),
        ("blobs/sha256/cc", &gzip(&second)),
        ("blobs/sha256/aa", oci),
        ("blobs/sha256/bb", &first),
    ]);
    assert_eq!(seen(layout, &Limits::default()), (expected, vec![]));
    let missing = tar(&[("1/layer.tar", &first), ("manifest.json", manifest)]);
    let (found, refused) = seen(missing, &Limits::default());
    assert_eq!((found.len(), refused.len()), (4, 1));
    assert!(refused[0].1.contains("/2/layer.tar is missing"));
}

#[test]
fn an_archive_without_objects_is_no_program() {
    // As glibc installs it in place of libpthread.a since 2.34.
    let object =
        [b"!<arch>\n".to_vec(), format!("{:<48}{:<10}`\n", "a.o/", ELF.len()).into_bytes(), ELF.to_vec()];
    let text = [&b"!<arch>\n"[..], format!("{:<48}{:<10}`\n", "a.txt/", 4).as_bytes(), b"text"].concat();
    let files =
        tar(&[("lib/empty.a", b"!<arch>\n"), ("lib/full.a", &object.concat()), ("lib/text.a", &text)]);
    let package = open_bytes(files, &Limits::default()).unwrap();
    let names: Vec<_> = package.subjects.iter().map(|s| s.member.clone().unwrap()).collect();
    assert_eq!((names, package.skipped), (vec!["/lib/full.a".to_owned()], 2));
}

#[test]
fn documents_about_an_image_are_no_layers_of_it() {
    // As buildx writes: an index of the image and of the attestation that was made of it.
    let layer = tar(&[("usr/bin/a", ELF)]);
    let index = br#"{"manifests":[{"digest":"sha256:aa"},{"digest":"sha256:dd"}]}"#;
    let image =
        br#"{"layers":[{"digest":"sha256:bb","mediaType":"application/vnd.oci.image.layer.v1.tar"}]}"#;
    let about = br#"{"layers":[{"digest":"sha256:ee","mediaType":"application/vnd.in-toto+json"}]}"#;
    let layout = tar(&[
        ("oci-layout", b"{}"),
        ("index.json", index),
        ("blobs/sha256/aa", image),
        ("blobs/sha256/bb", &layer),
        ("blobs/sha256/dd", about),
        ("blobs/sha256/ee", b"{\"predicate\":{}}"),
    ]);
    assert_eq!(seen(layout, &Limits::default()), (vec!["/usr/bin/a".to_owned()], vec![]));
}

#[test]
fn no_layer_is_passed_over_for_what_it_is_called() {
    let layer = tar(&[("usr/bin/a", ELF)]);
    let empty = vec![0; 1024];
    let index = br#"{"manifests":[{"digest":"sha256:aa"}]}"#;
    let image = |media_types: [&str; 3]| {
        let layers = ["bb", "cc", "ee"].iter().zip(media_types);
        let layers: Vec<String> = layers
            .map(|(name, media_type)| format!(r#"{{"digest":"sha256:{name}","mediaType":"{media_type}"}}"#))
            .collect();
        format!(r#"{{"layers":[{}]}}"#, layers.join(","))
    };
    let seen_with = |media_types: [&str; 3], last: &[u8]| {
        let layout = tar(&[
            ("index.json", index),
            ("blobs/sha256/aa", image(media_types).as_bytes()),
            ("blobs/sha256/bb", &layer),
            ("blobs/sha256/cc", &gzip(&empty)),
            ("blobs/sha256/ee", last),
        ]);
        seen(layout, &Limits::default())
    };
    let found = vec!["/usr/bin/a".to_owned()];
    let tar_type = "application/vnd.oci.image.layer.v1.tar+gzip";
    for media_type in ["application/x+json", "application/octet-stream", "", tar_type] {
        // Layers without an entry are layers.
        assert_eq!(
            seen_with([media_type, tar_type, tar_type], &empty),
            (found.clone(), vec![]),
            "{media_type}"
        );
    }
    assert_eq!(seen_with([tar_type, tar_type, "application/x+json"], b"{}"), (found.clone(), vec![]));
    for (media_type, last) in [("text/spdx", &b"SPDXVersion"[..]), (tar_type, b"{}"), (tar_type, b"text")] {
        let (names, refused) = seen_with([tar_type, tar_type, media_type], last);
        assert_eq!(names, found);
        assert!(refused.len() == 1 && refused[0].1.contains("is no archive"), "{media_type}: {refused:?}");
    }
    // A manifest of documents alone is no image.
    let about = br#"{"layers":[{"digest":"sha256:ee","mediaType":"text/spdx"}]}"#;
    let index = br#"{"manifests":[{"digest":"sha256:aa"},{"digest":"sha256:dd"}]}"#;
    let layout = tar(&[
        ("index.json", index),
        ("blobs/sha256/aa", br#"{"layers":[{"digest":"sha256:bb"}]}"#),
        ("blobs/sha256/bb", &layer),
        ("blobs/sha256/dd", about),
        ("blobs/sha256/ee", b"SPDXVersion: SPDX-2.3"),
    ]);
    assert_eq!(seen(layout, &Limits::default()), (found, vec![]));
}

fn hard_link(builder: &mut tar::Builder<Vec<u8>>, name: &str, target: &str) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Link);
    header.set_size(0);
    let field = &mut header.as_gnu_mut().unwrap().linkname;
    field[..target.len()].copy_from_slice(target.as_bytes());
    header.set_path(name).unwrap();
    header.set_cksum();
    builder.append(&header, &[][..]).unwrap();
}

#[test]
fn links_lead_nowhere_outside() {
    let mut builder = tar::Builder::new(Vec::new());
    append(&mut builder, "good", ELF);
    symlink(&mut builder, "absolute", "/etc/passwd");
    symlink(&mut builder, "climbing", "../../../etc/passwd");
    hard_link(&mut builder, "out", "../../etc/passwd");
    hard_link(&mut builder, "nowhere", "etc/passwd");
    let (found, refused) = seen(builder.into_inner().unwrap(), &Limits::default());
    assert_eq!(found, ["/good"]);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].0 == "/out" && refused[0].1.contains("leads out"), "{refused:?}");
}

#[test]
fn a_hard_link_may_name_a_file_of_a_lower_layer() {
    let first = tar(&[("usr/bin/a", ELF)]);
    let mut second = tar::Builder::new(Vec::new());
    hard_link(&mut second, "usr/bin/b", "usr/bin/a");
    append(&mut second, "usr/bin/.wh.a", b"");
    let second = second.into_inner().unwrap();
    let manifest = br#"[{"RepoTags":["edge:1"],"Layers":["1/layer.tar","2/layer.tar"]}]"#;
    let saved = tar(&[("1/layer.tar", &first), ("2/layer.tar", &second), ("manifest.json", manifest)]);
    assert_eq!(seen(saved, &Limits::default()), (vec!["/usr/bin/b".to_owned()], vec![]));
}

/// One entry of a cpio archive in the new ASCII form.
fn cpio_entry(name: &str, inode: u32, mode: u32, links: u32, bytes: &[u8]) -> Vec<u8> {
    let fields = [inode, mode, 0, 0, links, 0, bytes.len() as u32, 8, 1, 0, 0, name.len() as u32 + 1, 0];
    let mut out = b"070701".to_vec();
    out.extend(fields.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
    out.extend(name.bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(bytes);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// A package around a payload, with headers that say as little as they may.
fn rpm_package(payload: &[u8], compressor: &str) -> Vec<u8> {
    let header = |entries: &[(u32, u32)], data: &[u8]| {
        let mut out = vec![0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
        out.extend((entries.len() as u32).to_be_bytes());
        out.extend((data.len() as u32).to_be_bytes());
        for (tag, offset) in entries {
            out.extend([*tag, 6, *offset, 1].iter().flat_map(|word| word.to_be_bytes()));
        }
        out.extend(data);
        out
    };
    let mut out = vec![0xed, 0xab, 0xee, 0xdb, 3, 0];
    out.resize(96, 0);
    out.extend(header(&[], b"odd"));
    out.resize(out.len().next_multiple_of(8), 0);
    let strings = format!("cpio\0{compressor}\0");
    out.extend(header(&[(1124, 0), (1125, 5)], strings.as_bytes()));
    out.extend(payload);
    out
}

const FILE: u32 = 0o100_755;

#[test]
fn programs_of_rpm_packages_with_hard_links_and_hostile_names() {
    let mut payload = Vec::new();
    payload.extend(cpio_entry("./usr/bin/a", 7, FILE, 2, b""));
    payload.extend(cpio_entry("./usr/bin", 1, 0o040_755, 2, b""));
    payload.extend(cpio_entry("./usr/bin/b", 7, FILE, 2, ELF));
    payload.extend(cpio_entry("./usr/bin/link", 9, 0o120_777, 1, b"a"));
    payload.extend(cpio_entry("../../evil", 8, FILE, 1, ELF));
    payload.extend(cpio_entry("./etc/text", 3, FILE, 1, b"hello"));
    payload.extend(cpio_entry("./usr/bin/c", 4, FILE, 1, ELF));
    let whole = [payload.clone(), cpio_entry("TRAILER!!!", 0, 0, 1, b"")].concat();
    for package in [rpm_package(&gzip(&whole), "gzip"), rpm_package(&whole, "none")] {
        let (found, refused) = seen(package, &Limits::default());
        assert_eq!(found, ["/usr/bin/a", "/usr/bin/c"]);
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(refused[0].0 == "../../evil" && refused[0].1.contains("leads out"));
    }
    // Cut off, with an endless size, with a header that is none: what was read is kept.
    let mut liar = cpio_entry("./liar", 5, FILE, 1, ELF);
    liar[54..62].copy_from_slice(b"3fffffff");
    let junk = b"0707010000000g".repeat(10);
    for (tail, why) in [(&b""[..], "damaged after 7"), (&liar, "ends inside"), (&junk, "damaged after 7")] {
        let (found, refused) =
            seen(rpm_package(&gzip(&[&payload[..], tail].concat()), "gzip"), &Limits::default());
        assert_eq!(found, ["/usr/bin/a", "/usr/bin/c"]);
        assert!(refused.iter().any(|(_, said)| said.contains(why)), "{refused:?}");
    }
    let (found, refused) =
        seen(rpm_package(&gzip(&whole), "gzip"), &Limits { package_entries: 2, ..Limits::default() });
    assert!(found.is_empty() && refused[0].1.contains("more than 2 entries"), "{found:?} {refused:?}");
    let bomb = [cpio_entry("./zeros", 1, FILE, 1, &vec![0; 1 << 20]), whole].concat();
    let (_, refused) =
        seen(rpm_package(&gzip(&bomb), "gzip"), &Limits { package_bytes: 64 << 10, ..Limits::default() });
    assert!(refused[0].1.contains("65536 bytes when decompressed"), "{refused:?}");
}

#[test]
fn a_damaged_rpm_package_says_what_is_damaged() {
    let whole = rpm_package(&gzip(&cpio_entry("TRAILER!!!", 0, 0, 1, b"")), "gzip");
    for cut in [96, 100, 115, 125, 140, 170] {
        let (_, refused) = seen(whole[..cut].to_vec(), &Limits::default());
        assert_eq!(refused.len(), 1, "cut at {cut}");
    }
    let mut huge = whole.clone();
    huge[104..108].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
    assert!(seen(huge, &Limits::default()).1[0].1.contains("too large"));
    let (_, refused) = seen(rpm_package(b"", "drpm"), &Limits::default());
    assert_eq!(refused.len(), 1, "{refused:?}");
}

#[test]
fn a_program_with_the_check_sum_of_an_archive_is_a_program() {
    let mut bytes = std::fs::read(crate::evidence::testing::path("gcc12-O0")).unwrap();
    bytes[148..156].fill(b' ');
    let sum: u32 = bytes[..512].iter().map(|byte| u32::from(*byte)).sum();
    bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    assert!(contents::is_tar(&bytes[..512]), "as far as the check sum goes");
    assert!(open_bytes(bytes, &Limits::default()).is_err());
}

#[test]
fn layers_that_are_listed_and_cannot_be_named_are_refused() {
    let layer = tar(&[("usr/bin/a", ELF)]);
    let manifest = br#"[{"Layers": ["l.tar", "../x/layer.tar"], "RepoTags": ["edge:1"]}]"#;
    let (found, refused) = seen(tar(&[("l.tar", &layer), ("manifest.json", manifest)]), &Limits::default());
    assert_eq!(found, ["/usr/bin/a"]);
    assert!(refused.iter().any(|(_, why)| why.contains("a layer is refused")), "{refused:?}");
}
