//! Reading policies: text → tree, base policies laid under it, everything checked, all errors in one go.

use super::check::{Checker, Header};
use super::diagnostic::{Diagnostics, Draft, did_you_mean};
use super::known::Known;
use super::source::{SourceMap, Span};
use super::target::{LoadedPolicy, PolicyFile, TargetTable};
use super::tree::{Entry, Node, Table, Value, alone, merge, oversized};
use super::{json_tree, toml_tree};
use crate::finding::PolicyPlace;
use crate::image::document;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest policy file, in bytes.
pub const POLICY_BYTES: u64 = 1 << 20;

/// Most files one policy may be made of through `extends`.
pub const EXTENDS_DEPTH: usize = 16;

/// Most `[[target]]` tables of one policy.
pub const TARGETS: usize = 1000;

/// The version of the policy format, written as `schema = 1`.
pub const SCHEMA: i64 = 1;

/// Policies that are part of the program, with their texts.
pub const BUILTINS: [(&str, &str); 3] = [
    ("release", include_str!("builtin/release.toml")),
    ("nginx-gateway", include_str!("builtin/nginx-gateway.toml")),
    ("hardened", include_str!("builtin/hardened.toml")),
];

const DEFAULTS: (&str, &str) = ("defaults", include_str!("builtin/defaults.toml"));

const PREFIX: &str = "builtin:";

/// Loads `builtin:NAME` or a file, as `--policy` takes it.
pub fn load(spec: &str, known: &Known<'_>) -> Result<LoadedPolicy, Diagnostics> {
    match spec.strip_prefix(PREFIX) {
        Some(name) => load_builtin(name, known),
        None => load_path(Path::new(spec), known),
    }
}

/// Loads a policy file, TOML or JSON by content.
pub fn load_path(path: &Path, known: &Known<'_>) -> Result<LoadedPolicy, Diagnostics> {
    let label = path.display().to_string();
    let mut loader = Loader::new(known);
    match read(path) {
        Ok(bytes) => {
            loader.stack.push(identity(path));
            loader.finish(label, &bytes, path.parent().map(Path::to_owned))
        }
        Err(reason) => loader.fail(Draft::unplaced(format!("cannot read the policy {label}: {reason}"))),
    }
}

/// Loads a built-in policy by its name without `builtin:`.
pub fn load_builtin(name: &str, known: &Known<'_>) -> Result<LoadedPolicy, Diagnostics> {
    let mut loader = Loader::new(known);
    match builtin(name) {
        Some(text) => {
            let label = format!("{PREFIX}{name}");
            loader.stack.push(label.clone());
            loader.finish(label, text.as_bytes(), None)
        }
        None => loader.fail(unknown_builtin(name, None)),
    }
}

/// Loads a policy from a text. `label` stands for its path in messages; `directory` is where `extends` looks for files
/// (none: the current one).
pub fn load_str(
    label: &str,
    text: &str,
    directory: Option<&Path>,
    known: &Known<'_>,
) -> Result<LoadedPolicy, Diagnostics> {
    let mut loader = Loader::new(known);
    loader.stack.push(label.to_owned());
    loader.finish(label.to_owned(), text.as_bytes(), directory.map(Path::to_owned))
}

/// The text of a built-in policy.
pub fn builtin(name: &str) -> Option<&'static str> {
    BUILTINS.iter().chain([&DEFAULTS]).find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Where a value stands that no text gives; only met when a default's own line was overridden with something wrong.
pub(crate) fn defaults_place() -> PolicyPlace {
    PolicyPlace { path: format!("{PREFIX}{}", DEFAULTS.0), line: 1, column: 1, text: String::new() }
}

fn unknown_builtin(name: &str, span: Option<Span>) -> Draft {
    let title = format!("unknown built-in policy `{PREFIX}{name}`");
    let draft = match span {
        Some(span) => Draft::error(span, title),
        None => Draft::unplaced(title),
    };
    let names: Vec<&str> = BUILTINS.iter().map(|(name, _)| *name).collect();
    match (did_you_mean(name, names.iter().copied()), span) {
        (Some(near), Some(_)) => draft.mark(format!("did you mean `{PREFIX}{near}`?")),
        (Some(near), None) => draft.help(format!("did you mean `{PREFIX}{near}`?")),
        (None, _) => draft.help(format!("built-in policies: {PREFIX}{}", names.join(&format!(", {PREFIX}")))),
    }
}

/// Reads a file whole, up to [`POLICY_BYTES`].
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let say = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    document::read(path, POLICY_BYTES, Some(document::PATIENCE)).map_err(say)
}

/// A TOML document begins with a key or `[table]`; a list is JSON too, though no policy.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('{')
        || (text.starts_with('[') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}

/// What tells one policy file from another, for finding cycles.
fn identity(path: &Path) -> String {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// A policy and everything under it, merged.
#[derive(Default)]
struct Layers {
    main: Table,
    targets: Vec<Node>,
    waivers: Vec<Node>,
}

struct Loader<'a> {
    known: &'a Known<'a>,
    sources: SourceMap,
    drafts: Vec<Draft>,
    files: Vec<PolicyFile>,
    stack: Vec<String>,
}

impl<'a> Loader<'a> {
    fn new(known: &'a Known<'a>) -> Self {
        Self {
            known,
            sources: SourceMap::default(),
            drafts: Vec::new(),
            files: Vec::new(),
            stack: Vec::new(),
        }
    }

    fn fail(mut self, draft: Draft) -> Result<LoadedPolicy, Diagnostics> {
        self.drafts.push(draft);
        Err(Diagnostics::new(Arc::new(self.sources), self.drafts))
    }

    /// Reads the text and everything it extends, checks the whole, and hands it out.
    fn finish(
        mut self,
        label: String,
        bytes: &[u8],
        directory: Option<PathBuf>,
    ) -> Result<LoadedPolicy, Diagnostics> {
        let mut name = None;
        let layers = self.layers(label.clone(), bytes, directory, Some(&mut name));
        let stem = Path::new(&label).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| match label.strip_prefix(PREFIX) {
            Some(builtin) => builtin.to_owned(),
            None => stem.unwrap_or_else(|| label.clone()),
        });
        let header = Header { name, path: label, sha256: sha256_hex(bytes) };

        let sources = Arc::new(self.sources);
        let mut checker = Checker::new(&sources, self.known);
        let mut tree = layers.main;
        if !layers.waivers.is_empty() {
            let span = layers.waivers.first().map_or(Span::new(0, 0..0), |node| node.span);
            let node = Node { value: Value::List(layers.waivers), span };
            tree.entries.push(Entry { key: "waiver".to_owned(), key_span: span, node });
        }
        let base = checker.policy(&tree, header.clone());
        // A `target` that is not a list of tables was left in the tree; this reports it.
        checker.tables(&tree, "target");
        tree.take("target");
        let mut targets = Vec::new();
        for node in layers.targets.into_iter().take(TARGETS.saturating_add(1)) {
            let span = node.span;
            let mut table = match node.value {
                Value::Table(table) => table,
                value => {
                    checker.not_a_table(&Node { value, span }, "target");
                    continue;
                }
            };
            checker.target_keys(&table);
            let matcher = checker.target_match(&table, span);
            if targets.len() == TARGETS {
                checker.drafts.push(Draft::error(span, format!("more than {TARGETS} targets")));
            }
            let written = table.take("match");
            merge(&mut tree.clone(), table.clone(), &mut checker.drafts);
            // The base was checked; to check the override by itself keeps the cost of many targets linear.
            checker.policy(&alone(&table), header.clone());
            if let Some(matcher) = matcher {
                targets.push(TargetTable { matcher, at: sources.place(span), written, overlay: table });
            }
        }
        self.drafts.append(&mut checker.drafts);
        let diagnostics = Diagnostics::new(Arc::clone(&sources), self.drafts);
        if diagnostics.has_errors() {
            return Err(diagnostics);
        }
        Ok(LoadedPolicy::new(base, header, tree, targets, sources, self.files, diagnostics))
    }

    /// The text and everything it extends as one tree.
    fn layers(
        &mut self,
        label: String,
        bytes: &[u8],
        directory: Option<PathBuf>,
        name: Option<&mut Option<String>>,
    ) -> Layers {
        self.files.push(PolicyFile { path: label.clone(), sha256: sha256_hex(bytes) });
        let is_defaults = label.strip_prefix(PREFIX) == Some(DEFAULTS.0);
        let (mut tree, sound) = self.parse(label, bytes);
        if !sound {
            // What a broken text seems to say would only lead to errors that are not there.
            return Layers::default();
        }
        self.schema(&mut tree);
        let own_name = self.own_name(&mut tree);
        if let Some(name) = name {
            *name = own_name;
        }
        self.top_keys(&tree);
        let mut layers = match tree.take("extends") {
            Some(entry) => self.base(&entry.node, directory),
            None if is_defaults => Layers::default(),
            None => {
                let label = format!("{PREFIX}{}", DEFAULTS.0);
                self.layers(label, DEFAULTS.1.as_bytes(), None, None)
            }
        };
        for (key, list) in [("target", &mut layers.targets), ("waiver", &mut layers.waivers)] {
            if let Some(entry) = tree.take(key) {
                match entry.node.value {
                    // Exceptions of a base stay in force; an empty list drops them.
                    Value::List(items) if items.is_empty() => list.clear(),
                    Value::List(items) => list.extend(items),
                    value => {
                        let node = Node { value, span: entry.node.span };
                        tree.entries.push(Entry { node, ..entry });
                    }
                }
            }
        }
        merge(&mut layers.main, tree, &mut self.drafts);
        layers
    }

    fn parse(&mut self, label: String, bytes: &[u8]) -> (Table, bool) {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(error) => {
                let good = error.valid_up_to();
                let file = self.sources.add(label, String::from_utf8_lossy(bytes).into_owned());
                let span = Span::new(file, good..good.saturating_add(1));
                self.drafts.push(Draft::error(span, "a policy is UTF-8 text, and this byte is not"));
                return (Table::default(), false);
            }
        };
        let file = self.sources.add(label, text.clone());
        let (tree, sound) = if is_json(&text) {
            json_tree::parse(file, &text, &mut self.drafts)
        } else {
            toml_tree::parse(file, &text, &mut self.drafts)
        };
        if let Some((span, why)) = oversized(&tree) {
            self.drafts.push(Draft::error(span, format!("this is no policy: {why}")));
            return (Table::default(), false);
        }
        (tree, sound)
    }

    fn schema(&mut self, tree: &mut Table) {
        let Some(entry) = tree.take("schema") else { return };
        let span = entry.node.span;
        match entry.node.value {
            Value::Integer(SCHEMA) => {}
            Value::Integer(number) => self.drafts.push(
                Draft::error(span, format!("unknown policy schema {number}"))
                    .mark(format!("this program reads schema {SCHEMA}")),
            ),
            value => self.drafts.push(
                Draft::error(span, "`schema` has the wrong type")
                    .mark(format!("expected the number {SCHEMA}, found {}", value.kind())),
            ),
        }
    }

    fn own_name(&mut self, tree: &mut Table) -> Option<String> {
        let entry = tree.take("name")?;
        match entry.node.value {
            Value::String(name) if !name.trim().is_empty() => Some(name),
            Value::String(_) => {
                self.drafts.push(Draft::error(entry.node.span, "`name` is empty"));
                None
            }
            value => {
                let mark = format!("expected a string, found {}", value.kind());
                self.drafts.push(Draft::error(entry.node.span, "`name` has the wrong type").mark(mark));
                None
            }
        }
    }

    fn top_keys(&mut self, tree: &Table) {
        let mut checker = Checker::new(&self.sources, self.known);
        checker.top_keys(tree);
        self.drafts.append(&mut checker.drafts);
    }

    /// Loads what `extends` names.
    fn base(&mut self, node: &Node, directory: Option<PathBuf>) -> Layers {
        let span = node.span;
        let Value::String(spec) = &node.value else {
            let mark = format!("expected a string, found {}", node.value.kind());
            let draft = Draft::error(span, "`extends` has the wrong type").mark(mark);
            self.drafts.push(draft.help("write `builtin:release` or the path of one policy file"));
            return Layers::default();
        };
        if self.stack.len() >= EXTENDS_DEPTH {
            let title = format!("`extends` goes more than {EXTENDS_DEPTH} files deep");
            self.drafts.push(Draft::error(span, title));
            return Layers::default();
        }
        if let Some(name) = spec.strip_prefix(PREFIX) {
            let Some(text) = builtin(name) else {
                self.drafts.push(unknown_builtin(name, Some(span)));
                return Layers::default();
            };
            self.stack.push(spec.clone());
            let layers = self.layers(spec.clone(), text.as_bytes(), None, None);
            self.stack.pop();
            return layers;
        }
        if spec.contains("://") {
            let draft = Draft::error(span, "`extends` takes a built-in or a file, not an address");
            self.drafts
                .push(draft.help("policies are not fetched; keep a copy of the base beside this file"));
            return Layers::default();
        }
        let path = directory.unwrap_or_default().join(spec);
        let id = identity(&path);
        if let Some(from) = self.stack.iter().position(|open| *open == id) {
            let names = self.stack.iter().skip(from).chain([&id]).map(|id| {
                Path::new(id)
                    .file_name()
                    .map_or_else(|| id.clone(), |name| name.to_string_lossy().into_owned())
            });
            let way = names.collect::<Vec<_>>().join(" -> ");
            self.drafts
                .push(Draft::error(span, "`extends` leads back to a policy that is being read").mark(way));
            return Layers::default();
        }
        match read(&path) {
            Ok(bytes) => {
                self.stack.push(id);
                let parent = path.parent().map(Path::to_owned);
                let layers = self.layers(path.display().to_string(), &bytes, parent, None);
                self.stack.pop();
                layers
            }
            Err(reason) => {
                let title = format!("cannot read the extended policy {}", path.display());
                let mut draft = Draft::error(span, title).mark(reason);
                if let Some(near) = did_you_mean(spec, BUILTINS.iter().map(|(name, _)| *name)) {
                    draft = draft.help(format!("did you mean `{PREFIX}{near}`?"));
                }
                self.drafts.push(draft);
                Layers::default()
            }
        }
    }
}
