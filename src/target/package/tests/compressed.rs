//! Packages in every compression, sound and damaged.

use super::*;

/// A Zstandard frame of uncompressed blocks (RFC 8878, section 3.1.1), of at most 255 bytes.
fn zstd_frame(bytes: &[u8]) -> Vec<u8> {
    let size = u8::try_from(bytes.len()).unwrap();
    // The frame says its size in one byte; the header of its one block: the last, raw, of that size.
    let block = 1 | u32::from(size) << 3;
    [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, size][..], &block.to_le_bytes()[..3], bytes].concat()
}

#[test]
fn frames_without_data_are_passed_over() {
    // As pzstd writes: before each frame one without data that says how long it is.
    let mut bytes = Vec::new();
    for part in tar(&[("bin/a", ELF)]).chunks(251) {
        let frame = zstd_frame(part);
        bytes.extend_from_slice(&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0]);
        bytes.extend_from_slice(&u32::try_from(frame.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(&frame);
    }
    assert_eq!(seen(bytes.clone(), &Limits::default()), (vec!["/bin/a".to_owned()], vec![]));
    // One that claims more than there is, is damage.
    let cut = [&bytes[..12 + zstd_frame(&[0; 251]).len()], &[0x5f, 0x2a, 0x4d, 0x18, 9, 0, 0, 0, 0]].concat();
    let package = open_bytes(cut, &Limits::default());
    assert!(
        package.is_err() || package.is_ok_and(|package| package.subjects.iter().all(|s| s.refused.is_some()))
    );
}

#[test]
fn a_frame_whose_checksum_is_wrong_is_damage() {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let plain = tar(&[("bin/a", ELF), ("bin/b", ELF)]);
    let sound = compress_to_vec(plain.as_slice(), CompressionLevel::Uncompressed);
    assert_eq!(seen(sound.clone(), &Limits::default()).0.len(), 2);
    // A byte of a program, which nothing but the checksum guards.
    let mut damaged = sound;
    let magic = memchr::memmem::rfind(&damaged, b"\x7fELF").unwrap();
    damaged[magic + 9] ^= 0x55;
    let package = open_bytes(damaged, &Limits::default()).unwrap();
    let refused: Vec<&str> = package.subjects.iter().filter_map(|one| one.refused.as_deref()).collect();
    assert!(refused.iter().any(|why| why.contains("its checksum is wrong")), "{refused:?}");
}

#[test]
fn the_end_of_a_stream_is_read_for_its_checksum_and_zeros_behind_gzip_are_padding() {
    let plain = tar(&[("bin/a", ELF)]);
    let (first, second) = plain.split_at(600);
    let sound = [gzip(first), gzip(second)].concat();
    for padding in [0, 1, 512, 200_000] {
        let padded = [&sound[..], &vec![0; padding]].concat();
        assert_eq!(seen(padded, &Limits::default()), (vec!["/bin/a".to_owned()], vec![]), "{padding}");
    }
    let refused = |bytes: Vec<u8>| seen(bytes, &Limits::default()).1;
    let mut damaged = sound.clone();
    let end = damaged.len() - 8;
    damaged[end] ^= 1;
    assert!(refused(damaged)[0].1.starts_with("damaged, as its end shows: its gzip data"));
    let followed = [&sound[..], &[0; 16], b"something"].concat();
    assert!(refused(followed)[0].1.contains("something else follows it"));
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An lzma file without compression to speak of: of zeros, which the range coder says in bytes of zero.
fn lzma_of_zeros(size: u64, dictionary: u32) -> Vec<u8> {
    [&[0x5d][..], &dictionary.to_le_bytes(), &size.to_le_bytes(), &[0; 4096]].concat()
}

#[test]
fn frames_of_lz4_are_read_to_the_last_and_a_missing_end_is_damage() {
    let plain = tar(&[("bin/a", ELF), ("bin/b", ELF)]);
    let skippable = [0x5f, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 1];
    let (first, second) = plain.split_at(700);
    let frames = [&lz4(first), &skippable[..], &lz4(second)].concat();
    let wanted = (vec!["/bin/a".to_owned(), "/bin/b".to_owned()], vec![]);
    assert_eq!(seen(frames.clone(), &Limits::default()), wanted);
    assert_eq!(seen(lz4(&plain), &Limits::default()), wanted);
    assert_eq!(seen(tar(&[("x.tar.lz4", &lz4(&plain))]), &Limits::default()).0.len(), 2);
    // Cut where a block would follow: there the format could end, but for the mark that is missing.
    let cut = lz4(&plain[..1024]);
    let package = open_bytes(cut[..cut.len() - 4].to_vec(), &Limits::default()).unwrap();
    let refused: Vec<&str> = package.subjects.iter().filter_map(|one| one.refused.as_deref()).collect();
    assert!(refused.iter().any(|why| why.contains("its LZ4 data is cut off")), "{refused:?}");
    // What is wrong is said in words: the byte behind the two of flags is the header's checksum.
    let mut wrong = lz4(&plain);
    wrong[6] ^= 1;
    let package = open_bytes(wrong, &Limits::default()).unwrap();
    assert_eq!(
        package.subjects[0].refused.as_deref(),
        Some("its LZ4 data cannot be read: header checksum error")
    );
    let big = lz4(&tar(&[("good", ELF), ("zeros", &vec![0; 1 << 20]), ("late", ELF)]));
    let (found, refused) = seen(big, &Limits { package_bytes: 64 << 10, ..Limits::default() });
    assert_eq!(found, ["/good"]);
    assert!(refused[0].1.contains("65536 bytes when decompressed"), "{refused:?}");
}

#[test]
fn what_only_looks_like_lzma_is_no_package_and_no_damage() {
    for (size, dictionary) in [(4096, 1 << 16), (u64::MAX, 3 << 22), (1 << 30, 1 << 31), (4096, u32::MAX)] {
        let bytes = lzma_of_zeros(size, dictionary);
        assert!(stream::may_be_lzma(&bytes), "{size} {dictionary}");
        assert!(open_bytes(bytes.clone(), &Limits::default()).is_err());
        let package = open_bytes(tar(&[("data", &bytes), ("a", ELF)]), &Limits::default()).unwrap();
        assert_eq!((package.subjects.len(), package.skipped), (1, 1));
    }
    for bytes in [lzma_of_zeros(0, 1 << 16), lzma_of_zeros(9, 5 << 16), lzma_of_zeros(9, 0), vec![0x5d]] {
        assert!(!stream::may_be_lzma(&bytes));
    }
}
