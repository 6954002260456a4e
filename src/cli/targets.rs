//! From the targets named on the command line to audited ones.

use super::interrupt::Interrupt;
use super::{Format, INCOMPLETE, INTERRUPTED, complain, processes};
use crate::audit::{self, Options};
use crate::facts::{Facts, Kind, Origin, Status};
use crate::image::{companion, document};
use crate::limits::Limits;
use crate::report::Summary;
use crate::target::{Subject, directory, package, process};
use anyhow::{Context, bail};
use clap::Args;
use rayon::prelude::*;
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// What to audit and where to look for what belongs to it.
#[derive(Debug, Default, Args)]
pub(super) struct TargetArguments {
    /// ELF files, archives, directories, the text of `nginx -V`, or - for standard input
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// Read targets from FILE, one a line; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "files0_from")]
    files_from: Option<PathBuf>,
    /// Read targets from FILE, NUL-separated; - is standard input
    #[arg(long, value_name = "FILE")]
    files0_from: Option<PathBuf>,
    /// A running process; the same as the target pid:N
    #[arg(long, value_name = "N")]
    pid: Vec<u32>,
    /// All running processes, or those whose name the regular expression matches
    #[arg(long, value_name = "NAME-REGEX", num_args = 0..=1, default_missing_value = "")]
    processes: Option<String>,
    /// Resolve debug files inside DIR and never outside
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// A separate debug file
    #[arg(long, value_name = "FILE")]
    debug_file: Vec<PathBuf>,
    /// A directory with separate debug files or .dwo files, besides the standard places
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// Allow asking debuginfod-find, if installed, for what is missing (uses the network)
    #[arg(long)]
    debuginfod: bool,
    /// Hold this nginx configuration, or a dump of nginx -T, against the build
    #[arg(long, value_name = "FILE")]
    nginx_conf: Option<PathBuf>,
    /// Targets audited at the same time (default: one a processor)
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Raise or lower a limit, such as section-bytes=2G (docs/limits.md lists them)
    #[arg(long, value_name = "NAME=VALUE")]
    limit: Vec<String>,
    /// Unreadable files in a directory do not make the exit status 2
    #[arg(long)]
    ignore_unreadable: bool,
    /// A directory without ELF files does not make the exit status 2
    #[arg(long)]
    allow_empty: bool,
}

/// Everything audited, and what was made of it.
pub(super) struct Audited<T> {
    /// In the order named; a directory's files in the order of their paths.
    pub targets: Vec<T>,
    /// Counts.
    pub summary: Summary,
    /// The exit status, where something was not audited: it could not be, or a signal came before.
    pub status: Option<u8>,
}

impl<T: AsRef<Facts>> Audited<T> {
    /// People are told the number of targets that were not audited any more, and not the name of each; gives the words.
    /// In other formats they stand among the targets, as failed.
    pub fn leave_out(&mut self, format: Format) -> String {
        let left_out = |target: &T| audit::is_interrupted(target.as_ref());
        let count = self.targets.iter().filter(|target| left_out(target)).count();
        if count == 0 {
            return String::new();
        }
        let words = format!("interrupted: {count} of {} targets were not audited", self.targets.len());
        complain(&words);
        if format != Format::Text {
            return String::new();
        }
        self.targets.retain(|target| !left_out(target));
        format!("INCOMPLETE  {words}\n")
    }
}

/// Most packages that are open at the same time: each is a file or two, and what it holds is on disk meanwhile.
const MOST_PACKAGES: usize = 32;

/// A target on its way.
enum Stage<T> {
    /// Nothing more is to be learned of it.
    Done(T),
    /// Of nginx: others are to be held against it, or it against others.
    Held(Box<(Subject, Facts)>),
}

/// Audits one file with default options.
pub(super) fn audit_one(path: &Path) -> Facts {
    audit::audit(&Subject::new(path, Origin::File), &Options::default())
}

/// Audits what one name on the command line stands for, with default options.
pub(super) fn audit_named(path: &Path, limits: &Limits) -> anyhow::Result<Vec<Facts>> {
    let arguments = TargetArguments { targets: vec![path.to_path_buf()], ..TargetArguments::default() };
    Ok(arguments.audit_within(limits, |facts| facts)?.targets)
}

/// The limits that `--limit` asks for.
pub(super) fn limits(settings: &[String]) -> anyhow::Result<Limits> {
    let mut limits = Limits::default();
    for setting in settings {
        limits.set(setting).map_err(|why| anyhow::anyhow!("--limit {setting}: {why}"))?;
    }
    Ok(limits)
}

impl TargetArguments {
    /// The limits in force.
    pub fn limits(&self) -> anyhow::Result<Limits> {
        limits(&self.limit)
    }

    /// Audits all targets. `finish` makes of each what is kept: it is called while others are still being audited, so that
    /// memory is bounded by the number of jobs and not by that of targets.
    pub fn audit<T: Send + AsRef<Facts>>(
        &self,
        finish: impl Fn(Facts) -> T + Sync,
    ) -> anyhow::Result<Audited<T>> {
        self.audit_within(&self.limits()?, finish)
    }

    fn audit_within<T: Send + AsRef<Facts>>(
        &self,
        limits: &Limits,
        finish: impl Fn(Facts) -> T + Sync,
    ) -> anyhow::Result<Audited<T>> {
        let named = self.named(limits)?;
        if named.is_empty() && self.processes.is_none() {
            bail!("no target given; name a file, a directory, pid:N, or - for standard input");
        }
        for path in &self.debug_file {
            if !path.is_file() {
                bail!("{}: no such debug file", path.display());
            }
        }
        if let Some(path) = self.nginx_conf.as_ref().filter(|path| !path.is_file()) {
            bail!("{}: no such configuration file", path.display());
        }
        let mut summary = Summary::default();
        let mut incomplete = false;
        let mut subjects = Vec::new();
        for path in named {
            if path.as_os_str() == "-" {
                subjects.push(Subject::new("<stdin>", Origin::Stdin));
            } else if let Some(pid) = process::pid_of(&path) {
                subjects.push(processes::by_number(pid, limits));
            } else if path.is_dir() {
                incomplete |= self.walk(&path, &mut subjects, &mut summary);
            } else {
                subjects.push(Subject::new(path, Origin::File));
            }
        }
        if let Some(pattern) = &self.processes {
            incomplete |= processes::all(pattern, self.allow_empty, limits, &mut subjects, &mut summary)?;
        }
        let options = Options {
            limits: limits.clone(),
            companions: companion::Options {
                root: self.root.clone(),
                debug_files: self.debug_file.clone(),
                debug_dirs: self.debug_dir.clone(),
                debuginfod: self.debuginfod,
                cache: if self.debuginfod { companion::client_cache() } else { companion::own_cache() },
                ..companion::Options::default()
            },
            nginx_conf: self.nginx_conf.clone(),
        };
        let mut runner = Runner::new(self.jobs, &options);
        let mut stages = Vec::new();
        let mut subjects = subjects.into_iter();
        loop {
            let batch = self.open_packages(&mut subjects, &options.limits, &mut summary, &mut incomplete);
            if batch.is_empty() {
                break;
            }
            runner.run(batch, &finish, &mut stages)?;
        }
        let interrupted = runner.left_out.load(Ordering::Relaxed).then_some(INTERRUPTED);
        let mut held: Vec<(&Subject, &mut Facts)> = stages
            .iter_mut()
            .filter_map(|stage| match stage {
                Stage::Held(held) => Some((&held.0, &mut held.1)),
                Stage::Done(_) => None,
            })
            .collect();
        audit::hold_modules(&mut held, &options);
        let mut targets: Vec<T> = stages
            .into_iter()
            .map(|stage| match stage {
                Stage::Held(held) => finish(held.1),
                Stage::Done(done) => done,
            })
            .collect();
        let before = targets.len();
        drop_companions(&mut targets);
        summary.skipped += (before - targets.len()) as u64;
        for target in &targets {
            summary.count(target.as_ref().status);
            incomplete |= target.as_ref().status == Status::Failed;
        }
        Ok(Audited { targets, summary, status: interrupted.or(incomplete.then_some(INCOMPLETE)) })
    }

    /// The next targets, the programs of packages in the place of the packages: so many that no more than
    /// [`MOST_PACKAGES`] are open.
    fn open_packages(
        &self,
        subjects: &mut impl Iterator<Item = Subject>,
        limits: &Limits,
        summary: &mut Summary,
        incomplete: &mut bool,
    ) -> Vec<Subject> {
        let mut all = Vec::new();
        let mut packages = 0;
        while packages < MOST_PACKAGES
            && let Some(subject) = subjects.next()
        {
            if subject.origin == Origin::Process || subject.refused.is_some() {
                all.push(subject);
                continue;
            }
            let name = subject.path.clone();
            match package::open(subject, limits) {
                Err(subject) => all.push(*subject),
                Ok(package) => {
                    packages += 1;
                    summary.skipped += package.skipped;
                    if package.subjects.is_empty() {
                        complain(&format!("{}: no ELF file in this package", name.display()));
                        *incomplete |= !self.allow_empty;
                    }
                    all.extend(package.subjects);
                }
            }
        }
        all
    }

    /// Walks a directory; true if that makes the run incomplete.
    fn walk(&self, root: &Path, subjects: &mut Vec<Subject>, summary: &mut Summary) -> bool {
        let walk = directory::walk(root);
        for (path, why) in &walk.unreadable {
            complain(&format!("{}: {why}", path.display()));
        }
        summary.skipped += walk.skipped;
        summary.unreadable += walk.unreadable.len() as u64;
        let empty = walk.found.is_empty();
        if empty {
            complain(&format!("{}: no ELF file in this directory", root.display()));
        }
        subjects.extend(walk.found.into_iter().map(|path| Subject::new(path, Origin::Directory)));
        (empty && !self.allow_empty) || (!walk.unreadable.is_empty() && !self.ignore_unreadable)
    }

    fn named(&self, limits: &Limits) -> anyhow::Result<Vec<PathBuf>> {
        let mut named = self.targets.clone();
        named.extend(self.pid.iter().map(|pid| process::target_name(*pid)));
        for (list, separator) in [(&self.files_from, b'\n'), (&self.files0_from, 0)] {
            let Some(path) = list else { continue };
            let most = limits.document_bytes;
            let bytes = if path.as_os_str() == "-" {
                document::all(std::io::stdin().lock(), most).context("standard input cannot be read")?
            } else {
                document::read(path, most, None)
                    .with_context(|| format!("{} cannot be read", path.display()))?
            };
            named.extend(
                bytes
                    .split(|&b| b == separator)
                    .filter(|line| !line.is_empty())
                    .map(|line| PathBuf::from(OsString::from_vec(line.to_vec()))),
            );
        }
        Ok(named)
    }
}

/// Drops separate debug files that a walk met beside the programs they belong to: they are part of what is known of
/// those, and no programs of their own.
fn drop_companions<T: AsRef<Facts>>(targets: &mut Vec<T>) {
    let is_debug = |facts: &Facts| facts.elf.as_ref().is_some_and(|elf| elf.kind == Kind::SeparateDebug);
    let id = |facts: &Facts| facts.elf.as_ref().and_then(|elf| elf.build_id.clone());
    let all = targets.iter().map(AsRef::as_ref);
    let programs: HashSet<String> = all.filter(|facts| !is_debug(facts)).filter_map(id).collect();
    targets.retain(|target| {
        let facts = target.as_ref();
        let walked = matches!(facts.origin, Origin::Directory | Origin::Archive);
        !(walked && is_debug(facts) && id(facts).is_some_and(|id| programs.contains(&id)))
    });
}

/// Audits targets in parallel, until a signal comes.
struct Runner<'a> {
    options: &'a Options,
    jobs: Option<usize>,
    pool: Option<rayon::ThreadPool>,
    interrupt: Option<Interrupt>,
    left_out: AtomicBool,
}

impl<'a> Runner<'a> {
    fn new(jobs: Option<usize>, options: &'a Options) -> Self {
        Self { options, jobs, pool: None, interrupt: None, left_out: AtomicBool::new(false) }
    }

    /// Audits these, and adds what became of them, in order.
    fn run<T: Send>(
        &mut self,
        subjects: Vec<Subject>,
        finish: &(impl Fn(Facts) -> T + Sync),
        stages: &mut Vec<Stage<T>>,
    ) -> anyhow::Result<()> {
        // Of a single target there is nothing to print before it is complete.
        if subjects.len() > 1 && self.interrupt.is_none() {
            self.interrupt = Some(Interrupt::watch().context("signals cannot be handled")?);
        }
        let (interrupt, left_out, options) = (&self.interrupt, &self.left_out, self.options);
        let one = |subject: Subject| {
            if interrupt.as_ref().is_some_and(Interrupt::came) {
                left_out.store(true, Ordering::Relaxed);
                return Stage::Done(finish(audit::interrupted(&subject)));
            }
            let facts = audit::audit(&subject, options);
            if facts.nginx.is_some() {
                Stage::Held(Box::new((subject, facts)))
            } else {
                Stage::Done(finish(facts))
            }
        };
        // One target needs no pool: starting threads costs more than auditing a small file.
        if subjects.len() < 2 || self.jobs == Some(1) {
            stages.extend(subjects.into_iter().map(one));
            return Ok(());
        }
        if self.pool.is_none() {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(self.jobs.unwrap_or(0));
            self.pool = Some(builder.build().context("threads cannot be started")?);
        }
        let pool = self.pool.as_ref().context("threads cannot be started")?;
        let done: Vec<Stage<T>> =
            pool.install(|| subjects.into_par_iter().with_max_len(1).map(one).collect());
        stages.extend(done);
        Ok(())
    }
}
