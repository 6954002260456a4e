//! The full symbol table gone through piece by piece, for those who want a few of many symbols.
//!
//! Of a kernel's 119,000 symbols none may matter: keeping the table and its names would cost more memory than all
//! else of an audit. Names are searched first, in the order of their section; only where some are found are the
//! symbols gone through for those that have them. Linkers let a name be the end of a longer one (GNU ld merges the
//! tails of `.strtab`), so that a name may begin anywhere.

use super::{Located, MAX_NAME, Symbol, SymbolTable, entry_size};
use crate::image::needles::Needles;
use crate::image::{Image, Input, ReadError};
use crate::parallel;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::OnceLock;

const NAMES: &str = "symbol names";
/// Bytes read at a time: a multiple of both sizes of a symbol.
const PIECE: usize = 48 << 10;
/// Most places where a name may begin. Of one program's names a few dozen are looked for.
const MOST_PLACES: usize = 1 << 20;
/// Bytes of one name read at first; nearly all are shorter.
const USUAL_NAME: u64 = 128;
/// Names read one by one; where there are more, all are read at once.
const FEW: usize = 1024;
/// Shares of the table for each thread: names that are read lie here and there.
const SHARES: u64 = 2;
/// Fewer symbols than this are gone through before a thread has begun.
const LEAST_SHARE: u64 = 16 << 10;

/// Beginnings of names that are looked for.
pub struct Beginnings(Needles);

impl Beginnings {
    /// Those given; `None` if there are none, or an empty one, which all names begin with.
    pub fn new(beginnings: &[&str]) -> Option<Self> {
        Needles::new(beginnings).map(Self)
    }

    /// Whether a name begins so.
    #[cfg(test)]
    pub fn begin(&self, name: &[u8]) -> bool {
        self.0.find(name, 0).is_some_and(|(at, _)| at == 0)
    }

    /// All places where one of them stands.
    fn places(&self, bytes: &[u8]) -> impl Iterator<Item = usize> {
        self.0.all(bytes).map(|(at, _)| at)
    }

    /// The symbols of a table in memory whose names begin so.
    pub fn among<'a>(&self, table: &'a SymbolTable) -> impl Iterator<Item = Symbol<'a>> {
        let mut places = Places::default();
        self.places(&table.names).filter_map(|at| u32::try_from(at).ok()).for_each(|at| places.add(at));
        places.sort();
        let entries = (!places.sorted.is_empty()).then(|| table.entries()).into_iter().flatten();
        entries.filter(move |entry| places.has(entry.name)).map(|entry| entry.named(table))
    }
}

/// Places in the names. Most questions are answered by a bit that many places share.
#[derive(Default)]
struct Places {
    sorted: Vec<u32>,
    bits: Vec<u64>,
}

impl Places {
    const BITS: u32 = 1 << 16;

    fn add(&mut self, at: u32) {
        self.bits.resize((Self::BITS / 64) as usize, 0);
        let bit = at % Self::BITS;
        if let Some(word) = self.bits.get_mut((bit / 64) as usize) {
            *word |= 1 << (bit % 64);
        }
        self.sorted.push(at);
    }

    fn sort(&mut self) {
        self.sorted.sort_unstable();
        self.sorted.dedup();
    }

    #[inline]
    fn has(&self, at: u32) -> bool {
        let bit = at % Self::BITS;
        self.bits.get((bit / 64) as usize).is_some_and(|word| word >> (bit % 64) & 1 == 1)
            && self.sorted.binary_search(&at).is_ok()
    }
}

/// One table in its file.
pub(super) struct Stream<'a> {
    pub(super) image: &'a Image,
    pub(super) located: &'a Located,
}

impl Stream<'_> {
    /// Hands on the symbols whose names begin so, in the order of the table.
    pub(super) fn search(
        &self,
        wanted: &Beginnings,
        mut found: impl FnMut(&Symbol<'_>),
    ) -> Result<(), ReadError> {
        let places = self.places(wanted)?;
        if places.sorted.is_empty() {
            return Ok(());
        }
        let all = OnceLock::new();
        let mut names = Names::new(self, &all);
        self.entries(|entry| {
            if places.has(entry.name) {
                found(&entry.with(names.get(entry.name)?));
            }
            Ok(())
        })
    }

    /// The symbols that are wanted, with their names, in the order of the table, which is shared out among threads.
    pub(super) fn select(
        &self,
        wanted: impl Fn(&super::Entry) -> bool + Sync,
        mut found: impl FnMut(&Symbol<'_>),
    ) -> Result<(), ReadError> {
        let size = entry_size(self.located.format) as u64;
        let count = self.located.entries.len() / size;
        let share = count.div_ceil(self.image.workers.max(1) as u64 * SHARES).max(LEAST_SHARE);
        let starts: Vec<u64> = (0..count.div_ceil(share)).map(|index| index * share).collect();
        let all = OnceLock::new();
        let select = |names: &mut Names<'_>, &start: &u64| {
            let mut mine = Vec::new();
            let part = self.located.entries.part(start * size, share.min(count - start) * size);
            let Some(part) = part else { return Ok(mine) };
            self.entries_of(&part, start, |entry| {
                if wanted(&entry) {
                    mine.push((entry, names.get(entry.name)?.to_vec()));
                }
                Ok(())
            })?;
            Ok(mine)
        };
        for share in parallel::pieces(self.image.workers, &starts, || Names::new(self, &all), select) {
            share?.iter().for_each(|(entry, name)| found(&entry.with(name)));
        }
        Ok(())
    }

    fn entries(&self, visit: impl FnMut(super::Entry) -> Result<(), ReadError>) -> Result<(), ReadError> {
        self.entries_of(&self.located.entries, 0, visit)
    }

    /// Goes through a part of the table, which begins with the symbol of that index.
    fn entries_of(
        &self,
        part: &Input,
        first: u64,
        mut visit: impl FnMut(super::Entry) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let (format, size) = (self.located.format, entry_size(self.located.format));
        let mut index = u32::try_from(first).unwrap_or(u32::MAX);
        pieces(part, "the symbol table", |bytes| {
            for entry in bytes.chunks_exact(size) {
                // The null symbol is none.
                if let Some(entry) = super::Entry::parse(format, index, entry).filter(|entry| entry.index > 0)
                {
                    visit(entry)?;
                }
                index = index.saturating_add(1);
            }
            Ok(())
        })
    }

    fn places(&self, wanted: &Beginnings) -> Result<Places, ReadError> {
        let mut places = Places::default();
        let Some(names) = &self.located.names else { return Ok(places) };
        // What may be the first part of a beginning is looked at again with what follows.
        let overlap = wanted.0.longest().saturating_sub(1);
        let mut held: Vec<u8> = Vec::with_capacity(PIECE + overlap);
        let mut start = 0u64;
        pieces(names, NAMES, |bytes| {
            held.extend_from_slice(bytes);
            for at in wanted.places(&held) {
                let Ok(at) = u32::try_from(start + at as u64) else { break };
                if places.sorted.len() == MOST_PLACES {
                    return Err(ReadError::Damaged {
                        what: NAMES.to_owned(),
                        why: format!("more than {MOST_PLACES} of a kind that a program has few of"),
                    });
                }
                places.add(at);
            }
            let done = held.len().saturating_sub(overlap);
            held.drain(..done);
            start += done as u64;
            Ok(())
        })?;
        places.sort();
        Ok(places)
    }
}

/// Hands on bytes in order, so many at a time.
fn pieces(
    input: &Input,
    what: &str,
    mut visit: impl FnMut(&[u8]) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut buffer = vec![0; input.len().min(PIECE as u64) as usize];
    let mut at = 0;
    while at < input.len() {
        let want = (input.len() - at).min(PIECE as u64) as usize;
        let Some(piece) = buffer.get_mut(..want) else { break };
        input.read_exact_at(at, piece, what)?;
        visit(piece)?;
        at += want as u64;
    }
    Ok(())
}

/// Names read as they are asked for.
struct Names<'a> {
    stream: &'a Stream<'a>,
    read: HashMap<u32, Vec<u8>>,
    /// All of them, or what is wrong with them, once anybody has read so many.
    all: &'a OnceLock<Result<Vec<u8>, String>>,
}

impl<'a> Names<'a> {
    fn new(stream: &'a Stream<'a>, all: &'a OnceLock<Result<Vec<u8>, String>>) -> Self {
        Self { stream, read: HashMap::new(), all }
    }

    fn get(&mut self, at: u32) -> Result<&[u8], ReadError> {
        let Some(names) = &self.stream.located.names else { return Ok(&[]) };
        if self.read.len() >= FEW && !self.read.contains_key(&at) {
            let most = self.stream.image.limits.section_bytes;
            let read = || names.read_vec(0, names.len(), most, NAMES).map_err(|error| error.to_string());
            return match self.all.get_or_init(read) {
                Ok(all) => Ok(super::name_at(all, at)),
                Err(why) => Err(ReadError::Damaged { what: NAMES.to_owned(), why: why.clone() }),
            };
        }
        Ok(match self.read.entry(at) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(one_name(names, at)?),
        })
    }
}

fn one_name(names: &Input, at: u32) -> Result<Vec<u8>, ReadError> {
    let left = names.len().saturating_sub(at.into()).min(MAX_NAME as u64);
    let mut name = vec![0; left.min(USUAL_NAME) as usize];
    names.read_exact_at(at.into(), &mut name, NAMES)?;
    if memchr::memchr(0, &name).is_none() && left > USUAL_NAME {
        name.resize(left as usize, 0);
        names.read_exact_at(at.into(), &mut name, NAMES)?;
    }
    name.truncate(memchr::memchr(0, &name).unwrap_or(name.len()));
    name.shrink_to_fit();
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::super::Symbols;
    use super::*;
    use crate::image::linkage;
    use crate::limits::Limits;
    use object::write::{Object, StandardSection, Symbol as Written, SymbolSection};
    use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope};

    /// An object file with these names, a function of 16 bytes each.
    fn with_names(names: &[String], endian: Endianness, architecture: Architecture) -> Image {
        let mut object = Object::new(BinaryFormat::Elf, architecture, endian);
        let text = object.section_id(StandardSection::Text);
        object.append_section_data(text, &vec![0x90; names.len() * 16], 16);
        for (index, name) in names.iter().enumerate() {
            object.add_symbol(Written {
                name: name.as_bytes().to_vec(),
                value: index as u64 * 16,
                size: 16,
                kind: SymbolKind::Text,
                scope: SymbolScope::Dynamic,
                weak: false,
                section: SymbolSection::Section(text),
                flags: SymbolFlags::None,
            });
        }
        Image::open(Input::memory(object.write().unwrap()), &Limits::default()).unwrap()
    }

    fn searched(image: &Image, kept: bool, beginnings: &[&str]) -> Vec<(String, u64)> {
        let symbols = Symbols::new();
        if kept {
            symbols.full(image);
        }
        let mut found = Vec::new();
        let sound = symbols.search_full(image, &Beginnings::new(beginnings).unwrap(), |symbol| {
            found.push((String::from_utf8_lossy(symbol.name).into_owned(), symbol.value));
        });
        assert!(sound && symbols.problems().is_empty());
        found
    }

    #[test]
    fn a_table_of_many_pieces_gives_what_one_in_memory_gives() {
        let beginnings = ["__asan_", "mcount", "__a", "zz"];
        for (endian, architecture) in [
            (Endianness::Little, Architecture::X86_64),
            (Endianness::Big, Architecture::PowerPc),
            (Endianness::Little, Architecture::I386),
        ] {
            // Names of all lengths, so that those looked for lie across the ends of pieces, too.
            let names: Vec<String> = (0..9000)
                .map(|n| match n % 97 {
                    0 => format!("__asan_report_{n}"),
                    1 => format!("mcount_{n}_{}", "x".repeat(n % 300)),
                    2 => format!("not__asan_{n}"),
                    _ => format!("function_{n}_{}", "y".repeat(n % 61)),
                })
                .collect();
            let image = with_names(&names, endian, architecture);
            let expected: Vec<(String, u64)> = names
                .iter()
                .enumerate()
                .filter(|(_, name)| beginnings.iter().any(|begin| name.starts_with(begin)))
                .map(|(index, name)| (name.clone(), index as u64 * 16))
                .collect();
            assert_eq!(expected.len(), 186);
            assert_eq!(searched(&image, false, &beginnings), expected);
            assert_eq!(searched(&image, true, &beginnings), expected);
            assert_eq!(searched(&image, false, &["nobody"]), []);
        }
    }

    #[test]
    fn few_and_many_functions_are_selected_with_their_names() {
        let names: Vec<String> = (0..40_000).map(|n| format!("f{n}_{}", "z".repeat(n % 50))).collect();
        let mut image = with_names(&names, Endianness::Little, Architecture::X86_64);
        for (every, workers) in [(1, 1), (2, 3), (100, 2), (1, 4)] {
            image.workers = workers;
            let symbols = Symbols::new();
            let mut found = Vec::new();
            symbols.select(
                &image,
                &linkage::read(&image),
                |entry| entry.value % (16 * every) == 0 && !entry.undefined(),
                |symbol| found.push(String::from_utf8_lossy(symbol.name).into_owned()),
            );
            // An object has a symbol for its section, too, which has no name.
            found.retain(|name| !name.is_empty());
            let expected: Vec<String> = names.iter().step_by(every as usize).cloned().collect();
            assert_eq!(found, expected, "every {every}");
        }
    }

    #[test]
    fn a_name_may_be_the_end_of_a_longer_one() {
        // `ld` lays "mcount" down as the last six bytes of "my_mcount".
        let names = ["my_mcount".to_owned(), "other".to_owned()];
        let image = with_names(&names, Endianness::Little, Architecture::X86_64);
        let mut bytes = image.read(0, image.input.len(), "all").unwrap();
        let table = image.sections.iter().find(|s| s.kind == object::elf::SHT_SYMTAB).unwrap();
        let strings = image.sections.get(table.link as usize).unwrap();
        let place = |name: &[u8]| {
            let names = &bytes[strings.offset as usize..(strings.offset + strings.size) as usize];
            memchr::memmem::find(names, name).unwrap() as u32
        };
        let (mcount, other) = (place(b"mcount\0"), place(b"other\0"));
        let entries = table.offset as usize..(table.offset + table.size) as usize;
        let entry = bytes[entries].chunks_mut(24).find(|e| e[..4] == other.to_le_bytes()).unwrap();
        entry[..4].copy_from_slice(&mcount.to_le_bytes());
        let image = Image::open(Input::memory(bytes), &Limits::default()).unwrap();
        for kept in [false, true] {
            assert_eq!(searched(&image, kept, &["mcount"]), [("mcount".to_owned(), 16)]);
        }
    }

    #[test]
    fn names_that_are_not_in_the_file_are_told() {
        let image = with_names(&["mcount".to_owned()], Endianness::Little, Architecture::X86_64);
        let table = image.sections.iter().find(|s| s.kind == object::elf::SHT_SYMTAB).unwrap();
        let bytes = image.read(0, image.input.len(), "all").unwrap();
        let mut cut = bytes.clone();
        // `sh_link` of the symbol table leads to the text.
        let headers = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        let at = (0..image.sections.len())
            .map(|index| headers + index * 64)
            .find(|at| u64::from_le_bytes(bytes[at + 24..at + 32].try_into().unwrap()) == table.offset)
            .unwrap();
        cut[at + 40..at + 44].copy_from_slice(&1u32.to_le_bytes());
        let image = Image::open(Input::memory(cut), &Limits::default()).unwrap();
        let symbols = Symbols::new();
        let wanted = Beginnings::new(&["mcount"]).unwrap();
        assert!(!symbols.search_full(&image, &wanted, |symbol| panic!("{symbol:?}")));
        assert!(symbols.problems().iter().any(|p| p.code == "damaged-symbols"), "{:?}", symbols.problems());
        assert!(Beginnings::new(&[]).is_none() && Beginnings::new(&["a", ""]).is_none());
    }
}
