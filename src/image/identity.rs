//! What sort of file this is: its kind and machine, and whether it is a kernel, packed, or a separate debug file.

use super::Image;
use super::bytes::Format;
use super::linkage::Linkage;
use crate::facts::{self, Kind};
use object::elf;

/// Whether this is a separate debug file: its allocated sections keep their sizes and have lost their data
/// (`objcopy --only-keep-debug`, `eu-strip -f`), or it is the supplementary file that `dwz` makes, which has none.
pub fn is_separate_debug(image: &Image) -> bool {
    let mut emptied = false;
    for section in image.sections.iter().filter(|s| s.is_allocated()) {
        match section.kind {
            elf::SHT_NOTE => {}
            // What is zero-filled in every file says nothing; code or constants without data do.
            elf::SHT_NOBITS => {
                emptied |= section.size > 0
                    && (section.flags & elf::SHF_WRITE.0 == 0 || section.is_text())
                    && section.flags & elf::SHF_TLS.0 == 0;
            }
            _ if section.size == 0 => {}
            _ => return false,
        }
    }
    if emptied {
        // A program may be called so by its section headers, and still hold its code.
        return image.described;
    }
    let has = |name: &str| image.section(name).is_some();
    let any_allocated_data =
        image.sections.iter().any(|s| s.is_allocated() && s.kind != elf::SHT_NOTE && s.size > 0);
    !any_allocated_data
        && image.segments.is_empty()
        && has(".debug_info")
        && (has(".debug_sup") || has(".note.gnu.build-id"))
}

/// The `elf` object of the document. `build_id` comes from the notes, which may name it in any length.
pub fn elf_facts(image: &Image, linkage: &Linkage, build_id: Option<&[u8]>) -> facts::Elf {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    facts::Elf {
        class: if image.header.is_64 { 64 } else { 32 },
        endian: if image.header.little_endian { "little" } else { "big" }.to_owned(),
        machine: machine_name(image),
        kind: kind(image, linkage),
        is_static: linkage.is_static,
        stripped: !image.sections.iter().any(|section| section.kind == elf::SHT_SYMTAB),
        sections: !image.sections.is_empty(),
        build_id: build_id.map(hexadecimal),
        interpreter: linkage.interpreter.as_ref().map(text),
        needed: linkage.needed.iter().map(text).collect(),
        soname: linkage.soname.as_ref().map(text),
        packed: is_packed(image),
    }
}

/// Lower-case hexadecimal.
pub fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn kind(image: &Image, linkage: &Linkage) -> Kind {
    if is_separate_debug(image) {
        return Kind::SeparateDebug;
    }
    match image.header.kind {
        elf::ET_REL => Kind::Relocatable,
        elf::ET_CORE => Kind::Core,
        elf::ET_DYN if linkage.pie => Kind::Pie,
        // Without the dynamic table the interpreter is all there is to go by.
        elf::ET_DYN if !linkage.complete && linkage.interpreter.is_some() => Kind::Pie,
        elf::ET_DYN => Kind::SharedObject,
        _ => Kind::Executable,
    }
}

/// The machine in the short form of the field.
pub fn machine_name(image: &Image) -> String {
    let wide = image.header.is_64;
    let pick = |long: &'static str, short: &'static str| if wide { long } else { short };
    let name = match image.header.machine {
        elf::EM_X86_64 => pick("x86-64", "x32"),
        elf::EM_386 => "i386",
        elf::EM_AARCH64 => "aarch64",
        elf::EM_ARM => "arm",
        elf::EM_RISCV => pick("riscv64", "riscv32"),
        elf::EM_PPC64 => "ppc64",
        elf::EM_PPC => "ppc",
        elf::EM_S390 => pick("s390x", "s390"),
        elf::EM_MIPS | elf::EM_MIPS_RS3_LE => pick("mips64", "mips"),
        elf::EM_LOONGARCH => pick("loongarch64", "loongarch32"),
        elf::EM_SPARC | elf::EM_SPARC32PLUS => "sparc",
        elf::EM_SPARCV9 => "sparc64",
        elf::EM_IA_64 => "ia64",
        elf::EM_68K => "m68k",
        elf::EM_PARISC => "hppa",
        elf::EM_ALPHA => "alpha",
        elf::EM_SH => "sh",
        elf::EM_BPF => "bpf",
        elf::EM_AVR => "avr",
        elf::EM_MSP430 => "msp430",
        elf::EM_XTENSA => "xtensa",
        elf::EM_HEXAGON => "hexagon",
        elf::EM_CSKY => "csky",
        elf::EM_ARC | elf::EM_ARC_COMPACT | elf::EM_ARC_COMPACT2 => "arc",
        other => return format!("machine-{}", other.0),
    };
    name.to_owned()
}

/// Whether this is a Linux kernel or one of its modules: their symbol export table or module information is there.
/// Such files run no C library and contain no server. A kernel, which is linked, has code that it drops once it runs, and
/// nothing of what programs and libraries are known by: an interpreter, thread-local data, libraries, a name of its own.
pub fn is_kernel(image: &Image, linkage: &Linkage) -> bool {
    let any = |names: &[&str]| names.iter().any(|name| image.section(name).is_some());
    let program = |kind| matches!(kind, elf::PT_INTERP | elf::PT_TLS);
    any(&[".modinfo", "__ksymtab", "__ksymtab_gpl"])
        && (image.is_relocatable()
            || any(&[".init.text"])
                && !image.segments.iter().any(|segment| program(segment.kind))
                && linkage.needed.is_empty()
                && linkage.soname.is_none())
}

/// Whether the file is packed by UPX, by either of its two structures: the loader information (`l_info`) right behind
/// the program headers, or the pack header at the very end. The magic number anywhere else is only text.
pub fn is_packed(image: &Image) -> bool {
    let linked = matches!(image.header.kind, elf::ET_EXEC | elf::ET_DYN) && !image.segments.is_empty();
    linked && (has_loader_information(image) || has_pack_header(image))
}

/// Checksum, magic number, size of the loader, version, format; then program id, file size and block size.
fn has_loader_information(image: &Image) -> bool {
    let header: u64 = if image.header.is_64 { 64 } else { 52 };
    let entry: u64 = if image.header.is_64 { 56 } else { 32 };
    let place = entry.checked_mul(image.segments.len() as u64).and_then(|size| size.checked_add(header));
    let Some(bytes) = place.and_then(|at| image.input.read_vec(at, 24, 24, "loader information").ok()) else {
        return false;
    };
    let format = Format::from(image.header);
    let sizes = format.u32(&bytes, 16).zip(format.u32(&bytes, 20));
    bytes.get(4..8) == Some(b"UPX!")
        && bytes.get(10).is_some_and(|version| (1..=64).contains(version))
        && sizes.is_some_and(|(file, block)| file != 0 && block != 0)
}

/// Magic number, version, format, method, level, two checksums, sizes before and after; 32 bytes, and the place of
/// the packed data behind them.
fn has_pack_header(image: &Image) -> bool {
    const SIZE: u64 = 36;
    let place = image.input.len().checked_sub(SIZE);
    let Some(bytes) = place.and_then(|at| image.input.read_vec(at, SIZE, SIZE, "pack header").ok()) else {
        return false;
    };
    let format = Format::from(image.header);
    let sizes = format.u32(&bytes, 16).zip(format.u32(&bytes, 20));
    bytes.get(..4) == Some(b"UPX!")
        && bytes.get(4).is_some_and(|version| (1..=64).contains(version))
        && bytes.get(6).is_some_and(|method| (2..=15).contains(method))
        && bytes.get(7).is_some_and(|level| (1..=10).contains(level))
        && sizes.is_some_and(|(before, after)| after != 0 && before >= after)
}
