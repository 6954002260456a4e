//! `.gnu.lto_.opts`: the options that GCC keeps beside its intermediate code (`-flto`).
//!
//! An object compiled with `-flto` (and without `-ffat-lto-objects`) holds no machine code and, without `-g`, no debug
//! information either, but always these options, which the link goes by: quoted words, one string a translation unit
//! (GCC, `lto-opts.cc`). Linked files do not have them any more.

use super::{Claim, Place, Scope, Source, Strength};
use crate::compiler::options::{LevelWord, WithoutLevel, group, level, split_shell};
use crate::image::Image;

const SECTION: &[u8] = b".gnu.lto_.opts";
/// Most bytes of options read; they are some hundred a unit.
const MOST_BYTES: usize = 1 << 20;

/// The options of one translation unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LtoOptions {
    /// Where they stand.
    pub at: Place,
    /// The options, as the linker would be given them.
    pub flags: Vec<String>,
    /// The level they ask for.
    pub level: LevelWord,
    /// All of them, as they stand.
    pub text: String,
}

/// Whether a relocatable file holds GCC's intermediate code.
pub fn has_code(image: &Image) -> bool {
    image.is_relocatable() && image.sections.iter().any(|section| section.name.starts_with(b".gnu.lto_"))
}

/// Reads the options of a relocatable file: one entry for each translation unit joined in it.
pub fn read(image: &Image) -> Vec<LtoOptions> {
    if !image.is_relocatable() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for section in image.sections.iter().filter(|section| section.name.starts_with(SECTION)) {
        let Ok(bytes) = image.raw_section(section) else { continue };
        let bytes = bytes.get(..MOST_BYTES).unwrap_or(&bytes);
        for text in bytes.split(|&byte| byte == 0).filter(|text| text.starts_with(b"'-")) {
            let text = String::from_utf8_lossy(text).into_owned();
            let options = group(&split_shell(&text));
            let level = level(&options, WithoutLevel::Unoptimized);
            let flags = options.into_iter().map(|option| option.text).collect();
            let at = Place { section: String::from_utf8_lossy(&section.name).into(), offset: 0 };
            found.push(LtoOptions { at, flags, level, text });
        }
    }
    found
}

/// What they claim of some part of the file.
pub fn claims(options: &[LtoOptions]) -> impl Iterator<Item = Claim> {
    options.iter().map(|options| Claim {
        fact: "optimization.level".to_owned(),
        value: options.level.level.as_str().into(),
        strength: Strength::Recorded,
        source: Source::GccCommandLine,
        scope: Scope::Some,
        at: Some(options.at.clone()),
        quote: Some(options.text.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::image::Input;
    use crate::limits::Limits;
    use object::write::Object;
    use object::{Architecture, BinaryFormat, Endianness, SectionKind};

    fn options(text: &[u8]) -> Vec<LtoOptions> {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let section = object.add_section(Vec::new(), SECTION.to_vec(), SectionKind::Metadata);
        object.append_section_data(section, text, 1);
        read(&Image::open(Input::memory(object.write().unwrap()), &Limits::default()).unwrap())
    }

    #[test]
    fn quoted_options_hold_the_level() {
        let found = options(b"'-fno-openmp' '-fPIC' '-mtune=generic' '-march=x86-64' '-O0' '-flto'\0");
        assert_eq!((found.len(), found[0].level.level), (1, Level::O0));
        assert_eq!(found[0].flags.last().map(String::as_str), Some("-flto"));
        let two = options(b"'-O2' '-flto'\0'-flto' '-O3'\0");
        assert_eq!(claims(&two).map(|claim| claim.level()).collect::<Vec<_>>(), [Level::O2, Level::O3]);
        assert_eq!(options(b"\0\xff no options"), []);
    }
}
