//! The one abbreviation that a unit's root entry uses (DWARF 5, section 7.5.3), found without keeping the
//! others, and mostly without going through them: a table may hold thousands, of which a unit's root needs one.

use crate::image::SectionData;
use gimli::{AttributeSpecification, DwAt, DwForm, DwTag};
use seek::Seeker;
use std::collections::HashMap;
use std::rc::Rc;

mod pass;
mod seek;

/// Bytes of tables gone through at least, whatever the section's size.
const WORK: u64 = 64 << 20;
/// Attribute specifications held by the cache (24 bytes each). Units that share a table mostly follow each other; what most
/// units have to themselves is not worth its memory.
const HELD: usize = 8 << 10;

/// Attributes of one declaration at most. Compilers give root entries about ten.
const ATTRIBUTES: usize = 4096;

/// An abbreviation.
#[derive(Debug)]
pub(super) struct Abbreviation {
    pub(super) tag: DwTag,
    pub(super) attributes: Vec<AttributeSpecification>,
}

/// Abbreviations found, by table and code: `dwz` and some linkers let many units share one table.
#[derive(Debug, Default)]
pub(super) struct Cache {
    found: HashMap<(u64, u64), Rc<Abbreviation>>,
    held: usize,
    done: u64,
    seeker: Seeker,
}

impl Cache {
    /// Bytes of tables that are gone through.
    fn most(section: &SectionData) -> u64 {
        section.len().saturating_mul(8).saturating_add(WORK)
    }

    /// Bytes of tables gone through so far.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Counts what another walk went through, with a cache of its own that was empty at first, and begins anew behind it.
    pub(super) fn go_on_behind(&mut self, done: u64) {
        self.done = self.done.saturating_add(done);
        self.found.clear();
        self.held = 0;
    }

    /// Whether a single cache for all those walks might have gone through too much. It may go through each table twice
    /// where they do once: while one of theirs is filled, the single one is emptied once at most, since what is found
    /// from then on would fit into either.
    pub(super) fn may_be_too_much_for_one(&self, section: &SectionData) -> bool {
        self.done.saturating_mul(2) > Self::most(section)
    }

    /// Finds an abbreviation. The error is a message.
    pub(super) fn find(
        &mut self,
        section: &SectionData,
        table: u64,
        code: u64,
    ) -> Result<Rc<Abbreviation>, String> {
        if let Some(found) = self.found.get(&(table, code)) {
            return Ok(Rc::clone(found));
        }
        if table >= section.len() {
            return Err(format!("abbreviation table {table:#x} lies outside {}", section.name));
        }
        // Sound tables are gone through once; only units that share tables in bad faith cost more.
        if self.done > Self::most(section) {
            return Err("looking for abbreviations takes too long".to_owned());
        }
        let (seems, searched) = self.seeker.declaration(section, table, code);
        self.done = self.done.saturating_add(searched);
        let mut found = Err(String::new());
        for from in seems.into_iter().chain([table]) {
            found = self.in_order(section, from, code);
            if matches!(found, Ok(End::Found(_))) {
                break;
            }
        }
        let found = found.map_err(|why| format!("abbreviation {code} of table {table:#x}: {why}"))?;
        let End::Found(found) = found else {
            return Err(format!("abbreviation {code} is not in table {table:#x}"));
        };
        let size = found.attributes.len() + 4;
        if self.held.saturating_add(size) > HELD {
            self.found.clear();
            self.held = 0;
        }
        self.held = self.held.saturating_add(size);
        let found = Rc::new(found);
        self.found.insert((table, code), Rc::clone(&found));
        Ok(found)
    }

    /// Goes through declarations from one at an offset on. The error is a message.
    fn in_order(&mut self, section: &SectionData, from: u64, code: u64) -> Result<End, String> {
        let mut search = Search::new(code);
        let mut at = from;
        loop {
            let fed = section.piece(at, |bytes| search.feed(bytes));
            let fed = fed.map_err(|error| section.take_failure().unwrap_or_else(|| error.to_string()))?;
            let (end, used) = fed.map_err(str::to_owned)?;
            at = at.saturating_add(used as u64);
            self.done = self.done.saturating_add(used as u64);
            if let Some(end) = end {
                return Ok(end);
            }
        }
    }
}

/// Size in bytes of the table at an offset, its end mark included; what does not end within `most` bytes counts as
/// that long, or as long as the section is. The error is a message.
pub(in crate::evidence) fn table_len(section: &SectionData, table: u64, most: u64) -> Result<u64, String> {
    // No declaration has code 0.
    let mut search = Search::new(0);
    let mut at = table;
    while at < section.len() && at - table < most {
        let fed = section.piece(at, |bytes| search.feed(bytes));
        let (end, used) = fed
            .map_err(|error| section.take_failure().unwrap_or_else(|| error.to_string()))?
            .map_err(|why| format!("abbreviation table {table:#x}: {why}"))?;
        at = at.saturating_add(used as u64);
        if end.is_some() {
            break;
        }
    }
    Ok((at - table.min(at)).min(most))
}

/// How a search ends.
#[derive(Debug)]
enum End {
    Found(Abbreviation),
    /// The table has no such code.
    Table,
}

/// What the next number of a table means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Code,
    Tag,
    Children,
    Name,
    Form,
    Constant,
}

/// Goes through a table byte by byte, keeping only the declaration that is looked for. Nearly all the work of
/// reading a large file is done here, so no reader stands between the bytes and the loop, and plain declarations
/// are passed over whole.
#[derive(Debug)]
struct Search {
    wanted: u64,
    expect: Expect,
    /// The number so far (LEB128), and its bits.
    number: u64,
    shift: u32,
    /// Whether the current declaration is the one.
    here: bool,
    tag: DwTag,
    name: u16,
    attributes: Vec<AttributeSpecification>,
}

impl Search {
    fn new(wanted: u64) -> Self {
        Self {
            wanted,
            expect: Expect::Code,
            number: 0,
            shift: 0,
            here: false,
            tag: DwTag(0),
            name: 0,
            attributes: Vec::new(),
        }
    }

    /// Takes bytes until the table or the declaration ends: the result, and the bytes used.
    fn feed(&mut self, bytes: &[u8]) -> Result<(Option<End>, usize), &'static str> {
        let mut index = 0;
        while let Some(&(mut byte)) = bytes.get(index) {
            if self.expect == Expect::Code && self.shift == 0 {
                index += pass::declarations(bytes.get(index..).unwrap_or_default(), self.wanted);
                let rest = bytes.get(index..).unwrap_or_default();
                if let Some((found, used)) = pass::wanted(rest, self.wanted) {
                    return Ok((Some(End::Found(found)), index + used));
                }
                let Some(&first) = rest.first() else { break };
                byte = first;
            }
            index += 1;
            if self.expect == Expect::Children {
                self.expect = Expect::Name;
                continue;
            }
            let low = u64::from(byte & 0x7f);
            if self.shift < 64 {
                self.number |= low << self.shift;
                if low << self.shift >> self.shift != low && self.expect != Expect::Constant {
                    return Err("a number is too large");
                }
            } else if low != 0 && self.expect != Expect::Constant {
                return Err("a number is too large");
            }
            self.shift = self.shift.saturating_add(7);
            if byte & 0x80 != 0 {
                continue;
            }
            if let Some(end) = self.number_ends(byte)? {
                return Ok((Some(end), index));
            }
            self.number = 0;
            self.shift = 0;
        }
        Ok((None, bytes.len()))
    }

    /// Keeps an attribute of the declaration that is looked for.
    fn keep(&mut self, form: DwForm, constant: Option<i64>) -> Result<(), &'static str> {
        if self.here {
            if self.attributes.len() == ATTRIBUTES {
                return Err("it has too many attributes");
            }
            self.attributes.push(AttributeSpecification::new(DwAt(self.name), form, constant));
        }
        Ok(())
    }

    fn number_ends(&mut self, last: u8) -> Result<Option<End>, &'static str> {
        let small = || u16::try_from(self.number).map_err(|_| "a number is too large");
        self.expect = match self.expect {
            Expect::Code if self.number == 0 => return Ok(Some(End::Table)),
            Expect::Code => {
                self.here = self.number == self.wanted;
                Expect::Tag
            }
            Expect::Tag => {
                self.tag = DwTag(small()?);
                Expect::Children
            }
            Expect::Name => {
                self.name = small()?;
                Expect::Form
            }
            Expect::Form => match (self.name, DwForm(small()?)) {
                (0, DwForm(0)) if self.here => {
                    let attributes = std::mem::take(&mut self.attributes);
                    return Ok(Some(End::Found(Abbreviation { tag: self.tag, attributes })));
                }
                (0, DwForm(0)) => Expect::Code,
                (_, gimli::DW_FORM_implicit_const) => Expect::Constant,
                (_, form) => {
                    self.keep(form, None)?;
                    Expect::Name
                }
            },
            Expect::Constant => {
                let sign = if last & 0x40 != 0 && self.shift < 64 { u64::MAX << self.shift } else { 0 };
                let constant = Some((self.number | sign).cast_signed());
                self.keep(gimli::DW_FORM_implicit_const, constant)?;
                Expect::Name
            }
            Expect::Children => Expect::Name,
        };
        Ok(None)
    }
}
