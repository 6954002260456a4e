//! From the targets named on the command line to audited ones.

use super::{complain, processes};
use crate::audit::{self, Options};
use crate::facts::{Facts, Kind, Origin, Status};
use crate::image::companion;
use crate::limits::Limits;
use crate::report::Summary;
use crate::target::{Subject, directory, package, process};
use anyhow::{Context, bail};
use clap::Args;
use rayon::prelude::*;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

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
    /// Unreadable files in a directory do not make the exit status 2
    #[arg(long)]
    ignore_unreadable: bool,
    /// A directory without ELF files does not make the exit status 2
    #[arg(long)]
    allow_empty: bool,
}

/// Everything audited.
pub(super) struct Audited {
    /// In the order named; a directory's files in the order of their paths.
    pub targets: Vec<Facts>,
    /// Counts.
    pub summary: Summary,
    /// Something could not be audited: exit status 2.
    pub incomplete: bool,
}

/// Audits one file with default options.
pub(super) fn audit_one(path: &Path) -> Facts {
    audit::audit(&Subject::new(path, Origin::File), &Options::default())
}

/// Audits what one name on the command line stands for, with default options.
pub(super) fn audit_named(path: &Path) -> anyhow::Result<Vec<Facts>> {
    let arguments = TargetArguments { targets: vec![path.to_path_buf()], ..TargetArguments::default() };
    Ok(arguments.audit()?.targets)
}

impl TargetArguments {
    /// Audits all targets.
    pub fn audit(&self) -> anyhow::Result<Audited> {
        let named = self.named()?;
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
                subjects.push(processes::by_number(pid));
            } else if path.is_dir() {
                incomplete |= self.walk(&path, &mut subjects, &mut summary);
            } else {
                subjects.push(Subject::new(path, Origin::File));
            }
        }
        if let Some(pattern) = &self.processes {
            incomplete |= processes::all(pattern, self.allow_empty, &mut subjects, &mut summary)?;
        }
        let options = Options {
            limits: Limits::default(),
            companions: companion::Options {
                root: self.root.clone(),
                debug_files: self.debug_file.clone(),
                debug_dirs: self.debug_dir.clone(),
                debuginfod: self.debuginfod,
                ..companion::Options::default()
            },
            nginx_conf: self.nginx_conf.clone(),
        };
        let subjects = self.open_packages(subjects, &options.limits, &mut summary, &mut incomplete);
        let mut targets = self.run(&subjects, &options)?;
        audit::hold_modules(&subjects, &mut targets, &options);
        let before = targets.len();
        drop_companions(&mut targets);
        summary.skipped += (before - targets.len()) as u64;
        for facts in &targets {
            summary.count(facts.status);
            incomplete |= facts.status == Status::Failed;
        }
        Ok(Audited { targets, summary, incomplete })
    }

    fn run(&self, subjects: &[Subject], options: &Options) -> anyhow::Result<Vec<Facts>> {
        // One target needs no pool: starting threads costs more than auditing a small file.
        if subjects.len() < 2 || self.jobs == Some(1) {
            return Ok(subjects.iter().map(|subject| audit::audit(subject, options)).collect());
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.jobs.unwrap_or(0))
            .build()
            .context("threads cannot be started")?;
        Ok(pool.install(|| subjects.par_iter().with_max_len(1).map(|s| audit::audit(s, options)).collect()))
    }

    /// Puts the programs of packages in the place of the packages.
    fn open_packages(
        &self,
        subjects: Vec<Subject>,
        limits: &Limits,
        summary: &mut Summary,
        incomplete: &mut bool,
    ) -> Vec<Subject> {
        let mut all = Vec::new();
        for subject in subjects {
            if subject.origin == Origin::Process || subject.refused.is_some() {
                all.push(subject);
                continue;
            }
            let name = subject.path.clone();
            match package::open(subject, limits) {
                Err(subject) => all.push(*subject),
                Ok(package) => {
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

    fn named(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut named = self.targets.clone();
        named.extend(self.pid.iter().map(|pid| process::target_name(*pid)));
        for (list, separator) in [(&self.files_from, b'\n'), (&self.files0_from, 0)] {
            let Some(path) = list else { continue };
            let mut bytes = Vec::new();
            if path.as_os_str() == "-" {
                std::io::stdin().lock().read_to_end(&mut bytes).context("standard input cannot be read")?;
            } else {
                bytes = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
            }
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
fn drop_companions(targets: &mut Vec<Facts>) {
    let is_debug = |facts: &Facts| facts.elf.as_ref().is_some_and(|elf| elf.kind == Kind::SeparateDebug);
    let id = |facts: &Facts| facts.elf.as_ref().and_then(|elf| elf.build_id.clone());
    let programs: HashSet<String> = targets.iter().filter(|facts| !is_debug(facts)).filter_map(id).collect();
    targets.retain(|facts| {
        let walked = matches!(facts.origin, Origin::Directory | Origin::Archive);
        !(walked && is_debug(facts) && id(facts).is_some_and(|id| programs.contains(&id)))
    });
}
