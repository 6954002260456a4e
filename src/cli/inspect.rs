//! `flagaudit inspect`.

use super::{CLEAN, Format, INCOMPLETE, Output, output, targets};
use crate::report::{InspectReport, Listings, Tool};
use crate::report::{github, json, junit, markdown, prometheus, sarif, text};
use clap::Args;

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    targets: targets::TargetArguments,
    #[command(flatten)]
    output: Output,
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
    pub(super) fn listings(&self) -> Listings {
        Listings {
            units: self.units,
            functions: self.functions,
            flags: self.flags,
            directives: self.directives,
        }
    }
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<u8> {
    let mut audited = arguments.targets.audit()?;
    let listings = arguments.listings.listings();
    for facts in &mut audited.targets {
        listings.trim(facts);
    }
    let report = InspectReport {
        schema: "flagaudit/inspect/1".to_owned(),
        tool: Tool::this(),
        targets: audited.targets,
        summary: audited.summary,
    };
    super::complain_of_failures(report.targets.iter());
    let rendered = match arguments.output.format {
        Format::Text => text::inspect(&report, output::text_options(&arguments.output)),
        Format::Json => json::render(&report)?,
        Format::Ndjson => json::inspect_lines(&report)?,
        Format::Sarif => sarif::inspect(&report, output::working_directory().as_deref())?,
        Format::Junit => junit::inspect(&report),
        Format::Github => github::inspect(&report),
        Format::Markdown => markdown::inspect(&report),
        Format::Prometheus => prometheus::inspect(&report),
    };
    output::write(&arguments.output, &rendered)?;
    Ok(if audited.incomplete { INCOMPLETE } else { CLEAN })
}
