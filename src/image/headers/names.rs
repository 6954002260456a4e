//! The names of sections: in which table they stand, and whether they do.

use super::Input;
use crate::facts::Problem;
use crate::limits::Limits;
use object::Endianness;
use object::elf;
use object::read::elf::SectionHeader;

/// Most bytes kept of a name: what tells is the beginning, and an object has one section for each function.
const MOST: usize = 255;

/// The table of names.
pub(super) struct Names {
    bytes: Vec<u8>,
    /// Most bytes of one name.
    most: usize,
}

impl Names {
    /// Reads section `index`. What is wrong is reported once, and costs the names alone.
    pub fn read<S: SectionHeader<Endian = Endianness>>(
        list: &[S],
        index: u32,
        endian: Endianness,
        input: &Input,
        limits: &Limits,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let most = limits.string_bytes.min(MOST);
        let count = list.len();
        let mut report = |code: &str, message: String| problems.push(Problem::damage(code, message));
        let mut damaged = |message: String| report("damaged-section-names", message);
        let mut names = Self { bytes: Vec::new(), most };
        let table = list.get(index as usize).filter(|_| index != 0);
        let Some(table) = table else {
            if index != 0 && count > 1 {
                damaged(format!("the section name table has index {index}, of {count} sections"));
            } else if index == 0 && list.iter().any(|s| s.sh_name(endian) != 0) {
                damaged("the sections have names, and no table of names".to_owned());
            }
            return names;
        };
        if table.sh_type(endian) != elf::SHT_STRTAB {
            damaged(format!(
                "section {index} is said to hold the names of the sections, and is no table of strings"
            ));
        }
        let (offset, size) = (table.sh_offset(endian).into(), table.sh_size(endian).into());
        match input.read_vec(offset, size, limits.section_bytes, "section names") {
            Ok(bytes) => names.bytes = bytes,
            Err(error) => {
                damaged(error.to_string());
                return names;
            }
        }
        let outside = |s: &&S| s.sh_name(endian) != 0 && s.sh_name(endian) as usize >= names.bytes.len();
        let nameless = list.iter().filter(outside).count();
        if nameless > 0 {
            damaged(format!("{nameless} of {count} sections are named by a text outside the table of names"));
        }
        if names.are_of_something_else(list, index, endian) {
            damaged(format!(
                "section {index} is said to hold the names of the sections, and holds other texts"
            ));
        }
        let cut = |s: &&S| names.whole(s.sh_name(endian)).len() > limits.string_bytes;
        let cut = list.iter().filter(cut).count();
        if most < MOST && cut > 0 {
            report("string-too-long", format!("{cut} of {count} names of sections are over the limit"));
        }
        names
    }

    /// The name that begins at an offset, cut at the limit.
    pub fn at(&self, offset: u32) -> &[u8] {
        let name = self.whole(offset);
        name.get(..self.most).unwrap_or(name)
    }

    /// As much of a name as may be kept of any.
    fn whole(&self, offset: u32) -> &[u8] {
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let rest = rest.get(..MOST).unwrap_or(rest);
        rest.get(..memchr::memchr(0, rest).unwrap_or(rest.len())).unwrap_or_default()
    }

    /// Whether this is another table of strings than that of the names: some sections are called the same in every file
    /// (gABI, "Special Sections"), and here none of them is. LLVM keeps names of sections and of symbols in one `.strtab`.
    fn are_of_something_else<S: SectionHeader<Endian = Endianness>>(
        &self,
        list: &[S],
        index: u32,
        endian: Endianness,
    ) -> bool {
        let own = list.get(index as usize).map(|s| self.whole(s.sh_name(endian)));
        let fixed = |s: &S| match s.sh_type(endian) {
            elf::SHT_SYMTAB => Some(&b".symtab"[..]),
            elf::SHT_DYNSYM => Some(&b".dynsym"[..]),
            elf::SHT_DYNAMIC => Some(&b".dynamic"[..]),
            _ => None,
        };
        let named = |s: &S| fixed(s).is_some_and(|name| name == self.whole(s.sh_name(endian)));
        !matches!(own, Some(b".shstrtab" | b".strtab"))
            && list.iter().any(|s| fixed(s).is_some())
            && !list.iter().any(named)
    }
}
