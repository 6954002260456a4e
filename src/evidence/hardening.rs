//! Hardening: what the file itself shows.
//!
//! What is shown by presence only (a stack protector's call, a processor property) is never denied because it is
//! absent where the absence has other explanations: static linking, another C library, start files without the
//! property, a language that has no such thing. Then the value is unknown.

use super::comment::Comment;
use super::imports::{CLibrary, c_library};
use super::{Held, Source, Strength};
use crate::facts::Hardening;
use crate::image::Image;
use crate::image::identity::{is_packed, is_separate_debug};
use crate::image::linkage::Linkage;
use crate::image::notes::Notes;
use crate::image::symbols::{Symbol, SymbolTable, Symbols};
use memchr::memmem;
use object::elf;

/// glibc functions that `_FORTIFY_SOURCE` replaces by a checked variant `__NAME_chk`.
const CHECKED: &[&str] = &[
    "asprintf",
    "confstr",
    "dprintf",
    "explicit_bzero",
    "fdelt",
    "fgets",
    "fgets_unlocked",
    "fgetws",
    "fgetws_unlocked",
    "fprintf",
    "fread",
    "fread_unlocked",
    "fwprintf",
    "getcwd",
    "getdomainname",
    "getgroups",
    "gethostname",
    "getlogin_r",
    "gets",
    "getwd",
    "inet_ntop",
    "inet_pton",
    "longjmp",
    "mbsnrtowcs",
    "mbsrtowcs",
    "mbstowcs",
    "memcpy",
    "memmove",
    "mempcpy",
    "memset",
    "obstack_printf",
    "obstack_vprintf",
    "poll",
    "ppoll",
    "pread",
    "pread64",
    "printf",
    "ptsname_r",
    "read",
    "readlink",
    "readlinkat",
    "realpath",
    "recv",
    "recvfrom",
    "snprintf",
    "sprintf",
    "stpcpy",
    "stpncpy",
    "strcat",
    "strcpy",
    "strlcat",
    "strlcpy",
    "strlen",
    "strncat",
    "strncpy",
    "swprintf",
    "syslog",
    "ttyname_r",
    "vasprintf",
    "vdprintf",
    "vfprintf",
    "vfwprintf",
    "vprintf",
    "vsnprintf",
    "vsprintf",
    "vswprintf",
    "vsyslog",
    "vwprintf",
    "wcpcpy",
    "wcpncpy",
    "wcrtomb",
    "wcscat",
    "wcscpy",
    "wcslcat",
    "wcslcpy",
    "wcsncat",
    "wcsncpy",
    "wcsnrtombs",
    "wcsrtombs",
    "wcstombs",
    "wmemcpy",
    "wmemmove",
    "wmempcpy",
    "wmemset",
    "wprintf",
];

/// Functions that a fortified unit never calls by their plain name, whatever the sizes of its buffers.
const ALWAYS_REPLACED: &[&str] = &["vasprintf", "vdprintf", "vfprintf", "vprintf", "vsyslog"];

/// The same of those with a variable number of arguments. glibc's headers replace them by inline functions, for which the
/// compiler has to know `__builtin_va_arg_pack` (GCC alone does), or by macros, in C alone: a fortified C++ unit of clang
/// calls them by their plain names.
const REPLACED_BUT_IN_CLANG_CXX: &[&str] = &["asprintf", "dprintf", "fprintf", "printf", "syslog"];

/// Whether a name is a function that only fortified code calls. `__stack_chk_fail` is none.
pub fn is_fortified(name: &[u8]) -> bool {
    if matches!(name, b"__open_2" | b"__open64_2" | b"__openat_2" | b"__openat64_2" | b"__mq_open_2") {
        return true;
    }
    // On powerpc the checked functions that take a long double have a suffix.
    let name = name.strip_suffix(b"ieee128").unwrap_or(name);
    let base = name.strip_prefix(b"__").and_then(|name| name.strip_suffix(b"_chk"));
    base.is_some_and(|base| CHECKED.iter().any(|known| known.as_bytes() == base))
}

/// Reads what the file shows of its hardening.
pub fn read(
    image: &Image,
    linkage: &Linkage,
    symbols: &Symbols,
    notes: &Notes,
    comment: &Comment,
) -> Hardening {
    if is_separate_debug(image) || image.header.kind == elf::ET_CORE {
        return Hardening::default();
    }
    let shown = |value: bool| Held::new(value, Strength::Structural, Source::Elf);
    let program = image.header.kind == elf::ET_EXEC || linkage.pie;
    let pie = match image.header.kind {
        elf::ET_EXEC => shown(false),
        _ if linkage.pie => shown(true),
        _ => Held::unknown(),
    };
    let run_path = |path: &Option<Vec<u8>>| match path {
        Some(path) => {
            let text = String::from_utf8_lossy(path).into_owned();
            Held::new(text, Strength::Structural, Source::Elf)
        }
        // Known not to be there, which is not the same as not known.
        None if linkage.linked && linkage.complete => {
            Held { strength: Strength::Structural, sources: vec![Source::Elf], ..Held::unknown() }
        }
        None => Held::unknown(),
    };
    let properties = &notes.properties;
    let property = |bits: Option<u32>, bit: u32| match bits {
        Some(bits) if bits & bit != 0 => Held::new(true, Strength::Structural, Source::GnuProperty),
        _ => Held::unknown(),
    };
    Hardening {
        pie,
        relro: linkage.relro.map_or_else(Held::unknown, |relro| {
            Held::new(relro.as_str().to_owned(), Strength::Structural, Source::Elf)
        }),
        bind_now: linkage.bind_now.map_or_else(Held::unknown, shown),
        nx_stack: linkage.nx_stack.map_or_else(Held::unknown, shown),
        canary: canary(image, linkage, symbols, comment, program),
        fortify: fortify(image, linkage, symbols, comment),
        ibt: property(properties.x86_features, 1),
        shstk: property(properties.x86_features, 2),
        bti: property(properties.aarch64_features, 1),
        pac: property(properties.aarch64_features, 2),
        rpath: run_path(&linkage.rpath),
        runpath: run_path(&linkage.runpath),
        textrel: if linkage.text_relocations || linkage.linked && linkage.complete {
            shown(linkage.text_relocations)
        } else {
            Held::unknown()
        },
    }
}

/// The symbols that a file asks others for, and the source to name.
fn asked_for<'a>(
    image: &Image,
    linkage: &Linkage,
    symbols: &'a Symbols,
) -> Option<(&'a SymbolTable, Source)> {
    let (table, source) = if image.is_relocatable() {
        (symbols.full(image), Source::Symbols)
    } else {
        (symbols.dynamic(image, linkage), Source::Imports)
    };
    (table.problems.is_empty() && !table.is_empty()).then_some((table, source))
}

fn canary(
    image: &Image,
    linkage: &Linkage,
    symbols: &Symbols,
    comment: &Comment,
    program: bool,
) -> Held<bool> {
    // A packed file shows its stub only; link-time objects and debug files have no code of their own.
    if is_packed(image) || image.text_ranges().is_empty() {
        return Held::unknown();
    }
    // A static C library is itself protected and brings the symbol; only its absence would say something, and
    // stripping explains that.
    if program && linkage.is_static {
        return Held::unknown();
    }
    let Some((table, source)) = asked_for(image, linkage, symbols) else { return Held::unknown() };
    let protects = |symbol: &Symbol<'_>| {
        symbol.undefined
            && matches!(
                symbol.base_name(),
                b"__stack_chk_fail"
                    | b"__stack_chk_fail_local"
                    | b"__stack_chk_guard"
                    | b"__stack_smash_handler"
            )
    };
    let structural = |value| Held::new(value, Strength::Structural, source);
    if table.iter().any(|symbol| protects(&symbol)) {
        // The start file of -pg programs asks for it too; then only code that reads the canary counts.
        let profiled = table.iter().any(|symbol| symbol.undefined && symbol.base_name() == b"__monstartup");
        return match profiled.then(|| reads_canary(image)) {
            None => structural(true),
            Some(Some(value)) => Held::new(value, Strength::Structural, Source::CodeShape),
            Some(None) => Held::unknown(),
        };
    }
    // A C library refers to its own copy, which is there however it was compiled: its code tells.
    if table.iter().any(|symbol| !symbol.undefined && symbol.base_name() == b"__stack_chk_fail") {
        return reads_canary(image)
            .map_or_else(Held::unknown, |value| Held::new(value, Strength::Structural, Source::CodeShape));
    }
    // Neither Rust nor Go has stack protectors, so not using one says nothing there.
    let other_language = comment.names("rustc version") || image.section(".go.buildinfo").is_some();
    if other_language || !linkage.complete { Held::unknown() } else { structural(false) }
}

/// Whether code reads the stack canary from the thread's data; `None` on processors where that has no fixed form.
fn reads_canary(image: &Image) -> Option<bool> {
    // The displacement of the canary (psABI TLS layout), as it ends an instruction with the thread's segment prefix.
    let (prefix, displacement): (u8, &[u8]) = match image.header.machine {
        elf::EM_X86_64 if image.header.is_64 => (0x64, &[0x25, 0x28, 0, 0, 0]),
        elf::EM_386 => (0x65, &[0x14, 0, 0, 0]),
        _ => return None,
    };
    let finder = memmem::Finder::new(displacement);
    let mut left = image.limits.code_bytes;
    for range in image.text_ranges() {
        let mut at = range.start;
        while at < range.end {
            let size = (range.end - at).min(1 << 20).min(left);
            if size == 0 {
                return None;
            }
            let code = image.read_address(at, size)?;
            let reads = |found: usize| {
                code.get(found.saturating_sub(4)..found).is_some_and(|before| before.contains(&prefix))
            };
            if finder.find_iter(&code).any(reads) {
                return Some(true);
            }
            // Two windows overlap by one instruction.
            at = at.saturating_add(if size > 16 && range.end - at > size { size - 16 } else { size });
            left = left.saturating_sub(size);
        }
    }
    Some(false)
}

fn fortify(image: &Image, linkage: &Linkage, symbols: &Symbols, comment: &Comment) -> Held<String> {
    let unknown = || Held { value: Some("unknown".to_owned()), ..Held::unknown() };
    if linkage.is_static || is_packed(image) {
        return unknown();
    }
    let Some((table, source)) = asked_for(image, linkage, symbols) else { return unknown() };
    let mut checked = false;
    let mut plain = false;
    let clang_cxx = may_be_clang_cxx(linkage, comment);
    for symbol in table.iter().filter(|symbol| symbol.undefined) {
        let name = symbol.base_name();
        // The kernel has checks of its own.
        checked |=
            is_fortified(name) || matches!(name, b"fortify_panic" | b"__fortify_panic" | b"__fortify_report");
        let is_one_of = |list: &[&str]| list.iter().any(|known| known.as_bytes() == name);
        plain |= is_one_of(ALWAYS_REPLACED) || !clang_cxx && is_one_of(REPLACED_BUT_IN_CLANG_CXX);
    }
    // musl's checks are inlined and leave no name; a relocatable file does not say which library it is for.
    let glibc = c_library(linkage) == CLibrary::Glibc;
    let value = match (checked, plain) {
        (true, true) if glibc => "partial",
        (true, _) => "yes",
        (false, true) if glibc => "no",
        _ => return unknown(),
    };
    Held::new(value.to_owned(), Strength::Structural, source)
}

/// Whether some of the code may be C++ compiled by clang: it needs a C++ library, and nothing says that GCC was alone.
fn may_be_clang_cxx(linkage: &Linkage, comment: &Comment) -> bool {
    let cxx = |name: &Vec<u8>| name.starts_with(b"libstdc++.so") || name.starts_with(b"libc++.so");
    linkage.needed.iter().any(cxx) && (comment.names("clang version") || !comment.names("GCC: "))
}

#[cfg(test)]
mod tests;
