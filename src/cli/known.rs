//! What a policy is checked against, and how its diagnostics are printed.

use crate::compiler::recorded_form::{RecordedForm, canonical};
use crate::policy::diagnostic::Diagnostics;
use crate::policy::known::Known;
use crate::{nginx, rules};
use std::io::{self, Write};

/// Calls `f` with everything this program knows.
pub(super) fn with<T>(f: impl FnOnce(&Known<'_>) -> T) -> T {
    let ids: Vec<&str> = rules::TABLE.iter().map(|rule| rule.id).collect();
    f(&Known {
        rules: &ids,
        modules: &|| nginx::catalogue::module_names().into_iter().map(str::to_owned).collect(),
        options: &|| nginx::catalogue::option_names().into_iter().map(str::to_owned).collect(),
        never_recorded: &|flag| match canonical(flag) {
            RecordedForm::NeverRecorded(why) => Some(why),
            _ => None,
        },
    })
}

/// Prints diagnostics on standard error, coloured where that is a terminal.
pub(super) fn print(diagnostics: &Diagnostics) {
    let choice = super::choice_for_stderr();
    let color = choice != anstream::ColorChoice::Never;
    let _ = writeln!(io::stderr().lock(), "{}", diagnostics.render(color));
}
