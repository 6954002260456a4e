//! The instrumentation of an archive: what any of its members has, and none only if that is known of each that holds code.

use crate::audit::relocatable::holds_no_code;
use crate::evidence::{Held, Source, Strength, instrumentation};
use crate::facts::{Instrumentation, Problem};
use crate::image::Image;
use crate::image::linkage::Linkage;
use crate::image::symbols::Symbols;

/// What the members come to that were read so far.
#[derive(Debug, Default)]
pub(super) struct Instrumented {
    found: Instrumentation,
    /// Why what was not found may still be there: the first reason.
    open: Option<String>,
    /// Whether this is a run-time library of instrumentation, whose members call one another.
    runtime: bool,
}

impl Instrumented {
    /// Nothing read yet of an archive of that file name.
    pub(super) fn of(file_name: &[u8]) -> Self {
        let runtime = instrumentation::is_runtime_archive(file_name);
        let open = runtime.then(|| "it is a run-time library of instrumentation itself".to_owned());
        Self { open, runtime, ..Self::default() }
    }

    /// Something that may hold instrumented code cannot be read.
    pub(super) fn leave_open(&mut self, why: impl FnOnce() -> String) {
        self.open.get_or_insert_with(why);
    }

    /// Adds a member. Returns what is damaged in its symbols. One without code says nothing.
    pub(super) fn add(&mut self, name: &str, image: &Image, linkage: &Linkage) -> Vec<Problem> {
        if self.runtime || holds_no_code(image) {
            return Vec::new();
        }
        let symbols = Symbols::new();
        let own = instrumentation::read(image, linkage, &symbols);
        if own.sanitizers.value.is_none() || own.coverage.value.is_none() || own.profiling.value.is_none() {
            let later = instrumentation::is_intermediate(image);
            let why = if later { "becomes machine code at link time" } else { "tells nothing of it" };
            self.leave_open(|| format!("{name} {why}"));
        }
        let all = &mut self.found;
        for (all, own) in [
            (&mut all.coverage, own.coverage),
            (&mut all.profiling, own.profiling),
            (&mut all.assertions, own.assertions),
        ] {
            if all.value.is_none() && own.value == Some(true) {
                *all = named(own, name);
            }
        }
        all.sanitizers.add(named(own.sanitizers, name));
        symbols.problems()
    }

    /// What is known of the archive.
    pub(super) fn conclude(self) -> Instrumentation {
        let mut all = self.found;
        let open = self.open.as_deref();
        settle(&mut all.sanitizers, Vec::new(), open);
        settle(&mut all.coverage, false, open);
        settle(&mut all.profiling, false, open);
        all
    }
}

/// What was seen in a member, in words that name it.
fn named<T>(held: Held<T>, name: &str) -> Held<T> {
    let seen = held.seen.map(|words| match words.strip_prefix("it ") {
        Some(rest) => format!("{name} {rest}"),
        None => format!("{name}: {words}"),
    });
    Held { seen, ..held }
}

/// What no member has is absent, unless something is open.
fn settle<T>(held: &mut Held<T>, none: T, open: Option<&str>) {
    if held.value.is_none() {
        *held = match open {
            Some(why) => Held::unknown().seen(why),
            None => Held::new(none, Strength::Structural, Source::Elf),
        };
    }
}
