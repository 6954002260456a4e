//! `flagaudit inspect`.

use super::{CLEAN, Format, OutputArguments, output, targets};
use crate::facts::Facts;
use crate::report::{InspectReport, Listings, Tool};
use crate::report::{github, html, json, junit, markdown, prometheus, sarif, text};
use clap::Args;
use std::ops::ControlFlow;

const EXAMPLES: &str = "\
Examples:
  flagaudit inspect /usr/sbin/nginx                 what it is made of
  flagaudit inspect -v --units objs/nginx           with the evidence, and every compilation unit
  flagaudit inspect pid:1                           the bytes that a process runs
  flagaudit inspect -f json --units objs/nginx > good.json   to compare with later
  nginx -V 2>&1 | flagaudit inspect -               the text of nginx -V will do, too
  flagaudit inspect -f html -o report.html build/   a page with a map of the code";

/// Arguments of `inspect`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    targets: targets::TargetArguments,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    listings: ListingArguments,
}

/// Long listings.
#[derive(Debug, Args)]
pub(super) struct ListingArguments {
    /// List all compilation units
    #[arg(long)]
    units: bool,
    /// List all functions
    #[arg(long)]
    functions: bool,
    /// List all recorded flags
    #[arg(long)]
    flags: bool,
    /// List all nginx directives
    #[arg(long)]
    directives: bool,
}

impl ListingArguments {
    /// What to keep: what was asked for, and for a page what its map is drawn from.
    pub(super) fn listings(&self, format: Format) -> Listings {
        let page = format == Format::Html;
        Listings {
            units: self.units || page,
            functions: self.functions || page,
            flags: self.flags,
            directives: self.directives,
        }
    }
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<u8> {
    let format = arguments.output.format;
    let listings = arguments.listings.listings(format);
    let trimmed = |mut facts: Facts| {
        listings.trim(&mut facts);
        facts
    };
    let quiet = arguments.output.quiet;
    if format == Format::Ndjson {
        let mut lines = output::Lines::open(&arguments.output)?;
        let tally = arguments.targets.audit(
            quiet,
            |facts| json::target_line(&trimmed(facts)),
            |line| lines.take(line, false),
        );
        let tally = match tally {
            // Nobody reads on: nothing is left to do.
            Err(error) if error.is::<output::NobodyReads>() => return Ok(CLEAN),
            other => other?,
        };
        lines.end(&json::inspect_summary(tally.summary)?)?;
        return Ok(tally.status().unwrap_or(CLEAN));
    }
    let mut targets = Vec::new();
    let tally = arguments.targets.audit(quiet, trimmed, |facts| {
        targets.push(facts);
        ControlFlow::Continue(())
    })?;
    let left_out = tally.leave_out(&mut targets, format);
    let report = InspectReport {
        schema: "flagaudit/inspect/1".to_owned(),
        tool: Tool::this(),
        targets,
        summary: tally.summary,
    };
    let mut rendered = match format {
        Format::Text => text::inspect(&report, output::text_options(&arguments.output)),
        Format::Json | Format::Ndjson => json::render(&report)?,
        Format::Sarif => sarif::inspect(&report, output::working_directory().as_deref())?,
        Format::Junit => junit::inspect(&report),
        Format::Github => github::inspect(&report),
        Format::Markdown => markdown::inspect(&report),
        Format::Prometheus => prometheus::inspect(&report),
        Format::Html => html::inspect(&report)?,
    };
    rendered.push_str(&left_out);
    output::write(&arguments.output, &rendered)?;
    // The process ends here: giving thousands of units back one by one would only take time.
    std::mem::forget(report);
    Ok(tally.status().unwrap_or(CLEAN))
}
