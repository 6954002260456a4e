use super::*;
use crate::image::Input;
use crate::limits::Limits;
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use proptest::prelude::*;

fn image(bytes: &[u8]) -> Image {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let section = object.add_section(Vec::new(), SECTION.into(), SectionKind::Data);
    object.append_section_data(section, bytes, 16);
    Image::open(Input::memory(object.write().unwrap()), &Limits::default()).unwrap()
}

fn varint(mut n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

fn inline(version: &str, module: &str) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend([8, 2]);
    out.resize(32, 0);
    out.extend(varint(version.len()));
    out.extend(version.as_bytes());
    let framed = [&[0xaa; 16], module.as_bytes(), &[0xbb; 16]].concat();
    out.extend(varint(framed.len()));
    out.extend(framed);
    out
}

fn info(settings: &str) -> GoBuildInfo {
    let module =
        format!("path\texample.test/hi\nmod\texample.test/hi\t(devel)\t\ndep\tx\tv1\th1:\n{settings}");
    read(&image(&inline("go1.19.8", &module))).unwrap()
}

#[test]
fn a_default_build_is_optimized() {
    let info = info(
        "build\t-compiler=gc\nbuild\tCGO_CFLAGS=\nbuild\tGOAMD64=v3\nbuild\t-ldflags=\"-X \\\"main.x=a b\\\"\"\n",
    );
    assert_eq!(info.version, "go1.19.8");
    assert_eq!(info.path.as_deref(), Some("example.test/hi"));
    assert_eq!(info.module, Some(("example.test/hi".to_owned(), "(devel)".to_owned())));
    assert_eq!(info.setting("-ldflags"), Some("-X \"main.x=a b\""));
    assert_eq!(info.setting("CGO_CFLAGS"), Some(""));
    assert_eq!(info.baseline(), Some("x86-64-v3"));
    assert_eq!((info.level.level, info.scope), (Level::Optimized, Scope::File));
    assert_eq!(info.claims()[0].value, "optimized");
}

#[test]
fn gcflags_with_n_are_no_optimization() {
    for (flags, level, scope) in [
        ("\"all=-N -l\"", Level::O0, Scope::File),
        ("\"-N -l\"", Level::O0, Scope::Some),
        ("all=-N", Level::O0, Scope::File),
        ("\"example.test/...=-l -N\"", Level::O0, Scope::Some),
        ("-N=false", Level::Optimized, Scope::File),
        ("-l", Level::Optimized, Scope::File),
        ("\"-m=2 -l\"", Level::Optimized, Scope::File),
        ("all=-NN", Level::Optimized, Scope::File),
    ] {
        let info = info(&format!("build\t-compiler=gc\nbuild\t-gcflags={flags}\n"));
        assert_eq!((info.level.level, info.scope), (level, scope), "{flags}");
    }
}

#[test]
fn without_settings_nothing_is_known() {
    assert_eq!(info("").level.level, Level::Unknown);
    assert_eq!(info("build\t-compiler=gccgo\n").level.level, Level::Unknown);
    assert!(info("").claims().is_empty());
    let bare = read(&image(&inline("go1.19.8", ""))).unwrap();
    assert_eq!((bare.version.as_str(), bare.level.level), ("go1.19.8", Level::Unknown));
}

#[test]
fn lengths_that_lie_are_no_information() {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([8, 2]);
    bytes.resize(32, 0);
    for length in [
        &[0xff; 10][..],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        &[0xff, 0xff, 3],
        &[0x80],
    ] {
        let bytes = [&bytes[..], length].concat();
        assert_eq!(read(&image(&bytes)), None, "{length:?}");
    }
    assert_eq!(read(&image(b"nothing of the kind, but long enough to hold a head")), None);
}

/// An executable with one data segment at 0x1000 and no section table.
fn without_sections(data: &[u8]) -> Image {
    let mut file = vec![0u8; 0x1000];
    file[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(16, &2u16.to_le_bytes());
    put(18, &62u16.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(54, &56u16.to_le_bytes());
    put(56, &1u16.to_le_bytes());
    put(64, &1u32.to_le_bytes());
    put(68, &6u32.to_le_bytes());
    for (at, value) in [(72, 0x1000u64), (80, 0x1000), (96, data.len() as u64), (104, data.len() as u64)] {
        put(at, &value.to_le_bytes());
    }
    file.extend(data);
    Image::open(Input::memory(file), &Limits::default()).unwrap()
}

#[test]
fn pointers_before_go_1_18_and_files_without_sections() {
    let mut data = vec![0u8; 32];
    data.extend(MAGIC);
    data.extend([8, 0]);
    data.extend(0x1040u64.to_le_bytes());
    data.extend(0u64.to_le_bytes());
    data.extend(0x1050u64.to_le_bytes());
    data.extend(6u64.to_le_bytes());
    data.extend(b"go1.16");
    let info = read(&without_sections(&data)).unwrap();
    assert_eq!(info.version, "go1.16");
    assert_eq!(info.level.level, Level::Unknown);
    assert_eq!(info.at, Place { section: "segment 0".into(), offset: 32 });
    // A pointer to nowhere, and a length beyond the file.
    for (at, value) in [(48, u64::MAX), (72, 1 << 20), (72, u64::MAX)] {
        let mut bad = data.clone();
        bad[at..at + 8].copy_from_slice(&value.to_le_bytes());
        assert_eq!(read(&without_sections(&bad)), None);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(tail in proptest::collection::vec(any::<u8>(), 0..120), flags in any::<u8>(), size in any::<u8>()) {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([size, flags]);
        bytes.extend(tail);
        let _ = read(&image(&bytes));
        let _ = read(&without_sections(&bytes));
    }
}
