//! The tables of a policy, one function a table.

use super::names::{BASELINES, HARDENING, INSTRUMENTATION, is_baseline};
use super::{Checker, Draft, Span, Table, Value, suggest};
use crate::compiler::Level;
use crate::finding::Severity;
use crate::policy::{
    At, Ground, LibrariesPolicy, NginxPolicy, OptimizationPolicy, Pattern, Policy, RequireForbid, Setting,
};
use std::collections::BTreeMap;

/// Keys that a `[[target]]` may override, and that may stand at the top.
pub(crate) const SECTIONS: [&str; 9] =
    ["optimization", "flags", "compiler", "cpu", "hardening", "instrumentation", "nginx", "build", "rules"];

const OPTIMIZATION: [&str; 9] = [
    "minimum",
    "recommended",
    "allow",
    "evidence",
    "undetermined",
    "optimized-unproven",
    "too-small",
    "exempt",
    "libraries",
];

pub(crate) const LEVELS: [&str; 8] = ["O0", "Og", "O1", "Oz", "Os", "O2", "O3", "Ofast"];

/// What a policy is called and made of, known before its tables are read.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    /// Name.
    pub(crate) name: String,
    /// File, or `builtin:NAME`.
    pub(crate) path: String,
    /// SHA-256 of the file's bytes.
    pub(crate) sha256: String,
}

impl Checker<'_> {
    /// Reports unknown keys at the top of a policy.
    pub(crate) fn top_keys(&mut self, tree: &Table) {
        let mut keys = vec!["schema", "name", "extends", "target", "waiver"];
        keys.extend(SECTIONS);
        self.unknown_keys(tree, &keys, "the policy");
    }

    /// Reports unknown keys of a `[[target]]`.
    pub(crate) fn target_keys(&mut self, table: &Table) {
        let mut keys = vec!["match"];
        keys.extend(SECTIONS);
        self.unknown_keys(table, &keys, "`[[target]]`");
    }

    /// Reads the tables of a merged tree; waivers are read apart.
    pub(crate) fn policy(&mut self, tree: &Table, header: Header) -> Policy {
        let optimization = self.optimization(tree);
        let flags = match self.table(tree, "flags", &["require", "forbid"], "`[flags]`") {
            Some(table) => self.require_forbid(table, Pattern::word),
            None => RequireForbid::default(),
        };
        Policy {
            name: header.name,
            path: header.path,
            sha256: header.sha256,
            optimization,
            flags,
            compilers: self.compilers(tree),
            cpu_baseline: self.cpu(tree),
            hardening: self.hardening(tree),
            instrumentation_forbid: self.instrumentation(tree),
            nginx: self.nginx(tree),
            builds: self.builds(tree),
            rules: self.rules(tree),
            waivers: self.waivers(tree),
        }
    }

    fn optimization(&mut self, tree: &Table) -> OptimizationPolicy {
        let empty = Table::default();
        let table = self.table(tree, "optimization", &OPTIMIZATION, "`[optimization]`").unwrap_or(&empty);
        let fallback = |value| At { value, at: crate::policy::load::defaults_place() };
        let error = Setting::Report(Severity::Error);
        let warning = Setting::Report(Severity::Warning);
        OptimizationPolicy {
            minimum: self.level(table, "minimum"),
            recommended: self.level(table, "recommended"),
            allow: self
                .strings(table, "allow")
                .into_iter()
                .filter_map(|item| self.level_word(item))
                .collect(),
            evidence: self
                .ground(table)
                .unwrap_or(At { value: Ground::Corroborated, at: fallback(error).at }),
            undetermined: self.setting(table, "undetermined").unwrap_or(fallback(error)),
            optimized_unproven: self.setting(table, "optimized-unproven").unwrap_or(fallback(warning)),
            too_small: self.setting(table, "too-small").unwrap_or(fallback(warning)),
            exempt: self.patterns(table, "exempt", Pattern::path),
            libraries: self
                .table(table, "libraries", &["minimum", "undetermined"], "`optimization.libraries`")
                .map(|inner| LibrariesPolicy {
                    minimum: self.level(inner, "minimum"),
                    undetermined: self.setting(inner, "undetermined"),
                }),
        }
    }

    fn level(&mut self, table: &Table, key: &str) -> Option<At<Level>> {
        let entry = table.get(key)?;
        if let Value::Integer(number) = entry.node.value {
            let level = format!("O{number}");
            let draft = Draft::error(entry.node.span, format!("`{key}` has the wrong type"));
            let mark = "expected a level in quotes, found an integer";
            let draft = draft.mark(mark);
            self.drafts.push(if LEVELS.contains(&level.as_str()) {
                draft.help(format!("did you mean `\"{level}\"`?"))
            } else {
                draft
            });
            return None;
        }
        let item = self.string(table, key)?;
        self.level_word(item)
    }

    fn level_word(&mut self, (word, span): (&str, Span)) -> Option<At<Level>> {
        if let Some(level) = Level::NAMED.into_iter().find(|level| level.as_str() == word) {
            return Some(self.at(level, span));
        }
        let draft = Draft::error(span, format!("unknown level `{word}`"));
        // `-O2`, `o2`, `2` and `s` all say clearly what is meant; by edit distance alone `2` would be near everything.
        let bare = word.trim_start_matches('-');
        let core = bare.strip_prefix(['O', 'o', '0']).filter(|_| bare != "0").unwrap_or(bare);
        let meant = LEVELS
            .into_iter()
            .find(|level| level.get(1..).is_some_and(|rest| rest.eq_ignore_ascii_case(core)))
            .or(match core {
                "" => Some("O1"),
                "4" | "5" | "6" | "7" | "8" | "9" | "max" => Some("O3"),
                _ => None,
            });
        self.drafts.push(match meant {
            Some(level) => draft.mark(format!("did you mean `{level}`?")),
            None => draft.help(format!("known levels: {}", LEVELS.join(", "))),
        });
        None
    }

    fn ground(&mut self, table: &Table) -> Option<At<Ground>> {
        let (word, span) = self.string(table, "evidence")?;
        let ground = match word {
            "recorded" => Ground::Recorded,
            "corroborated" => Ground::Corroborated,
            "declared" => Ground::Declared,
            _ => {
                self.word(word, span, "ground", &["recorded", "corroborated", "declared"]);
                return None;
            }
        };
        Some(self.at(ground, span))
    }

    fn setting(&mut self, table: &Table, key: &str) -> Option<At<Setting>> {
        let item = self.string(table, key)?;
        self.setting_word(item, &["error", "warning", "ignore"])
    }

    fn setting_word(&mut self, (word, span): (&str, Span), allowed: &[&str]) -> Option<At<Setting>> {
        let setting = match word {
            _ if !allowed.contains(&word) => {
                let draft = Draft::error(span, format!("unknown severity `{word}`"));
                let nothing = if allowed.contains(&"off") { "off" } else { "ignore" };
                self.drafts.push(match word.to_ascii_lowercase().as_str() {
                    "off" | "ignore" | "none" | "allow" | "skip" | "disable" | "disabled" => {
                        draft.mark(format!("did you mean `{nothing}`?"))
                    }
                    "warn" => draft.mark("did you mean `warning`?"),
                    "deny" | "fail" | "fatal" => draft.mark("did you mean `error`?"),
                    "info" | "hint" if allowed.contains(&"note") => draft.mark("did you mean `note`?"),
                    _ => suggest(draft, word, allowed, "known severities"),
                });
                return None;
            }
            "error" => Setting::Report(Severity::Error),
            "warning" => Setting::Report(Severity::Warning),
            "note" => Setting::Report(Severity::Note),
            _ => Setting::Ignore,
        };
        Some(self.at(setting, span))
    }

    fn require_forbid(&mut self, table: &Table, build: fn(&str) -> Result<Pattern, String>) -> RequireForbid {
        RequireForbid {
            require: self.patterns(table, "require", build),
            forbid: self.patterns(table, "forbid", build),
        }
    }

    fn compilers(&mut self, tree: &Table) -> Vec<At<crate::policy::VersionRequirement>> {
        let Some(table) = self.table(tree, "compiler", &["allow"], "`[compiler]`") else { return Vec::new() };
        let items = self.strings(table, "allow");
        let mut out = Vec::new();
        for item in items {
            let Some(requirement) = self.requirement(item) else { continue };
            if requirement.value.name.is_empty() {
                let title = format!("`{}` names no compiler", item.0);
                let help = format!("write for example `gcc {}`", item.0.trim());
                self.drafts.push(Draft::error(item.1, title).help(help));
                continue;
            }
            self.family(&requirement.value.name, item.1);
            out.push(requirement);
        }
        out
    }

    fn cpu(&mut self, tree: &Table) -> Option<At<String>> {
        let table = self.table(tree, "cpu", &["baseline"], "`[cpu]`")?;
        let (word, span) = self.string(table, "baseline")?;
        if is_baseline(word) {
            return Some(self.at(word.to_owned(), span));
        }
        self.word(word, span, "baseline", &BASELINES);
        None
    }

    fn hardening(&mut self, tree: &Table) -> BTreeMap<String, At<String>> {
        let keys: Vec<&str> = HARDENING.iter().map(|(key, _)| *key).collect();
        let mut out = BTreeMap::new();
        let Some(table) = self.table(tree, "hardening", &keys, "`[hardening]`") else { return out };
        for (key, words) in HARDENING {
            let Some(entry) = table.get(key) else { continue };
            let span = entry.node.span;
            let value = match &entry.node.value {
                Value::Boolean(yes) if words.is_empty() => yes.to_string(),
                Value::String(word) if !words.is_empty() => {
                    if !self.word(word, span, &format!("`{key}` value"), words) {
                        continue;
                    }
                    word.clone()
                }
                _ if words.is_empty() => {
                    self.wrong_type(&entry.node, key, "true or false");
                    continue;
                }
                _ => {
                    let expected = format!("one of \"{}\"", words.join("\", \""));
                    self.wrong_type(&entry.node, key, &expected);
                    continue;
                }
            };
            out.insert(key.to_owned(), self.at(value, span));
        }
        out
    }

    fn instrumentation(&mut self, tree: &Table) -> Vec<At<String>> {
        let Some(table) = self.table(tree, "instrumentation", &["forbid"], "`[instrumentation]`") else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for (word, span) in self.strings(table, "forbid") {
            if self.word(word, span, "kind of instrumentation", &INSTRUMENTATION) {
                out.push(self.at(word.to_owned(), span));
            }
        }
        out
    }

    fn nginx(&mut self, tree: &Table) -> NginxPolicy {
        let mut out = NginxPolicy::default();
        let keys = ["version", "base-version", "modules", "configure"];
        let Some(nginx) = self.table(tree, "nginx", &keys, "`[nginx]`") else { return out };
        out.version = self.versions(nginx, "version");
        out.base_version = self.versions(nginx, "base-version");
        let keys = ["require", "forbid", "allow", "exact"];
        if let Some(modules) = self.table(nginx, "modules", &keys, "`[nginx.modules]`") {
            out.modules = self.require_forbid(modules, Pattern::word);
            out.allow_modules = self.patterns(modules, "allow", Pattern::word);
            out.exact = self.boolean(modules, "exact");
            for key in ["require", "forbid", "allow"] {
                for (text, span) in plain_strings(modules, key) {
                    if let Ok(pattern) = Pattern::word(text) {
                        self.module(&pattern, span);
                    }
                }
            }
        }
        if let Some(configure) = self.table(nginx, "configure", &["require", "forbid"], "`[nginx.configure]`")
        {
            out.configure = self.require_forbid(configure, Pattern::word);
        }
        out
    }

    fn versions(&mut self, table: &Table, key: &str) -> Vec<At<crate::policy::VersionRequirement>> {
        let mut out = Vec::new();
        for item in self.strings(table, key) {
            let Some(requirement) = self.requirement(item) else { continue };
            let named = &requirement.value.name;
            if named.is_empty() {
                out.push(requirement);
                continue;
            }
            let rest = item.0.trim().strip_prefix(named.as_str()).unwrap_or("").trim();
            let draft = Draft::error(item.1, format!("`{key}` takes a version, not the name `{named}`"));
            self.drafts.push(if rest.is_empty() { draft } else { draft.help(format!("write `{rest}`")) });
        }
        out
    }

    fn builds(&mut self, tree: &Table) -> Vec<At<String>> {
        let Some(table) = self.table(tree, "build", &["allow"], "`[build]`") else { return Vec::new() };
        self.strings(table, "allow").into_iter().filter_map(|item| self.build_id(item)).collect()
    }

    /// A build-id in hexadecimal, lower-cased. Fewer than 8 digits would match by chance.
    pub(super) fn build_id(&mut self, (text, span): (&str, Span)) -> Option<At<String>> {
        let reason = if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            "only the digits 0-9 and a-f can stand here"
        } else if text.len() < 8 {
            "fewer than 8 digits would match other builds too"
        } else {
            return Some(self.at(text.to_ascii_lowercase(), span));
        };
        self.drafts.push(
            Draft::error(span, format!("bad build-id `{text}`"))
                .mark(reason)
                .help("`flagaudit inspect FILE` and `readelf -n FILE` show it"),
        );
        None
    }

    fn rules(&mut self, tree: &Table) -> BTreeMap<String, At<Setting>> {
        let mut out = BTreeMap::new();
        let Some(entry) = tree.get("rules") else { return out };
        let Value::Table(table) = &entry.node.value else {
            self.wrong_type(&entry.node, "rules", "a table");
            return out;
        };
        for entry in &table.entries {
            if !self.rule(&entry.key, entry.key_span) {
                continue;
            }
            let Some(item) = self.node_string(&entry.node, &entry.key) else { continue };
            if let Some(setting) = self.setting_word(item, &["error", "warning", "note", "off"]) {
                out.insert(entry.key.clone(), setting);
            }
        }
        out
    }
}

/// The strings of a list that was already checked.
fn plain_strings<'n>(parent: &'n Table, key: &str) -> Vec<(&'n str, Span)> {
    let Some(Value::List(items)) = parent.get(key).map(|entry| &entry.node.value) else { return Vec::new() };
    items
        .iter()
        .filter_map(|item| match &item.value {
            Value::String(text) => Some((text.as_str(), item.span)),
            _ => None,
        })
        .collect()
}
