//! `flagaudit policy`.

use super::{CLEAN, INCOMPLETE, known, print, targets};
use crate::facts::Status;
use crate::policy::{dates, init, load, schema, show};
use crate::rules;
use anyhow::bail;
use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  flagaudit policy init --from good/nginx > flagaudit.toml   this build passes, its regressions fail
  flagaudit policy validate edge.toml                        every mistake in one go, with its line
  flagaudit policy show builtin:release                      what is in force, and from where
  flagaudit policy schema > flagaudit.schema.json            for editors";

/// Arguments of `policy`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PolicyArguments {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Print a commented policy that a given good binary passes and that catches its regressions
    Init {
        /// The good binary
        #[arg(long, value_name = "BINARY")]
        from: std::path::PathBuf,
        /// Name of the policy
        #[arg(long, default_value = "release")]
        name: String,
    },
    /// Find everything that is wrong with a policy, and what can never match
    Validate {
        /// Policy files, or builtin:NAME
        #[arg(value_name = "FILE|builtin:NAME", default_value = "flagaudit.toml")]
        policies: Vec<String>,
        /// The day waivers are judged on (default: today, UTC)
        #[arg(long, value_name = "YYYY-MM-DD")]
        today: Option<String>,
    },
    /// Print the policy in force after `extends`, with where each value comes from
    Show {
        /// Policy file, or builtin:NAME
        #[arg(value_name = "FILE|builtin:NAME", default_value = "builtin:release")]
        policy: String,
    },
    /// Print a JSON Schema for editors
    Schema,
}

/// Runs it.
pub(super) fn run(arguments: &PolicyArguments) -> anyhow::Result<u8> {
    match &arguments.command {
        PolicyCommand::Init { from, name } => {
            let facts = targets::audit_one(from);
            if facts.status == Status::Failed {
                bail!("{}", super::failure(&facts));
            }
            print(init::init(&facts, name).as_bytes())
        }
        PolicyCommand::Validate { policies, today } => {
            let mut worst = CLEAN;
            for policy in policies {
                worst = worst.max(validate(policy, today.as_deref())?);
            }
            Ok(worst)
        }
        PolicyCommand::Show { policy } => match known::with(|known| load::load(policy, known)) {
            Ok(loaded) => print(show::show(&loaded).as_bytes()),
            Err(diagnostics) => {
                known::print(&diagnostics);
                Ok(INCOMPLETE)
            }
        },
        PolicyCommand::Schema => {
            let ids: Vec<&str> = rules::TABLE.iter().map(|rule| rule.id).collect();
            let mut text = serde_json::to_string_pretty(&schema::schema(&ids))?;
            text.push('\n');
            print(text.as_bytes())
        }
    }
}

/// 0 for a policy that can be used (warnings do not fail it), 2 for errors.
fn validate(policy: &str, today: Option<&str>) -> anyhow::Result<u8> {
    let today = match today {
        None => dates::today(),
        Some(text) => match dates::parse_date(text) {
            Some(date) => date,
            None => bail!("--today {text}: not a date of the form YYYY-MM-DD"),
        },
    };
    let loaded = known::with(|known| {
        load::load(policy, known).map(|loaded| crate::policy::validate(&loaded, known, today))
    });
    let (diagnostics, usable) = match loaded {
        Ok(warnings) => (warnings, true),
        Err(errors) => (errors, false),
    };
    if !diagnostics.is_empty() {
        known::print(&diagnostics);
    }
    let (errors, warnings) = diagnostics.counts();
    if !usable || errors > 0 {
        super::complain(&format!("{policy}: {errors} error(s), {warnings} warning(s)"));
        return Ok(INCOMPLETE);
    }
    print(format!("{policy}: valid, {warnings} warning(s)\n").as_bytes())?;
    Ok(CLEAN)
}
