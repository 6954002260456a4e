//! A running process is not the program that is installed.
//!
//! # What it checks
//!
//! For a process: whether its program file was deleted or replaced, and whether the build-id of the file now at its path is
//! the one that runs; and whether a library or module that it has loaded was deleted or replaced since.
//!
//! ```text
//! warning[stale-process]: the file of pid 812 was replaced: 7f96c30d runs, 1c09ab22 is installed
//! ```
//!
//! # Why it matters
//!
//! An upgrade takes effect only when the process is started anew. `nginx -s reload` reads the configuration again and keeps
//! the old program; the fixed build lies on disk and the broken one serves.
//!
//! # How to fix
//!
//! Restart the service. nginx can be replaced without losing a connection: send USR2 to the master, then WINCH and QUIT to the
//! old one.
//!
//! # Policy keys
//!
//! `rules.stale-process`
//!
//! # Evidence
//!
//! A program that runs from memory only (memfd) has no installed file, which is said. Structural: the link `/proc/PID/exe`, the list `/proc/PID/maps`, and the build-ids of both files.
//!
//! # Limits
//!
//! Two different files without build-ids cannot be compared. Where it may not be read which libraries a process runs, or
//! whether those at their names are the ones that it runs, or the process ended meanwhile, the rule is not checked. A library that was written over in place is not seen: it is the file that
//! runs.

use super::Rule;
use super::check::{Context, Draft, Outcome};
use crate::evidence::{Source, Strength};
use crate::facts::Problem;
use crate::finding::Severity;

/// The rule.
pub const RULE: Rule = Rule {
    id: "stale-process",
    severity: Severity::Warning,
    keys: &[],
    source: include_str!("stale_process.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let Some(process) = &context.facts.process else { return Outcome::NotAsked };
    let running = context.facts.elf.as_ref().and_then(|elf| elf.build_id.as_deref());
    let installed = process.on_disk_build_id.as_deref();
    let pid = process.pid;
    let fix = if context.facts.nginx.is_some() {
        "restart nginx, or replace it on the fly (USR2, then WINCH and QUIT to the old master); a reload keeps the old program"
    } else {
        "restart the service"
    };
    let mut drafts = Vec::new();
    let stale = |key: &'static str, message: String| {
        let known = match key {
            "process" => format!("structural: /proc/{pid}/exe, and the build-id of the file at its name"),
            _ => format!("structural: /proc/{pid}/maps, and the build-ids of the files at their names"),
        };
        let draft = Draft::violation(key, message)
            .evidence(Strength::Structural, &[Source::Elf])
            .known(vec![known])
            .remedy(fix);
        match context.switched_on(RULE.id) {
            Some(place) => draft.policy(place),
            None => draft,
        }
    };
    if let [first, rest @ ..] = &process.replaced[..] {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        drafts
            .push(stale("libraries", format!("pid {pid} runs libraries that were replaced: {first}{more}")));
    }
    match (running, installed) {
        (Some(running), Some(installed)) if running != installed => {
            let message = format!(
                "the file of pid {pid} was replaced: {} runs, {} is installed",
                short(running),
                short(installed)
            );
            drafts.insert(0, stale("process", message));
        }
        // The same build copied anew is the same program.
        (Some(_), Some(_)) => {}
        _ if process.same_file == Some(true) => {}
        _ if process.deleted => {
            let memory = process.exe.as_deref().is_some_and(|exe| exe.starts_with("/memfd:"));
            let message = if memory {
                format!("pid {pid} runs from memory only (memfd): no file of it is installed")
            } else {
                format!("the file of pid {pid} was deleted or replaced since it was started")
            };
            drafts.insert(0, stale("process", message));
        }
        _ if drafts.is_empty() => {
            return Outcome::NotChecked("nothing can be seen at the name of the running program".to_owned());
        }
        _ => {}
    }
    let unknown = |problem: &&Problem| {
        matches!(problem.code.as_str(), Problem::LIBRARIES_UNKNOWN | Problem::PROCESS_ENDED)
    };
    match context.facts.problems.iter().find(unknown).filter(|_| drafts.is_empty()) {
        Some(problem) => Outcome::NotChecked(problem.message.clone()),
        None => Outcome::Checked(drafts),
    }
}

/// The beginning of a build-id, which is enough to tell two builds apart.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::facts::{Origin, Process};
    use crate::rules::testing::*;

    #[test]
    fn fires_passes_and_is_not_checked() {
        let mut facts = nginx(1, Level::O2);
        assert_silent(&facts, &policy(), RULE.id);
        facts.origin = Origin::Process;
        facts.path = "pid:812".into();
        facts.process = Some(Process {
            pid: 812,
            command: "nginx: master process /usr/sbin/nginx".into(),
            exe: Some("/usr/sbin/nginx".into()),
            deleted: true,
            on_disk_build_id: Some("1c09ab22".into()),
            same_file: Some(false),
            children: 8,
            replaced: Vec::new(),
            elsewhere: false,
        });
        let found = only(&facts, &policy(), RULE.id);
        assert_eq!(found.message, "the file of pid 812 was replaced: 7f96c30d runs, 1c09ab22 is installed");
        assert_eq!(found.severity, Severity::Warning);
        let again = {
            facts.process.as_mut().unwrap().pid = 900;
            facts.path = "pid:900".into();
            only(&facts, &policy(), RULE.id)
        };
        assert_eq!(found.fingerprint, again.fingerprint, "the run does not enter");

        facts.process.as_mut().unwrap().on_disk_build_id = Some("7f96c30d".into());
        assert_passed(&facts, &policy(), RULE.id);
        facts.process.as_mut().unwrap().on_disk_build_id = None;
        assert!(only(&facts, &policy(), RULE.id).message.contains("deleted or replaced"));
        facts.process.as_mut().unwrap().replaced =
            vec!["/usr/lib/libssl.so.3".into(), "/usr/lib/libz.so.1".into()];
        facts.process.as_mut().unwrap().on_disk_build_id = Some("7f96c30d".into());
        assert_eq!(
            only(&facts, &policy(), RULE.id).message,
            "pid 900 runs libraries that were replaced: /usr/lib/libssl.so.3 and 1 more"
        );
        facts.process.as_mut().unwrap().replaced.clear();
        facts.process.as_mut().unwrap().on_disk_build_id = None;
        facts.process.as_mut().unwrap().deleted = false;
        facts.process.as_mut().unwrap().same_file = None;
        assert_not_checked(&facts, &policy(), RULE.id);
        // Two names of one file need no build-id to be the same.
        facts.process.as_mut().unwrap().same_file = Some(true);
        assert_passed(&facts, &policy(), RULE.id);
        facts.problems.push(Problem::notice(Problem::PROCESS_ENDED, "it ended"));
        assert_not_checked(&facts, &policy(), RULE.id);
    }
}
