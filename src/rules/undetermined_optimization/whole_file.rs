//! The question for a file none of whose own code is described by a unit.

use super::{ground_words, too_few, under, unknown_ranges};
use crate::compiler::{Level, Satisfies};
use crate::finding::Severity;
use crate::policy::{At, Ground};
use crate::rules::check::{Context, Draft};
use crate::rules::levels;
use crate::wording::{grouped, percent};

/// A file none of whose own code is described by a unit.
pub(super) fn about_file<'a>(context: &Context<'a>, minimum: &At<Level>) -> Option<Draft<'a>> {
    let facts = context.facts;
    let policy = &context.policy.optimization;
    let held = &facts.optimization;
    let text = &held.text;
    let level = levels::sharpened(context, held.level);
    let wanted = minimum.value;
    let reason = if held.reason.is_empty() { Vec::new() } else { vec![held.reason.clone()] };
    let grounded = levels::grounded(context, held.strength, &held.sources, false);
    // Where only a record passes, what is short of proof and has none lacks the record first.
    let needs_record = policy.evidence.value == Ground::Recorded;
    let without_ground = |reason: Vec<String>| {
        let message = format!("{} {}", level.flag(), ground_words(policy.evidence.value));
        let draft =
            Draft::undetermined("ground", message).evidence(held.strength, &held.sources).known(reason);
        Some(under(draft, &policy.undetermined, facts)?.policy(&policy.evidence.at))
    };
    match levels::meets(level, held.bound, wanted) {
        Satisfies::Unknown => {
            let few = !needs_record && too_few(facts, text.unknown);
            let why = if facts.elf.as_ref().is_some_and(|elf| elf.packed) {
                "the file is packed, and nothing tells the level of the code in it"
            } else if few {
                "nothing tells the level of the code, and there are too few functions to judge it by"
            } else if facts.elf.is_none() {
                "the text names no level"
            } else {
                "nothing tells the level of the code"
            };
            let draft =
                Draft::undetermined("file", why).known(reason).ranges(unknown_ranges(facts), Vec::new());
            under(draft, if few { &policy.too_small } else { &policy.undetermined }, facts)
        }
        Satisfies::NotProven if needs_record && !grounded => without_ground(reason),
        Satisfies::NotProven => {
            let message = format!(
                "the code is optimized{}, but {} is not proven (policy: at least {})",
                if level == Level::Optimized {
                    String::new()
                } else {
                    format!(" at least to {}", level.flag())
                },
                wanted.flag(),
                wanted.as_str()
            );
            let draft =
                Draft::undetermined("unproven", message).evidence(held.strength, &held.sources).known(reason);
            under(draft, &policy.optimized_unproven, facts)
        }
        Satisfies::No if !policy.allow.iter().any(|allowed| allowed.value == level) => None,
        Satisfies::Yes | Satisfies::No => {
            if !grounded {
                return without_ground(reason);
            }
            // What was not read is not covered by what was.
            let unread = if policy.evidence.value == Ground::Declared { 0 } else { text.declared };
            let loose = text.unknown.saturating_add(unread);
            if loose == 0 {
                return None;
            }
            let message = format!(
                "nothing tells the level of {} bytes of code, {} % of the text",
                grouped(loose),
                percent(loose, text.bytes)
            );
            let draft =
                Draft::undetermined("text", message).known(reason).ranges(unknown_ranges(facts), Vec::new());
            let few = text.bytes > 0 && loose < text.bytes && too_few(facts, loose);
            let draft = under(draft, if few { &policy.too_small } else { &policy.undetermined }, facts)?;
            Some(if text.is_remnant(loose) { draft.at_most(Severity::Note) } else { draft })
        }
    }
}
