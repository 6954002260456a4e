//! `.note.package`: the package a distribution built the file for, and `.dep-v0`: the crates a Rust program is made of.
//!
//! Sources: systemd, "Package Metadata for Executable Files" (owner `FDO`, JSON); cargo-auditable's format (zlib, JSON). Both
//! are declarations: whoever builds the file writes what they like. Neither says anything about options.

use crate::facts::{BuildString, Problem, Product};
use crate::image::Image;
use serde::Deserialize;
use std::io::Read;

/// Keys of the note that are passed on, with the name they have in reports.
const KEYS: [(&str, &str); 6] = [
    ("type", "type"),
    ("name", "name"),
    ("version", "version"),
    ("os", "os"),
    ("osVersion", "os-version"),
    ("architecture", "architecture"),
];
/// Longest value passed on, in bytes.
const VALUE: usize = 256;
/// Most bytes of `.dep-v0`, and of what it inflates to; a list of a thousand crates has 100 kB.
const PACKED: u64 = 1 << 20;
const INFLATED: u64 = 16 << 20;

/// What a file says of its package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// Name and version, where they are told.
    pub product: Option<Product>,
    /// What is told, in the order of [`KEYS`].
    pub strings: Vec<BuildString>,
    /// What is damaged.
    pub problems: Vec<Problem>,
}

/// Understands the JSON text of the note.
pub fn read_note(text: &[u8]) -> Package {
    let mut out = Package::default();
    let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(text) else {
        out.problems.push(Problem::notice("unknown-package-note", ".note.package holds no JSON object"));
        return out;
    };
    let value = |key: &str| object.get(key).and_then(|value| value.as_str()).map(short);
    for (key, name) in KEYS {
        out.strings.extend(value(key).map(|value| string("package-note", name, value)));
    }
    out.product = value("name").map(|name| Product {
        name,
        version: value("version"),
        base: None,
        build_text: value("os").map(|os| match value("osVersion") {
            Some(version) => format!("{os} {version}"),
            None => os,
        }),
    });
    out
}

#[derive(Deserialize)]
struct Audited {
    packages: Vec<Crate>,
}

#[derive(Deserialize)]
struct Crate {
    name: String,
    version: String,
    #[serde(default)]
    root: bool,
}

/// Reads `.dep-v0`; empty where there is none.
pub fn read_crates(image: &Image) -> Package {
    let mut out = Package::default();
    let Some(section) = image.section(".dep-v0").filter(|section| section.has_data()) else { return out };
    let text = image
        .read(section.offset, section.size.min(PACKED), "section .dep-v0")
        .map_err(|error| error.to_string())
        .and_then(|packed| {
            let mut text = Vec::new();
            let stream = flate2::read::ZlibDecoder::new(packed.as_slice());
            let got = stream.take(INFLATED).read_to_end(&mut text);
            got.map(|_| text).map_err(|error| error.to_string())
        });
    let audited =
        text.and_then(|text| serde_json::from_slice::<Audited>(&text).map_err(|error| error.to_string()));
    let audited = match audited {
        Ok(audited) => audited,
        Err(why) => {
            out.problems.push(Problem::damage("damaged-crate-list", format!(".dep-v0: {why}")));
            return out;
        }
    };
    if let Some(root) = audited.packages.iter().find(|package| package.root) {
        let (name, version) = (short(&root.name), short(&root.version));
        out.strings.push(string("cargo", "package", format!("{name} {version}")));
        out.product = Some(Product { name, version: Some(version), base: None, build_text: None });
    }
    out.strings.push(string("cargo", "crates", audited.packages.len().to_string()));
    out
}

fn string(program: &str, key: &str, value: String) -> BuildString {
    BuildString { program: program.to_owned(), key: key.to_owned(), value }
}

fn short(text: &str) -> String {
    text.chars().take(VALUE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::testing::open;
    use crate::image::{Input, notes};
    use crate::limits::Limits;
    use object::write::Object;
    use object::{Architecture, BinaryFormat, Endianness, SectionKind};
    use std::io::Write;

    #[test]
    fn a_package_is_named_by_its_note() {
        let note = notes::read(&open("pkgnote")).package.unwrap();
        let package = read_note(&note);
        let product = package.product.unwrap();
        assert_eq!((product.name.as_str(), product.version.as_deref()), ("nginx", Some("1.2-3")));
        assert_eq!(product.build_text.as_deref(), Some("debian"));
        let keys: Vec<(&str, &str)> =
            package.strings.iter().map(|s| (s.key.as_str(), s.value.as_str())).collect();
        assert_eq!(
            keys,
            [
                ("type", "deb"),
                ("name", "nginx"),
                ("version", "1.2-3"),
                ("os", "debian"),
                ("architecture", "amd64")
            ]
        );
    }

    #[test]
    fn notes_that_are_no_package() {
        for text in [&b"not json"[..], b"[1]", b"\"x\"", b""] {
            let package = read_note(text);
            assert_eq!((package.product, package.strings.len()), (None, 0));
            assert_eq!(package.problems[0].code, "unknown-package-note");
        }
        assert_eq!(read_note(b"{\"name\": 7}"), Package::default());
        let deep = "[".repeat(100_000);
        assert_eq!(read_note(deep.as_bytes()).problems.len(), 1);
    }

    fn with_crates(bytes: &[u8]) -> Package {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let section = object.add_section(Vec::new(), b".dep-v0".to_vec(), SectionKind::ReadOnlyData);
        object.append_section_data(section, bytes, 1);
        read_crates(&Image::open(Input::memory(object.write().unwrap()), &Limits::default()).unwrap())
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut stream = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        stream.write_all(text).unwrap();
        stream.finish().unwrap()
    }

    #[test]
    fn crates_of_a_rust_program() {
        let text = br#"{"packages":[{"name":"adler","version":"0.2.3","source":"registry"},
            {"name":"uv","version":"0.9.1","source":"local","dependencies":[0],"root":true}]}"#;
        let package = with_crates(&packed(text));
        assert_eq!(package.product.unwrap().version.as_deref(), Some("0.9.1"));
        let said: Vec<&str> = package.strings.iter().map(|s| s.value.as_str()).collect();
        assert_eq!(said, ["uv 0.9.1", "2"]);
    }

    #[test]
    fn damaged_and_bombing_lists_of_crates() {
        for bytes in [&b"nonsense"[..], &packed(b"{}"), &packed(&vec![b' '; 200 << 20])] {
            let package = with_crates(bytes);
            assert_eq!(package.product, None);
            assert_eq!(package.problems[0].code, "damaged-crate-list");
        }
    }
}
