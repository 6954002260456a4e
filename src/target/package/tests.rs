use super::*;
use std::io::Write;
use std::path::Path;

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
            let input = subject.open(1 << 20).unwrap();
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
    assert_eq!(single.open(1 << 20).unwrap().len(), ELF.len() as u64);
}

#[test]
fn entries_that_lead_out_are_refused_and_the_rest_is_audited() {
    let bytes = tar(&[("../../evil", ELF), ("usr/../../evil", ELF), ("good", ELF)]);
    let (found, refused) = seen(bytes, &Limits::default());
    assert_eq!(found, ["/good"]);
    let names: Vec<&str> = refused.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["../../evil", "usr/../../evil"]);
    assert!(refused.iter().all(|(_, why)| why.contains("leads out")));
    // An absolute name is a name inside the archive.
    assert_eq!(seen(tar(&[("/usr/bin/a", ELF)]), &Limits::default()).0, ["/usr/bin/a"]);
}

#[test]
fn bombs_and_endless_archives_end_at_a_limit() {
    let big = vec![0; 1 << 20];
    let bytes = gzip(&tar(&[("good", ELF), ("zeros", &big), ("late", ELF)]));
    let (found, refused) = seen(bytes, &Limits { package_bytes: 64 << 10, ..Limits::default() });
    assert_eq!(found, ["/good"]);
    assert!(refused[0].1.contains("65536 bytes when decompressed"), "{refused:?}");
    let many: Vec<(String, &[u8])> = (0..20).map(|n| (format!("f{n:02}"), ELF)).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
    let (found, refused) = seen(tar(&many), &Limits { package_entries: 7, ..Limits::default() });
    assert_eq!((found.len(), refused.len()), (7, 1));
    assert!(refused[0].1.contains("more than 7 entries"));
    let large = [ELF, &big].concat();
    for bytes in [tar(&[("big", &large), ("good", ELF)]), gzip(&tar(&[("big", &large), ("good", ELF)]))] {
        let (found, refused) = seen(bytes, &Limits { stream_bytes: 4096, ..Limits::default() });
        assert_eq!((found, refused[0].0.as_str()), (vec!["/good".to_owned()], "/big"));
    }
}

#[test]
fn sizes_that_lie_cost_what_they_lie_about() {
    let mut builder = tar::Builder::new(Vec::new());
    append(&mut builder, "good", ELF);
    let mut bytes = builder.into_inner().unwrap();
    bytes.truncate(1024);
    let mut header = tar::Header::new_gnu();
    header.set_path("liar").unwrap();
    header.set_size(1 << 28);
    header.set_cksum();
    bytes.extend(header.as_bytes());
    bytes.extend(ELF);
    for bytes in [bytes.clone(), gzip(&bytes)] {
        let (found, refused) = seen(bytes, &Limits::default());
        assert_eq!(found, ["/good"]);
        assert!(
            refused.iter().any(|(name, why)| name == "/liar" && why.contains("ends inside")),
            "{refused:?}"
        );
    }
    // A header that is none ends the archive, and what was read is kept.
    let mut bytes = tar(&[("good", ELF)]);
    bytes.truncate(1024);
    bytes.extend([7; 1024]);
    let (found, refused) = seen(bytes, &Limits::default());
    assert_eq!(found, ["/good"]);
    assert!(refused[0].1.contains("damaged after 1 entries"), "{refused:?}");
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
    let inner = tar(&[("c", ELF), ("innermost.tar", &innermost)]);
    append(&mut builder, "inner.tar.gz", &gzip(&inner));
    let (found, refused) = seen(builder.into_inner().unwrap(), &Limits::default());
    assert_eq!((found, refused), (vec!["/a".to_owned(), "/inner.tar.gz!/c".to_owned()], vec![]));
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
