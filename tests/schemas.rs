//! The shipped JSON Schemas are those of the types, and documents validate against them.
//! `FLAGAUDIT_BLESS=1 cargo test --test schemas` writes them anew.

mod common;

use common::{json, testdata};
use std::path::Path;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/schema"))
}

#[test]
fn shipped_schemas_are_current() {
    for (name, schema) in flagaudit::report::json::schemas() {
        let path = folder().join(name);
        let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
        if std::env::var_os("FLAGAUDIT_BLESS").is_some() {
            std::fs::create_dir_all(folder()).expect("a folder");
            std::fs::write(&path, &text).expect("written");
        }
        let shipped = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(shipped == text, "{name} is stale: FLAGAUDIT_BLESS=1 cargo test --test schemas");
    }
}

#[test]
fn documents_validate() {
    for (command, name) in [("inspect", "inspect.schema.json"), ("check", "check.schema.json")] {
        let schema: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder().join(name)).expect("a schema")).expect("JSON");
        let validator = jsonschema::validator_for(&schema).expect("a sound schema");
        let (_, document) = json([command.as_ref(), testdata("dwarf").as_os_str()]);
        let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).take(5).collect();
        assert!(errors.is_empty(), "{command}: {errors:#?}");
        assert!(document["targets"].as_array().is_some_and(|t| t.len() > 5));
    }
}
