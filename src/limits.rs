//! Every limit in one place. A limit that is hit is reported as a problem, never passed over; `--limit NAME=VALUE` raises
//! (or lowers) one for a run.

use crate::wording::grouped;
use std::fmt::Write as _;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things.
    Count,
}

/// One limit: its name, meaning and place in [`Limits`].
#[derive(Debug)]
pub struct Limit {
    /// Field of [`Limits`]. Users write it with dashes: see [`Limit::name`].
    field: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// What it bounds, in a sentence.
    about: &'static str,
    /// What is reported when it is hit: codes of problems.
    pub reported: &'static str,
    get: fn(&Limits) -> u64,
    set: fn(&mut Limits, u64),
}

macro_rules! limits {
    ($($(#[doc = $about:literal])+ $field:ident: $kind:ty = $default:expr, $unit:ident, $reported:literal;)+) => {
        /// Bounds on what one target may cost. All sizes are in bytes.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $about])+ pub $field: $kind,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        /// All limits, in the order of documentation.
        pub const TABLE: &[Limit] = &[$(Limit {
            field: stringify!($field),
            unit: Unit::$unit,
            about: concat!($($about),+),
            reported: $reported,
            // A count in memory never needs more than a word of this machine.
            get: |limits| limits.$field as u64,
            set: |limits, value| limits.$field = <$kind>::try_from(value).unwrap_or(<$kind>::MAX),
        },)+];
    };
}

limits! {
    /// Largest section, or table of headers, read whole.
    section_bytes: u64 = 512 << 20, Bytes, "`too-large-…`, `unreadable-section`, `data-not-searched`, `damaged-section-names`";
    /// Largest section after decompression, as its header says.
    inflated_bytes: u64 = 1 << 30, Bytes, "`too-large-…`";
    /// Section headers read.
    sections: u64 = 1 << 20, Count, "`too-many-sections`";
    /// Longest text kept: a name, a producer, a command line.
    string_bytes: usize = 64 << 10, Bytes, "`too-long-debug-text`, `string-too-long`";
    /// Compilation units read, and recorded command lines. Memory for them is bounded at 96 bytes each.
    units: usize = 1 << 20, Count, "`too-many-units`, `too-many-command-lines`";
    /// Attributes visited by walks over debugging entries.
    die_attributes: u64 = 20_000_000, Count, "`too-many-debug-attributes`, `too-many-debug-ranges`";
    /// Functions listed, and symbols read.
    functions: usize = 4_000_000, Count, "`too-many-functions`, `too-many-symbols`";
    /// Machine code decoded. What is left out stays unknown.
    code_bytes: u64 = 256 << 20, Bytes, "`code-limit`";
    /// Relocations read for the values of pointers.
    relocations: usize = 4 << 20, Count, "`too-many-relocations`, `too-much-data`";
    /// Members of one archive of object files, and of all that are in it.
    archive_members: usize = 100_000, Count, "`too-many-members`";
    /// Longest text taken for what `nginx -V` prints.
    text_bytes: u64 = 1 << 20, Bytes, "`not-elf`";
    /// Largest file on standard input, program of a package, or compressed program.
    stream_bytes: u64 = 1 << 30, Bytes, "`unreadable`";
    /// Bytes read of one package or layer after decompression; of all that is inside one target, four times as many.
    /// Programs out of compressed packages are kept in an unnamed temporary file of at most so many bytes.
    package_bytes: u64 = 8 << 30, Bytes, "`unreadable`";
    /// Entries of one package or layer.
    package_entries: usize = 1_000_000, Count, "`unreadable`";
    /// All files of one nginx configuration together.
    conf_bytes: u64 = 32 << 20, Bytes, "`configuration-limit`, `configuration-unreadable`";
    /// Files of one nginx configuration, counted for each time they are included.
    conf_files: usize = 20_000, Count, "`configuration-limit`";
    /// Directives of one nginx configuration.
    conf_directives: usize = 500_000, Count, "`configuration-limit`";
    /// Findings kept of one target: the worst.
    findings: usize = 10_000, Count, "`too-many-findings`";
    /// Largest saved report (`diff`, `--baseline`).
    document_bytes: u64 = 1 << 30, Bytes, "an error of usage";
}

impl Limit {
    /// Its name, as users write it.
    pub fn name(&self) -> String {
        self.field.replace('_', "-")
    }

    /// What it bounds.
    pub fn about(&self) -> &'static str {
        self.about.trim()
    }

    /// Its value.
    pub fn of(&self, limits: &Limits) -> u64 {
        (self.get)(limits)
    }

    /// A value for people: of bytes with the largest unit that leaves a whole number.
    pub fn shown(&self, value: u64) -> String {
        let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
        let unit = units
            .iter()
            .find(|(size, _)| self.unit == Unit::Bytes && value > 0 && value.is_multiple_of(*size));
        unit.map_or_else(|| grouped(value), |(size, letter)| format!("{}{letter}", value / size))
    }
}

impl Limits {
    /// Sets a limit from `NAME=VALUE`; a value may end with `K`, `M` or `G` (powers of 1,024).
    ///
    /// Errors: no such limit (with the nearest name), or no number.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once('=').ok_or("a limit is set by NAME=VALUE")?;
        let limit = TABLE.iter().find(|limit| limit.name() == name).ok_or_else(|| {
            let near = |limit: &Limit| strsim::jaro_winkler(&limit.name(), name);
            let nearest = TABLE.iter().max_by(|a, b| near(a).total_cmp(&near(b)));
            let hint = nearest.map(|limit| format!("; did you mean {}?", limit.name())).unwrap_or_default();
            format!("there is no limit {name:?}{hint}")
        })?;
        let (digits, unit) = match value.as_bytes().last() {
            Some(b'K' | b'k') => (&value[..value.len() - 1], 1 << 10),
            Some(b'M' | b'm') => (&value[..value.len() - 1], 1 << 20),
            Some(b'G' | b'g') => (&value[..value.len() - 1], 1 << 30),
            _ => (value, 1u64),
        };
        let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        let number = number.ok_or_else(|| format!("{value:?} is no number, such as 4096 or 64M"))?;
        (limit.set)(self, number);
        Ok(())
    }
}

/// The table of limits, in Markdown.
pub fn markdown_table() -> String {
    let limits = Limits::default();
    let mut table = "| limit | default | what it bounds | reported as |\n|---|---|---|---|\n".to_owned();
    for limit in TABLE {
        let default = limit.shown(limit.of(&limits));
        let _ =
            writeln!(table, "| `{}` | {default} | {} | {} |", limit.name(), limit.about(), limit.reported);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_set_by_its_name() {
        for limit in TABLE {
            let mut limits = Limits::default();
            limits.set(&format!("{}=3K", limit.name())).unwrap();
            assert_eq!(limit.of(&limits), 3072, "{}", limit.name());
            let changed = TABLE.iter().filter(|other| other.of(&limits) != other.of(&Limits::default()));
            assert_eq!(changed.count(), 1, "{}", limit.name());
        }
    }

    #[test]
    fn values_have_units_and_mistakes_are_named() {
        let mut limits = Limits::default();
        limits.set("section-bytes=2g").unwrap();
        limits.set("units=7").unwrap();
        assert_eq!((limits.section_bytes, limits.units), (2 << 30, 7));
        for (text, wanted) in [
            ("section-byte=1", "there is no limit \"section-byte\"; did you mean section-bytes?"),
            ("units", "a limit is set by NAME=VALUE"),
            ("units=", "\"\" is no number, such as 4096 or 64M"),
            ("units=-1", "\"-1\" is no number, such as 4096 or 64M"),
            ("units=18446744073709551615G", "\"18446744073709551615G\" is no number, such as 4096 or 64M"),
            ("units=é", "\"é\" is no number, such as 4096 or 64M"),
        ] {
            assert_eq!(limits.set(text), Err(wanted.to_owned()));
        }
    }
}
