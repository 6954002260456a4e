//! The JSON Schema of a policy file, for editors that complete and check while one types.
//!
//! It is made from the same lists of words that loading checks against, so the two cannot drift apart in words; a test
//! holds them against each other in shape.

use super::check::{HARDENING, INSTRUMENTATION, LEVELS};
use super::load::SCHEMA;
use serde_json::{Map, Value, json};

/// The schema. `rules` are the known rule ids; without any, every id is accepted.
pub fn schema(rules: &[&str]) -> Value {
    let rule_severity = json!({ "enum": ["error", "warning", "note", "off"] });
    let rules_table = if rules.is_empty() {
        json!({ "type": "object", "additionalProperties": rule_severity })
    } else {
        object(rules.iter().map(|rule| (*rule, rule_severity.clone())), &[])
    };
    let rule = if rules.is_empty() { text("Rule id.") } else { json!({ "enum": rules }) };
    let sections = sections(rules_table);

    let mut top = vec![
        ("schema", describe(json!({ "const": SCHEMA }), "Version of the policy format.")),
        ("name", text("Name shown in reports. Default: the file's name.")),
        (
            "extends",
            text(
                "A built-in policy (builtin:release, builtin:nginx-gateway, builtin:hardened) or the path of a policy, relative to this file.",
            ),
        ),
    ];
    top.extend(sections.clone());
    let mut target = vec![("match", matching())];
    target.extend(sections);
    top.push((
        "target",
        describe(
            json!({ "type": "array", "items": object(target, &["match"]) }),
            "Overrides for targets that match.",
        ),
    ));
    top.push(("waiver", json!({ "type": "array", "items": waiver(rule) })));

    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "flagaudit policy",
        "description": "What a build must be like. TOML, or the same keys in JSON.",
    });
    if let (Value::Object(root), Value::Object(body)) = (&mut root, object(top, &[])) {
        root.extend(body);
        root.insert("$defs".to_owned(), definitions());
    }
    root
}

fn definitions() -> Value {
    json!({
        "text": { "type": "string", "pattern": "\\S" },
        "level": { "enum": LEVELS },
        "severity": { "enum": ["error", "warning", "ignore"] },
        "texts": list(&reference("text")),
        "levels": list(&reference("level")),
        "instrumentation": list(&json!({ "enum": INSTRUMENTATION })),
        "buildIds": list(&reference("buildId")),
        "buildId": { "type": "string", "pattern": "^[0-9a-fA-F]{8,}$" },
        "oneOrMany": { "anyOf": [reference("text"), { "type": "array", "items": reference("text") }] },
    })
}

fn sections(rules: Value) -> Vec<(&'static str, Value)> {
    let require_forbid = |extra: Vec<(&'static str, Value)>| {
        let mut entries = vec![("require", reference("texts")), ("forbid", reference("texts"))];
        entries.extend(extra);
        object(entries, &[])
    };
    let hardening = HARDENING.iter().map(|(key, words)| {
        (*key, if words.is_empty() { json!({ "type": "boolean" }) } else { json!({ "enum": words }) })
    });
    let level = |about: &str| describe(reference("level"), about);
    let severity = |about: &str| describe(reference("severity"), about);
    vec![
        (
            "optimization",
            object(
                [
                    ("minimum", level("The least level that passes.")),
                    ("recommended", level("Below it: a warning.")),
                    ("allow", describe(reference("levels"), "Levels accepted besides.")),
                    (
                        "evidence",
                        describe(
                            json!({ "enum": ["recorded", "corroborated", "declared"] }),
                            "What ground a pass needs.",
                        ),
                    ),
                    ("undetermined", severity("Code that may be -O0, and nothing can tell.")),
                    ("optimized-unproven", severity("Optimized, but `minimum` is not proven.")),
                    ("too-small", severity("No words, and fewer than 15 functions to judge.")),
                    (
                        "exempt",
                        describe(reference("texts"), "Units not judged: globs or /regular expressions/."),
                    ),
                    (
                        "libraries",
                        object(
                            [
                                (
                                    "minimum",
                                    level("The least level that passes in statically linked libraries."),
                                ),
                                (
                                    "undetermined",
                                    severity("Library code that may be -O0, and nothing can tell."),
                                ),
                            ],
                            &[],
                        ),
                    ),
                ],
                &[],
            ),
        ),
        ("flags", require_forbid(Vec::new())),
        ("compiler", object([("allow", reference("texts"))], &[])),
        ("cpu", object([("baseline", text("Such as x86-64-v2 or armv8.2-a."))], &[])),
        ("hardening", object(hardening, &[])),
        ("instrumentation", object([("forbid", reference("instrumentation"))], &[])),
        (
            "nginx",
            object(
                [
                    ("version", reference("texts")),
                    ("base-version", reference("texts")),
                    (
                        "modules",
                        require_forbid(vec![
                            ("allow", reference("texts")),
                            ("exact", json!({ "type": "boolean" })),
                        ]),
                    ),
                    ("configure", require_forbid(Vec::new())),
                ],
                &[],
            ),
        ),
        ("build", object([("allow", reference("buildIds"))], &[])),
        ("rules", rules),
    ]
}

fn matching() -> Value {
    let build =
        json!({ "anyOf": [reference("buildId"), { "type": "array", "items": reference("buildId") }] });
    let mut table = object(
        [
            ("path", describe(reference("oneOrMany"), "Glob on the path or the member.")),
            ("product", reference("oneOrMany")),
            ("build_id", describe(build, "Build-id, or its beginning.")),
            ("process", describe(reference("oneOrMany"), "Name of the process.")),
        ],
        &[],
    );
    if let Value::Object(table) = &mut table {
        table.insert("minProperties".to_owned(), json!(1));
    }
    describe(table, "Which targets: any of what is given.")
}

fn waiver(rule: Value) -> Value {
    let date = json!({ "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "format": "date" });
    object(
        [
            ("rule", rule),
            ("unit", text("Glob on the unit's name, or its directory and name.")),
            ("function", text("Glob on the function's name.")),
            ("module", text("Short or full module name, or glob.")),
            ("upstream", text("Glob on the upstream's name.")),
            ("file", text("Glob on the configuration file.")),
            ("target", text("Glob on the target's path.")),
            ("fingerprint", text("Fingerprint of one finding.")),
            ("reason", text("Why.")),
            ("owner", text("Who answers for it.")),
            ("expires", describe(date, "Last day it holds (UTC).")),
        ],
        &["rule", "reason"],
    )
}

fn object<'k>(entries: impl IntoIterator<Item = (&'k str, Value)>, required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut table = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if let (false, Value::Object(table)) = (required.is_empty(), &mut table) {
        table.insert("required".to_owned(), json!(required));
    }
    table
}

/// A list, or a change of the list of the extended policy.
fn list(item: &Value) -> Value {
    let plain = json!({ "type": "array", "items": item });
    let change = object([("add", plain.clone()), ("remove", plain.clone())], &[]);
    json!({ "anyOf": [plain, change] })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn text(about: &str) -> Value {
    describe(reference("text"), about)
}

fn describe(mut schema: Value, about: &str) -> Value {
    if let Value::Object(table) = &mut schema {
        table.insert("description".to_owned(), json!(about));
    }
    schema
}
