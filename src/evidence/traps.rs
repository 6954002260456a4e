//! Sanitizers that only trap (clang's `-fsanitize-trap`): nothing is called, and what is left in a stripped file are the traps
//! themselves, which since LLVM 12 hold the number of the check that failed. GCC writes a plain trap, which tells nothing.
//!
//! Source: `SanitizerHandler.h` of clang (`LIST_SANITIZER_CHECKS`), whose numbers are kept from version to version, and
//! `CodeGenFunction::EmitTrapCheck`.

use super::code_shape::CodeShape;
use super::{Held, Source, Strength};
use crate::facts::Instrumentation;
use crate::wording::plural;

/// Fewest traps: one may be data among the code.
const FEWEST: u64 = 2;
/// Highest number of a check that is known (`local_out_of_bounds`).
const HIGHEST: u32 = 26;
/// Control-flow integrity, which is made for production.
const CFI: u32 = 1 << 2;
/// Signed overflow of a sum, a product, a negation and a difference: `-ftrapv` traps so, too.
const OVERFLOW: u32 = 1 | 1 << 12 | 1 << 13 | 1 << 21;

/// Adds to what a file shows of its instrumentation what the traps in its code show.
pub fn tell<'a>(shapes: impl IntoIterator<Item = &'a CodeShape>, seen: &mut Instrumentation) {
    // One function may have been read for several of them.
    let (checks, traps) = shapes
        .into_iter()
        .fold((0, 0u64), |(checks, traps), one| (checks | one.checks, traps.max(one.traps)));
    let known = checks & !CFI & u32::MAX >> (31 - HIGHEST);
    let told = seen.sanitizers.value.as_deref().unwrap_or_default();
    if traps < FEWEST || known == 0 || told.iter().any(|name| name == "undefined") {
        return;
    }
    if known & !OVERFLOW == 0 {
        if told.is_empty() {
            seen.sanitizers = Held::unknown().seen(
                "its code traps at signed overflow, as -fsanitize=signed-integer-overflow and -ftrapv make it",
            );
        }
        return;
    }
    let words = format!(
        "its code has traps of clang's for {} of UndefinedBehaviorSanitizer",
        plural(u64::from(known.count_ones()), "check")
    );
    let found = Held::new(vec!["undefined".to_owned()], Strength::Inferred, Source::CodeShape);
    seen.sanitizers.add(found.seen(words));
}

#[cfg(test)]
mod tests {
    use super::super::code_shape::{Selection, judge};
    use super::*;
    use crate::evidence::testing::path;
    use crate::image::{Image, Input, functions};
    use crate::limits::Limits;

    fn told(checks: u32, traps: u64, before: Held<Vec<String>>) -> Held<Vec<String>> {
        let image = Image::open(
            Input::file(std::fs::File::open(path("net-O2")).unwrap()).unwrap(),
            &Limits::default(),
        );
        let image = image.unwrap();
        let mut shape = judge(&image, &functions::read(&image).functions, &Selection::All);
        assert_eq!((shape.checks, shape.traps), (0, 0), "gcc made it");
        (shape.checks, shape.traps) = (checks, traps);
        let mut seen = Instrumentation { sanitizers: before, ..Instrumentation::default() };
        tell([&shape], &mut seen);
        seen.sanitizers
    }

    #[test]
    fn stripped_files_whose_code_only_traps() {
        for name in ["ubsan-trap.so", "ubsan-trap-i386.so", "ubsan-trap-a64.so"] {
            let subject = crate::target::Subject::new(path(name), crate::facts::Origin::File);
            let facts = crate::audit::audit(&subject, &crate::audit::Options::default());
            let found = facts.instrumentation.sanitizers;
            assert_eq!(found.value, Some(vec!["undefined".to_owned()]), "{name}");
            assert_eq!(
                (found.strength, found.sources),
                (Strength::Inferred, vec![Source::CodeShape]),
                "{name}"
            );
        }
    }

    #[test]
    fn traps_with_numbers_of_checks_are_the_sanitizers() {
        let none = || Held::new(Vec::new(), Strength::Structural, Source::Elf);
        let found = told(1 << 18 | 1 << 20, 9, none());
        assert_eq!(found.value, Some(vec!["undefined".to_owned()]));
        assert_eq!((found.strength, found.sources), (Strength::Inferred, vec![Source::CodeShape]));
        let words = "its code has traps of clang's for 2 checks of UndefinedBehaviorSanitizer";
        assert_eq!(found.seen.as_deref(), Some(words));
        let address = Held::new(vec!["address".to_owned()], Strength::Structural, Source::Imports);
        let both = told(1 << 18, 2, address);
        assert_eq!(both.value, Some(vec!["address".to_owned(), "undefined".to_owned()]));
        assert_eq!(both.strength, Strength::Structural);
        // Control-flow integrity, a number that is none, and one that stands alone prove nothing.
        for (checks, traps) in [(CFI, 100), (1 << 31, 100), (1 << 18, 1), (0, 0)] {
            assert_eq!(told(checks, traps, none()), none());
        }
        let overflow = told(OVERFLOW, 50, none());
        assert!(overflow.value.is_none() && overflow.seen.unwrap().contains("-ftrapv"));
    }
}
