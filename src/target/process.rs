//! Running programs: their bytes are those of `/proc/N/exe`, whatever became of the file they were started from.
//!
//! The link's text is a name and no more (proc(5), `/proc/pid/exe`): the file may be deleted, replaced, in another mount
//! namespace, or in memory only. Opening the link itself gives the running program in all these cases. Whether the
//! file at that name is still the same one is told by device and inode, because a name may really end in " (deleted)".

use super::OpenError;
use crate::facts::Process;
use crate::image::confined::open_regular;
use crate::image::identity::hexadecimal;
use crate::image::{Image, Input, notes};
use crate::limits::Limits;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

mod installed;
mod loader;
pub(super) use installed::{DELETED, opened, read};

/// Flag of a kernel thread in `/proc/N/stat` (`PF_KTHREAD` in `include/linux/sched.h`).
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Longest command line kept, in bytes.
const MOST_COMMAND: u64 = 4096;
/// Longest chain of parents followed when processes are grouped.
const MOST_PARENTS: usize = 64;

/// How a process was started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// `/proc/N/cmdline`, its first bytes.
    pub own: Vec<u8>,
    /// The same of its parent, if that one runs the same file.
    pub parent: Option<Vec<u8>>,
    /// The directory it is in: where it was started, unless it went elsewhere since.
    pub directory: Option<PathBuf>,
}

/// A running program, its file held open.
#[derive(Debug, Clone)]
pub struct Running {
    /// For the document.
    pub process: Process,
    /// Name of the process (`comm`, at most 15 bytes).
    pub name: String,
    /// The parent's id.
    pub parent: u32,
    /// See [`started`].
    pub started: u64,
    /// The program's bytes.
    pub input: Input,
    /// Device and inode of the program's file: equal ones are one build.
    pub identity: (u64, u64),
    /// Where the program lies inside `root`, as far as its name tells.
    pub place: PathBuf,
    /// The root file system of the process; `None` if it is this program's own.
    pub root: Option<PathBuf>,
    /// How it was started.
    pub command_line: CommandLine,
}

/// Why a process has no program that could be audited.
#[derive(Debug, thiserror::Error)]
pub enum Absent {
    /// No process has this id (any more).
    #[error("no such process")]
    Vanished,
    /// It has ended and waits for its parent.
    #[error("a zombie: it has ended, and its program can no longer be read")]
    Zombie,
    /// A thread of the kernel.
    #[error("a kernel thread: it has no program file")]
    KernelThread,
    /// Not permitted.
    #[error(
        "not permitted: reading another user's program needs CAP_SYS_PTRACE (run as that user or as root)"
    )]
    NotPermitted,
    /// Not permitted to those who may read all others.
    #[error("not permitted, though CAP_SYS_PTRACE is in force: {FORBIDDEN}")]
    Forbidden,
    /// The dynamic loader was started by name, and the program that it runs cannot be had.
    #[error(
        "its file is the dynamic loader, and the program that this runs cannot be read ({0}): audit that program's file"
    )]
    BehindLoader(String),
    /// Anything else.
    #[error("{0}")]
    Other(#[from] OpenError),
}

/// Why a process may not be read that others may not forbid.
pub const FORBIDDEN: &str = "a security module or another user namespace forbids it";

/// Where processes are listed.
fn proc_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// Ids of all processes, ascending.
pub fn list() -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        // A process may end while the list is read.
        let Ok(entry) = entry else { continue };
        if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            pids.push(pid);
        }
    }
    pids.sort_unstable();
    Ok(pids)
}

/// What `/proc/N/stat` says (`proc_pid_stat(5)`).
struct Stat {
    name: String,
    state: u8,
    parent: u32,
    flags: u64,
    start: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let bytes = std::fs::read(proc_of(pid).join("stat")).ok()?;
    parse_stat(&bytes)
}

/// The name stands in parentheses and may hold any byte, parentheses too: it ends at the last one.
fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let from = memchr::memchr(b'(', bytes)?;
    let to = memchr::memrchr(b')', bytes)?;
    let name = bytes.get(from.checked_add(1)?..to)?;
    let rest = std::str::from_utf8(bytes.get(to.checked_add(1)?..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Stat {
        name: String::from_utf8_lossy(name).into_owned(),
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        flags: fields.get(6)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

/// Whether this program has `CAP_SYS_PTRACE` in force; what it may not read all the same is forbidden by something else.
pub fn may_trace() -> bool {
    /// The capability's number (`include/uapi/linux/capability.h`).
    const SYS_PTRACE: u32 = 19;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << SYS_PTRACE) != 0)
}

/// The name of a process, which anybody may read; `None` if there is no such process.
pub fn name(pid: u32) -> Option<String> {
    stat(pid).map(|stat| stat.name)
}

/// When a process was started, in clock ticks since the system was; with the id it tells a process from another that has
/// got its id later. `None` if there is no such process.
pub fn started(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start)
}

/// Opens the program of a process and learns what became of its file.
pub fn open(pid: u32, limits: &Limits) -> Result<Running, Absent> {
    let before = stat(pid).ok_or(Absent::Vanished)?;
    if matches!(before.state, b'Z' | b'X' | b'x') {
        return Err(Absent::Zombie);
    }
    if before.flags & KERNEL_THREAD != 0 {
        return Err(Absent::KernelThread);
    }
    let folder = proc_of(pid);
    let link = folder.join("exe");
    let opened = open_regular(&link).and_then(|file| {
        let found = file.metadata()?;
        Ok((Input::file(file)?, (found.dev(), found.ino()), std::fs::read_link(&link)?))
    });
    // An id may be given to another process at any time: what was opened counts only if it is still the same one.
    let after = stat(pid);
    let same = after.as_ref().is_some_and(|after| after.start == before.start);
    if !same {
        return Err(Absent::Vanished);
    }
    let (input, identity, text) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            return Err(match error.kind() {
                io::ErrorKind::PermissionDenied if may_trace() => Absent::Forbidden,
                io::ErrorKind::PermissionDenied => Absent::NotPermitted,
                io::ErrorKind::NotFound
                    if after.is_some_and(|stat| matches!(stat.state, b'Z' | b'X' | b'x')) =>
                {
                    Absent::Zombie
                }
                _ => Absent::Other(OpenError::Io(error)),
            });
        }
    };
    let root = folder.join("root");
    let (own_mounts, own_root) = (is_own_mounts(&folder), is_own_root(&folder));
    let line = command_line(&folder).unwrap_or_default();
    let parent =
        runs_the_same(before.parent, identity).then(|| command_line(&proc_of(before.parent))).flatten();
    let directory = std::fs::read_link(folder.join("cwd")).ok();
    let lines = [Some(&line), parent.as_ref()].into_iter().flatten();
    let mut file = installed::named_file(&text, identity, &root, own_mounts, lines, directory.as_deref());
    let (mut input, mut identity) = (input, identity);
    if loader::is_loader(&file.place) {
        let found = loader::program(pid, before.start, identity, &root, &line, directory.as_deref());
        let loaded = found.unwrap_or_else(|| Err("which one is not told".to_owned()));
        let loaded = loaded.map_err(Absent::BehindLoader)?;
        (input, identity) = (loaded.input.clone(), loaded.identity);
        file = loaded.into();
    }
    Ok(Running {
        process: Process {
            pid,
            command: shown(&line).unwrap_or_else(|| before.name.clone()),
            exe: Some(file.started_as.as_ref().unwrap_or(&file.place).to_string_lossy().into_owned()),
            deleted: file.deleted,
            on_disk_build_id: file.on_disk.and_then(|input| build_id(input, limits)),
            same_file: file.same,
            children: 0,
            replaced: Vec::new(),
            elsewhere: !own_root,
        },
        name: before.name,
        parent: before.parent,
        started: before.start,
        input,
        identity,
        place: file.place,
        root: if own_root { None } else { Some(root) },
        command_line: CommandLine { own: line, parent, directory },
    })
}

fn runs_the_same(pid: u32, identity: (u64, u64)) -> bool {
    std::fs::metadata(proc_of(pid).join("exe")).is_ok_and(|found| (found.dev(), found.ino()) == identity)
}

/// The command line as it stands; `None` where it may not be read.
fn command_line(folder: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(folder.join("cmdline")).ok()?.take(MOST_COMMAND).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The command line, its arguments apart by blanks; `None` where there is none.
fn shown(line: &[u8]) -> Option<String> {
    let bytes: Vec<u8> = line.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    let text = String::from_utf8_lossy(bytes.trim_ascii()).into_owned();
    (!text.is_empty()).then_some(text)
}

/// Whether a process sees the same files as this program does: same mounts, same root.
fn is_own_root(folder: &Path) -> bool {
    let link = |path: &Path| std::fs::read_link(path).ok();
    is_own_mounts(folder) && link(&folder.join("root")) == link(Path::new("/proc/self/root"))
}

/// Whether a process sees the same mounts, though it may have another root (`chroot`).
fn is_own_mounts(folder: &Path) -> bool {
    let link = |path: &Path| std::fs::read_link(path).ok();
    let mounts = link(&folder.join("ns/mnt"));
    mounts.is_some() && mounts == link(Path::new("/proc/self/ns/mnt"))
}

fn build_id(input: Input, limits: &Limits) -> Option<String> {
    let image = Image::open(input, limits).ok()?;
    notes::build_id(&image).map(|id| hexadecimal(&id))
}

/// Puts processes that run the same file as a process they descend from under that one: an nginx master and its
/// workers are one target. Two masters of which each has its own file are two.
pub fn group(running: Vec<Running>) -> Vec<Running> {
    let known: HashMap<u32, (u32, (u64, u64))> =
        running.iter().map(|one| (one.process.pid, (one.parent, one.identity))).collect();
    let head = |one: &Running| -> u32 {
        let mut at = one.process.pid;
        let mut parent = one.parent;
        for _ in 0..MOST_PARENTS {
            match known.get(&parent) {
                Some((next, identity)) if *identity == one.identity && parent != at => {
                    at = parent;
                    parent = *next;
                }
                _ => break,
            }
        }
        at
    };
    let mut children: HashMap<u32, u64> = HashMap::new();
    let mut heads = Vec::new();
    for one in running {
        let head = head(&one);
        if head == one.process.pid {
            heads.push(one);
        } else {
            *children.entry(head).or_default() += 1;
        }
    }
    for one in &mut heads {
        one.process.children = children.get(&one.process.pid).copied().unwrap_or_default();
    }
    heads
}

/// Counts the processes that run the same file and were started by this one. Those that may not be read are not
/// counted.
pub fn count_children(of: &mut Running) {
    let pids = list().unwrap_or_default();
    let mine = |pid: &&u32| stat(**pid).is_some_and(|stat| stat.parent == of.process.pid);
    let same = |pid: &&u32| runs_the_same(**pid, of.identity);
    of.process.children = pids.iter().filter(mine).filter(same).count() as u64;
}

/// The id in `pid:N`; `None` if a target is not named so.
pub fn pid_of(target: &Path) -> Option<u32> {
    target.to_str()?.strip_prefix("pid:")?.parse().ok()
}

/// The name of a process as a target.
pub fn target_name(pid: u32) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(format!("pid:{pid}").into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_one_name() {
        let line = b"812 (a) b (c)) S 1 812 812 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.name.as_str(), stat.state, stat.parent), ("a) b (c)", b'S', 1));
        assert_eq!((stat.flags, stat.start), (4_194_560, 4711));
        assert!(parse_stat(b"812 (a").is_none());
        assert!(parse_stat(b"").is_none());
        assert!(parse_stat(b"1 )(").is_none());
    }

    #[test]
    fn targets_named_by_number() {
        assert_eq!(pid_of(Path::new("pid:812")), Some(812));
        for other in ["pid:", "pid:x", "812", "./pid:812", "pid:-1", "pid:99999999999"] {
            assert_eq!(pid_of(Path::new(other)), None, "{other}");
        }
        assert_eq!(target_name(812), Path::new("pid:812"));
    }

    fn running(pid: u32, parent: u32, inode: u64) -> Running {
        Running {
            process: Process {
                pid,
                command: "nginx".into(),
                exe: None,
                deleted: false,
                on_disk_build_id: None,
                same_file: None,
                children: 0,
                replaced: Vec::new(),
                elsewhere: false,
            },
            name: "nginx".into(),
            parent,
            started: 0,
            input: Input::memory(Vec::new()),
            identity: (1, inode),
            place: PathBuf::new(),
            root: None,
            command_line: CommandLine::default(),
        }
    }

    #[test]
    fn workers_are_counted_under_their_master_and_two_builds_are_two() {
        // An old master with two workers has started a new one of another build, which has one.
        let all = vec![
            running(10, 1, 5),
            running(11, 10, 5),
            running(12, 10, 5),
            running(20, 10, 6),
            running(21, 20, 6),
        ];
        let heads = group(all);
        let seen: Vec<(u32, u64)> = heads.iter().map(|one| (one.process.pid, one.process.children)).collect();
        assert_eq!(seen, [(10, 2), (20, 1)]);
        // A circle of parents, which cannot be, ends.
        assert!(group(vec![running(1, 2, 5), running(2, 1, 5)]).len() <= 2);
    }

    #[test]
    fn this_process_is_read() {
        let me = open(std::process::id(), &Limits::default()).unwrap();
        assert!(!me.process.deleted && me.input.len() > 1000);
        assert_eq!(me.root, None);
        assert!(list().unwrap().contains(&std::process::id()));
    }
}
