//! JSON, and the schemas of its documents.

use super::escape::json_controls;
use super::{CheckReport, InspectReport};
use schemars::generate::SchemaSettings;
use serde::Serialize;

/// One document, indented, with a line feed at its end.
pub fn render<T: Serialize>(document: &T) -> Result<String, serde_json::Error> {
    let mut text = json_controls(&serde_json::to_string_pretty(document)?);
    text.push('\n');
    Ok(text)
}

/// A line a target, and a last line with the counts.
pub fn inspect_lines(report: &InspectReport) -> Result<String, serde_json::Error> {
    lines(&report.targets, &serde_json::json!({ "summary": report.summary }))
}

/// A line a target, and a last line with policy and counts.
pub fn check_lines(report: &CheckReport) -> Result<String, serde_json::Error> {
    let last = serde_json::json!({
        "policy": report.policy, "verdict": report.verdict, "policy_findings": report.policy_findings, "summary": report.summary
    });
    lines(&report.targets, &last)
}

fn lines<T: Serialize>(targets: &[T], last: &serde_json::Value) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Line<'a, T> {
        r#type: &'static str,
        #[serde(flatten)]
        value: &'a T,
    }
    let mut text = String::new();
    for target in targets {
        text.push_str(&serde_json::to_string(&Line { r#type: "target", value: target })?);
        text.push('\n');
    }
    text.push_str(&serde_json::to_string(&Line { r#type: "summary", value: last })?);
    text.push('\n');
    Ok(json_controls(&text))
}

/// The documents' JSON Schemas: file name and content.
pub fn schemas() -> Vec<(&'static str, serde_json::Value)> {
    let generate = |id: &str, schema: schemars::Schema| {
        let mut value = schema.to_value();
        if let Some(object) = value.as_object_mut() {
            object.insert("$id".to_owned(), serde_json::Value::String(id.to_owned()));
        }
        value
    };
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let inspect = generator.root_schema_for::<InspectReport>();
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let check = generator.root_schema_for::<CheckReport>();
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let diff = generator.root_schema_for::<crate::diff::DiffReport>();
    vec![
        ("inspect.schema.json", generate("flagaudit/inspect/1", inspect)),
        ("check.schema.json", generate("flagaudit/check/1", check)),
        ("diff.schema.json", generate("flagaudit/diff/1", diff)),
    ]
}
