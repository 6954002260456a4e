//! An nginx was configured with an argument that the policy forbids.
//!
//! # What it checks
//!
//! That the configure arguments an nginx server carries hold none of `nginx.configure.forbid`. An entry is a name
//! (`--with-debug`), a name and value, or a glob over both (`--with-cc-opt=*-O0*`). Of an argument that is given twice the
//! last counts, as `./configure` has it; only `--add-module` and `--add-dynamic-module` add up.
//!
//! ```text
//! error[forbidden-configure-argument]: configured with --with-debug
//! ```
//!
//! # Why it matters
//!
//! An argument from a developer's build script should not reach a release.
//!
//! # How to fix
//!
//! Leave the argument out and rebuild from clean.
//!
//! # Policy keys
//!
//! `nginx.configure.forbid`
//!
//! # Evidence
//!
//! The text that `nginx -V` prints, read from the file. It is a declaration: what was asked for, not what was built.
//!
//! # Limits
//!
//! Options of OpenResty's wrapper, and what `CFLAGS` held in the environment, do not reach that text.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::nginx_common::{argument_matches, held_against, spelt};
use crate::evidence::{Source, Strength};
use crate::finding::Severity;
use crate::nginx::configure::in_force;
use crate::policy::{At, Pattern};

/// The rule.
pub const RULE: Rule = Rule {
    id: "forbidden-configure-argument",
    severity: Severity::Error,
    keys: &["nginx.configure.forbid"],
    source: include_str!("forbidden_configure_argument.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let entries = &context.policy.nginx.configure.forbid;
    held_against(
        context,
        entries,
        "configure arguments",
        |nginx| nginx.configure_arguments.as_ref(),
        |arguments| {
            let holding = in_force(arguments);
            let given = |entry: &'a At<Pattern>| {
                let argument = holding.iter().find(|argument| argument_matches(&entry.value, argument))?;
                let text = &entry.value.text;
                let draft = Draft::violation(
                    format!("argument:{text}"),
                    format!("configured with {}", spelt(argument)),
                )
                .evidence(Strength::Declared, &[Source::ConfigureArguments])
                .policy(&entry.at)
                .remedy(format!("leave {} out of ./configure; make clean; rebuild", spelt(argument)));
                Some(draft)
            };
            entries.iter().filter_map(given).collect()
        },
    )
}

#[cfg(test)]
mod tests {
    use crate::compiler::Level;
    use crate::finding::FindingStatus;
    use crate::rules::testing::*;

    const ID: &str = "forbidden-configure-argument";

    #[test]
    fn fires_passes_and_leaves_open() {
        let mut wanted = policy();
        wanted.nginx.configure.forbid = vec![glob("--with-cc-opt=*-O0*", 61), glob("--with-debug", 61)];
        let mut facts = nginx(1, Level::O2);
        assert_passed(&facts, &wanted, ID);
        assert_silent(&facts, &policy(), ID);
        facts.nginx.as_mut().unwrap().configure_arguments =
            Some(vec![argument("--with-cc-opt", Some("-O2 -O0"))]);
        assert_eq!(only(&facts, &wanted, ID).message, "configured with --with-cc-opt='-O2 -O0'");
        let replaced = |name: &str| {
            Some(vec![argument(name, Some("-O0")), argument(name, Some("-O2")), argument("--x", None)])
        };
        facts.nginx.as_mut().unwrap().configure_arguments = replaced("--with-cc-opt");
        assert_passed(&facts, &wanted, ID);
        wanted.nginx.configure.forbid = vec![glob("--add-module=*-O0*", 61)];
        facts.nginx.as_mut().unwrap().configure_arguments = replaced("--add-module");
        assert_eq!(only(&facts, &wanted, ID).message, "configured with --add-module=-O0");
        facts.nginx.as_mut().unwrap().configure_arguments = None;
        assert_eq!(only(&facts, &wanted, ID).status, FindingStatus::Undetermined);
    }
}
