//! From processes to targets.

use super::complain;
use crate::facts::Origin;
use crate::image::Input;
use crate::limits::Limits;
use crate::report::Summary;
use crate::target::Subject;
use crate::target::process::{self, Absent};
use anyhow::Context;
use std::collections::HashMap;

/// Most processes named in one line on standard error.
const MOST_NAMED: usize = 5;

/// A process named by its number. One that cannot be read is a target that failed.
pub(super) fn by_number(pid: u32, limits: &Limits) -> Subject {
    match process::open(pid, limits) {
        Ok(mut running) => {
            process::count_children(&mut running);
            Subject::process(running)
        }
        Err(why) => Subject::refused(process::target_name(pid), Origin::Process, why.to_string()),
    }
}

/// All processes whose name matches, this one left out; true if that makes the run incomplete. Kernel threads, zombies
/// and processes that end meanwhile are no errors; those that may not be read are counted.
pub(super) fn all(
    pattern: &str,
    allow_empty: bool,
    limits: &Limits,
    subjects: &mut Vec<Subject>,
    summary: &mut Summary,
) -> anyhow::Result<bool> {
    let wanted = regex::Regex::new(pattern).with_context(|| format!("--processes {pattern:?}"))?;
    let mut running = Vec::new();
    // Processes that run the same file share the one that is held open: there may be more of them than files that a
    // process may have open.
    let mut inputs: HashMap<(u64, u64), Input> = HashMap::new();
    let mut refused: Vec<String> = Vec::new();
    let mut others = 0u64;
    for pid in process::list().context("/proc cannot be read")? {
        if pid == std::process::id() {
            continue;
        }
        let Some(name) = process::name(pid) else { continue };
        match process::open(pid, limits) {
            Ok(mut one) => {
                let file = one.place.file_name().map(|name| name.to_string_lossy().into_owned());
                if wanted.is_match(&name) || file.is_some_and(|file| wanted.is_match(&file)) {
                    one.input = inputs.entry(one.identity).or_insert(one.input).clone();
                    running.push(one);
                }
            }
            Err(Absent::Vanished | Absent::Zombie | Absent::KernelThread) => {}
            Err(_) if !wanted.is_match(&name) => {}
            Err(Absent::NotPermitted | Absent::Forbidden) => refused.push(format!("{pid} ({name})")),
            Err(why) => {
                others += 1;
                complain(&format!("pid:{pid} ({name}): {why}"));
            }
        }
    }
    if !refused.is_empty() {
        let shown = refused.get(..MOST_NAMED).unwrap_or(&refused).join(", ");
        let more = if refused.len() > MOST_NAMED { ", …" } else { "" };
        let count = refused.len();
        let word = if count == 1 { "process" } else { "processes" };
        let why = if process::may_trace() {
            format!("though CAP_SYS_PTRACE is in force ({})", process::FORBIDDEN)
        } else {
            "without CAP_SYS_PTRACE".to_owned()
        };
        let them = if count == 1 { "it" } else { "them" };
        complain(&format!(
            "{count} {word} may not be read {why}, and nothing is said of {them}: {shown}{more}"
        ));
    }
    summary.unreadable += refused.len() as u64 + others;
    let none = running.is_empty();
    if none && refused.is_empty() && others == 0 {
        complain("no running process matches");
        return Ok(!allow_empty);
    }
    let met = |running| Subject { may_end: true, ..Subject::process(running) };
    subjects.extend(process::group(running).into_iter().map(met));
    Ok(none)
}
