//! Libraries that nginx builds along with itself, where only the configure arguments tell how.

use super::{allowed, fails};
use crate::compiler::Level;
use crate::evidence::{Source, Strength};
use crate::nginx;
use crate::policy::At;
use crate::rules::check::{Context, Draft};
use crate::rules::{levels, origin};

/// One finding for each library that is declared to be built without optimization. Where units tell, or the code was
/// read, they speak for themselves and nothing is said here.
pub(super) fn drafts<'a>(context: &Context<'a>, minimum: &At<Level>) -> Vec<Draft<'a>> {
    let facts = context.facts;
    let Some(arguments) = facts.nginx.as_ref().and_then(|nginx| nginx.configure_arguments.as_deref()) else {
        return Vec::new();
    };
    if facts.functions.judged > 0 || !levels::own_units(facts).is_empty() {
        return Vec::new();
    }
    let low = |level: Level| level == Level::O0 && fails(level, minimum) && !allowed(context, level);
    nginx::bundled_libraries(arguments)
        .into_iter()
        .filter(|(_, declared)| low(declared.level))
        .map(|(library, declared)| {
            let wanted = origin::aim(context, minimum.value);
            let message = format!(
                "{library}, which is built along, is declared to be {} (policy: at least {})",
                declared.level.flag(),
                minimum.value.as_str()
            );
            let quote = declared.quote.unwrap_or_default();
            Draft::violation(format!("bundled:{library}"), message)
                .evidence(Strength::Declared, &[Source::ConfigureArguments])
                .policy(&minimum.at)
                .known(vec![format!("declared: {quote}"), declared.why])
                .remedy(origin::bundled_remedy(library, arguments, wanted))
                .cost("no inlining, no tail calls")
        })
        .collect()
}
