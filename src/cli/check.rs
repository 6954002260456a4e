//! `flagaudit check`: the gate for CI.

use super::inspect::ListingArguments;
use super::{CLEAN, FINDINGS, Format, INCOMPLETE, OutputArguments, complain, known, output, targets};
use crate::facts::{Facts, Problem};
use crate::finding::{Finding, FindingStatus, PolicyPlace, Severity, WaiverRef};
use crate::image::document;
use crate::limits::Limits;
use crate::policy::dates;
use crate::policy::discover::{self, Discovery};
use crate::policy::target::{LoadedPolicy, TargetKey};
use crate::report::{CheckReport, Checked, PolicyRef, RuleDoc, Tool};
use crate::report::{github, html, json, junit, markdown, prometheus, sarif, text};
use crate::rules::{self, Verdict};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use jiff::civil::Date;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  flagaudit check objs/nginx                         by ./flagaudit.toml, else by builtin:release
  flagaudit check -p edge.toml -f github objs/nginx  by your policy, as GitHub annotations
  flagaudit check -p builtin:hardened build/         every program of a directory
  flagaudit check -f sarif -o audit.sarif build/     for code scanning; -f junit for a test report
  flagaudit check --baseline good.json objs/nginx    what is new since inspect -f json --units
  flagaudit check --processes '^nginx' -q            what runs on this host, a line a process

Exit status: 0 nothing at or above --fail-on, 1 at least one such finding, 2 not fully audited.";

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArguments {
    #[command(flatten)]
    targets: targets::TargetArguments,
    /// Policy file (TOML or JSON), or builtin:NAME; default: ./flagaudit.toml, else builtin:release
    #[arg(short, long, value_name = "FILE|builtin:NAME")]
    policy: Option<String>,
    /// Do not take ./flagaudit.toml
    #[arg(long)]
    no_config: bool,
    /// The least severity that makes the exit status 1
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = FailOn::Error)]
    fail_on: FailOn,
    /// A saved JSON of inspect or check: only findings that are new against it fail
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// The day waivers are judged on (default: today, UTC)
    #[arg(long, value_name = "YYYY-MM-DD")]
    today: Option<String>,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    listings: ListingArguments,
}

/// `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Error,
    Warning,
    Note,
}

impl FailOn {
    fn severity(self) -> Severity {
        match self {
            Self::Error => Severity::Error,
            Self::Warning => Severity::Warning,
            Self::Note => Severity::Note,
        }
    }
}

/// A judged target.
struct Judged {
    checked: Checked,
    /// Places in the policy that had a say.
    used: Vec<PolicyPlace>,
    /// Its line of NDJSON, where that is asked for.
    line: Result<String, serde_json::Error>,
}

/// Runs it.
pub(super) fn run(arguments: &CheckArguments) -> anyhow::Result<u8> {
    let today = match &arguments.today {
        None => dates::today(),
        Some(text) => dates::parse_date(text)
            .with_context(|| format!("--today {text}: not a date of the form YYYY-MM-DD"))?,
    };
    let policy = load(arguments)?;
    if !arguments.output.quiet {
        warn_of(&policy, today);
    }
    let limits = arguments.targets.limits()?;
    let read = |path| Baseline::read(path, &policy, today, &limits);
    let baseline = arguments.baseline.as_deref().map(read).transpose()?;
    let format = arguments.output.format;
    let listings = arguments.listings.listings(format);
    let judge = |mut facts: Facts| -> Judged {
        let key = TargetKey::of(&facts);
        let mut used: Vec<PolicyPlace> = policy.applied(&key);
        let judgement = rules::judge(&facts, &policy.for_target(&key), today);
        used.extend(judgement.used);
        let mut findings = judgement.findings;
        if let Some(baseline) = &baseline {
            baseline.mark(&mut findings);
        }
        let verdict = rules::verdict(facts.status, &findings, arguments.fail_on.severity());
        // What counts is kept before what is waived; the verdict is of all.
        let most = limits.findings;
        if findings.len() > most {
            let message = format!("{} findings, the worst {most} are kept", findings.len());
            facts.problems.push(Problem::notice("too-many-findings", message));
            findings.sort_by_key(|finding| std::cmp::Reverse((finding.counts(), finding.severity)));
            findings.truncate(most);
        }
        listings.trim(&mut facts);
        Judged { checked: Checked { facts, verdict, findings }, used, line: Ok(String::new()) }
    };
    let mut used: BTreeSet<PolicyPlace> = BTreeSet::new();
    let mut targets = Vec::new();
    let mut worst = Verdict::Pass;
    let mut lines =
        if format == Format::Ndjson { Some(output::Lines::open(&arguments.output)?) } else { None };
    let streamed = lines.is_some();
    let tally = arguments.targets.audit(
        arguments.output.quiet,
        |facts| {
            let mut judged = judge(facts);
            if streamed {
                judged.line = json::target_line(&judged.checked);
            }
            judged
        },
        |judged| {
            used.extend(judged.used);
            worst = worst.max(judged.checked.verdict);
            // A reader that has gone away changes no verdict: the rest is audited all the same.
            if let Some(lines) = &mut lines {
                return lines.take(judged.line, true);
            }
            targets.push(judged.checked);
            ControlFlow::Continue(())
        },
    )?;
    let used: Vec<PolicyPlace> = used.into_iter().collect();
    let setting = policy.base().rules.get("unused-policy-entry").map(|setting| setting.value);
    // What was not audited may use any entry of the policy.
    let policy_findings =
        if tally.interrupted { Vec::new() } else { rules::unused(&policy.entries(), &used, setting) };
    if policy_findings.iter().any(|f| f.counts() && f.severity >= arguments.fail_on.severity()) {
        worst = worst.max(Verdict::Fail);
    }
    if tally.status().is_some() {
        worst = Verdict::Error;
    }
    let left_out = tally.leave_out(&mut targets, format);
    let status = tally.status().unwrap_or_else(|| status(worst));
    let report = CheckReport {
        schema: "flagaudit/check/1".to_owned(),
        tool: Tool::this(),
        policy: PolicyRef {
            name: policy.name().to_owned(),
            path: policy.path().to_owned(),
            sha256: policy.sha256().to_owned(),
            evaluated_on: today.to_string(),
        },
        verdict: worst,
        targets,
        policy_findings,
        summary: tally.summary,
    };
    if let Some(lines) = lines {
        lines.end(&json::check_summary(&report)?)?;
        return Ok(status);
    }
    let mut rendered = match format {
        Format::Text => text::check(&report, output::text_options(&arguments.output)),
        Format::Json | Format::Ndjson => json::render(&report)?,
        Format::Sarif => sarif::check(&report, &rule_docs(), output::working_directory().as_deref())?,
        Format::Junit => junit::check(&report, arguments.fail_on.severity()),
        Format::Github => github::check(&report),
        Format::Markdown => markdown::check(&report),
        Format::Prometheus => prometheus::check(&report),
        Format::Html => html::check(&report)?,
    };
    rendered.push_str(&left_out);
    output::write(&arguments.output, &rendered)?;
    if format == Format::Github {
        output::append_job_summary(&github::summary(&report));
    }
    Ok(status)
}

/// The exit status of a verdict on the run.
fn status(worst: Verdict) -> u8 {
    match worst {
        Verdict::Pass => CLEAN,
        Verdict::Fail => FINDINGS,
        Verdict::Error => INCOMPLETE,
    }
}

/// The rules' documentation, as reports show it.
fn rule_docs() -> Vec<RuleDoc> {
    rules::TABLE
        .iter()
        .map(|rule| RuleDoc {
            id: rule.id.to_owned(),
            summary: rule.summary(),
            help_markdown: rule.doc(),
            severity: rule.severity,
        })
        .collect()
}

/// Says what of the policy is in vain, as `policy validate` does: an entry with a typing error forbids nothing, and who
/// only ever runs `check` would not learn of it. A policy that asks no level of the code says so, too.
fn warn_of(policy: &LoadedPolicy, today: Date) {
    let diagnostics = known::with(|known| crate::policy::validate(policy, known, today));
    if !diagnostics.is_empty() {
        known::print(&diagnostics);
    }
    if policy.base().optimization.minimum.is_none() {
        complain(&format!(
            "the policy {} names no minimum level, so unoptimized code passes; extends = \"builtin:release\" asks for O1",
            policy.path()
        ));
    }
}

fn load(arguments: &CheckArguments) -> anyhow::Result<LoadedPolicy> {
    let spec = match &arguments.policy {
        Some(spec) => spec.clone(),
        None if arguments.no_config => discover::FALLBACK.to_owned(),
        None => match discover::discover(Path::new("")) {
            Discovery::File(path) => path.display().to_string(),
            Discovery::Fallback => discover::FALLBACK.to_owned(),
            Discovery::Refused { notice, .. } => {
                complain(&notice);
                discover::FALLBACK.to_owned()
            }
        },
    };
    known::with(|known| crate::policy::load::load(&spec, known)).map_err(|diagnostics| {
        let (errors, _) = diagnostics.counts();
        known::print(&diagnostics);
        anyhow::anyhow!("the policy {spec} has {errors} error{}", if errors == 1 { "" } else { "s" })
    })
}

/// Findings that were there before.
struct Baseline {
    known: Vec<Finding>,
    /// What is said of a finding that is among them.
    reason: String,
}

impl Baseline {
    /// Reads a saved document. Of an `inspect` document the findings are those that the policy makes of it now.
    fn read(path: &Path, policy: &LoadedPolicy, today: Date, limits: &Limits) -> anyhow::Result<Self> {
        #[derive(serde::Deserialize)]
        struct Saved {
            schema: String,
            targets: Vec<serde_json::Value>,
        }
        let place = || format!("baseline {}", path.display());
        let wait = Some(document::PATIENCE);
        let bytes = document::read(path, limits.document_bytes, wait).with_context(place)?;
        let saved: Saved = serde_json::from_slice(&bytes).with_context(place)?;
        let mut known = Vec::new();
        let mut without_units = false;
        // A document of another kind is refused whatever it holds.
        let judged = match saved.schema.as_str() {
            "flagaudit/check/1" => true,
            "flagaudit/inspect/1" => false,
            other => bail!("{}: {other:?} is no document of inspect or check", place()),
        };
        for target in saved.targets {
            if judged {
                let findings = target.get("findings").cloned().unwrap_or_default();
                known.extend(serde_json::from_value::<Vec<Finding>>(findings).with_context(place)?);
            } else {
                let facts: Facts = serde_json::from_value(target).with_context(place)?;
                without_units |= facts.units.is_none() && facts.unit_count > 0;
                let policy = policy.for_target(&TargetKey::of(&facts));
                known.extend(rules::judge(&facts, &policy, today).findings);
            }
        }
        if without_units {
            complain(&format!(
                "{} was saved without units, so that what is found about units counts as new: save it by inspect -f json --units",
                place()
            ));
        }
        // What a waiver covered was accepted for no longer than the waiver holds.
        let accepted = |finding: &Finding| match (finding.status, &finding.waiver) {
            (FindingStatus::Waived, Some(waiver)) => waiver.expires.is_none(),
            _ => finding.counts(),
        };
        known.retain(accepted);
        Ok(Self { known, reason: format!("not new: it is in the baseline {}", path.display()) })
    }

    /// Takes from findings that are not new that they count. They stay in the report: one that vanishes would be taken for
    /// mended by services that keep alerts.
    fn mark(&self, findings: &mut [Finding]) {
        for finding in findings.iter_mut().filter(|finding| finding.counts()) {
            if !rules::is_new(finding, &self.known) {
                finding.status = FindingStatus::Waived;
                finding.waiver = Some(WaiverRef { reason: self.reason.clone(), owner: None, expires: None });
            }
        }
    }
}
