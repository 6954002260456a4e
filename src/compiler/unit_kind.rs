//! Telling a program's own units from those of the toolchain, of statically linked libraries, of assemblers and of
//! the link-time optimizer.
//!
//! A file name proves nothing by itself (every second project has an `init.c`): what counts is where the
//! unit was compiled, together with the name the toolchain gives its start files.

use super::options::Opt;
use super::producer::{Family, Producer, Role};
use crate::facts::UnitKind;

/// A library whose units are known by where they were compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Library {
    /// Short name: `glibc`, `openssl`.
    pub name: &'static str,
    /// Names under which shared objects of it go (`DT_SONAME` up to `.so`), so that a caller who looks at the
    /// library itself can tell that these units are its own.
    pub sonames: &'static [&'static str],
}

const GLIBC: Library = Library {
    name: "glibc",
    sonames: &[
        "libc",
        "libm",
        "libmvec",
        "libpthread",
        "libdl",
        "librt",
        "libresolv",
        "libutil",
        "libanl",
        "libnsl",
        "ld-linux-x86-64",
        "ld-linux",
        "ld-linux-aarch64",
        "ld64",
    ],
};
const MUSL: Library =
    Library { name: "musl", sonames: &["libc", "ld-musl-x86_64", "ld-musl-aarch64", "ld-musl-i386"] };
const OPENSSL: Library = Library { name: "openssl", sonames: &["libcrypto", "libssl"] };
const BORINGSSL: Library = Library { name: "boringssl", sonames: &["libcrypto", "libssl"] };
const LIBRESSL: Library = Library { name: "libressl", sonames: &["libcrypto", "libssl", "libtls"] };
const LIBSTDCXX: Library = Library { name: "libstdc++", sonames: &["libstdc++"] };
const GCC_RUNTIME: Library = Library {
    name: "gcc-runtime",
    sonames: &[
        "libgomp",
        "libatomic",
        "libquadmath",
        "libgfortran",
        "libitm",
        "libobjc",
        "libgphobos",
        "libgo",
    ],
};
const LLVM_RUNTIME: Library =
    Library { name: "llvm-runtime", sonames: &["libc++", "libc++abi", "libunwind", "libomp"] };
const RUST_STD: Library = Library { name: "rust-std", sonames: &["libstd"] };

/// A source tree: the name of its directory, the library, and the directories at its top.
type Tree = (&'static str, Library, &'static [&'static str]);

/// Source trees of libraries. A directory `NAME-VERSION` is taken for the tree; a bare `NAME` only where one of the
/// tree's own top directories follows, since people name directories after whatever they work with.
const TREES: &[Tree] = &[
    (
        "glibc",
        GLIBC,
        &[
            "csu",
            "nptl",
            "string",
            "stdlib",
            "stdio-common",
            "libio",
            "malloc",
            "math",
            "posix",
            "misc",
            "io",
            "elf",
            "time",
            "wcsmbs",
            "debug",
            "inet",
            "resolv",
            "nss",
            "locale",
            "iconv",
            "signal",
            "socket",
            "sysdeps",
            "setjmp",
        ],
    ),
    ("musl", MUSL, &["src", "ldso", "crt", "compat"]),
    ("openssl", OPENSSL, &["crypto", "ssl", "providers", "engines"]),
    ("quictls", OPENSSL, &["crypto", "ssl", "providers", "engines"]),
    ("boringssl", BORINGSSL, &["crypto", "ssl", "decrepit"]),
    ("aws-lc", BORINGSSL, &["crypto", "ssl", "decrepit"]),
    ("libressl", LIBRESSL, &["crypto", "ssl", "tls"]),
    ("libstdc++-v3", LIBSTDCXX, &["src", "libsupc++"]),
    ("libcxx", LLVM_RUNTIME, &["src"]),
    ("libcxxabi", LLVM_RUNTIME, &["src"]),
];

/// Directories of the GCC source whose units are support libraries; only under a directory of GCC itself.
const GCC_LIBRARIES: &[&str] =
    &["libgomp", "libatomic", "libquadmath", "libgfortran", "libitm", "libobjc", "libphobos", "libgo"];

/// glibc's start files, as they are named in its `csu` directory and in `sysdeps`.
const GLIBC_START: &[&str] = &[
    "start.S",
    "start.c",
    "init.c",
    "crti.S",
    "crtn.S",
    "elf-init.c",
    "static-reloc.c",
    "abi-note.S",
    "abi-note.c",
    "gmon-start.c",
    "dso_handle.c",
];

/// Units of zig's run-time libraries, as their root modules are named.
const ZIG_RUNTIME: &[&str] = &["compiler_rt", "zigc", "ubsan_rt", "c", "ssp"];

/// musl's start files, which distributions compile with their directory mapped away.
const MUSL_START: &[&str] = &["crt/crt1.c", "crt/Scrt1.c", "crt/rcrt1.c"];
/// Most code in one of them, in bytes; it is a call.
const MUSL_START_BYTES: u64 = 256;

/// Most bytes of `_start` itself, which is assembly in the unit's text and so no part of its ranges.
const MUSL_ENTRY_BYTES: u64 = 64;

/// Whether a unit without a telling directory is musl's start file: by its name, its size, and that the program begins
/// in it or right before, all together.
pub fn is_start_unit(name: &str, ranges: &[std::ops::Range<u64>], entry: u64) -> bool {
    let bytes = ranges.iter().fold(0u64, |sum, r| sum.saturating_add(r.end.saturating_sub(r.start)));
    MUSL_START.contains(&name)
        && bytes <= MUSL_START_BYTES
        && ranges
            .iter()
            .any(|range| range.start <= entry.saturating_add(MUSL_ENTRY_BYTES) && entry < range.end)
}

/// What kind of unit this is. `name` and `comp_dir` are `DW_AT_name` and `DW_AT_comp_dir`, both may be empty; `language`
/// is `DW_AT_language`.
pub fn unit_kind(
    producer: &Producer,
    name: &str,
    comp_dir: Option<&str>,
    language: Option<gimli::DwLang>,
) -> UnitKind {
    let place = Place::new(name, comp_dir.unwrap_or(""));
    if producer.role == Role::LtoPartition || is_link_time(producer, name) {
        return UnitKind::LtoPartition;
    }
    if is_toolchain(producer, &place) {
        return UnitKind::Toolchain;
    }
    if producer.role == Role::Assembler || is_assembly_source(producer, name, language) {
        return UnitKind::Assembly;
    }
    if library(producer, &place).is_some() { UnitKind::Library } else { UnitKind::Source }
}

/// The library a unit belongs to by where it was compiled.
///
/// This tells where code comes from, not whether it is foreign to the file: in `libcrypto.so` itself, OpenSSL's
/// units are the file's own. A caller knows that by the file's `DT_SONAME` ([`Library::is_named`]) or, where
/// there is none, by finding no unit that belongs to anything else.
pub fn library_of(producer: &Producer, name: &str, comp_dir: Option<&str>) -> Option<Library> {
    library(producer, &Place::new(name, comp_dir.unwrap_or("")))
}

impl Library {
    /// Whether a `DT_SONAME` or file name is that of this library: `libcrypto.so.3`, `libc-2.31.so`.
    pub fn is_named(&self, file: &str) -> bool {
        let file = file_name(file);
        self.sonames.iter().any(|name| {
            file.strip_prefix(name).is_some_and(|rest| {
                rest.starts_with(".so")
                    || rest.strip_prefix('-').is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
            })
        })
    }
}

/// Whether a unit is named as GCC's link-time optimizer names what it makes (`lto_main`), whatever is left of its producer.
fn is_link_time(producer: &Producer, name: &str) -> bool {
    name == "<artificial>" && matches!(producer.family, Family::Gcc | Family::Unknown)
}

/// Whether the compiler was fed assembler source: clang's integrated assembler names itself as clang. Where the producer or
/// the unit names another language it was not, whatever the file is called (`clang -x c file.s`).
fn is_assembly_source(producer: &Producer, name: &str, language: Option<gimli::DwLang>) -> bool {
    let assembler =
        |language| matches!(language, gimli::DW_LANG_Mips_Assembler | gimli::DW_LANG_SUN_Assembler);
    if producer.language.is_some() || language.is_some_and(|language| !assembler(language)) {
        return false;
    }
    let compilers = [Family::Clang, Family::Armclang, Family::Gcc, Family::Unknown];
    let extension = file_name(name).rsplit_once('.').map_or("", |(_, extension)| extension);
    compilers.contains(&producer.family) && matches!(extension, "s" | "S" | "sx" | "asm")
}

/// Components that most paths have no more of.
const DEPTH: usize = 12;

/// Where a unit was compiled, in path components.
struct Place<'a> {
    name: &'a str,
    /// Of the compilation directory.
    directory: Vec<&'a str>,
    /// Of the directory the source file lies in.
    source: Vec<&'a str>,
}

impl<'a> Place<'a> {
    fn new(name: &'a str, comp_dir: &'a str) -> Self {
        // Components beyond any real depth are of no use.
        let parts = |path: &'a str| path.split('/').filter(|part| !part.is_empty()).take(64);
        let mut directory: Vec<&str> = Vec::with_capacity(DEPTH);
        directory.extend(parts(comp_dir));
        let mut source: Vec<&str> = Vec::with_capacity(directory.len() + DEPTH);
        if !name.starts_with('/') {
            source.extend_from_slice(&directory);
        }
        for part in parts(name) {
            match part {
                "." => {}
                ".." => drop(source.pop()),
                part => source.push(part),
            }
        }
        source.pop();
        Self { name, directory, source }
    }

    /// Whether the source lies in a directory `name`, or `name` and a version.
    fn within(&self, name: &str) -> bool {
        self.source.iter().any(|part| is_named(part, name))
    }

    /// Whether the source lies in the tree, and in no other package below it.
    fn is_of(&self, (name, _, tops): &Tree) -> bool {
        let Some(at) = self.source.iter().rposition(|part| is_named(part, name)) else {
            return false;
        };
        let below = self.source.get(at + 1..).unwrap_or_default();
        let bare = self.source.get(at) == Some(name);
        let known = below.first().is_some_and(|top| tops.contains(top));
        known || (!bare && !below.iter().any(|part| has_version(part)))
    }

    fn ends_in(&self, directory: &str) -> bool {
        self.directory.last() == Some(&directory)
    }
}

/// `openssl-3.0.15`, `gcc-12-12.2.0`, `glibc_2.36`: the name, then a version.
fn is_versioned(part: &str, name: &str) -> bool {
    let rest = part.as_bytes().strip_prefix(name.as_bytes());
    matches!(rest, Some([b'-' | b'_', b'0'..=b'9', ..]))
}

/// The name, with or without a version. Asked of every directory of every unit, and most begin with another letter.
fn is_named(part: &str, name: &str) -> bool {
    part.as_bytes().first() == name.as_bytes().first() && (part == name || is_versioned(part, name))
}

/// `nginx-1.22.1`: whether a directory is named as a package and its version.
fn has_version(part: &str) -> bool {
    part.rsplit_once('-').is_some_and(|(name, version)| {
        !name.is_empty() && version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.')
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_toolchain(producer: &Producer, place: &Place<'_>) -> bool {
    let file = file_name(place.name);
    // Only libgcc is compiled with this flag (GCC internals: it is not documented for users).
    if producer.options.list().iter().any(|Opt { text, .. }| text == "-fbuilding-libgcc") {
        return true;
    }
    let has = |directory: &str| place.source.contains(&directory);
    if place.ends_in("libgcc") && has("libgcc") && place.name.contains("/libgcc/") {
        return true;
    }
    if (place.within("gcc") && has("libsanitizer")) || (has("compiler-rt") && has("lib")) {
        return true;
    }
    if GLIBC_START.contains(&file) && place.ends_in("csu") {
        // Either the directory says glibc, or the name leads into glibc's own tree and is assembler source.
        let by_name = place.name.starts_with("../sysdeps/") && producer.role == Role::Assembler;
        return place.directory.iter().any(|part| is_named(part, "glibc")) || by_name;
    }
    if place.within("musl") && place.source.last() == Some(&"crt") {
        return true;
    }
    // Zig links its own run-time libraries into what it compiles, C included; their root files are in its `lib`.
    producer.family == Family::Zig
        && ZIG_RUNTIME.contains(&place.name)
        && place.ends_in("lib")
        && place.directory.iter().any(|part| part.contains("zig"))
}

/// glibc of a distribution that maps its build directory away: what is left is `./string`, and the set of options
/// that glibc's own makefiles give to every unit (`Makeconfig`, `+cflags`).
fn is_glibc_by_flags(producer: &Producer, place: &Place<'_>) -> bool {
    let options = producer.options.list();
    let given = |flag: &str| options.iter().any(|option| option.text == flag);
    place.directory.first() == Some(&".")
        && place.directory.len() <= 3
        && ["-fgnu89-inline", "-fmerge-all-constants", "-frounding-math"].into_iter().all(given)
}

fn library(producer: &Producer, place: &Place<'_>) -> Option<Library> {
    if let Some((_, library, _)) = TREES.iter().find(|tree| place.is_of(tree)) {
        return Some(*library);
    }
    if place.within("gcc") && GCC_LIBRARIES.iter().any(|name| place.source.contains(name)) {
        return Some(GCC_RUNTIME);
    }
    if is_rust_std(place) {
        return Some(RUST_STD);
    }
    is_glibc_by_flags(producer, place).then_some(GLIBC)
}

/// `/rustc/<commit>/library/…`, a distribution's `/usr/src/rustc-1.63.0/library/…`, and `/rust/deps/…`, the crates
/// that the standard library itself is made of.
fn is_rust_std(place: &Place<'_>) -> bool {
    let rooted: &[&str] = if place.name.starts_with('/') { &place.source } else { &place.directory };
    let from_commit = rooted.first() == Some(&"rustc")
        && rooted.get(1).is_some_and(|hash| hash.len() == 40 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
    let from_source =
        place.source.windows(2).any(|pair| is_versioned(pair[0], "rustc") && pair[1] == "library");
    let crates = rooted.first() == Some(&"rust") && rooted.get(1) == Some(&"deps");
    from_commit || from_source || crates
}

#[cfg(test)]
mod tests;
