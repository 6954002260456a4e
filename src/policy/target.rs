//! A loaded policy, and what of it holds for one target.

use super::check::{Checker, Header};
use super::diagnostic::Diagnostics;
use super::known::Known;
use super::matching::target_matches;
use super::source::SourceMap;
use super::tree::{Entry, Table, alone, merge};
use super::{Policy, TargetMatch};
use crate::facts::Facts;
use crate::finding::PolicyPlace;
use std::sync::Arc;

/// One text a policy is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// Path, or `builtin:NAME`.
    pub path: String,
    /// SHA-256 of its bytes, lower-case hexadecimal.
    pub sha256: String,
}

/// A `[[target]]` table.
#[derive(Debug, Clone)]
pub(crate) struct TargetTable {
    pub(crate) matcher: TargetMatch,
    pub(crate) at: PolicyPlace,
    /// The `match` as written.
    pub(crate) written: Option<Entry>,
    /// Everything else in the table.
    pub(crate) overlay: Table,
}

/// What tells one target from another for `[[target]]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TargetKey<'a> {
    /// The target's path.
    pub path: &'a str,
    /// Member of a package or image.
    pub member: Option<&'a str>,
    /// Product name.
    pub product: Option<&'a str>,
    /// Build-id, hexadecimal.
    pub build_id: Option<&'a str>,
    /// Command line or name of the process.
    pub process: Option<&'a str>,
}

impl<'a> TargetKey<'a> {
    /// The key of an inspected target.
    pub fn of(facts: &'a Facts) -> Self {
        Self {
            path: &facts.path,
            member: facts.member.as_deref(),
            product: facts.product.as_ref().map(|product| product.name.as_str()),
            build_id: facts.elf.as_ref().and_then(|elf| elf.build_id.as_deref()),
            process: facts.process.as_ref().map(|process| process.command.as_str()),
        }
    }
}

impl TargetMatch {
    /// Whether any of what is given matches.
    pub fn matches(&self, key: &TargetKey<'_>) -> bool {
        let path = self.path.iter().any(|pattern| target_matches(&pattern.value, key.path, key.member));
        let product =
            key.product.is_some_and(|name| self.product.iter().any(|pattern| pattern.value.matches(name)));
        let build = key.build_id.is_some_and(|id| {
            let id = id.to_ascii_lowercase();
            self.build_id.iter().any(|prefix| id.starts_with(&prefix.value))
        });
        let process = key.process.is_some_and(|command| {
            let name = process_name(command);
            self.process.iter().any(|pattern| pattern.value.matches(name) || pattern.value.matches(command))
        });
        path || product || build || process
    }
}

/// The name of a process from its command line: `nginx` of `nginx: master process /usr/sbin/nginx` and of
/// `/usr/sbin/nginx -g …`.
fn process_name(command: &str) -> &str {
    let first = command.split_whitespace().next().unwrap_or("");
    let base = first.rsplit('/').next().unwrap_or(first);
    base.trim_end_matches(':')
}

/// What kind of entry can turn out to have matched nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A `[[target]]`.
    Target,
    /// A `[[waiver]]`.
    Waiver,
    /// An entry of `optimization.exempt`.
    Exempt,
    /// An entry of `optimization.allow`.
    AllowedLevel,
    /// An entry of `nginx.modules.allow`.
    AllowedModule,
    /// An entry of `compiler.allow`.
    AllowedCompiler,
    /// An entry of `build.allow`.
    AllowedBuild,
}

impl EntryKind {
    /// Whether the entry makes an exception, so that one which matched nothing is a leftover. The others list
    /// alternatives, of which one build uses only some.
    pub fn is_exception(self) -> bool {
        matches!(self, Self::Target | Self::Waiver | Self::Exempt)
    }

    /// How messages name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Waiver => "waiver",
            Self::Exempt => "exempt entry",
            Self::AllowedLevel => "allowed level",
            Self::AllowedModule => "allowed module",
            Self::AllowedCompiler => "allowed compiler",
            Self::AllowedBuild => "approved build",
        }
    }
}

/// An entry that can turn out to have matched nothing. Its place identifies it: findings and [`super::At`] values carry
/// the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyEntry {
    /// What it is.
    pub kind: EntryKind,
    /// As written, or a short description.
    pub text: String,
    /// Where it stands.
    pub at: PolicyPlace,
}

impl PolicyEntry {
    /// Whether it stands in a policy that is part of the program, where nobody can remove it.
    pub fn is_builtin(&self) -> bool {
        self.at.path.starts_with("builtin:")
    }
}

/// A policy with everything it extends, checked, and its `[[target]]` tables.
#[derive(Debug, Clone)]
pub struct LoadedPolicy {
    base: Policy,
    header: Header,
    pub(crate) tree: Table,
    pub(crate) targets: Vec<TargetTable>,
    pub(crate) sources: Arc<SourceMap>,
    files: Vec<PolicyFile>,
    warnings: Diagnostics,
}

impl LoadedPolicy {
    pub(crate) fn new(
        base: Policy,
        header: Header,
        tree: Table,
        targets: Vec<TargetTable>,
        sources: Arc<SourceMap>,
        files: Vec<PolicyFile>,
        warnings: Diagnostics,
    ) -> Self {
        Self { base, header, tree, targets, sources, files, warnings }
    }

    /// The policy without any `[[target]]` applied.
    pub fn base(&self) -> &Policy {
        &self.base
    }

    /// Name, as written or else from the file's name.
    pub fn name(&self) -> &str {
        &self.header.name
    }

    /// Path of the file, or `builtin:NAME`.
    pub fn path(&self) -> &str {
        &self.header.path
    }

    /// SHA-256 of the file's bytes, lower-case hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.header.sha256
    }

    /// The file and everything it extends, in the order read.
    pub fn files(&self) -> &[PolicyFile] {
        &self.files
    }

    /// What was found odd while reading; no reason not to use the policy.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// Places of the `[[target]]` tables that apply to a target, in order.
    pub fn applied(&self, key: &TargetKey<'_>) -> Vec<PolicyPlace> {
        self.targets.iter().filter(|table| table.matcher.matches(key)).map(|table| table.at.clone()).collect()
    }

    /// The policy with one `[[target]]` laid on it.
    pub(crate) fn overlaid(&self, table: &TargetTable) -> Policy {
        self.with_overlays(std::iter::once(table))
    }

    fn with_overlays<'t>(&self, tables: impl Iterator<Item = &'t TargetTable>) -> Policy {
        let mut tree = self.tree.clone();
        for table in tables {
            // Remarks were made when the policy was loaded.
            merge(&mut tree, table.overlay.clone(), &mut Vec::new());
        }
        Checker::new(&self.sources, &Known::nothing()).policy(&tree, self.header.clone())
    }

    /// The policy for one target: every `[[target]]` that matches is laid on it, later ones over earlier ones.
    pub fn for_target(&self, key: &TargetKey<'_>) -> Policy {
        let mut overlays = self.targets.iter().filter(|table| table.matcher.matches(key)).peekable();
        if overlays.peek().is_none() {
            return self.base.clone();
        }
        self.with_overlays(overlays)
    }

    /// Entries that can turn out to have matched nothing, those of `[[target]]` tables included, in the order of the text.
    pub fn entries(&self) -> Vec<PolicyEntry> {
        let known = Known::nothing();
        let mut out = Vec::new();
        for table in &self.targets {
            let text = table.matcher.describe();
            out.push(PolicyEntry { kind: EntryKind::Target, text, at: table.at.clone() });
            let mut checker = Checker::new(&self.sources, &known);
            collect(&checker.policy(&alone(&table.overlay), self.header.clone()), &mut out);
        }
        collect(&self.base, &mut out);
        out.sort_by(|a, b| {
            let key =
                |entry: &PolicyEntry| (entry.at.path.clone(), entry.at.line, entry.at.column, entry.kind);
            key(a).cmp(&key(b))
        });
        out.dedup_by(|a, b| a.kind == b.kind && a.at == b.at);
        out
    }
}

impl TargetMatch {
    /// What it matches, in a few words.
    fn describe(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        let patterns = [("path", &self.path), ("product", &self.product), ("process", &self.process)];
        for (key, list) in patterns {
            words.extend(list.iter().map(|pattern| format!("{key} {}", pattern.value.text)));
        }
        words.extend(self.build_id.iter().map(|id| format!("build-id {}", id.value)));
        words.join(", ")
    }
}

fn collect(policy: &Policy, out: &mut Vec<PolicyEntry>) {
    let mut add = |kind, text: &str, at: &PolicyPlace| {
        out.push(PolicyEntry { kind, text: text.to_owned(), at: at.clone() });
    };
    for waiver in &policy.waivers {
        add(EntryKind::Waiver, &waiver.rule.value, &waiver.at);
    }
    for pattern in &policy.optimization.exempt {
        add(EntryKind::Exempt, &pattern.value.text, &pattern.at);
    }
    for level in &policy.optimization.allow {
        add(EntryKind::AllowedLevel, level.value.as_str(), &level.at);
    }
    for pattern in &policy.nginx.allow_modules {
        add(EntryKind::AllowedModule, &pattern.value.text, &pattern.at);
    }
    for requirement in &policy.compilers {
        add(EntryKind::AllowedCompiler, &requirement.value.text, &requirement.at);
    }
    for build in &policy.builds {
        add(EntryKind::AllowedBuild, &build.value, &build.at);
    }
}
