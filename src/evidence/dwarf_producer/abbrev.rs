//! The one abbreviation that a unit's root entry uses (DWARF 5, section 7.5.3), found without keeping the
//! others: a table may hold thousands, of which a unit's root needs one.

use crate::image::SectionData;
use gimli::{AttributeSpecification, DwAt, DwForm, DwTag, Reader};
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes of tables gone through at least, whatever the section's size.
const WORK: u64 = 64 << 20;
/// Attribute specifications held by the cache (24 bytes each).
const HELD: usize = 256 << 10;

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
}

impl Cache {
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
        if self.done > section.len().saturating_mul(8).saturating_add(WORK) {
            return Err("looking for abbreviations takes too long".to_owned());
        }
        let mut reader = section.reader_at(table);
        let found = find(&mut reader, code);
        self.done = self.done.saturating_add(reader.offset() - table);
        let found = found.map_err(|error| {
            let why = section.take_failure().unwrap_or_else(|| error.to_string());
            format!("abbreviation {code} of table {table:#x}: {why}")
        })?;
        let Some(found) = found else {
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
}

fn find<R: Reader>(reader: &mut R, wanted: u64) -> gimli::Result<Option<Abbreviation>> {
    loop {
        let code = reader.read_uleb128()?;
        if code == 0 {
            return Ok(None);
        }
        let tag = DwTag(reader.read_uleb128_u16()?);
        let _has_children = reader.read_u8()?;
        let mut attributes = Vec::new();
        loop {
            let name = reader.read_uleb128_u16()?;
            let form = DwForm(reader.read_uleb128_u16()?);
            if name == 0 && form.0 == 0 {
                break;
            }
            let constant = match form {
                gimli::DW_FORM_implicit_const => Some(reader.read_sleb128()?),
                _ => None,
            };
            if code == wanted {
                attributes.push(AttributeSpecification::new(DwAt(name), form, constant));
            }
        }
        if code == wanted {
            return Ok(Some(Abbreviation { tag, attributes }));
        }
    }
}
