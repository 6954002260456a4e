//! How far a run has come: one line on a terminal's standard error, and nothing anywhere else.

use crate::report::escape::terminal;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// A run that is over sooner shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time between two drawings.
const PACE: Duration = Duration::from_millis(100);

/// The line.
pub(super) struct Progress {
    /// `None` where nothing is to be drawn.
    next: Option<Instant>,
    drawn: bool,
    columns: usize,
}

impl Progress {
    /// Draws only on a terminal, and not where it was asked to be quiet or a CI system pretends to be a terminal.
    pub fn new(quiet: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let draws = !quiet && !dumb && !set("CI") && io::stderr().is_terminal();
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(80);
        Self { next: draws.then(|| Instant::now() + PATIENCE), drawn: false, columns }
    }

    /// So many of so many are done.
    pub fn tick(&mut self, what: &str, done: u64, of: Option<u64>) {
        let Some(next) = self.next else { return };
        let now = Instant::now();
        if now < next {
            return;
        }
        self.next = Some(now + PACE);
        let count = match of {
            Some(of) if of >= done => format!("{done} of {of}"),
            _ => done.to_string(),
        };
        let line: String =
            format!("{count}  {}", terminal(what)).chars().take(self.columns.saturating_sub(1)).collect();
        // A terminal that has gone away is no reason to stop.
        let _ = write!(io::stderr().lock(), "\r{line}\x1b[K");
        self.drawn = true;
    }

    /// Takes the line away, so that something else can be printed.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
