//! A closer look at units whose recorded level a sample of their code contradicts.
//!
//! The sample is drawn from the whole file; a function of it that is shaped like `-O0` in a unit that says otherwise may be
//! one of many: `#pragma GCC optimize`, `#pragma clang optimize off`, or an object that is not what its record says. All
//! functions of such units are read then, which costs nothing where nothing is in doubt.

use crate::evidence::code_shape::{self, CodeShape, Judged, Selection, State, Verdict};
use crate::image::Image;
use crate::image::functions::FunctionTable;
use crate::reconcile::{Witnessed, is_vouched_for};
use std::ops::Range;

/// Reads the units in doubt. `None` where there are none, and where nearly all the code contradicts its record: that is a
/// conflict about the whole.
pub(super) fn look(
    image: &Image,
    table: &FunctionTable,
    witnessed: &Witnessed,
    sample: &CodeShape,
) -> Option<CodeShape> {
    if sample.counts.o0 == 0 || is_all(sample) {
        return None;
    }
    let suspect = |range: &Range<u64>| {
        let from = sample.functions.partition_point(|judged| judged.start < range.start);
        let inside = sample.functions[from..].iter().take_while(|judged| judged.start < range.end);
        inside.into_iter().any(|judged| judged.state == State::O0)
    };
    let ranges: Vec<Range<u64>> = witnessed
        .units
        .iter()
        .zip(&witnessed.account.live)
        .filter(|(unit, _)| is_vouched_for(unit))
        .filter(|(_, live)| live.iter().any(suspect))
        .flat_map(|(_, live)| live.iter().cloned())
        .collect();
    if ranges.is_empty() {
        return None;
    }
    Some(code_shape::judge(image, &table.functions, &Selection::Ranges(crate::image::merge(ranges))))
}

/// Whether code seen to be unoptimized is nearly all there is: one function in ten may be another's, such as a library's.
fn is_all(sample: &CodeShape) -> bool {
    sample.verdict == Verdict::O0 && sample.counts.optimized.saturating_mul(10) <= sample.counts.o0
}

/// What was judged at first with what was judged since, in order of address; the closer look is the better one.
pub(super) fn joined(first: &[Judged], closer: &[Judged]) -> Vec<Judged> {
    let mut all: Vec<Judged> = closer.iter().chain(first).cloned().collect();
    // Stable: of two with one address the closer one comes first, and stays.
    all.sort_by_key(|judged| judged.start);
    all.dedup_by_key(|judged| judged.start);
    all
}
