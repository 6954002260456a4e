//! The part of SARIF 2.1.0 that this program writes. Names are the standard's; sections in the comments are its.

use crate::finding::Severity;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// `sarifLog` (3.13).
#[derive(Serialize)]
pub(super) struct Log {
    #[serde(rename = "$schema")]
    pub(super) schema: &'static str,
    pub(super) version: &'static str,
    pub(super) runs: [Run; 1],
}

/// `run` (3.14).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    pub(super) tool: ToolOf,
    pub(super) invocations: [Invocation; 1],
    pub(super) artifacts: Vec<Artifact>,
    pub(super) results: Vec<SarifResult>,
    pub(super) column_kind: &'static str,
}

/// `tool` (3.18).
#[derive(Serialize)]
pub(super) struct ToolOf {
    pub(super) driver: Driver,
}

/// `toolComponent` (3.19).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Driver {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) semantic_version: String,
    pub(super) information_uri: String,
    pub(super) rules: Vec<Descriptor>,
}

/// `reportingDescriptor` (3.49).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) short_description: Message,
    pub(super) full_description: Message,
    pub(super) help: Help,
    pub(super) default_configuration: Configuration,
    pub(super) properties: Value,
}

/// `multiformatMessageString` (3.12).
#[derive(Serialize)]
pub(super) struct Help {
    pub(super) text: String,
    pub(super) markdown: String,
}

/// `reportingConfiguration` (3.50).
#[derive(Serialize)]
pub(super) struct Configuration {
    pub(super) level: &'static str,
}

/// `message` (3.11).
#[derive(Serialize)]
pub(super) struct Message {
    pub(super) text: String,
}

/// `result` (3.27).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifResult {
    pub(super) rule_id: String,
    pub(super) rule_index: usize,
    pub(super) level: Severity,
    pub(super) message: Message,
    pub(super) locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) related_locations: Vec<RelatedLocation>,
    pub(super) partial_fingerprints: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) suppressions: Option<Vec<Suppression>>,
    pub(super) properties: Value,
}

/// `suppression` (3.35).
#[derive(Serialize)]
pub(super) struct Suppression {
    pub(super) kind: &'static str,
    pub(super) status: &'static str,
    pub(super) justification: String,
}

/// `location` (3.28).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Location {
    pub(super) physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) logical_locations: Vec<LogicalLocation>,
}

/// `location` with an id and a message, as used for related places.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RelatedLocation {
    pub(super) id: u32,
    pub(super) physical_location: PhysicalLocation,
    pub(super) message: Message,
}

/// `logicalLocation` (3.33).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogicalLocation {
    pub(super) fully_qualified_name: String,
    pub(super) kind: &'static str,
}

/// `physicalLocation` (3.29).
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PhysicalLocation {
    pub(super) artifact_location: ArtifactLocation,
    pub(super) region: Region,
}

/// `artifactLocation` (3.4).
#[derive(Clone, Serialize)]
pub(super) struct ArtifactLocation {
    pub(super) uri: String,
}

/// `region` (3.30).
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Region {
    pub(super) start_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start_column: Option<u32>,
}

/// `artifact` (3.24).
#[derive(Serialize)]
pub(super) struct Artifact {
    pub(super) location: ArtifactLocation,
    pub(super) roles: [&'static str; 1],
    pub(super) properties: Value,
}

/// `invocation` (3.20).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Invocation {
    pub(super) execution_successful: bool,
    pub(super) tool_execution_notifications: Vec<Notification>,
}

/// `notification` (3.58).
#[derive(Serialize)]
pub(super) struct Notification {
    pub(super) level: &'static str,
    pub(super) message: Message,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) locations: Vec<Location>,
}
