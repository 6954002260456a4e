//! What somebody put together to do harm.

use super::*;

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
fn an_archive_of_archives_is_bounded_as_one() {
    let large = gzip(&[ELF, &vec![0; 100_000]].concat());
    let names: Vec<String> = (0..60).map(|n| format!("f{n:02}.gz")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &large[..])).collect();
    let limits = Limits { package_bytes: 1 << 20, ..Limits::default() };
    let open_files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open_files();
    let package = open_bytes(tar(&files), &limits).unwrap();
    assert!(open_files() < before + 30, "one temporary file is enough");
    let refused: Vec<&str> = package.subjects.iter().filter_map(|one| one.refused.as_deref()).collect();
    assert_eq!((package.subjects.len(), refused.len()), (60, 50), "{refused:?}");
    assert_eq!(refused[0], "refused: all programs out of compressed packages have more than 1048576 bytes");
    let zeros = gzip(&tar(&[("zeros", &vec![0; 900_000])]));
    let files: Vec<(&str, &[u8])> = names.iter().take(8).map(|name| (name.as_str(), &zeros[..])).collect();
    let (found, refused) = seen(tar(&files), &limits);
    assert_eq!((found.len(), refused.len()), (0, 4));
    let all = "all packages in it have more than 4194304 bytes when decompressed";
    assert_eq!(refused[0].1, format!("damaged after 1 entries: {all}; the rest is not read"));
    assert_eq!(refused[1], ("/f05.gz".to_owned(), all.to_owned()));
}

#[test]
fn entries_that_are_refused_are_named_up_to_a_number_and_counted() {
    let names: Vec<String> = (0..3000).map(|n| format!("../f{n:04}")).collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().map(|name| (name.as_str(), ELF)).chain([("good", ELF)]).collect();
    let (found, refused) = seen(tar(&files), &Limits::default());
    assert_eq!(found, ["/good"]);
    assert_eq!(refused.len(), 1001);
    assert_eq!(refused[0].0, "../f0000");
    assert_eq!(refused[1000], (String::new(), "2000 more entries are refused".to_owned()));
}

#[test]
fn names_are_bounded_together() {
    let room = Room::new(&Limits::default());
    let name = "n".repeat(1 << 20);
    assert_eq!((0..1000).take_while(|_| room.name(&name)).count(), 128);
}

#[test]
fn a_sparse_file_is_refused_and_not_passed_over() {
    // As `tar --format=posix --sparse` writes it: a map, then the data without its holes.
    let mut builder = tar::Builder::new(Vec::new());
    let records =
        [("GNU.sparse.major", &b"1"[..]), ("GNU.sparse.minor", b"0"), ("GNU.sparse.name", b"usr/bin/a")];
    builder.append_pax_extensions(records).unwrap();
    append(&mut builder, "usr/bin/GNUSparseFile.7/a", b"1\n0\n512\n");
    append(&mut builder, "good", ELF);
    let (found, refused) = seen(builder.into_inner().unwrap(), &Limits::default());
    assert_eq!(found, ["/good"]);
    assert!(
        refused.len() == 1 && refused[0].0 == "/usr/bin/a" && refused[0].1.contains("sparse"),
        "{refused:?}"
    );
}

#[test]
fn an_entry_whose_name_is_too_long_is_refused_and_the_rest_is_read() {
    let mut builder = tar::Builder::new(Vec::new());
    append(&mut builder, "good", ELF);
    let long = [b"n".repeat(5000), vec![0]].concat();
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_path("././@LongLink").unwrap();
    header.set_size(long.len() as u64);
    header.set_cksum();
    builder.append(&header, &long[..]).unwrap();
    append(&mut builder, "short", ELF);
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::XHeader);
    header.set_path("pax").unwrap();
    header.set_size((1 << 20) + 1);
    header.set_cksum();
    builder.append(&header, &vec![b'x'; (1 << 20) + 1][..]).unwrap();
    append(&mut builder, "unknown", ELF);
    append(&mut builder, "late", ELF);
    let bytes = builder.into_inner().unwrap();
    for bytes in [bytes.clone(), gzip(&bytes)] {
        let (found, refused) = seen(bytes, &Limits::default());
        assert_eq!(found, ["/good", "/late"]);
        assert_eq!(refused[0], ("n".repeat(200), "refused: its name is too long".to_owned()));
        let why = "refused: an extended header of 1048577 bytes".to_owned();
        assert_eq!(refused[1], ("unknown".to_owned(), why));
    }
}

#[test]
fn an_index_that_names_itself_is_read_once_and_what_names_no_blob_is_refused() {
    let own = format!("sha256:{}", "a".repeat(64));
    let circle = format!(
        r#"{{"manifests":[{}{{"digest":"sha256:../../etc/passwd"}}]}}"#,
        format!(r#"{{"digest":"{own}"}},"#).repeat(3000)
    );
    let blob = format!("blobs/sha256/{}", "a".repeat(64));
    let index = format!(r#"{{"manifests":[{{"digest":"{own}"}}]}}"#);
    let files: [(&str, &[u8]); 3] =
        [("oci-layout", b"{}"), ("index.json", index.as_bytes()), (&blob, circle.as_bytes())];
    let (found, refused) = seen(tar(&files), &Limits::default());
    assert_eq!(found.len(), 0);
    assert!(refused.iter().any(|(_, why)| why == "a digest that names no blob is refused"), "{refused:?}");
    assert!(refused.len() < 10, "{refused:?}");
}

#[test]
fn compressed_data_that_is_cut_or_damaged_is_said_in_words() {
    let whole = gzip(&tar(&[
        ("good", ELF),
        ("noise", &(0..200_000u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>()),
    ]));
    let cut = whole[..whole.len() / 2].to_vec();
    let (found, refused) = seen(cut, &Limits::default());
    assert_eq!(found, ["/good"]);
    assert!(refused[0].1.contains("its gzip data is cut off"), "{refused:?}");
    let xz = |bytes: &[u8]| [&[0xfd, b'7', b'z', b'X', b'Z', 0], bytes].concat();
    let (_, refused) = seen(xz(&[0; 40]), &Limits::default());
    assert!(refused[0].1.starts_with("its xz data cannot be read: "), "{refused:?}");
    let (_, refused) = seen([&[0x28, 0xb5, 0x2f, 0xfd][..], &[0xff; 40]].concat(), &Limits::default());
    assert!(refused[0].1.starts_with("its Zstandard data cannot be read: "), "{refused:?}");
    assert!(!refused[0].1.contains('{'), "{refused:?}");
}
