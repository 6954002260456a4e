//! The program's version is none that the policy allows.
//!
//! # What it checks
//!
//! The version of an nginx-family program against `nginx.version`, and that of the nginx inside a fork against
//! `nginx.base-version`. One condition of the list must hold: `~1.30.1` is that release line from 1.30.1 on, `>= 1.31.2`
//! that or anything newer. For nginx itself both keys speak of the same version.
//!
//! ```text
//! error[disallowed-product-version]: nginx 1.22.1 is not among the allowed versions (policy: ~1.30.1, >= 1.31.2)
//! ```
//!
//! # Why it matters
//!
//! An old version carries published defects; one that is too new was not tested here.
//!
//! # How to fix
//!
//! Build an allowed version, or extend the list.
//!
//! # Policy keys
//!
//! `nginx.version`, `nginx.base-version`
//!
//! # Evidence
//!
//! Version texts in the file, and the version number in every module structure, which is harder to change.
//!
//! # Limits
//!
//! Distributions mend defects without changing the version.

use super::Rule;
use super::check::{Context, Draft, Outcome, listed};
use crate::evidence::{Source, Strength};
use crate::finding::Severity;
use crate::policy::{At, VersionRequirement};

/// The rule.
pub const RULE: Rule = Rule {
    id: "disallowed-product-version",
    severity: Severity::Error,
    keys: &["nginx.version", "nginx.base-version"],
    source: include_str!("disallowed_product_version.rs"),
    check,
};

fn check<'a>(context: &Context<'a>) -> Outcome<'a> {
    let policy = &context.policy.nginx;
    if policy.version.is_empty() && policy.base_version.is_empty() {
        return Outcome::NotAsked;
    }
    if let Err(reason) = context.nginx_server() {
        return Outcome::NotChecked(reason);
    }
    let product = context.facts.product.as_ref();
    let name = product.map_or("nginx", |product| product.name.as_str());
    let own = product.and_then(|product| product.version.as_deref());
    let base = product.and_then(|product| product.base.as_ref());
    let inner = match base {
        Some(base) => base.version.as_deref(),
        None if name == "nginx" => own,
        None => None,
    };
    let inner_name = base.map_or("nginx", |base| base.name.as_str());
    let drafts = [
        judge(&policy.version, name, own, "version"),
        judge(&policy.base_version, inner_name, inner, "base-version"),
    ];
    Outcome::Checked(drafts.into_iter().flatten().collect())
}

fn judge<'a>(
    wanted: &[At<VersionRequirement>],
    name: &str,
    version: Option<&str>,
    key: &str,
) -> Option<Draft<'a>> {
    let first = wanted.first()?;
    let list = listed(wanted.iter().map(|entry| entry.value.text.as_str()), 6);
    let answers: Vec<Option<bool>> = wanted.iter().map(|entry| entry.value.matches(name, version)).collect();
    let draft = if answers.contains(&Some(true)) {
        return None;
    } else if let (Some(text), false) = (version, answers.contains(&None)) {
        Draft::violation(key, format!("{name} {text} is not among the allowed versions (policy: {list})"))
            .evidence(Strength::Structural, &[Source::ModuleTable, Source::BuildString])
            .remedy("build an allowed version, or extend the list")
    } else {
        Draft::undetermined(key, format!("the version of {name} cannot be read (policy: {list})"))
    };
    Some(draft.policy(&first.at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Level;
    use crate::facts::Base;
    use crate::finding::FindingStatus;
    use crate::policy::Comparison;
    use crate::rules::testing::*;

    const ID: &str = "disallowed-product-version";

    fn requirement(comparison: Comparison, parts: &[u64]) -> At<VersionRequirement> {
        at(
            VersionRequirement {
                text: "~1.22.0".into(),
                name: String::new(),
                comparisons: vec![(comparison, parts.to_vec())],
            },
            70,
        )
    }

    #[test]
    fn fires_passes_and_leaves_open() {
        let mut facts = nginx(1, Level::O2);
        let mut wanted = policy();
        assert_silent(&facts, &wanted, ID);
        wanted.nginx.version = vec![requirement(Comparison::Compatible, &[1, 22, 0])];
        assert_passed(&facts, &wanted, ID);
        wanted.nginx.version = vec![requirement(Comparison::AtLeast, &[1, 31])];
        assert_eq!(
            only(&facts, &wanted, ID).message,
            "nginx 1.22.1 is not among the allowed versions (policy: ~1.22.0)"
        );
        facts.product.as_mut().unwrap().version = None;
        assert_eq!(only(&facts, &wanted, ID).status, FindingStatus::Undetermined);
    }

    #[test]
    fn the_nginx_inside_a_fork_has_its_own_key() {
        let mut facts = nginx(1, Level::O2);
        let mut wanted = policy();
        wanted.nginx.base_version = vec![requirement(Comparison::AtLeast, &[1, 22])];
        assert_passed(&facts, &wanted, ID);
        let product = facts.product.as_mut().unwrap();
        product.name = "tengine".into();
        product.version = Some("3.2.0".into());
        product.base = Some(Base { name: "nginx".into(), version: Some("1.15.9".into()) });
        assert!(only(&facts, &wanted, ID).message.starts_with("nginx 1.15.9 is not"));
    }
}
