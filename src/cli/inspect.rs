//! `flagaudit inspect`.

use super::{CLEAN, Format, OutputArguments, output, targets};
use crate::report::{InspectReport, Listings, Tool};
use crate::report::{github, html, json, junit, markdown, prometheus, sarif, text};
use clap::Args;

/// Arguments of `inspect`.
#[derive(Debug, Args)]
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
    let listings = arguments.listings.listings(arguments.output.format);
    let mut audited = arguments.targets.audit(|mut facts| {
        listings.trim(&mut facts);
        facts
    })?;
    let left_out = audited.leave_out(arguments.output.format);
    let report = InspectReport {
        schema: "flagaudit/inspect/1".to_owned(),
        tool: Tool::this(),
        targets: audited.targets,
        summary: audited.summary,
    };
    super::complain_of_failures(report.targets.iter());
    let mut rendered = match arguments.output.format {
        Format::Text => text::inspect(&report, output::text_options(&arguments.output)),
        Format::Json => json::render(&report)?,
        Format::Ndjson => json::inspect_lines(&report)?,
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
    Ok(audited.status.unwrap_or(CLEAN))
}
