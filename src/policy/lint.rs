//! What a sound policy says in vain: entries that can never match, contradict each other or have run out.

use super::dates::WaiverState;
use super::diagnostic::{Diagnostics, Draft, did_you_mean};
use super::known::Known;
use super::matching::module_matches;
use super::source::Span;
use super::target::LoadedPolicy;
use super::tree::{Node, Table, Value};
use super::{At, Comparison, Pattern, Policy, Setting, VersionRequirement, Waiver};
use crate::compiler::{Level, Satisfies};
use crate::finding::PolicyPlace;
use jiff::civil::Date;
use std::collections::HashMap;
use std::sync::Arc;

/// `[hardening]` keys with the rule that reports them.
const HARDENING_RULES: [(&str, &str); 9] = [
    ("pie", "missing-pie"),
    ("relro", "partial-relro"),
    ("bind-now", "partial-relro"),
    ("nx-stack", "executable-stack"),
    ("stack-protector", "missing-stack-protector"),
    ("fortify", "missing-fortify"),
    ("cet", "missing-cet"),
    ("rpath", "insecure-rpath"),
    ("text-relocations", "text-relocation"),
];

/// Everything `policy validate` has to say about a policy that loaded: what was found odd while reading, and what can
/// never match. Lines of built-in policies are not remarked on, since nobody can change them.
pub fn validate(policy: &LoadedPolicy, known: &Known<'_>, today: Date) -> Diagnostics {
    let mut lint = Lint { known, today, spans: HashMap::new(), drafts: policy.warnings().drafts() };
    lint.index_table(policy, &policy.tree);
    for target in &policy.targets {
        lint.index_table(policy, &target.overlay);
        if let Some(entry) = &target.written {
            lint.index(policy, &entry.node);
        }
    }
    lint.whole(policy);
    lint.judge(policy.base());
    lint.off(policy.base());
    lint.waivers(policy.base());
    for target in &policy.targets {
        for pattern in &target.matcher.path {
            lint.shallow(pattern);
        }
        lint.judge(&policy.overlaid(target));
    }
    Diagnostics::new(Arc::clone(&policy.sources), lint.drafts)
}

struct Lint<'a> {
    known: &'a Known<'a>,
    today: Date,
    /// Places back to spans, for marks under whole values.
    spans: HashMap<(String, u32, u32), Span>,
    drafts: Vec<Draft>,
}

impl Lint<'_> {
    fn index(&mut self, policy: &LoadedPolicy, node: &Node) {
        let place = policy.sources.place(node.span);
        self.spans.insert((place.path, place.line, place.column), node.span);
        match &node.value {
            Value::List(items) => items.iter().for_each(|item| self.index(policy, item)),
            Value::Table(table) => self.index_table(policy, table),
            _ => {}
        }
    }

    fn index_table(&mut self, policy: &LoadedPolicy, table: &Table) {
        for entry in &table.entries {
            self.index(policy, &entry.node);
        }
    }

    fn span(&self, at: &PolicyPlace) -> Option<Span> {
        if at.path.starts_with("builtin:") {
            return None;
        }
        self.spans.get(&(at.path.clone(), at.line, at.column)).copied()
    }

    /// A warning at a place, if the place is the user's own.
    fn warn(&mut self, at: &PolicyPlace, title: impl Into<String>, mark: impl Into<String>) {
        if let Some(span) = self.span(at) {
            self.drafts.push(Draft::warning(span, title).mark(mark));
        }
    }

    /// A warning at `at` that concerns `other` too.
    fn warn_pair(&mut self, at: &PolicyPlace, other: &PolicyPlace, title: String, words: &str) {
        // Whichever of the two is the user's carries the mark.
        match (self.span(at), self.span(other)) {
            (Some(span), Some(also)) => self.drafts.push(Draft::warning(span, title).also(also, words)),
            (Some(span), None) | (None, Some(span)) => self.drafts.push(Draft::warning(span, title)),
            (None, None) => {}
        }
    }

    fn whole(&mut self, policy: &LoadedPolicy) {
        let base = policy.base();
        let silent = base.optimization.minimum.is_none()
            && base.optimization.recommended.is_none()
            && policy.targets.is_empty()
            && base.flags.require.is_empty()
            && base.flags.forbid.is_empty()
            && base.compilers.is_empty()
            && base.cpu_baseline.is_none()
            && base.hardening.is_empty()
            && base.instrumentation_forbid.is_empty()
            && base.builds.is_empty()
            && base.nginx.version.is_empty()
            && base.nginx.base_version.is_empty()
            && base.nginx.modules.require.is_empty()
            && base.nginx.modules.forbid.is_empty()
            && base.nginx.exact.is_none()
            && base.nginx.configure.require.is_empty()
            && base.nginx.configure.forbid.is_empty()
            && base.rules.is_empty();
        if silent && !policy.path().starts_with("builtin:") {
            self.drafts.push(
                Draft::warning(Span::new(0, 0..0), "this policy asks for nothing")
                    .help("start from a built-in one: extends = \"builtin:release\""),
            );
        }
        for target in &policy.targets {
            if target.overlay.entries.is_empty() {
                self.warn(&target.at, "this target overrides nothing", "");
            }
        }
    }

    fn judge(&mut self, policy: &Policy) {
        self.levels(policy);
        for pattern in &policy.optimization.exempt {
            self.shallow(pattern);
            if matches_everything(pattern) {
                let title = format!("`{}` exempts every unit: no level is judged", pattern.value.text);
                self.warn(&pattern.at, title, "name the units; a `[[waiver]]` also says why and until when");
            }
        }
        self.twice(&policy.optimization.exempt, "exempt");
        self.flags(policy);
        self.modules(policy);
        self.configure(policy);
        for requirement in
            policy.compilers.iter().chain(&policy.nginx.version).chain(&policy.nginx.base_version)
        {
            if let Some(reason) = contradiction(&requirement.value) {
                self.warn(&requirement.at, format!("no version meets `{}`", requirement.value.text), reason);
            }
        }
    }

    /// Rules that are off although something asks for them. Only for the policy as a whole: a `[[target]]` that turns a
    /// rule off makes an exception on purpose.
    fn off(&mut self, policy: &Policy) {
        for (key, rule) in HARDENING_RULES {
            let (Some(wanted), Some(rule_setting)) = (policy.hardening.get(key), policy.rules.get(rule))
            else {
                continue;
            };
            let tolerant = if matches!(key, "rpath" | "text-relocations") { "true" } else { "false" };
            if rule_setting.value == Setting::Ignore && wanted.value != tolerant && wanted.value != "none" {
                let title = format!("`{key}` is asked for, and `{rule}`, which reports it, is off");
                self.warn_pair(&wanted.at, &rule_setting.at, title, "off here");
            }
        }
    }

    fn levels(&mut self, policy: &Policy) {
        let optimization = &policy.optimization;
        if let (Some(minimum), Some(recommended)) = (&optimization.minimum, &optimization.recommended) {
            // With allowed levels, `recommended` below `minimum` has a meaning: which of them pass without a warning.
            let lower = recommended.value.satisfies(minimum.value) == Satisfies::No;
            if lower && optimization.allow.is_empty() {
                let title =
                    format!("`minimum` {} is above `recommended` {}", minimum.value, recommended.value);
                self.warn_pair(
                    &recommended.at,
                    &minimum.at,
                    title,
                    "what is recommended can never be reached",
                );
            }
        }
        if let Some(minimum) = &optimization.minimum
            && matches!(minimum.value, Level::Os | Level::Oz)
        {
            let title = format!("as a minimum, {} means O1", minimum.value);
            let mark = "to ask for more and accept this too: minimum = \"O2\", allow = [\"Os\"]";
            self.warn(&minimum.at, title, mark);
        }
        if let Some(minimum) = &optimization.minimum
            && minimum.value == Level::O0
        {
            self.warn(
                &minimum.at,
                "every code meets a minimum of O0",
                "unoptimized code passes; O1 is the least that forbids it",
            );
        }
        for allowed in &optimization.allow {
            if allowed.value == Level::O0 {
                let mark = "unoptimized code passes everywhere; a waiver names what and why";
                self.warn(&allowed.at, "O0 is allowed", mark);
            } else if let Some(minimum) = &optimization.minimum
                && allowed.value.satisfies(minimum.value) == Satisfies::Yes
            {
                let title = format!("{} meets the minimum {} anyway", allowed.value, minimum.value);
                self.warn(&allowed.at, title, "this entry changes nothing");
            }
        }
    }

    /// A pattern such as `*.S` for paths: `*` stops at `/`, so it covers the topmost directory only.
    fn shallow(&mut self, pattern: &At<Pattern>) {
        let text = &pattern.value.text;
        if pattern.value.literal().is_none() && !text.contains('/') && !text.starts_with("**") {
            let title = format!("`{text}` matches only names without a directory");
            self.warn(&pattern.at, title, format!("for any directory write `**/{text}`"));
        }
    }

    fn twice(&mut self, list: &[At<Pattern>], key: &str) {
        let mut seen: HashMap<&str, &At<Pattern>> = HashMap::new();
        for item in list {
            if let Some(first) = seen.get(item.value.text.as_str()) {
                let title = format!("`{}` is in `{key}` twice", item.value.text);
                self.warn_pair(&item.at, &first.at, title, "first here");
            } else {
                seen.insert(&item.value.text, item);
            }
        }
    }

    fn flags(&mut self, policy: &Policy) {
        let flags = &policy.flags;
        for pattern in flags.require.iter().chain(&flags.forbid) {
            let text = &pattern.value.text;
            let regex = matches!(pattern.value.matcher, super::Matcher::Regex(_));
            if !regex && !text.starts_with(['-', '*', '?', '[', '{', '\\']) {
                let mark = format!("did you mean `-{text}`?");
                self.warn(&pattern.at, format!("`{text}` is not a flag: flags begin with `-`"), mark);
            } else if let Some(reason) = (self.known.never_recorded)(text) {
                let title = format!("`{text}` can never be told from a binary: always undetermined");
                self.warn(&pattern.at, title, reason);
            }
        }
        self.twice(&flags.require, "require");
        self.twice(&flags.forbid, "forbid");
        for required in &flags.require {
            let Some(literal) = required.value.literal() else { continue };
            if let Some(forbidden) = flags.forbid.iter().find(|pattern| pattern.value.matches(literal)) {
                let title = format!("`{literal}` is required and forbidden");
                self.warn_pair(&required.at, &forbidden.at, title, "forbidden here");
            }
        }
    }

    fn modules(&mut self, policy: &Policy) {
        let modules = &policy.nginx.modules;
        self.twice(&modules.require, "require");
        self.twice(&modules.forbid, "forbid");
        self.twice(&policy.nginx.allow_modules, "allow");
        let known = if modules.forbid.is_empty() { Vec::new() } else { (self.known.modules)() };
        for required in &modules.require {
            let Some(literal) = required.value.literal() else { continue };
            // A short name can mean several modules; it is out of reach only if all of them are forbidden.
            let meant: Vec<&String> =
                known.iter().filter(|symbol| module_matches(&required.value, symbol)).collect();
            let forbidden = modules.forbid.iter().find(|forbid| {
                let covered = |symbol: &str| module_matches(&forbid.value, symbol);
                covered(literal) || (!meant.is_empty() && meant.iter().all(|symbol| covered(symbol)))
            });
            if let Some(forbidden) = forbidden {
                let title = format!("module `{}` is required and forbidden", required.value.text);
                self.warn_pair(&required.at, &forbidden.at, title, "forbidden here");
            }
        }
        match &policy.nginx.exact {
            Some(exact)
                if exact.value && modules.require.is_empty() && policy.nginx.allow_modules.is_empty() =>
            {
                self.warn(&exact.at, "`exact` without `require` or `allow`: every module is reported", "");
            }
            Some(exact) if !exact.value => {
                if let Some(first) = policy.nginx.allow_modules.first() {
                    self.warn_pair(
                        &first.at,
                        &exact.at,
                        "`allow` counts only with `exact = true`".into(),
                        "here",
                    );
                }
            }
            None => {
                if let Some(first) = policy.nginx.allow_modules.first() {
                    self.warn(&first.at, "`allow` counts only with `exact = true`", "");
                }
            }
            Some(_) => {}
        }
    }

    fn configure(&mut self, policy: &Policy) {
        let configure = &policy.nginx.configure;
        let both = configure.require.iter().chain(&configure.forbid);
        let options = if both.clone().next().is_some() { (self.known.options)() } else { Vec::new() };
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        self.twice(&configure.require, "require");
        self.twice(&configure.forbid, "forbid");
        for pattern in both {
            let text = &pattern.value.text;
            let regex = matches!(pattern.value.matcher, super::Matcher::Regex(_));
            if !regex && !text.starts_with(['-', '*', '?', '[', '{', '\\']) {
                let mark = format!("did you mean `--{text}`?");
                self.warn(&pattern.at, format!("`{text}` is no argument of nginx's configure"), mark);
            } else if let Some(literal) = pattern.value.literal() {
                // The value may be anything, so only the name is looked up.
                let name = literal.split('=').next().unwrap_or(literal);
                if !options.is_empty() && !options.contains(&name) {
                    let mark = did_you_mean(name, options.iter().copied());
                    let mark = mark.map_or_else(String::new, |near| format!("did you mean `{near}`?"));
                    self.warn(&pattern.at, format!("nginx's configure knows no `{name}`"), mark);
                }
            }
        }
        for required in &configure.require {
            let Some(literal) = required.value.literal() else { continue };
            if let Some(forbidden) = configure.forbid.iter().find(|pattern| pattern.value.matches(literal)) {
                let title = format!("`{literal}` is required and forbidden");
                self.warn_pair(&required.at, &forbidden.at, title, "forbidden here");
            }
        }
    }

    fn waivers(&mut self, policy: &Policy) {
        for (index, waiver) in policy.waivers.iter().enumerate() {
            let rule = &waiver.rule.value;
            if let Some(expires) = &waiver.expires
                && let WaiverState::Expired(days) = waiver.state(self.today)
            {
                let title = format!("this waiver of `{rule}` has expired");
                let plural = if days == 1 { "" } else { "s" };
                self.warn(&expires.at, title, format!("{days} day{plural} ago; the finding is back"));
            }
            if subject(waiver).iter().all(|(_, text)| text.is_none()) {
                let title = format!("this waiver covers every finding of `{rule}`");
                self.warn(
                    &waiver.rule.at,
                    title,
                    "narrow it with unit, function, module, target or fingerprint",
                );
            }
            if let Some(setting) = policy.rules.get(rule)
                && setting.value == Setting::Ignore
            {
                let title = format!("`{rule}` is off: there is nothing to waive");
                self.warn_pair(&waiver.rule.at, &setting.at, title, "off here");
            }
            if let Some(unit) = &waiver.unit {
                self.shallow(unit);
                if matches_everything(unit) {
                    let title = format!("`{}` waives `{rule}` for every unit", unit.value.text);
                    self.warn(&unit.at, title, "name the units that need it");
                }
            }
            let same = |first: &&Waiver| first.rule.value == *rule && subject(first) == subject(waiver);
            if let Some(first) = policy.waivers.iter().take(index).find(same) {
                let title = format!("this waiver of `{rule}` covers the same as an earlier one");
                self.warn_pair(&waiver.rule.at, &first.rule.at, title, "the earlier one");
            }
        }
    }
}

/// Whether a pattern for paths leaves nothing out.
fn matches_everything(pattern: &At<Pattern>) -> bool {
    ["a.c", "src/core/nginx.c", "/build/x/Y.S", "..", "\u{e9} \n"]
        .iter()
        .all(|path| pattern.value.matches(path))
}

/// What a waiver covers, as written.
fn subject(waiver: &Waiver) -> [(&'static str, Option<&str>); 7] {
    fn of(pattern: Option<&At<Pattern>>) -> Option<&str> {
        pattern.map(|pattern| pattern.value.text.as_str())
    }
    [
        ("unit", of(waiver.unit.as_ref())),
        ("function", of(waiver.function.as_ref())),
        ("module", of(waiver.module.as_ref())),
        ("upstream", of(waiver.upstream.as_ref())),
        ("file", of(waiver.file.as_ref())),
        ("target", of(waiver.target.as_ref())),
        ("fingerprint", waiver.fingerprint.as_ref().map(|text| text.value.as_str())),
    ]
}

/// Why no version can meet a requirement, if none can: a lower bound at or above an upper bound.
fn contradiction(requirement: &VersionRequirement) -> Option<String> {
    let bound = |kinds: &[Comparison]| {
        let kinds = kinds.to_vec();
        requirement
            .comparisons
            .iter()
            .filter(move |(kind, _)| kinds.contains(kind))
            .map(|(_, version)| version)
    };
    for low in bound(&[Comparison::AtLeast, Comparison::Above, Comparison::Equal, Comparison::Compatible]) {
        for high in bound(&[Comparison::Below]) {
            if low >= high {
                return Some("the lower bound is not below the upper one".to_owned());
            }
        }
        for high in bound(&[Comparison::AtMost]) {
            if low.iter().take(high.len()).gt(high.iter()) {
                return Some("the lower bound is above the upper one".to_owned());
            }
        }
    }
    None
}
