//! Where the code of GCC's link-time units came from.
//!
//! With `-flto` the code stands in units named `<artificial>` whose producer (`GNU GIMPLE …`) says nothing
//! about the level it was made with. Each function there refers by `DW_AT_abstract_origin` to an entry of
//! the early unit of its source, whose producer does.

use super::{Slice, Unit, walk};
use crate::evidence::dwarf_producer::DwarfUnit;
use crate::evidence::dwarf_producer::notes::Budget;
use crate::evidence::dwarf_producer::ranges::{self, Where};
use crate::facts::Problem;
use crate::image::{Image, SectionReader, merge};
use gimli::{AttributeValue, EntriesRaw};
use std::collections::HashMap;
use std::ops::Range;

/// References followed from a function to its early entry.
const HOPS: usize = 4;

/// The text of each link-time unit by the unit it was compiled from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origins {
    /// Index of a link-time unit, then index of an early unit: sorted address ranges. Functions that refer to no
    /// other unit are absent.
    pub text: HashMap<usize, HashMap<usize, Vec<Range<u64>>>>,
    /// What is damaged or hit a limit.
    pub problems: Vec<Problem>,
}

/// Follows the functions of those of `units` for which `link_time` holds.
pub fn origins(image: &Image, units: &[DwarfUnit], link_time: impl Fn(&DwarfUnit) -> bool) -> Origins {
    let chosen: Vec<usize> = (0..units.len()).filter(|&i| units.get(i).is_some_and(&link_time)).collect();
    let mut text = HashMap::new();
    let problems = walk(image, units, &chosen, |index, mut unit| {
        let section = units.get(index).map_or(0, |unit| unit.section);
        let found = unit.origins(|offset| unit_at(units, section, offset).filter(|origin| *origin != index));
        let (map, result) = found;
        text.insert(index, map);
        result
    });
    Origins { text, problems }
}

/// Index of the unit that holds an offset of the section.
fn unit_at(units: &[DwarfUnit], section: u32, offset: u64) -> Option<usize> {
    // Units are listed in the order of the file, section by section.
    let start = units.iter().position(|unit| unit.section == section)?;
    let of_section = units.get(start..)?;
    let len = of_section.iter().take_while(|unit| unit.section == section).count();
    let before = of_section.get(..len)?.partition_point(|unit| unit.at.offset <= offset);
    before.checked_sub(1).map(|index| start + index)
}

/// What an entry's `DW_AT_abstract_origin` refers to.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// An entry of the same unit, by its offset in the unit.
    Here(u64),
    /// An entry of any unit, by its offset in the section.
    There(u64),
}

/// Values that outlive the unit's bytes: references into other sections, and numbers.
type Value = AttributeValue<SectionReader<'static>>;

/// A function with code of its own.
#[derive(Debug)]
struct Function {
    at: u64,
    low: Option<Value>,
    high: Option<Value>,
    ranges: Option<Value>,
}

/// What a walk over one unit collects.
#[derive(Debug, Default)]
struct Seen {
    functions: Vec<Function>,
    origins: HashMap<u64, Origin>,
    low: Option<Value>,
    addr_base: Option<u64>,
    rnglists_base: Option<u64>,
}

type Text = HashMap<usize, Vec<Range<u64>>>;

impl Unit<'_, '_> {
    /// The text of this unit by the unit it came from. What could be had before an error is there too.
    fn origins(&mut self, unit_at: impl Fn(u64) -> Option<usize>) -> (Text, Result<(), String>) {
        let mut seen = Seen::default();
        let mut memory = Budget::memory_of_one_walk();
        let mut full = false;
        let mut result = self.entries(|abbreviation, at, attributes| {
            match abbreviation.tag() {
                gimli::DW_TAG_compile_unit => seen.root(abbreviation.attributes(), attributes)?,
                gimli::DW_TAG_subprogram if memory.take(size_of::<Function>() * 2) => {
                    seen.function(at, abbreviation.attributes(), attributes)?;
                }
                gimli::DW_TAG_subprogram => full = true,
                _ => {}
            }
            Ok(())
        });
        if full {
            result = result.and(Err("too many functions".to_owned()));
        }
        let mut text = Text::new();
        for function in &seen.functions {
            let Some(origin) = seen.follow(function.at, self.start).and_then(&unit_at) else { continue };
            let place = Where {
                encoding: self.encoding,
                low: function.low.or(seen.low.filter(|_| function.ranges.is_some())),
                high: function.high,
                ranges: function.ranges,
                addr_base: seen.addr_base,
                rnglists_base: seen.rnglists_base,
                rnglists_start: 0,
            };
            let mut found = Vec::new();
            let read = ranges::read(&place, self.sections, self.notes, self.budget, &mut found);
            text.entry(origin).or_default().append(&mut found);
            if let Err(why) = read {
                result = Err(format!("ranges of the function at {:#x}: {why}", function.at));
            }
        }
        for ranges in text.values_mut() {
            *ranges = merge(std::mem::take(ranges));
        }
        (text, result)
    }
}

impl Seen {
    fn root(
        &mut self,
        attributes: &[gimli::AttributeSpecification],
        mut reader: EntriesRaw<'_, Slice<'_>>,
    ) -> gimli::Result<()> {
        for specification in attributes {
            let attribute = reader.read_attribute(*specification)?;
            let offset = attribute.offset_value().map(|offset| offset as u64);
            match attribute.name() {
                gimli::DW_AT_low_pc => self.low = detached(&attribute.raw_value()),
                gimli::DW_AT_addr_base | gimli::DW_AT_GNU_addr_base => self.addr_base = offset,
                gimli::DW_AT_rnglists_base => self.rnglists_base = offset,
                _ => {}
            }
        }
        Ok(())
    }

    fn function(
        &mut self,
        at: u64,
        attributes: &[gimli::AttributeSpecification],
        mut reader: EntriesRaw<'_, Slice<'_>>,
    ) -> gimli::Result<()> {
        let mut function = Function { at, low: None, high: None, ranges: None };
        for specification in attributes {
            let attribute = reader.read_attribute(*specification)?;
            let value = attribute.raw_value();
            match attribute.name() {
                gimli::DW_AT_low_pc => function.low = detached(&value),
                gimli::DW_AT_high_pc => function.high = detached(&value),
                gimli::DW_AT_ranges => function.ranges = detached(&value),
                gimli::DW_AT_abstract_origin => {
                    let origin = match value {
                        AttributeValue::UnitRef(offset) => Origin::Here(offset.0 as u64),
                        AttributeValue::DebugInfoRef(offset) => Origin::There(offset.0 as u64),
                        _ => continue,
                    };
                    self.origins.insert(at, origin);
                }
                _ => {}
            }
        }
        if function.low.is_some() || function.ranges.is_some() {
            self.functions.push(function);
        }
        Ok(())
    }

    /// The entry of another unit that a function comes from, by its offset in the section. `start` is where this
    /// unit's header begins.
    fn follow(&self, function: u64, start: u64) -> Option<u64> {
        let mut at = function;
        for _ in 0..HOPS {
            match *self.origins.get(&at)? {
                Origin::Here(next) => at = next,
                // A reference through the section may well lead back into this unit.
                Origin::There(offset) => match offset.checked_sub(start) {
                    Some(next) if self.origins.contains_key(&next) => at = next,
                    _ => return Some(offset),
                },
            }
        }
        None
    }
}

fn detached(value: &AttributeValue<Slice<'_>>) -> Option<Value> {
    Some(match value {
        AttributeValue::Addr(address) => AttributeValue::Addr(*address),
        AttributeValue::SecOffset(offset) => AttributeValue::SecOffset(*offset as u64),
        AttributeValue::DebugAddrIndex(index) => {
            AttributeValue::DebugAddrIndex(gimli::DebugAddrIndex(index.0 as u64))
        }
        AttributeValue::DebugRngListsIndex(index) => {
            AttributeValue::DebugRngListsIndex(gimli::DebugRngListsIndex(index.0 as u64))
        }
        other => AttributeValue::Udata(other.udata_value()?),
    })
}
