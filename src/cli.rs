//! The command line: arguments as given become arguments as meant, in one place.

use anyhow::Context;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

mod check;
mod diff;
mod expand;
mod inspect;
mod interrupt;
mod known;
mod list;
mod output;
mod policy;
mod processes;
mod progress;
mod targets;

/// Audited, nothing at or above `--fail-on`.
const CLEAN: u8 = 0;
/// Audited, at least one such finding.
const FINDINGS: u8 = 1;
/// Not fully audited, or bad usage.
const INCOMPLETE: u8 = 2;
/// Ended by SIGINT or SIGTERM; what was complete has been printed.
const INTERRUPTED: u8 = 130;

/// Reads from an ELF binary how it was really built, and stops the wrong build before it ships.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  flagaudit inspect /usr/sbin/nginx            what it is made of, with the evidence
  flagaudit check objs/nginx                   judge it by ./flagaudit.toml, or by builtin:release
  flagaudit check -p edge.toml objs/nginx      judge it by your policy: exit 1 stops the build
  nginx -V 2>&1 | flagaudit inspect -          the text of nginx -V will do, too
  flagaudit explain unoptimized-code           why, and how to fix it

Exit status: 0 clean, 1 findings, 2 not fully audited (bad usage, unreadable or damaged input), 130 interrupted.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  flagaudit explain                            every rule, its severity, what it is about
  flagaudit explain unoptimized-code           what it checks, why it matters, how to fix it";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  flagaudit completions bash > ~/.local/share/bash-completion/completions/flagaudit
  flagaudit completions zsh > ~/.zfunc/_flagaudit
  flagaudit completions fish > ~/.config/fish/completions/flagaudit.fish";

#[derive(Debug, Subcommand)]
enum Command {
    /// What a binary is made of, with the evidence; judges nothing
    Inspect(inspect::Arguments),
    /// Judge binaries by a policy: the gate for CI
    Check(Box<check::CheckArguments>),
    /// What changed between two builds: a baseline against a candidate
    Diff(diff::Arguments),
    /// A rule's documentation; without RULE, the table of rules
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain {
        /// Rule id, such as unoptimized-code
        rule: Option<String>,
    },
    /// Work on policy files
    Policy(policy::PolicyArguments),
    /// Shell completions
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// The manual page, in roff: of the program, or of one command
    Man {
        /// Command, such as check, or policy init
        command: Vec<String>,
    },
}

/// Options of every command that prints a report.
#[derive(Debug, Args)]
struct OutputArguments {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write to FILE, whole or not at all
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// When to use colour
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    color: Colour,
    /// One line a target
    #[arg(short, long)]
    quiet: bool,
    /// The evidence too
    #[arg(short, long)]
    verbose: bool,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One document
    Json,
    /// A line a target, then a summary
    Ndjson,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit XML, for CI dashboards
    Junit,
    /// GitHub workflow annotations
    Github,
    /// Markdown, for an incident channel
    Markdown,
    /// Prometheus text, for `node_exporter`'s textfile collector
    Prometheus,
    /// One self-contained page
    Html,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Colour {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Runs the program and gives its exit status.
pub fn main() -> ExitCode {
    raise_open_files();
    interrupt::outlive_full_files();
    match Cli::try_parse().map_or_else(|error| say(&error), run) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::from(INCOMPLETE)
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<u8> {
    match cli.command {
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Explain { rule } => explain(rule.as_deref()),
        Command::Policy(arguments) => policy::run(&arguments),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "flagaudit", &mut text);
            print(&text)
        }
        Command::Man { command } => manual(&command),
    }
}

/// Prints what clap has to say: what is wrong with the arguments, or the help or version that was asked for.
fn say(error: &clap::Error) -> anyhow::Result<u8> {
    let printed = error.print();
    if error.use_stderr() {
        return Ok(INCOMPLETE);
    }
    written(printed)
}

/// The manual page of the program, or of the command that `names` lead to.
fn manual(names: &[String]) -> anyhow::Result<u8> {
    let mut root = Cli::command();
    // Gives every command its full name, `flagaudit-policy-init`, under which pages are installed and refer to each other.
    root.build();
    let mut command = &root;
    for name in names {
        command = command
            .find_subcommand(name)
            .with_context(|| format!("there is no command {name:?}; `flagaudit --help` lists them"))?;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    print(&text)
}

/// Allows as many open files as the system lets this process have: every package of a run is one, and so is the
/// program of every process. The usual 1,024 are a default for programs that use `select`, which this one does not.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it is not allowed, a run with too many says so of each.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn explain(rule: Option<&str>) -> anyhow::Result<u8> {
    let text = match rule {
        None => rule_table(),
        Some(id) => {
            if let Some(text) = crate::rules::explain(id) {
                text
            } else {
                let near = crate::rules::TABLE
                    .iter()
                    .map(|rule| rule.id)
                    .max_by(|a, b| strsim::jaro_winkler(a, id).total_cmp(&strsim::jaro_winkler(b, id)));
                let hint = near.map(|n| format!(" (did you mean {n}?)")).unwrap_or_default();
                anyhow::bail!("there is no rule {id:?}{hint}; `flagaudit explain` lists them");
            }
        }
    };
    print(text.as_bytes())
}

/// The table of rules: id, default severity, what it is about.
fn rule_table() -> String {
    let rows: Vec<String> = crate::rules::TABLE
        .iter()
        .map(|rule| format!("{:<34} {:<8} {}", rule.id, rule.severity.as_str(), rule.summary()))
        .collect();
    rows.join("\n") + "\n"
}

/// Writes to standard output; a reader that has gone away is no error.
fn print(bytes: &[u8]) -> anyhow::Result<u8> {
    written(io::stdout().lock().write_all(bytes))
}

/// The exit status after something was written to standard output, of which all is sent now: what is left in a buffer would
/// be lost without a word at the end of the process.
fn written(result: io::Result<()>) -> anyhow::Result<u8> {
    match result.and_then(|()| io::stdout().lock().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("standard output cannot be written"))
        }
        _ => Ok(CLEAN),
    }
}

/// One line on standard error.
fn complain(message: &str) {
    let mut stream = anstream::AutoStream::new(io::stderr(), choice_for_stderr());
    let _ = writeln!(
        stream,
        "{}flagaudit:{:#} {}",
        anstyle::AnsiColor::Red.on_default().bold(),
        anstyle::AnsiColor::Red.on_default().bold(),
        crate::report::escape::terminal(message)
    );
}

fn choice_for_stderr() -> anstream::ColorChoice {
    if io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) {
        anstream::ColorChoice::Auto
    } else {
        anstream::ColorChoice::Never
    }
}

/// Names a target of which nothing could be had, with the reasons.
fn failure(facts: &crate::facts::Facts) -> String {
    let why: Vec<&str> = facts.problems.iter().map(|problem| problem.message.as_str()).collect();
    format!("{}: {}", crate::report::text::name(facts), why.join("; "))
}
