//! `flagaudit diff`.

use super::{CLEAN, FINDINGS, Format, INCOMPLETE, OutputArguments, complain, output, targets};
use crate::diff;
use crate::facts::{Facts, Status};
use crate::image::{confined, document};
use crate::report::escape::json_controls;
use crate::report::{json, text};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use std::io::Read;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  flagaudit diff good/nginx objs/nginx                       what changed, the worst first
  flagaudit diff good.json objs/nginx                        against a saved inspect -f json
  flagaudit diff --fail-on regression good/nginx objs/nginx  a gate: 1 only if something got worse

Exit status: 0 compared, 1 by --exit-code or --fail-on, 2 if a side could not be audited.";

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The baseline: a target, or the saved JSON of inspect or check
    old: PathBuf,
    /// The candidate: a target, or the saved JSON of inspect or check
    new: PathBuf,
    /// Exit with 1 if anything changed
    #[arg(long)]
    exit_code: bool,
    /// Exit with 1 if something changed for the worse
    #[arg(long, value_enum, value_name = "WHAT")]
    fail_on: Option<FailOn>,
    /// Raise or lower a limit, such as section-bytes=2G (docs/limits.md lists them)
    #[arg(long, value_name = "NAME=VALUE")]
    limit: Vec<String>,
    #[command(flatten)]
    output: OutputArguments,
}

/// `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A change for the worse
    Regression,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<u8> {
    if !matches!(arguments.output.format, Format::Text | Format::Json | Format::Ndjson | Format::Markdown) {
        bail!("diff is printed as text, json, ndjson or markdown");
    }
    let limits = &arguments.limit;
    let (old, new) = (side(&arguments.old, limits)?, side(&arguments.new, limits)?);
    let saved = (old.saved, new.saved);
    let unaudited = old.unaudited.max(new.unaudited);
    let (old, new) = pair(old, new, limits)?;
    // Of what was audited now that was said already.
    for (facts, _) in [(&old, saved.0), (&new, saved.1)].iter().filter(|(_, saved)| *saved) {
        if facts.status == Status::Failed {
            complain(&super::failure(facts));
        }
    }
    if [&old, &new].iter().any(|facts| facts.status == Status::Failed) {
        return Ok(INCOMPLETE);
    }
    let report = diff::compare(&old, &new);
    let rendered = match arguments.output.format {
        Format::Json => json::render(&report)?,
        Format::Ndjson => json_controls(&serde_json::to_string(&report)?) + "\n",
        Format::Markdown => text::diff_markdown(&report),
        _ => text::diff(&report, output::text_options(&arguments.output)),
    };
    output::write(&arguments.output, &rendered)?;
    let fails = (arguments.exit_code && !report.same) || (arguments.fail_on.is_some() && report.regression);
    let lost = [&old, &new].iter().any(|facts| facts.status == Status::Partial);
    if lost {
        complain("not all of both sides could be read; what was lost cannot be compared");
    }
    Ok(unaudited.unwrap_or(if fails { FINDINGS } else { CLEAN }))
}

/// The targets of one side: one, or those of a saved document.
struct Side {
    name: PathBuf,
    targets: Vec<Facts>,
    /// From a saved document.
    saved: bool,
    /// The exit status, where something of this side was not audited.
    unaudited: Option<u8>,
}

fn side(path: &Path, limits: &[String]) -> anyhow::Result<Side> {
    let (targets, unaudited, saved) = match saved(path, targets::limits(limits)?.document_bytes)? {
        Some(targets) if targets.is_empty() => bail!("{}: the document has no target", path.display()),
        Some(targets) => (targets, None, true),
        None => {
            let (targets, unaudited) = targets::audit_named(path, limits)?;
            (targets, unaudited, false)
        }
    };
    Ok(Side { name: path.to_path_buf(), targets, saved, unaudited })
}

/// Takes one target of each side: the only one, or the one of the same name as the only one of the other side. The program of
/// a package may have that name by a link.
fn pair(old: Side, new: Side, limits: &[String]) -> anyhow::Result<(Facts, Facts)> {
    let base = |facts: &Facts| {
        let name = facts.member.as_deref().unwrap_or(&facts.path);
        name.rsplit('/').next().unwrap_or(name).to_owned()
    };
    let only = |side: &Side| if side.targets.len() == 1 { side.targets.first().map(base) } else { None };
    let (old_name, new_name) = (only(&old), only(&new));
    let pick = |side: Side, wanted: Option<String>| -> anyhow::Result<Facts> {
        let total = side.targets.len();
        let is_there = side.targets.iter().any(|facts| wanted.as_ref() == Some(&base(facts)));
        if let Some(wanted) = wanted.as_deref().filter(|_| total > 1 && !is_there && !side.saved)
            && let Some(facts) = targets::audit_linked(&side.name, wanted, targets::limits(limits)?)
        {
            return Ok(facts);
        }
        let matching = side
            .targets
            .into_iter()
            .filter(|facts| total == 1 || wanted.as_ref().is_some_and(|wanted| base(facts) == *wanted));
        let mut matching: Vec<Facts> = matching.collect();
        match (matching.pop(), matching.is_empty()) {
            (Some(facts), true) => Ok(facts),
            _ => bail!(
                "{}: has {total} targets, and which of them to compare cannot be told; name one file, or one member as PACKAGE!MEMBER",
                side.name.display()
            ),
        }
    };
    Ok((pick(old, new_name)?, pick(new, old_name)?))
}

/// The targets of a saved document, or `None` if the file is no such document.
fn saved(path: &Path, most: u64) -> anyhow::Result<Option<Vec<Facts>>> {
    #[derive(serde::Deserialize)]
    struct Document {
        schema: String,
        targets: Vec<Facts>,
    }
    let Ok(file) = confined::open_regular(path) else { return Ok(None) };
    let mut start = [0; 64];
    let mut file = file;
    let got = file.read(&mut start).with_context(|| format!("{} cannot be read", path.display()))?;
    let start = start.get(..got).unwrap_or_default();
    if start.trim_ascii_start().first() != Some(&b'{') {
        return Ok(None);
    }
    let bytes = document::all(start.chain(file), most)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    let document: Document = serde_json::from_slice(&bytes)
        .with_context(|| format!("{}: not a document of inspect or check", path.display()))?;
    match document.schema.as_str() {
        "flagaudit/inspect/1" | "flagaudit/check/1" => Ok(Some(document.targets)),
        other => bail!("{}: {other:?} is no document of inspect or check", path.display()),
    }
}
