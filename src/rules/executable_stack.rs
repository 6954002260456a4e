//! The stack is executable.
//!
//! # What it checks
//!
//! That the program header `PT_GNU_STACK` is there and does not ask for an executable stack.
//!
//! ```text
//! error[executable-stack]: the stack is executable
//! ```
//!
//! # Why it matters
//!
//! Whoever can write to an executable stack can run what was written. One assembler file without a note about its stack
//! makes it so for the whole program.
//!
//! # How to fix
//!
//! Add `.section .note.GNU-stack,"",@progbits` to assembler files, or link with `-Wl,-z,noexecstack`. Avoid nested functions
//! whose address is taken.
//!
//! # Policy keys
//!
//! `hardening.nx-stack`, or a severity under `rules.executable-stack`
//!
//! # Evidence
//!
//! Structural: the program headers.
//!
//! # Limits
//!
//! What a program does to its stack with `mprotect` is not seen.

use super::Rule;
use super::check::{Context, Outcome};
use super::hardening_common::{asked, linked, wanted};
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "executable-stack",
    severity: Severity::Error,
    keys: &["hardening.nx-stack"],
    source: include_str!("executable_stack.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let Some(place) = asked(context, RULE.id, "nx-stack", "false") else { return Outcome::NotAsked };
    if let Err(reason) = linked(context) {
        return Outcome::NotChecked(reason);
    }
    wanted(
        place,
        "nx-stack",
        &context.facts.hardening.nx_stack,
        true,
        "the stack is executable",
        "link with -Wl,-z,noexecstack; add a .note.GNU-stack section to assembler files",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::*;

    #[test]
    fn fires_passes_and_leaves_open() {
        hardening_cases(RULE.id, "nx-stack", "true", |facts, value| facts.hardening.nx_stack = value, false);
    }
}
