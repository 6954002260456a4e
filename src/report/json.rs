//! JSON, and the schemas of its documents.

use super::escape::json_controls;
use super::{CheckReport, InspectReport, Summary};
use schemars::generate::SchemaSettings;
use serde::Serialize;

/// One document, indented, with a line feed at its end.
pub fn render<T: Serialize>(document: &T) -> Result<String, serde_json::Error> {
    let mut text = json_controls(&serde_json::to_string_pretty(document)?);
    text.push('\n');
    Ok(text)
}

/// One line of NDJSON: a target.
pub fn target_line<T: Serialize>(target: &T) -> Result<String, serde_json::Error> {
    line("target", target)
}

/// The last line of `inspect`: the counts.
pub fn inspect_summary(summary: Summary) -> Result<String, serde_json::Error> {
    line("summary", &serde_json::json!({ "summary": summary }))
}

/// The last line of `check`: policy and counts. The targets of the report are not in it.
pub fn check_summary(report: &CheckReport) -> Result<String, serde_json::Error> {
    let last = serde_json::json!({
        "policy": report.policy, "verdict": report.verdict, "policy_findings": report.policy_findings, "summary": report.summary
    });
    line("summary", &last)
}

fn line<T: Serialize>(kind: &'static str, value: &T) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Line<'a, T> {
        r#type: &'static str,
        #[serde(flatten)]
        value: &'a T,
    }
    let mut text = json_controls(&serde_json::to_string(&Line { r#type: kind, value })?);
    text.push('\n');
    Ok(text)
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
