//! `.GCC.command.line`: the command lines that `-frecord-gcc-switches` (GCC) and `-frecord-command-line` (clang) leave.
//!
//! The section is not allocated and survives `strip`. It holds NUL-terminated strings, and the linker keeps equal ones only
//! once. GCC 11 and later write one string for a unit, in the form of `DW_AT_producer`; clang writes one, its escaped
//! command; GCC before 11 writes one string for each *option*, so that after linking only a set is left.
//! No string is tied to a unit, and nothing tells how many units were compiled without recording.

use super::{Claim, Place, Scope, Source, Strength};
use crate::compiler::options::{LevelWord, WithoutLevel, group, level, level_of};
use crate::compiler::producer::{Producer, is_garbled, parse_command_line};
use crate::compiler::{Level, Recorded};
use crate::facts::Problem;
use crate::image::symbols::SymbolTable;
use crate::image::{Image, sections};
use object::elf;

const SECTION: &str = ".GCC.command.line";
/// Most bytes of strings understood. Understood options take several times the room of their text.
const MOST_BYTES: usize = 32 << 20;

/// What the section holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLines {
    /// Strings that stand for a unit, in file order. Units compiled alike share one.
    pub lines: Vec<CommandLine>,
    /// The single options of GCC before 11.
    pub loose: Option<LooseOptions>,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

/// One recorded command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Where it stands.
    pub at: Place,
    /// Compiler, options and level.
    pub producer: Producer,
    /// The string, lossily decoded.
    pub text: String,
}

/// Options recorded one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LooseOptions {
    /// Where the first stands.
    pub at: Place,
    /// All of them, in file order, lossily decoded. In a linked file this is a set.
    pub options: Vec<String>,
    /// Names of the input files among them, which are recorded too: one for each unit.
    pub inputs: Vec<String>,
    /// Every `-O` among them.
    pub levels: Vec<(Level, String)>,
    /// The level, where the options are those of a single unit and leave no doubt; else `Unknown` with a reason.
    pub level: LevelWord,
}

/// Reads the section, or `None` where there is none.
pub fn read(image: &Image) -> Option<CommandLines> {
    let mut found = CommandLines::default();
    let mut loose: Vec<(u64, String)> = Vec::new();
    let mut present = false;
    let mut taken = 0usize;
    let mut garbled = 0u64;
    for section in image.sections_named(SECTION) {
        if !section.has_data() {
            continue;
        }
        present = true;
        let bytes = match sections::contents(image, section, image.limits.section_bytes) {
            Ok(bytes) => bytes,
            Err(error) => {
                found.problems.push(Problem::damage("unreadable-section", error.to_string()));
                continue;
            }
        };
        let mut offset = 0u64;
        for string in bytes.split(|&byte| byte == 0) {
            let at = offset;
            offset = offset.saturating_add(string.len() as u64).saturating_add(1);
            if string.is_empty() {
                continue;
            }
            taken = taken.saturating_add(string.len());
            if found.lines.len().saturating_add(loose.len()) >= image.limits.units || taken > MOST_BYTES {
                found.problems.push(Problem::damage(
                    "too-many-command-lines",
                    format!("recorded command lines from offset {at:#x} on were not read: over the limit"),
                ));
                break;
            }
            let cut = string.get(..image.limits.string_bytes).unwrap_or(string);
            let text = String::from_utf8_lossy(cut).into_owned();
            if is_garbled(cut) {
                garbled += 1;
                continue;
            }
            match parse_command_line(cut) {
                Some(producer) if cut.len() == string.len() => {
                    found.lines.push(CommandLine { at: place(at), producer, text });
                }
                Some(_) => found.problems.push(Problem::damage(
                    "string-too-long",
                    format!("a recorded command line of {} bytes is over the limit", string.len()),
                )),
                None => loose.push((at, text)),
            }
        }
    }
    if garbled > 0 {
        found.problems.push(Problem::damage(
            "damaged-command-line",
            format!("{garbled} recorded command lines hold what no compiler writes"),
        ));
    }
    found.loose = loose_options(&loose, image.is_relocatable());
    present.then_some(found)
}

impl CommandLines {
    /// Whether every one of `sources` source files left a command line here, so that code without one there is none.
    /// Files compiled alike share a string, so this is only known where there are as many strings as files.
    pub fn cover(&self, sources: usize) -> bool {
        let lines = match &self.loose {
            Some(loose) => loose.inputs.len(),
            None => self.lines.len(),
        };
        sources > 0 && lines >= sources && self.problems.is_empty()
    }

    /// One claim for each level that some unit was compiled at, the lowest first. They speak of some part of the
    /// file: the strings are not tied to units.
    pub fn claims(&self) -> Vec<Claim> {
        let mut claims: Vec<(Level, Claim)> = Vec::new();
        for line in &self.lines {
            let level = line.producer.level.level;
            if !claims.iter().any(|(other, _)| *other == level) {
                claims.push((level, claim(level, &line.at, &line.text)));
            }
        }
        if let Some(loose) = &self.loose {
            for (level, text) in &loose.levels {
                if !claims.iter().any(|(other, _)| other == level) {
                    claims.push((*level, claim(*level, &loose.at, text)));
                }
            }
        }
        claims.retain(|(level, _)| *level != Level::Unknown);
        claims.sort_by_key(|(level, _)| *level);
        claims.into_iter().map(|(_, claim)| claim).collect()
    }
}

fn claim(level: Level, at: &Place, text: &str) -> Claim {
    Claim {
        fact: "optimization.level".to_owned(),
        value: level.as_str().into(),
        strength: Strength::Recorded,
        source: Source::GccCommandLine,
        scope: Scope::Some,
        at: Some(at.clone()),
        quote: Some(text.to_owned()),
    }
}

fn place(offset: u64) -> Place {
    Place { section: SECTION.into(), offset }
}

/// Understands single options. In a relocatable file with one input they are that unit's, in order. In a linked file equal
/// options were merged, so that the order means nothing: only if no two levels differ is there no doubt.
fn loose_options(strings: &[(u64, String)], relocatable: bool) -> Option<LooseOptions> {
    let (first, _) = strings.first()?;
    let (options, inputs): (Vec<String>, Vec<String>) =
        strings.iter().map(|(_, text)| text.clone()).partition(|text| text.starts_with('-'));
    let levels: Vec<(Level, String)> =
        options.iter().filter_map(|option| Some((level_of(option)?, option.clone()))).collect();
    let uniform = levels.windows(2).all(|pair| pair.first().map(|w| w.0) == pair.last().map(|w| w.0));
    let word = if inputs.len() == 1 && (relocatable || uniform) {
        level(&group(&options), WithoutLevel::Unoptimized)
    } else if inputs.len() == 1 {
        LevelWord::unknown("options were recorded one by one and merged by the linker: their order is lost")
    } else {
        LevelWord::unknown("options were recorded one by one: which of them belong to one unit is lost")
    };
    Some(LooseOptions { at: place(*first), options, inputs, levels, level: word })
}

/// Source files that a program was linked from, counted by the symbols that name them (`STT_FILE`). Linkers keep one for
/// each object with a source name, whether or not it has other local symbols (measured with GNU ld, gold and lld); the
/// start files' own do not count. 0 where the symbols were stripped.
pub fn source_files(full: &SymbolTable) -> usize {
    const START: &[&[u8]] = &[b"", b"crtstuff.c", b"crt1.o", b"Scrt1.o", b"rcrt1.o", b"gcrt1.o", b"grcrt1.o"];
    full.iter().filter(|symbol| symbol.kind == elf::STT_FILE && !START.contains(&symbol.name)).count()
}

/// The options of all lines, for callers that look for a flag: `None` where a line's options are not known.
pub fn options_of(line: &CommandLine) -> Option<Vec<String>> {
    match &line.producer.options {
        Recorded::Known(options) => Some(options.iter().map(|option| option.text.clone()).collect()),
        Recorded::NotRecorded => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Family;
    use crate::image::Input;
    use crate::limits::Limits;
    use object::write::{Object, SectionId};
    use object::{Architecture, BinaryFormat, Endianness, SectionKind};

    fn image(bytes: &[u8]) -> Image {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let section: SectionId = object.add_section(Vec::new(), SECTION.into(), SectionKind::OtherString);
        object.append_section_data(section, bytes, 1);
        let mut file = object.write().unwrap();
        // A linked file, so that strings count as merged.
        file[16] = 2;
        Image::open(Input::memory(file), &Limits::default()).unwrap()
    }

    #[test]
    fn one_string_a_unit() {
        let lines = read(&image(
            b"GNU C17 12.2.0 -mtune=generic -march=x86-64 -O2 -fasynchronous-unwind-tables\0\
              GNU C17 12.2.0 -march=x86-64-v2 -O3 -O0\0",
        ))
        .unwrap();
        let levels: Vec<Level> = lines.lines.iter().map(|line| line.producer.level.level).collect();
        assert_eq!(levels, [Level::O2, Level::O0]);
        assert_eq!(lines.lines[1].at.offset, 0x4d);
        assert_eq!(lines.lines[1].producer.level.overridden, ["-O3"]);
        assert_eq!(lines.loose, None);
        let claims = lines.claims();
        assert_eq!(claims.iter().map(|c| c.value.as_str().unwrap()).collect::<Vec<_>>(), ["O0", "O2"]);
        assert!(claims.iter().all(|c| c.scope == Scope::Some && c.strength == Strength::Recorded));
    }

    #[test]
    fn clang_s_command_is_unescaped() {
        let found = read(&image(
            b"\0/usr/lib/llvm-19/bin/clang -O2 -frecord-command-line -D X=a\\ -O0 t.c -o /ex/clang19-frec\0",
        ))
        .unwrap();
        let line = &found.lines[0];
        assert_eq!(
            (line.producer.family, line.producer.level.level, line.at.offset),
            (Family::Clang, Level::O2, 1)
        );
        assert_eq!(
            options_of(line).unwrap(),
            ["-O2", "-frecord-command-line", "-D X=a -O0", "-o /ex/clang19-frec"]
        );
    }

    #[test]
    fn single_options_of_an_old_gcc_are_a_set() {
        let of_two = read(&image(
            b"-I .\0-D X=1\0l1.c\0-mtune=generic\0-auxbase-strip l1.o\0-O2\0-frecord-gcc-switches\0l2.c\0-O3\0-auxbase-strip l2.o\0",
        ))
        .unwrap();
        let loose = of_two.loose.as_ref().unwrap();
        assert_eq!(loose.inputs, ["l1.c", "l2.c"]);
        assert_eq!(loose.level.level, Level::Unknown);
        assert_eq!(loose.levels.len(), 2);
        assert_eq!(of_two.claims().len(), 2);
        let of_one = read(&image(b"l1.c\0-mtune=generic\0-O2\0")).unwrap();
        assert_eq!(of_one.loose.unwrap().level.level, Level::O2);
        let unordered = read(&image(b"l1.c\0-O2\0-O0\0")).unwrap();
        assert_eq!(unordered.loose.unwrap().level.level, Level::Unknown);
    }

    #[test]
    fn no_section_and_bytes_that_are_no_text() {
        let object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let none = Image::open(Input::memory(object.write().unwrap()), &Limits::default()).unwrap();
        assert_eq!(read(&none), None);
        let found = read(&image(b"\xff\xfe\0GNU C17 12.2.0 -O2 -frandom-seed=\xff -O1\0 no end")).unwrap();
        assert_eq!(found.lines[0].producer.level.level, Level::O1);
        assert_eq!(found.loose.unwrap().options.len(), 0);
    }

    #[test]
    fn a_compressed_section_is_read_as_any_other() {
        let image = crate::evidence::testing::open("packed-notes.so");
        let lines = read(&image).unwrap();
        assert_eq!(lines.problems, []);
        assert_eq!(lines.lines.len(), 1, "{lines:?}");
        assert_eq!(lines.lines[0].producer.level.level, Level::O2);
        assert!(crate::evidence::comment::read(&image).names("GCC: (Debian 12.2.0"));
        let symbols = crate::image::symbols::Symbols::new();
        let table = symbols.full(&image);
        assert!(table.problems.is_empty() && table.iter().any(|symbol| symbol.name == b"h"));
    }
}
