//! What is wrong with a policy, said so that it can be put right: file, line, column, the line itself with a mark
//! under the culprit, and what was probably meant.

use super::source::{SourceMap, Span};
use crate::finding::{PolicyPlace, Severity};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, renderer::DecorStyle};
use std::fmt::Write as _;
use std::sync::Arc;

/// Most remarks that are printed; a text with more is something else than a policy.
const SHOWN: usize = 100;

/// A remark about a policy, before its place is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    severity: Severity,
    span: Option<Span>,
    title: String,
    mark: String,
    also: Option<(Span, String)>,
    help: Option<String>,
}

impl Draft {
    /// The policy cannot be used.
    pub(crate) fn error(span: Span, title: impl Into<String>) -> Self {
        Self::of(Severity::Error, Some(span), title.into())
    }

    /// The policy can be used, but something in it can never match or is not what was meant.
    pub(crate) fn warning(span: Span, title: impl Into<String>) -> Self {
        Self::of(Severity::Warning, Some(span), title.into())
    }

    /// An error that has no place in a text, such as a file that cannot be read.
    pub(crate) fn unplaced(title: impl Into<String>) -> Self {
        Self::of(Severity::Error, None, title.into())
    }

    fn of(severity: Severity, span: Option<Span>, title: String) -> Self {
        Self { severity, span, title, mark: String::new(), also: None, help: None }
    }

    /// Words at the mark.
    pub(crate) fn mark(mut self, mark: impl Into<String>) -> Self {
        self.mark = mark.into();
        self
    }

    /// Another place that matters.
    pub(crate) fn also(mut self, span: Span, words: impl Into<String>) -> Self {
        self.also = Some((span, words.into()));
        self
    }

    /// What to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// One remark about a policy.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// `Error` if the policy cannot be used, else `Warning`.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it, such as "did you mean `minimum`?".
    pub help: Option<String>,
    /// Where it stands; `None` if a file could not be read at all.
    pub place: Option<PolicyPlace>,
    draft: Draft,
}

/// Everything that is wrong with a policy, found in one go.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    sources: Arc<SourceMap>,
}

impl Diagnostics {
    /// Looks places up, sorts by place and drops repetitions (a base is checked again under every `[[target]]`).
    pub(crate) fn new(sources: Arc<SourceMap>, mut drafts: Vec<Draft>) -> Self {
        drafts.sort_by_key(|draft| draft.span);
        let mut items: Vec<Diagnostic> = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let here =
                items.iter().rev().take_while(|item| item.draft.span == draft.span && draft.span.is_some());
            // A value that is no valid TOML or JSON needs no second remark about what it was taken for.
            let said = |item: &Diagnostic| item.draft == draft || item.message.starts_with("not valid ");
            if here.into_iter().any(said) {
                continue;
            }
            items.push(Diagnostic {
                severity: draft.severity,
                message: draft.title.clone(),
                help: draft.help.clone(),
                place: draft.span.map(|span| sources.place(span)),
                draft,
            });
        }
        Self { items, sources }
    }

    /// All remarks, in the order of the text.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many errors and how many warnings.
    pub fn counts(&self) -> (usize, usize) {
        let errors = self.items.iter().filter(|item| item.severity == Severity::Error).count();
        (errors, self.items.len().saturating_sub(errors))
    }

    /// Whether the policy cannot be used.
    pub fn has_errors(&self) -> bool {
        self.counts().0 > 0
    }

    /// The remarks without their places, to be put together with others.
    pub(crate) fn drafts(&self) -> Vec<Draft> {
        self.items.iter().map(|item| item.draft.clone()).collect()
    }

    /// All remarks as text for a terminal, each with its line and a mark under the culprit.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii);
        let mut out = String::new();
        for item in self.items.iter().take(SHOWN) {
            let _ = writeln!(out, "{}\n", renderer.render(&[self.group(item)]));
        }
        if let Some(more) = self.items.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            let _ = writeln!(out, "… and {more} more\n");
        }
        out
    }

    fn group<'a>(&'a self, item: &'a Diagnostic) -> Group<'a> {
        let level = if item.severity == Severity::Error { Level::ERROR } else { Level::WARNING };
        let mut group = Group::with_title(level.primary_title(item.message.as_str()));
        let mut marks = Vec::new();
        if let Some(span) = item.draft.span {
            marks.push((span, AnnotationKind::Primary, item.draft.mark.as_str()));
        }
        if let Some((span, words)) = &item.draft.also {
            marks.push((*span, AnnotationKind::Context, words.as_str()));
        }
        // Marks in the same text share one snippet; a second text (a base, a built-in) gets its own.
        while let Some(file) = marks.first().map(|mark| mark.0.file) {
            let (here, rest): (Vec<_>, Vec<_>) = marks.into_iter().partition(|mark| mark.0.file == file);
            marks = rest;
            let Some(source) = self.sources.get(file) else { continue };
            // Only the lines from the first mark to the last are handed over: the renderer looks at every line it gets.
            let lines = here.iter().map(|(span, ..)| source.line_at(span.start as usize));
            let Some((first, last)) = lines.fold(None, |seen: Option<(Line, Line)>, line| match seen {
                None => Some((line.clone(), line)),
                Some((a, b)) => {
                    Some((if line.0 < a.0 { line.clone() } else { a }, if line.0 > b.0 { line } else { b }))
                }
            }) else {
                continue;
            };
            let base = first.1.start;
            let window = source.text.get(base..last.1.end).unwrap_or("");
            let annotations = here.into_iter().map(|(span, kind, words)| {
                let range = within_line(&source.text, source.line_at(span.start as usize).1, span);
                kind.span(range.start.saturating_sub(base)..range.end.saturating_sub(base))
                    .label((!words.is_empty()).then_some(words))
            });
            group = group.element(
                Snippet::source(window)
                    .line_start(first.0.saturating_add(1))
                    .path(source.label.as_str())
                    .annotations(annotations.collect::<Vec<_>>()),
            );
        }
        if let Some(help) = &item.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        group
    }
}

/// Zero-based number of a line, and the range of its text.
type Line = (usize, std::ops::Range<usize>);

/// The part of `span` on its first line, widened to at least one character, on character boundaries.
fn within_line(text: &str, line: std::ops::Range<usize>, span: Span) -> std::ops::Range<usize> {
    let start = (span.start as usize).clamp(line.start, line.end);
    let end = (span.end as usize).clamp(start, line.end);
    let floor = |mut at: usize| {
        while at > 0 && !text.is_char_boundary(at) {
            at = at.saturating_sub(1);
        }
        at
    };
    floor(start)..floor(end)
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl std::fmt::Display for Diagnostics {
    /// Plain text without colour.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostics {}

/// The known word nearest to `word`, if it is near enough to have been meant. Case, leading dashes and `_` for `-`
/// are overlooked.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |text: &str| text.trim_start_matches('-').replace('_', "-").to_lowercase();
    let wanted = fold(word);
    if wanted.is_empty() || wanted.len() > 100 {
        return None;
    }
    let length = wanted.chars().count();
    let allowed = (length / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (fold(candidate), candidate))
        // Words differ by no less than their lengths do: most need no comparison, and a policy may have thousands of them.
        .filter(|(folded, _)| folded.chars().count().abs_diff(length) <= allowed)
        .map(|(folded, candidate)| (strsim::damerau_levenshtein(&wanted, &folded), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
