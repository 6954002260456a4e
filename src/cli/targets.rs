//! From the targets named on the command line to audited ones.

use super::expand::Expanded;
use super::interrupt::Interrupt;
use super::list;
use super::progress::Progress;
use super::{Format, INCOMPLETE, INTERRUPTED, complain, processes};
use crate::audit::group::Group;
use crate::audit::{self, Options};
use crate::facts::{Facts, Origin, Problem, Status};
use crate::image::companion;
use crate::limits::Limits;
use crate::parallel;
use crate::report::Summary;
use crate::target::libraries::Resolver;
use crate::target::{Subject, process};
use anyhow::{Context, bail};
use clap::Args;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to audit and where to look for what belongs to it.
#[derive(Debug, Default, Args)]
pub(super) struct TargetArguments {
    /// ELF files, archives, packages, images, directories, pid:N, the text of `nginx -V`, or - for standard input
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
    pub(super) root: Option<PathBuf>,
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
    /// Follow `DT_NEEDED` and nginx dynamic modules, and audit what is found, too
    #[arg(long)]
    libraries: bool,
    /// Targets audited at the same time, or threads for a single one (default: one a processor)
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Raise or lower a limit, such as section-bytes=2G (docs/limits.md lists them)
    #[arg(long, value_name = "NAME=VALUE")]
    limit: Vec<String>,
    /// Unreadable files in a directory do not make the exit status 2
    #[arg(long)]
    pub(super) ignore_unreadable: bool,
    /// A directory without ELF files does not make the exit status 2
    #[arg(long)]
    pub(super) allow_empty: bool,
}

/// What a run came to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Counts.
    pub summary: Summary,
    /// Something could not be audited: exit status 2.
    pub incomplete: bool,
    /// A signal came before all was audited: exit status 130. In the results, targets that were not audited any more are
    /// failed ones.
    pub interrupted: bool,
}

/// What one piece of work came to.
struct Outcome<T> {
    results: Vec<T>,
    /// Lines for standard error.
    notes: Vec<String>,
    summary: Summary,
    incomplete: bool,
    interrupted: bool,
    /// What to show as progress.
    name: String,
}

/// One piece of work: a target of the command line, or a line of a list.
enum Work {
    One(usize),
    Line(Result<PathBuf, String>),
}

/// Audits one file with default options.
pub(super) fn audit_one(path: &Path) -> Facts {
    audit::audit(&Subject::new(path, Origin::File), &Options::default())
}

/// Audits what one name on the command line stands for, with default options; and the exit status, where something was not
/// audited.
pub(super) fn audit_named(path: &Path, limits: &[String]) -> anyhow::Result<(Vec<Facts>, Option<u8>)> {
    let arguments = TargetArguments {
        targets: vec![path.to_path_buf()],
        limit: limits.to_vec(),
        ..TargetArguments::default()
    };
    let mut targets = Vec::new();
    let tally = arguments.audit(
        true,
        |facts| facts,
        |facts| {
            targets.push(facts);
            ControlFlow::Continue(())
        },
    )?;
    Ok((targets, tally.status()))
}

/// Audits the one program of a package that has a name of this last component, which a link may give it, with default options.
pub(super) fn audit_linked(path: &Path, last: &str, limits: Limits) -> Option<Facts> {
    let found = TargetArguments::default().linked(path.to_path_buf(), last, &limits);
    match found.as_slice() {
        [one] if one.refused.is_none() => Some(audit::audit(one, &Options { limits, ..Options::default() })),
        _ => None,
    }
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

    /// Audits all targets. Of each, `finish` makes the result, on the thread that audited it; `sink` gets the results
    /// in the order of the targets, whatever the threads do, as soon as those before it are there. Only what waits for
    /// its turn is held in memory. An error of `sink` ends the run.
    pub fn audit<T: Send>(
        &self,
        quiet: bool,
        finish: impl Fn(Facts) -> T + Sync,
        mut sink: impl FnMut(T) -> ControlFlow<anyhow::Error>,
    ) -> anyhow::Result<Tally> {
        self.validate()?;
        let mut options = self.options()?;
        let jobs = parallel::jobs(self.jobs);
        let mut progress = Progress::new(quiet);
        let mut tally = Tally::default();
        let names: Vec<PathBuf> = self
            .targets
            .iter()
            .cloned()
            .chain(self.pid.iter().map(|pid| process::target_name(*pid)))
            .collect();
        let mut named = self.expand(names, jobs, &options.limits, &mut progress);
        let mut lists = list::open(self.files_from.as_deref(), self.files0_from.as_deref())?;
        if let Some(pattern) = &self.processes {
            named.incomplete |= processes::all(
                pattern,
                self.allow_empty,
                &options.limits,
                &mut named.subjects,
                &mut named.summary,
            )?;
        }
        // A target that is alone has the processors that others do not need.
        if named.subjects.len() == 1 && lists.is_none() && !self.libraries {
            options.workers = parallel::workers(jobs);
        }
        let group = Group::of(std::mem::take(&mut named.subjects), &options, jobs);
        let known = (lists.is_none()).then_some(group.len() as u64);
        progress.clear();
        tally.take(&named, &group);
        // Of a single target there is nothing to print before it is complete.
        let interrupt = if known == Some(1) && !self.libraries {
            None
        } else {
            Some(Interrupt::watch().context("signals cannot be handled")?)
        };
        if let (Some(list), Some(interrupt)) = (&mut lists, &interrupt) {
            list.ends_with(interrupt.wake().context("signals cannot be handled")?);
        }
        let came = || interrupt.as_ref().is_some_and(Interrupt::came);
        let lines_left = lists.into_iter().flatten().take_while(|_| !came());
        let work = (0..group.len()).map(Work::One).chain(lines_left.map(Work::Line));
        let mut lines = 0u64;
        let mut take = |outcome: Outcome<T>| {
            progress.clear();
            for note in &outcome.notes {
                complain(note);
            }
            tally.add(&outcome);
            for result in outcome.results {
                sink(result)?;
            }
            progress.tick(&outcome.name, tally.summary.targets, known);
            ControlFlow::Continue(())
        };
        let mut flow = parallel::ordered(
            if known == Some(1) { 1 } else { jobs },
            work.inspect(|work| lines += u64::from(matches!(work, Work::Line(_)))),
            |work| match work {
                Work::One(index) if came() => left_out(&group, index, &finish),
                Work::One(index) => self.one_of(&group, index, &finish),
                Work::Line(line) => self.line(line, &options, &finish),
            },
            &mut take,
        );
        let libraries = Group::of(group.libraries(), &options, jobs);
        if flow.is_continue() && !libraries.is_empty() {
            let work = 0..libraries.len();
            let one = |index| {
                if came() {
                    left_out(&libraries, index, &finish)
                } else {
                    self.one_of(&libraries, index, &finish)
                }
            };
            flow = parallel::ordered(jobs, work, one, &mut take);
        }
        progress.clear();
        if let ControlFlow::Break(error) = flow {
            return Err(error);
        }
        // A signal after the last target changes nothing.
        let list_cut = self.has_list() && came();
        tally.interrupted |= list_cut;
        if self.has_list() && !list_cut && lines == 0 && tally.summary.targets == 0 && !self.allow_empty {
            complain("the list of targets is empty");
            tally.incomplete = true;
        }
        Ok(tally)
    }

    /// Audits what a line of a list stands for. It is no part of a group: a list may name the builds of a whole fleet,
    /// and a module of one host says nothing about the server of another.
    fn line<T>(
        &self,
        line: Result<PathBuf, String>,
        options: &Options,
        finish: &(impl Fn(Facts) -> T + Sync),
    ) -> Outcome<T> {
        let name = match line {
            Ok(name) => name,
            Err(why) => {
                let mut outcome = Outcome::new(String::new());
                outcome.notes.push(why);
                outcome.incomplete = true;
                return outcome;
            }
        };
        let mut outcome = Outcome::new(name.display().to_string());
        let mut expanded = self.expand(vec![name], 1, &options.limits, &mut Progress::new(true));
        let group = Group::of(std::mem::take(&mut expanded.subjects), options, 1);
        outcome.notes = expanded.notes;
        outcome.summary = expanded.summary;
        outcome.summary.skipped += group.dropped();
        outcome.incomplete = expanded.incomplete;
        let libraries = Group::of(self.audit_all(&group, &mut outcome, finish), options, 1);
        self.audit_all(&libraries, &mut outcome, finish);
        outcome
    }

    /// Audits all of a group; gives the libraries that it needs.
    fn audit_all<T>(
        &self,
        group: &Group,
        outcome: &mut Outcome<T>,
        finish: &impl Fn(Facts) -> T,
    ) -> Vec<Subject> {
        for index in 0..group.len() {
            outcome.add(group, index, self.ignore_unreadable, finish);
        }
        group.libraries()
    }

    fn one_of<T>(&self, group: &Group, index: usize, finish: &impl Fn(Facts) -> T) -> Outcome<T> {
        let name = group.subjects().get(index).map(Subject::shown).unwrap_or_default();
        let mut outcome = Outcome::new(name);
        outcome.add(group, index, self.ignore_unreadable, finish);
        outcome
    }

    fn validate(&self) -> anyhow::Result<()> {
        let none = self.targets.is_empty() && self.pid.is_empty() && self.processes.is_none();
        if none && !self.has_list() {
            bail!("no target given; name a file, a directory, pid:N, or - for standard input");
        }
        let stdin = |path: &Path| path.as_os_str() == "-";
        let listed = [&self.files_from, &self.files0_from].into_iter().flatten().any(|path| stdin(path));
        if listed && self.targets.iter().any(|path| stdin(path)) {
            bail!("standard input cannot be a target and the list of targets");
        }
        for path in &self.debug_file {
            if !path.is_file() {
                bail!("{}: no such debug file", path.display());
            }
        }
        if let Some(path) = self.nginx_conf.as_ref().filter(|path| !path.is_file()) {
            bail!("{}: no such configuration file", path.display());
        }
        Ok(())
    }

    fn has_list(&self) -> bool {
        self.files_from.is_some() || self.files0_from.is_some()
    }

    fn options(&self) -> anyhow::Result<Options> {
        let limits = self.limits()?;
        let libraries = self.libraries.then(|| Arc::new(Resolver::new(self.root.as_deref(), &limits)));
        Ok(Options {
            limits,
            companions: companion::Options {
                root: self.root.clone(),
                debug_files: self.debug_file.clone(),
                debug_dirs: self.debug_dir.clone(),
                debuginfod: self.debuginfod,
                cache: if self.debuginfod { companion::client_cache() } else { companion::own_cache() },
                ..companion::Options::default()
            },
            nginx_conf: self.nginx_conf.clone(),
            libraries,
            workers: 1,
        })
    }
}

/// What becomes of a target after a signal.
fn left_out<T>(group: &Group, index: usize, finish: &impl Fn(Facts) -> T) -> Outcome<T> {
    let mut outcome = Outcome::new(String::new());
    if let Some(subject) = group.subjects().get(index) {
        let facts = audit::interrupted(subject);
        outcome.summary.count(facts.status);
        outcome.results.push(finish(facts));
    }
    outcome.interrupted = true;
    outcome
}

impl<T> Outcome<T> {
    fn new(name: String) -> Self {
        Self {
            results: Vec::new(),
            notes: Vec::new(),
            summary: Summary::default(),
            incomplete: false,
            interrupted: false,
            name,
        }
    }

    /// Audits one target of a group.
    fn add(&mut self, group: &Group, index: usize, ignore: bool, finish: &impl Fn(Facts) -> T) {
        let Some(facts) = group.audit(index) else { return };
        let may_end = group.subjects().get(index).is_some_and(|subject| subject.may_end);
        let lost = |problem: &&Problem| match problem.code.as_str() {
            "missing-library" => true,
            Problem::LIBRARIES_UNKNOWN => group.follows_libraries(),
            Problem::PROCESS_ENDED => group.follows_libraries() && !may_end,
            _ => false,
        };
        for problem in facts.problems.iter().filter(lost) {
            // What was asked for and is not there was not audited.
            self.incomplete |= !ignore;
            self.notes.push(format!("{}: {}", crate::report::text::name(&facts), problem.message));
        }
        self.summary.count(facts.status);
        if facts.status == Status::Failed {
            self.incomplete = true;
            self.notes.push(super::failure(&facts));
        }
        self.results.push(finish(facts));
    }
}

impl Tally {
    fn take(&mut self, expanded: &Expanded, group: &Group) {
        for note in &expanded.notes {
            complain(note);
        }
        self.summary = expanded.summary;
        self.summary.skipped += group.dropped();
        self.incomplete |= expanded.incomplete;
    }

    fn add<T>(&mut self, outcome: &Outcome<T>) {
        self.summary.add(outcome.summary);
        self.incomplete |= outcome.incomplete;
        self.interrupted |= outcome.interrupted;
    }

    /// The exit status, where something was not audited.
    pub fn status(&self) -> Option<u8> {
        if self.interrupted { Some(INTERRUPTED) } else { self.incomplete.then_some(INCOMPLETE) }
    }

    /// People are told the number of targets that were not audited any more, and not the name of each. Gives the words
    /// for the end of their report. In other formats they stand among the targets, as failed.
    pub fn leave_out<T: AsRef<Facts>>(&self, targets: &mut Vec<T>, format: Format) -> String {
        if !self.interrupted {
            return String::new();
        }
        let left_out = |target: &T| audit::is_interrupted(target.as_ref());
        let count = targets.iter().filter(|target| left_out(target)).count();
        let words = if count > 0 {
            format!("interrupted: {count} of {} targets were not audited", self.summary.targets)
        } else {
            "interrupted: the rest of the list was not audited".to_owned()
        };
        complain(&words);
        if format != Format::Text {
            return String::new();
        }
        targets.retain(|target| !left_out(target));
        format!("INCOMPLETE  {words}\n")
    }
}
