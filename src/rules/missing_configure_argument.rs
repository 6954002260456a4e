//! An nginx was configured without an argument that the policy requires.
//!
//! # What it checks
//!
//! That the configure arguments an nginx server carries hold each entry of `nginx.configure.require`. An entry is a name
//! (`--with-threads`), a name and value (`--build=edge`), or a glob over both (`--with-cc-opt=*-O2*`). Of an argument that is
//! given twice the last counts, as `./configure` has it; only `--add-module` and `--add-dynamic-module` add up.
//!
//! ```text
//! error[missing-configure-argument]: --with-threads is not among the configure arguments
//! ```
//!
//! # Why it matters
//!
//! Some of what `./configure` is told leaves no module behind: threads, file AIO, the paths and the user of a build.
//!
//! # How to fix
//!
//! Give the argument to `./configure` and rebuild from clean.
//!
//! # Policy keys
//!
//! `nginx.configure.require`
//!
//! # Evidence
//!
//! The text that `nginx -V` prints, read from the file. It is a declaration: what was asked for, not what was built.
//!
//! # Limits
//!
//! Options of OpenResty's wrapper do not reach that text. Where it says -O2, only the units tell whether the code is.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::nginx_common::{argument_matches, held_against};
use crate::evidence::{Source, Strength};
use crate::finding::Severity;
use crate::nginx::configure::in_force;

/// The rule.
pub const RULE: Rule = Rule {
    id: "missing-configure-argument",
    severity: Severity::Error,
    keys: &["nginx.configure.require"],
    source: include_str!("missing_configure_argument.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let entries = &context.policy.nginx.configure.require;
    held_against(
        context,
        entries,
        "configure arguments",
        |nginx| nginx.configure_arguments.as_ref(),
        |arguments| {
            let holding = in_force(arguments);
            let missing = entries
                .iter()
                .filter(|entry| !holding.iter().any(|argument| argument_matches(&entry.value, argument)));
            missing
                .map(|entry| {
                    let text = &entry.value.text;
                    let message = match arguments.iter().find(|a| argument_matches(&entry.value, a)) {
                        Some(a) => format!("{text}: a later {} replaces the one that is given so", a.name),
                        None => format!("{text} is not among the configure arguments"),
                    };
                    Draft::violation(format!("argument:{text}"), message)
                        .evidence(Strength::Declared, &[Source::ConfigureArguments])
                        .policy(&entry.at)
                        .remedy(format!("give {text} to ./configure; make clean; rebuild"))
                })
                .collect()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::facts::Facts;
    use crate::finding::FindingStatus;
    use crate::policy::Policy;
    use crate::rules::testing::*;

    const ID: &str = "missing-configure-argument";

    fn requires(text: &str) -> Policy {
        let mut wanted = policy();
        wanted.nginx.configure.require = vec![glob(text, 60)];
        wanted
    }

    fn facts() -> Facts {
        let mut facts = nginx(1, Level::O2);
        facts.nginx.as_mut().unwrap().configure_arguments =
            Some(vec![argument("--with-threads", None), argument("--with-cc-opt", Some("-g -O2"))]);
        facts
    }

    #[test]
    fn a_missing_argument_is_an_error() {
        let found = only(&facts(), &requires("--with-file-aio"), ID);
        assert_eq!(found.message, "--with-file-aio is not among the configure arguments");
        assert_eq!(found.strength, Strength::Declared);
    }

    #[test]
    fn an_argument_that_a_later_one_replaces_does_not_count() {
        let mut facts = facts();
        let list = facts.nginx.as_mut().unwrap().configure_arguments.as_mut().unwrap();
        list.extend([argument("--add-module", Some("a")), argument("--add-module", Some("b"))]);
        list.push(argument("--with-cc-opt", Some("-g")));
        let found = only(&facts, &requires("--with-cc-opt=*-O2*"), ID);
        assert_eq!(
            found.message,
            "--with-cc-opt=*-O2*: a later --with-cc-opt replaces the one that is given so"
        );
        assert_passed(&facts, &requires("--with-cc-opt=-g"), ID);
        assert_passed(&facts, &requires("--add-module=a"), ID);
    }

    #[test]
    fn names_values_and_globs_pass() {
        for text in [
            "--with-threads",
            "--with-cc-opt=*-O2*",
            "--with-cc-opt",
            "--with-cc-opt=-g -O2",
            "--with-cc-opt='-g -O2'",
        ] {
            assert_passed(&facts(), &requires(text), ID);
        }
        assert_silent(&facts(), &policy(), ID);
    }

    #[test]
    fn no_text_is_undetermined() {
        let mut facts = facts();
        facts.nginx.as_mut().unwrap().configure_arguments = None;
        assert_eq!(only(&facts, &requires("--with-threads"), ID).status, FindingStatus::Undetermined);
    }
}
