//! What a file's own words say of its build outside of debug information: texts, notes, and what compilers recorded.

use crate::compiler::Level;
use crate::evidence::{Claim, Held, Scope, Source, Strength};
use crate::evidence::{annobin, build_string, go_buildinfo, package_note};
use crate::facts::{CompilerSeen, Cpu, Facts, Product};
use crate::image::Image;
use crate::image::linkage::Linkage;
use crate::image::notes::Notes;
use crate::nginx::NginxFacts;
use crate::reconcile::units;
use std::ops::Range;

/// Takes over what the nginx witness found; its claim about the level goes to reconciliation.
pub(super) fn take_nginx(found: NginxFacts, facts: &mut Facts) -> Option<Claim> {
    facts.product = Some(found.product);
    if found.nginx.debug.value.is_some() {
        facts.instrumentation.debug_build = found.nginx.debug.clone();
    }
    // What units or `.comment` name comes later and replaces it.
    let line = found.nginx.compiler_line.as_deref();
    facts.compilers.extend(line.filter(|_| facts.compilers.is_empty()).and_then(units::compiler_declared));
    facts.nginx = Some(found.nginx);
    facts.conflicts.extend(found.conflicts);
    facts.problems.extend(found.problems);
    // Claims about other facts are in the facts themselves, with their strength and sources.
    let about_level = found.claims.into_iter().filter(|claim| claim.fact == "optimization.level");
    let (declared, rest): (Vec<Claim>, Vec<Claim>) =
        about_level.partition(|claim| claim.strength == Strength::Declared);
    facts.optimization.claims.extend(rest);
    declared.into_iter().next()
}

/// Texts in which other programs name their own build. What the file only contains is told apart.
pub(super) fn build_texts(image: &Image, linkage: &Linkage, facts: &mut Facts) -> Option<Claim> {
    let soname = linkage.soname.as_deref().map(String::from_utf8_lossy);
    let texts = build_string::read(image, soname.as_deref());
    if let Some(program) = texts.program() {
        facts.product = Some(Product {
            name: program.program.to_owned(),
            version: program.version.clone(),
            base: None,
            build_text: None,
        });
        if let Some(on) = program.assertions {
            facts.instrumentation.assertions = Held::new(on, Strength::Declared, Source::BuildString);
        }
    }
    let (own, rest): (Vec<Claim>, Vec<Claim>) =
        texts.claims().into_iter().partition(|claim| claim.scope == Scope::File);
    facts.optimization.claims.extend(rest);
    facts.problems.extend(texts.problems);
    facts.build_strings = texts.found.into_iter().flat_map(|found| found.strings).collect();
    own.into_iter().next()
}

/// What the file says of the package it was built for. The program's own texts know better what it is.
pub(super) fn take_package(image: &Image, notes: &Notes, facts: &mut Facts) {
    let note = notes.package.as_deref().map(package_note::read_note);
    for package in note.into_iter().chain([package_note::read_crates(image)]) {
        facts.problems.extend(package.problems);
        facts.build_strings.extend(package.strings);
        if facts.product.is_none() {
            facts.product = package.product;
        }
    }
}

/// The processor that the loader asks for before it starts the program (`GNU_PROPERTY_X86_ISA_1_NEEDED`, x86-64 psABI), where
/// that is more than options tell. The baseline itself stands in the start files of every program, and tells nothing.
pub(super) fn raise_baseline(notes: &Notes, cpu: &mut Cpu) {
    const LEVELS: [(u32, &str); 3] = [(8, "x86-64-v4"), (4, "x86-64-v3"), (2, "x86-64-v2")];
    let needed = notes.properties.x86_isa_needed.unwrap_or(0);
    let Some((_, needed)) = LEVELS.into_iter().find(|(bit, _)| needed & bit != 0) else { return };
    // The names are in the order of what they need.
    if cpu.baseline.value.as_deref().is_none_or(|known| known < needed) {
        cpu.baseline = Held::new(needed.to_owned(), Strength::Structural, Source::GnuProperty)
            .seen(format!("the loader starts the program only on {needed}"));
    }
}

/// What compilers recorded outside the debug information. Returns the ranges of text that it speaks of. `unframed` is
/// the code that neither units nor frame descriptions describe: in a Go program that is what the Go compiler made, since
/// it keeps a table of its own, and C code has frame descriptions.
pub(super) fn recorded_elsewhere(
    image: &Image,
    unframed: &[Range<u64>],
    claims: &mut Vec<Claim>,
    facts: &mut Facts,
) -> Vec<(Range<u64>, Level)> {
    let mut ranges = Vec::new();
    if let Some(notes) = annobin::read(image) {
        claims.extend(notes.claims(image));
        facts.problems.extend(notes.problems.iter().cloned());
        ranges = notes.levels().into_iter().map(|known| (known.range, known.level)).collect();
    }
    if let Some(go) = go_buildinfo::read(image) {
        claims.extend(go.claims());
        if ranges.is_empty() && go.scope == Scope::File && go.level.level != Level::Unknown {
            ranges = unframed.iter().map(|range| (range.clone(), go.level.level)).collect();
        }
        if facts.compilers.is_empty() {
            facts.compilers.push(CompilerSeen {
                family: "go".to_owned(),
                version: go.version.strip_prefix("go").map(str::to_owned),
                language: Some("Go".to_owned()),
                units: 0,
                raw: go.version.clone(),
            });
        }
        if let Some(baseline) = go.baseline() {
            facts.cpu.baseline = Held::new(baseline.to_owned(), Strength::Recorded, Source::GoBuildinfo);
        }
    }
    ranges
}
