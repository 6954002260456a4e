//! What is said of a running program beside what its file says.

use super::{GREEN, Options, YELLOW, labelled, paint, terminal};
use crate::facts::{Facts, Process};
use crate::wording::plural;
use std::fmt::Write as _;

/// The name under which a target is shown: of a process its id, what it is, and its program.
pub(super) fn title(facts: &Facts) -> String {
    let Some(process) = &facts.process else { return super::name(facts) };
    let mut text = format!("pid {} {}", process.pid, role(process));
    if process.children > 0 {
        let word = if process.command.starts_with("nginx:") { "worker" } else { "child" };
        let count = match (word, process.children) {
            ("child", count) if count > 1 => format!("{count} children"),
            (word, count) => plural(count as usize, word),
        };
        let _ = write!(text, ", {count}");
    }
    if let Some(exe) = &process.exe {
        let _ = write!(text, "   {exe}");
    }
    text
}

/// `nginx master` of `nginx: master process /usr/sbin/nginx`, otherwise the program's base name.
fn role(process: &Process) -> String {
    let mut words = process.command.split(' ');
    let first = words.next().unwrap_or_default();
    if let (Some(title), Some(role), Some("process")) = (first.strip_suffix(':'), words.next(), words.next())
    {
        return format!("{title} {role}");
    }
    let path = process.exe.as_deref().unwrap_or(first);
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// Whether what runs is what is installed.
pub(super) fn installed(out: &mut String, facts: &Facts, options: Options) {
    if let Some(library) = &facts.library {
        let text = format!("library of {}, {}", library.needed_by, library.found_by.as_str());
        let name = library.name.rsplit('/').next().unwrap_or(&library.name);
        let _ = writeln!(out, "{}", terminal(&format!("{name}: {text}")));
    }
    let Some(process) = &facts.process else { return };
    let running = facts.elf.as_ref().and_then(|elf| elf.build_id.as_deref());
    let said = match (running, process.on_disk_build_id.as_deref()) {
        _ if process.same_file == Some(true) => paint(GREEN, "yes"),
        // Of a document that does not say it.
        (_, Some(_)) if !process.deleted => paint(GREEN, "yes"),
        (_, None) if !process.deleted => paint(YELLOW, "unknown, nothing is at its name from here"),
        (Some(running), Some(installed)) if running == installed => {
            paint(GREEN, "yes, the same build copied anew")
        }
        (_, Some(installed)) => paint(YELLOW, &terminal(&format!("no, build-id {installed} is installed"))),
        (_, None) if is_in_memory(process) => paint(YELLOW, "no file: it runs from memory (memfd)"),
        (_, None) => paint(YELLOW, "no, the file was deleted or replaced"),
    };
    let _ = writeln!(out, "running = installed file: {said}");
    if process.elsewhere {
        let text =
            format!("in /proc/{}/root, where names of files lead: a container or a chroot", process.pid);
        labelled(out, 0, "files", &text, options);
    }
    if !process.replaced.is_empty() {
        let list = process.replaced.join(" ");
        let _ =
            writeln!(out, "{}", paint(YELLOW, &terminal(&format!("replaced since it was started: {list}"))));
    }
    if options.verbose {
        labelled(out, 0, "command", &terminal(&process.command), options);
    }
}

/// Whether the program never had a file (`memfd_create(2)`).
fn is_in_memory(process: &Process) -> bool {
    process.exe.as_deref().is_some_and(|exe| exe.starts_with("/memfd:"))
}

/// What to do next with a process that was looked at alone: a build is best told by one that was good.
pub(super) fn next(out: &mut String, facts: &Facts, options: Options) {
    if let Some(process) = facts.process.as_ref().filter(|_| facts.library.is_none()) {
        labelled(out, 0, "next", &format!("flagaudit diff LAST-GOOD pid:{}", process.pid), options);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_by_what_it_does() {
        let process = |command: &str, exe: Option<&str>| Process {
            pid: 812,
            command: command.to_owned(),
            exe: exe.map(str::to_owned),
            deleted: false,
            on_disk_build_id: None,
            same_file: None,
            children: 8,
            replaced: Vec::new(),
            elsewhere: false,
        };
        assert_eq!(role(&process("nginx: master process /usr/sbin/nginx -g x", None)), "nginx master");
        assert_eq!(role(&process("/usr/bin/sleep 5", Some("/usr/bin/sleep"))), "sleep");
        assert_eq!(role(&process("redis: 6379", Some("/usr/bin/redis-server"))), "redis-server");
    }

    #[test]
    fn of_a_container_it_is_said_where_its_files_are() {
        let mut facts = crate::rules::testing::nginx(1, crate::compiler::Level::O2);
        let mut process = Process {
            pid: 812,
            command: "nginx: master process nginx".to_owned(),
            exe: Some("/usr/sbin/nginx".to_owned()),
            deleted: false,
            on_disk_build_id: None,
            same_file: Some(true),
            children: 0,
            replaced: Vec::new(),
            elsewhere: false,
        };
        let mut said = |elsewhere: bool| {
            process.elsewhere = elsewhere;
            facts.process = Some(process.clone());
            let mut out = String::new();
            installed(&mut out, &facts, Options { quiet: false, verbose: false, width: 80 });
            out
        };
        assert!(!said(false).contains("/proc/812/root"));
        assert!(said(true).contains("/proc/812/root, where names of files lead"));
    }
}
