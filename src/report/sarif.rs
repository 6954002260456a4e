//! SARIF 2.1.0 (OASIS, errata 01) as GitHub code scanning, Azure DevOps and editors read it.
//!
//! One run. Every result has a place with a relative, percent-encoded URI and a line: services refuse a whole file for
//! one result without. Fingerprints come from the finding's own, which knows neither paths nor runs.

use super::escape::{json_controls, sarif_message as message, terminal};
use super::shared::{RuleDoc, clip, compiler, details};
use super::{CheckReport, InspectReport, Tool, text};
use crate::facts::{Facts, Status};
use crate::finding::{Finding, FindingStatus, PolicyPlace, Severity};
use crate::wording::grouped;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

mod model;
mod uri;

use model::{
    Artifact, ArtifactLocation, Configuration, Descriptor, Driver, Help, Invocation, Location, Log,
    LogicalLocation, Message, Notification, PhysicalLocation, Region, RelatedLocation, SarifResult,
    Suppression,
};

/// Most results in a run. GitHub shows the 5,000 worst and refuses more than 25,000.
const MOST_RESULTS: usize = 5_000;
/// Most places of one result; GitHub shows 100.
const MOST_LOCATIONS: usize = 100;
/// Bytes of the document, if fewer results make it so. GitHub takes 10 MB after compression, and the validator reads no
/// file above 10,000 KB unless told to.
const MOST_BYTES: usize = 9_500_000;
/// Most notifications; a broken directory makes one per file.
const MOST_NOTIFICATIONS: usize = 1_000;
/// Most artifacts listed.
const MOST_ARTIFACTS: usize = 1_000;
/// Characters of a message.
const MESSAGE_CHARS: usize = 4_000;

/// The document of `inspect`: it judges nothing, so it has no results. Facts stand in the artifacts' properties, and
/// what could not be read stands in the notifications.
pub fn inspect(report: &InspectReport, base: Option<&Path>) -> Result<String, serde_json::Error> {
    let facts: Vec<&Facts> = report.targets.iter().collect();
    let invocation = invocation(&facts, &[], base);
    render(&report.tool, Vec::new(), Vec::new(), artifacts(&facts, base), invocation)
}

/// The document of `check`. `rules` are documented as rules of the run; `base` is the directory that paths are made
/// relative to (the root of the repository, as a rule the current directory). Without it, an absolute path only loses
/// its leading slash.
pub fn check(
    report: &CheckReport,
    rules: &[RuleDoc],
    base: Option<&Path>,
) -> Result<String, serde_json::Error> {
    let mut most = MOST_RESULTS;
    loop {
        let text = check_with(report, rules, base, most)?;
        if text.len() <= MOST_BYTES || most < 100 {
            return Ok(text);
        }
        most /= 2;
    }
}

fn check_with(
    report: &CheckReport,
    rules: &[RuleDoc],
    base: Option<&Path>,
    most: usize,
) -> Result<String, serde_json::Error> {
    let facts: Vec<&Facts> = report.targets.iter().map(|target| &target.facts).collect();
    let mut results = Vec::new();
    let mut notes = Vec::new();
    let mut table = RuleTable::new(rules);
    for target in &report.targets {
        let binary = place(uri::of_facts(&target.facts, base), 1, None);
        for finding in &target.findings {
            match finding.status {
                FindingStatus::Passed => {}
                FindingStatus::NotChecked => notes.push((finding, binary.clone())),
                _ => results.push(result(finding, binary.clone(), Some(&target.facts), &mut table, base)),
            }
        }
    }
    for finding in &report.policy_findings {
        let at = finding.policy.as_ref().map_or_else(
            || place(uri::of_path(&report.policy.path, base), 1, None),
            |at| policy_place(at, base),
        );
        if finding.counts() || finding.status == FindingStatus::Waived {
            results.push(result(finding, at, None, &mut table, base));
        }
    }
    let mut results = aggregate(results, most);
    number_fingerprints(&mut results);
    let invocation = invocation(&facts, &notes, base);
    render(&report.tool, table.descriptors, results, artifacts(&facts, base), invocation)
}

fn render(
    tool: &Tool,
    rules: Vec<Descriptor>,
    results: Vec<SarifResult>,
    artifacts: Vec<Artifact>,
    invocation: Invocation,
) -> Result<String, serde_json::Error> {
    // A page for people where the package names one; otherwise the package's own identity.
    let information_uri = [env!("CARGO_PKG_HOMEPAGE"), env!("CARGO_PKG_REPOSITORY")]
        .into_iter()
        .find(|uri| !uri.is_empty())
        .map_or_else(|| format!("pkg:cargo/{}", tool.name), str::to_owned);
    let log = Log {
        schema: "https://json.schemastore.org/sarif-2.1.0.json",
        version: "2.1.0",
        runs: [model::Run {
            tool: model::ToolOf {
                driver: Driver {
                    name: tool.name.clone(),
                    version: tool.version.clone(),
                    semantic_version: tool.version.clone(),
                    information_uri,
                    rules,
                },
            },
            invocations: [invocation],
            artifacts,
            results,
            column_kind: "unicodeCodePoints",
        }],
    };
    let mut out = json_controls(&serde_json::to_string(&log)?);
    out.push('\n');
    Ok(out)
}

/// Rules of the run with their places in the list.
struct RuleTable {
    descriptors: Vec<Descriptor>,
    index: HashMap<String, usize>,
}

impl RuleTable {
    fn new(rules: &[RuleDoc]) -> Self {
        let mut table = Self { descriptors: Vec::new(), index: HashMap::new() };
        for rule in rules {
            table.add(&rule.id, &rule.summary, &rule.help_markdown, rule.severity);
        }
        table
    }

    fn add(&mut self, id: &str, summary: &str, help: &str, severity: Severity) -> usize {
        let index = self.descriptors.len();
        let sentence = message(&sentence(if summary.is_empty() { id } else { summary }));
        let help = if help.is_empty() { sentence.clone() } else { help.to_owned() };
        self.descriptors.push(Descriptor {
            id: id.to_owned(),
            name: Some(pascal(id)).filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case(id)),
            short_description: Message::text(sentence.clone()),
            full_description: Message::text(sentence),
            help: Help { text: help.clone(), markdown: help },
            default_configuration: Configuration { level: severity.as_str() },
            properties: json!({ "tags": ["build"], "precision": "high", "problem.severity": match severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "recommendation",
            } }),
        });
        self.index.insert(id.to_owned(), index);
        index
    }

    /// The rule's place; a rule without documentation is added by its id.
    fn of(&mut self, id: &str, severity: Severity) -> usize {
        match self.index.get(id) {
            Some(index) => *index,
            None => self.add(id, "", "", severity),
        }
    }
}

/// `unoptimized-code` as `UnoptimizedCode`.
fn pascal(id: &str) -> String {
    id.split('-')
        .map(|word| {
            let mut rest = word.chars().filter(char::is_ascii_alphanumeric);
            rest.next().map(|first| first.to_uppercase().chain(rest).collect::<String>()).unwrap_or_default()
        })
        .collect()
}

/// The text with a full stop at its end, as SARIF wants it.
fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

fn result(
    finding: &Finding,
    binary: PhysicalLocation,
    facts: Option<&Facts>,
    table: &mut RuleTable,
    base: Option<&Path>,
) -> SarifResult {
    let waived = finding.status == FindingStatus::Waived;
    let physical_location = match &finding.location {
        Some(at) => place(uri::of_path(&at.path, base), at.line, Some(at.column)),
        None => binary,
    };
    let subject = facts.map(|facts| format!("{}: ", clip(&text::name(facts), 200))).unwrap_or_default();
    let mut lines = vec![message(&sentence(&format!("{subject}{}", finding.message)))];
    for (label, line) in details(finding) {
        lines.push(message(&sentence(&format!("{label}: {line}"))));
    }
    let related =
        finding.policy.as_ref().filter(|at| !at.path.starts_with("builtin:")).map(|at| RelatedLocation {
            id: 1,
            physical_location: policy_place(at, base),
            message: Message::text("The policy value that judged.".to_owned()),
        });
    SarifResult {
        rule_id: finding.rule.clone(),
        rule_index: table.of(&finding.rule, finding.severity),
        // What is waived must not fail a gate that looks at levels alone.
        level: if waived { Severity::Note } else { finding.severity },
        message: Message::text(clip(&lines.join("\n"), MESSAGE_CHARS)),
        locations: vec![Location {
            physical_location,
            logical_locations: finding
                .units
                .iter()
                .filter(|unit| !unit.name.is_empty())
                .map(|unit| LogicalLocation { fully_qualified_name: clip(&unit.name, 500), kind: "module" })
                .collect(),
        }],
        related_locations: related.into_iter().collect(),
        partial_fingerprints: fingerprints(&finding.fingerprint),
        suppressions: finding.waiver.as_ref().filter(|_| waived).map(|waiver| {
            vec![Suppression {
                kind: "external",
                status: "accepted",
                justification: clip(&terminal(&waiver.reason), MESSAGE_CHARS),
            }]
        }),
        properties: json!({
            "status": finding.status,
            "severity": finding.severity,
            "strength": finding.strength,
            "sources": finding.sources,
            "unitsTotal": finding.units_total,
            "rangesTotal": finding.ranges.len(),
            "waiver": finding.waiver,
        }),
    }
}

/// GitHub identifies an alert by `primaryLocationLineHash`, sixteen hexadecimal digits and a count.
fn fingerprints(fingerprint: &str) -> BTreeMap<&'static str, String> {
    let digest = Sha256::digest(fingerprint.as_bytes());
    let hash = digest.iter().take(8).fold(0u64, |hash, byte| hash << 8 | u64::from(*byte));
    BTreeMap::from([
        ("flagaudit/v1", fingerprint.to_owned()),
        ("primaryLocationLineHash", format!("{hash:016x}")),
    ])
}

/// The same finding in two targets is two alerts: the count behind the hash tells them apart.
fn number_fingerprints(results: &mut [SarifResult]) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for result in results {
        if let Some(hash) = result.partial_fingerprints.get_mut("primaryLocationLineHash") {
            let count = seen.entry(hash.clone()).or_default();
            *count += 1;
            *hash = format!("{hash}:{count}");
        }
    }
}

/// Keeps the number of results under what services take: the worst stay, the rest becomes one result a rule.
fn aggregate(mut results: Vec<SarifResult>, most: usize) -> Vec<SarifResult> {
    if results.len() <= most {
        return results;
    }
    results.sort_by_key(|result| std::cmp::Reverse(result.level));
    let mut ids: Vec<&str> = results.iter().map(|result| result.rule_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let rest = results.split_off(most.saturating_sub(ids.len()));
    let mut groups: BTreeMap<String, Vec<SarifResult>> = BTreeMap::new();
    for result in rest {
        groups.entry(result.rule_id.clone()).or_default().push(result);
    }
    results.extend(groups.into_iter().filter_map(|(rule, group)| together(&rule, group)));
    results
}

fn together(rule: &str, mut group: Vec<SarifResult>) -> Option<SarifResult> {
    let count = group.len();
    // The group is sorted: its first result is its worst.
    let rest = group.split_off(1);
    let mut first = group.pop()?;
    for other in rest {
        if first.locations.len() == MOST_LOCATIONS {
            break;
        }
        first.locations.extend(other.locations);
    }
    for location in &mut first.locations {
        location.logical_locations.clear();
    }
    first.message = Message::text(format!(
        "{} more findings of this rule, not listed one by one. The JSON report has them all.",
        grouped(count as u64)
    ));
    first.partial_fingerprints = fingerprints(&format!("{rule} aggregated"));
    first.related_locations.clear();
    first.suppressions = None;
    first.properties = json!({ "aggregated": count });
    Some(first)
}

fn place(uri: String, line: u32, column: Option<u32>) -> PhysicalLocation {
    PhysicalLocation {
        artifact_location: ArtifactLocation { uri },
        region: Region { start_line: line.max(1), start_column: column.filter(|column| *column > 0) },
    }
}

fn policy_place(at: &PolicyPlace, base: Option<&Path>) -> PhysicalLocation {
    place(uri::of_path(&at.path, base), at.line, Some(at.column))
}

/// What went wrong while reading, and what could not be checked.
fn invocation(facts: &[&Facts], notes: &[(&Finding, PhysicalLocation)], base: Option<&Path>) -> Invocation {
    let mut notifications = Vec::new();
    for facts in facts {
        for problem in &facts.problems {
            let level = match facts.status {
                _ if !problem.loses_facts && facts.status == Status::Ok => "note",
                Status::Failed => "error",
                _ => "warning",
            };
            let line = format!("{}: {} ({})", clip(&text::name(facts), 200), problem.message, problem.code);
            notifications.push(Notification {
                level,
                message: Message::text(clip(&message(&sentence(&line)), MESSAGE_CHARS)),
                locations: vec![Location {
                    physical_location: place(uri::of_facts(facts, base), 1, None),
                    logical_locations: Vec::new(),
                }],
            });
        }
    }
    for (finding, at) in notes {
        let line = format!("{} was not checked: {}", finding.rule, finding.message);
        notifications.push(Notification {
            level: "note",
            message: Message::text(clip(&message(&sentence(&line)), MESSAGE_CHARS)),
            locations: vec![Location { physical_location: at.clone(), logical_locations: Vec::new() }],
        });
    }
    if notifications.len() > MOST_NOTIFICATIONS {
        let more = notifications.len() - MOST_NOTIFICATIONS;
        notifications.truncate(MOST_NOTIFICATIONS);
        notifications.push(Notification {
            level: "warning",
            message: Message::text(format!(
                "{} more problems. The JSON report has them all.",
                grouped(more as u64)
            )),
            locations: Vec::new(),
        });
    }
    let execution_successful = facts.iter().all(|facts| facts.status == Status::Ok);
    Invocation { execution_successful, tool_execution_notifications: notifications }
}

fn artifacts(facts: &[&Facts], base: Option<&Path>) -> Vec<Artifact> {
    let mut seen = std::collections::HashSet::new();
    facts
        .iter()
        .filter_map(|facts| {
            let uri = uri::of_facts(facts, base);
            seen.insert(uri.clone()).then(|| Artifact {
                location: ArtifactLocation { uri },
                roles: ["analysisTarget"],
                properties: properties(facts),
            })
        })
        .take(MOST_ARTIFACTS)
        .collect()
}

fn properties(facts: &Facts) -> Value {
    let compilers: Vec<String> = facts.compilers.iter().take(20).map(compiler).collect();
    json!({
        "status": facts.status,
        "level": facts.optimization.level,
        "bound": facts.optimization.bound,
        "complete": facts.optimization.complete,
        "strength": facts.optimization.strength,
        "reason": facts.optimization.reason,
        "product": facts.product,
        "buildId": facts.elf.as_ref().and_then(|elf| elf.build_id.as_ref()),
        "compilers": compilers,
        "unitCount": facts.unit_count,
        "conflicts": facts.conflicts.len(),
    })
}

impl Message {
    fn text(text: String) -> Self {
        Self { text }
    }
}
