//! The file looks for libraries where others may put them.
//!
//! # What it checks
//!
//! Each directory of `DT_RPATH` and `DT_RUNPATH`. Insecure are: an empty or relative one (it means the working directory of
//! whoever starts the program; a path that is empty as a whole means nothing), and one below `/tmp`, `/var/tmp`, `/dev/shm`, a
//! home directory or a build directory.
//!
//! ```text
//! error[insecure-rpath]: RUNPATH names /tmp/build/lib, which others may write to
//! ```
//!
//! # Why it matters
//!
//! Who can create a file there decides what code the program runs. Such paths are left over from a build tree, or from a
//! variable that was empty.
//!
//! # How to fix
//!
//! Link without it, or name a system directory or one below `$ORIGIN`; `patchelf --set-rpath` or `chrpath` mend a finished
//! file.
//!
//! # Policy keys
//!
//! `hardening.rpath = false`, or a severity under `rules.insecure-rpath`
//!
//! # Evidence
//!
//! Structural: the dynamic section.
//!
//! # Limits
//!
//! Whether a directory exists here, and who may write to it, is not looked at: the file may be meant for another machine.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use super::hardening_common::{asked, linked, unknown};
use crate::evidence::Strength;
use crate::facts::Status;
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "insecure-rpath",
    severity: Severity::Error,
    keys: &["hardening.rpath"],
    source: include_str!("insecure_rpath.rs"),
    check,
};

/// Directories below which others may write, or which only the build had.
const OPEN: [&str; 8] = ["/tmp", "/var/tmp", "/dev/shm", "/home", "/root", "/build", "/builddir", "/usr/src"];

const FIX: &str = "link without it, or with a system directory or one below $ORIGIN";

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let Some(place) = asked(context, RULE.id, "rpath", "true") else { return Outcome::NotAsked };
    if let Err(reason) = linked(context) {
        return Outcome::NotChecked(reason);
    }
    let hardening = &context.facts.hardening;
    let mut drafts = Vec::new();
    // A loader that finds a RUNPATH looks at no RPATH (ld.so(8)).
    let superseded = hardening.runpath.value.is_some();
    for (name, fact) in [("RPATH", &hardening.rpath), ("RUNPATH", &hardening.runpath)] {
        if name == "RPATH" && superseded {
            continue;
        }
        let Some(path) = &fact.value else {
            // No such entry is the normal case; a dynamic section that could not be read is another.
            if fact.strength == Strength::None && context.facts.status != Status::Ok && drafts.is_empty() {
                drafts.push(unknown(place, "rpath", FIX));
            }
            continue;
        };
        // Loaders take a path without any directory for none at all (glibc's `decompose_rpath`).
        if path.is_empty() {
            continue;
        }
        let mut seen: Vec<&str> = Vec::new();
        for directory in path.split(':') {
            let Some(why) = insecure(directory).filter(|_| !seen.contains(&directory)) else { continue };
            seen.push(directory);
            let shown = if directory.is_empty() { "an empty directory" } else { directory };
            drafts.push(
                Draft::violation(format!("{name}:{directory}"), format!("{name} names {shown}, {why}"))
                    .held(fact)
                    .policy(place)
                    .remedy(FIX),
            );
        }
    }
    Outcome::Checked(drafts)
}

/// Why a directory is insecure, if it is.
pub fn insecure(directory: &str) -> Option<&'static str> {
    if ["$ORIGIN", "${ORIGIN}"].iter().any(|origin| {
        directory.strip_prefix(origin).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }) {
        return None;
    }
    if !directory.starts_with('/') {
        return Some("which is taken from the working directory");
    }
    // Components that go up or stand still would hide what the path begins with.
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let plain = format!("/{}", parts.join("/"));
    OPEN.iter()
        .any(|open| plain.strip_prefix(open).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
        .then_some("which others may write to")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::evidence::{Held, Source};
    use crate::finding::FindingStatus;
    use crate::rules::testing::*;

    #[test]
    fn fires_passes_and_leaves_open() {
        let wanted = hardened("rpath", "false");
        let mut facts = nginx(1, Level::O2);
        assert_passed(&facts, &wanted, RULE.id);
        assert_silent(&facts, &policy(), RULE.id);
        facts.hardening.runpath =
            Held::new("/usr/lib:/tmp/build/lib:".into(), Strength::Structural, Source::Elf);
        let found = of(&facts, &wanted, RULE.id);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].message, "RUNPATH names /tmp/build/lib, which others may write to");
        assert_eq!(
            found[1].message,
            "RUNPATH names an empty directory, which is taken from the working directory"
        );
        // Where there is a RUNPATH, the RPATH beside it is not looked at.
        facts.hardening.rpath = Held::new("/tmp".into(), Strength::Structural, Source::Elf);
        assert_eq!(of(&facts, &wanted, RULE.id).len(), 2);
        facts.hardening.runpath = Held::unknown();
        assert_eq!(of(&facts, &wanted, RULE.id)[0].message, "RPATH names /tmp, which others may write to");
        for harmless in ["", "/usr/lib"] {
            facts.hardening.rpath = Held::new(harmless.into(), Strength::Structural, Source::Elf);
            assert_passed(&facts, &wanted, RULE.id);
        }
        facts.hardening.rpath = Held::new(":lib::lib".into(), Strength::Structural, Source::Elf);
        assert_eq!(of(&facts, &wanted, RULE.id).len(), 2, "each directory once");
        facts.hardening.rpath = Held::unknown();
        facts.status = Status::Partial;
        assert_eq!(only(&facts, &wanted, RULE.id).status, FindingStatus::Undetermined);
    }

    #[test]
    fn directories() {
        for good in ["/usr/lib", "/opt/x/lib", "$ORIGIN", "$ORIGIN/../lib", "${ORIGIN}/lib", "/tmpfiles"] {
            assert_eq!(insecure(good), None, "{good}");
        }
        for bad in ["", ".", "lib", "../lib", "/tmp", "/usr/../tmp/x", "/home/me/lib", "$ORIGINAL/x", "//tmp"]
        {
            assert!(insecure(bad).is_some(), "{bad}");
        }
    }
}
