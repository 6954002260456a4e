//! Everything but the levels: program, compilers, nginx, hardening, instrumentation, libraries, size.

use super::Direction::{self, Better, Neutral, Worse};
use super::Ledger;
use super::levels::is_path;
use crate::evidence::Held;
use crate::facts::{ConfigureArgument, Facts, Linkage};
use crate::rules::insecure_rpath::insecure;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Compares everything but the levels.
pub(super) fn compare(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    product(old, new, ledger);
    compilers(old, new, ledger);
    flags(old, new, ledger);
    configure(old, new, ledger);
    modules(old, new, ledger);
    build_strings(old, new, ledger);
    hardening(old, new, ledger);
    instrumentation(old, new, ledger);
    file(old, new, ledger);
    size(old, new, ledger);
    ignored(old, new, ledger);
}

/// Adds to `equal` if the step made no change.
fn step(ledger: &mut Ledger, word: &str, compare: impl FnOnce(&mut Ledger)) {
    let before = (ledger.changes.len(), ledger.not_compared.len());
    compare(ledger);
    if (ledger.changes.len(), ledger.not_compared.len()) == before {
        ledger.equal.push(word.to_owned());
    }
}

fn product(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    let text = |facts: &Facts| {
        facts.product.as_ref().map(|product| {
            let mut text = product.name.clone();
            for part in [&product.version, &product.build_text].into_iter().flatten() {
                let _ = write!(text, " {part}");
            }
            text
        })
    };
    let (a, b) = (text(old), text(new));
    if a.is_none() && b.is_none() {
        return;
    }
    step(ledger, "version", |ledger| value(ledger, "product", a.as_ref(), b.as_ref(), Neutral));
}

/// A plain value that changed.
fn value<T: Serialize + PartialEq>(
    ledger: &mut Ledger,
    what: &str,
    old: Option<&T>,
    new: Option<&T>,
    direction: Direction,
) {
    if old != new {
        let (a, b) = (json!(old), json!(new));
        let sentence = format!("{what}: {} → {}", shown(&a), shown(&b));
        ledger.change(what, a, b, direction, sentence);
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        Value::Array(list) => list.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn compilers(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    let set = |facts: &Facts| -> BTreeSet<String> {
        let words = facts.compilers.iter().map(|c| match &c.version {
            Some(version) => format!("{} {version}", c.family),
            None => c.family.clone(),
        });
        words.collect()
    };
    let (a, b) = (set(old), set(new));
    if a.is_empty() && b.is_empty() {
        return;
    }
    if a.is_empty() || b.is_empty() {
        ledger.not_compared.push("compilers: one side names none".to_owned());
        return;
    }
    step(ledger, "compiler", |ledger| value(ledger, "compiler", Some(&a), Some(&b), Neutral));
}

/// Recorded flags by count, where units could not be compared one by one.
fn flags(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    if old.units.is_some() && new.units.is_some() {
        return;
    }
    let (Some(a), Some(b)) = (&old.flags, &new.flags) else {
        ledger.not_compared.push("flags: they were not saved (inspect --flags)".to_owned());
        return;
    };
    let map = |list: &[crate::facts::FlagCount]| -> BTreeMap<String, u64> {
        let kept = list.iter().filter(|f| super::levels::is_compared(&f.flag));
        kept.map(|f| (f.flag.clone(), f.units)).collect()
    };
    let (a, b) = (map(a), map(b));
    if a.is_empty() || b.is_empty() {
        return;
    }
    step(ledger, "flags", |ledger| {
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for flag in names {
            let (was, is) = (a.get(flag), b.get(flag));
            if was.is_some() != is.is_some() {
                let word = if is.is_some() { "gained" } else { "lost" };
                let count = was.or(is).copied().unwrap_or_default();
                let sentence = format!("{count} units {word} {flag}");
                ledger.change(&format!("flag:{flag}"), json!(was), json!(is), Neutral, sentence);
            }
        }
    });
}

/// Arguments of `./configure`, without the directories of the build inside their values.
fn configure(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    let arguments = |facts: &Facts| facts.nginx.as_ref().and_then(|nginx| nginx.configure_arguments.clone());
    let (a, b) = match (arguments(old), arguments(new)) {
        (Some(a), Some(b)) => (a, b),
        (None, None) => return,
        _ => {
            ledger.not_compared.push("configure arguments: one side has none".to_owned());
            return;
        }
    };
    let map = |list: &[ConfigureArgument]| -> BTreeMap<String, Vec<String>> {
        let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for argument in list {
            map.entry(argument.name.clone()).or_default().push(without_paths(argument.value.as_deref()));
        }
        map
    };
    let (a, b) = (map(&a), map(&b));
    step(ledger, "configure arguments", |ledger| {
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for name in names {
            let (was, is) = (a.get(name), b.get(name));
            if was == is {
                continue;
            }
            let text = |list: Option<&Vec<String>>| match list {
                None => Value::Null,
                Some(list) if list.iter().all(String::is_empty) => json!("given"),
                Some(list) => json!(list.join(" ")),
            };
            let (was, is) = (text(was), text(is));
            let quoted = |value: &Value| match value {
                Value::Null => "not given".to_owned(),
                Value::String(text) if text == "given" => text.clone(),
                value => format!("'{}'", shown(value)),
            };
            let sentence = format!("{name}: {} → {}", quoted(&was), quoted(&is));
            ledger.change(&format!("configure:{name}"), was, is, Neutral, sentence);
        }
    });
}

fn without_paths(value: Option<&str>) -> String {
    let words: Vec<&str> =
        value.unwrap_or_default().split_ascii_whitespace().filter(|word| !is_path(word)).collect();
    words.join(" ")
}

/// Modules of nginx. One that is no longer there is a change for the worse: a configuration that uses it does not load.
fn modules(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    let list = |facts: &Facts| -> Option<BTreeMap<String, Linkage>> {
        let modules = facts.nginx.as_ref()?.modules.as_ref()?;
        Some(modules.iter().map(|module| (module.name.clone(), module.linkage)).collect())
    };
    let (a, b) = match (list(old), list(new)) {
        (Some(a), Some(b)) => (a, b),
        (None, None) => return,
        _ => {
            ledger.not_compared.push("modules: those of one side could not be read".to_owned());
            return;
        }
    };
    step(ledger, "0 modules added or removed", |ledger| {
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for name in names {
            let (was, is) = (a.get(name), b.get(name));
            let (direction, sentence) = match (was, is) {
                (Some(_), None) => (Worse, format!("module {name} removed")),
                (None, Some(_)) => (Neutral, format!("module {name} added")),
                (Some(was), Some(is)) if was != is => {
                    let word = if *is == Linkage::Static { "static" } else { "dynamic" };
                    (Neutral, format!("module {name} is now {word}"))
                }
                _ => continue,
            };
            ledger.change(&format!("nginx.module:{name}"), json!(was), json!(is), direction, sentence);
        }
    });
}

/// What other programs say of their own build.
fn build_strings(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    let map = |facts: &Facts| -> BTreeMap<String, BTreeSet<String>> {
        let mut map: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for text in &facts.build_strings {
            let key = format!("{} {}", text.program, text.key);
            map.entry(key).or_default().insert(without_paths(Some(&text.value)));
        }
        map
    };
    let (a, b) = (map(old), map(new));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for name in names {
        value(ledger, &format!("build-string:{name}"), a.get(name), b.get(name), Neutral);
    }
}

/// A property that is held with its evidence. Where one side does not tell, there is nothing to compare.
fn held<T: Serialize + PartialEq>(
    ledger: &mut Ledger,
    what: &str,
    old: &Held<T>,
    new: &Held<T>,
    direction: impl FnOnce(&T, &T) -> Direction,
) {
    if let (Some(a), Some(b)) = (&old.value, &new.value)
        && a != b
        && ![json!(a), json!(b)].contains(&json!("unknown"))
    {
        let direction = direction(a, b);
        value(ledger, what, Some(a), Some(b), direction);
    }
}

// The signature is that of every comparison of held values.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn wanted(_: &bool, new: &bool) -> Direction {
    if *new { Better } else { Worse }
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn unwanted(_: &bool, new: &bool) -> Direction {
    if *new { Worse } else { Better }
}

/// Direction by the place in a list from worst to best; a word that is not there tells nothing.
fn ranked(order: &'static [&'static str]) -> impl Fn(&String, &String) -> Direction {
    move |a, b| {
        let rank = |word: &String| order.iter().position(|known| known == word);
        match (rank(a), rank(b)) {
            (Some(a), Some(b)) if b < a => Worse,
            (Some(a), Some(b)) if b > a => Better,
            _ => Neutral,
        }
    }
}

/// A path is worse that has a directory to which others may write, and the old one had not.
fn of_paths(old: Option<&String>, new: Option<&String>) -> Direction {
    let open = |path: Option<&String>| -> Vec<String> {
        let directories = path.into_iter().flat_map(|path| path.split(':'));
        directories.filter(|directory| insecure(directory).is_some()).map(str::to_owned).collect()
    };
    let (old, new) = (open(old), open(new));
    match (new.iter().all(|directory| old.contains(directory)), old.iter().all(|known| new.contains(known))) {
        (false, _) => Worse,
        (true, false) => Better,
        (true, true) => Neutral,
    }
}

fn hardening(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    // A text of nginx -V says nothing of the file.
    if old.elf.is_none() || new.elf.is_none() {
        return;
    }
    let (a, b) = (&old.hardening, &new.hardening);
    step(ledger, "hardening", |ledger| {
        held(ledger, "hardening.pie", &a.pie, &b.pie, wanted);
        held(ledger, "hardening.relro", &a.relro, &b.relro, ranked(&["none", "partial", "full"]));
        held(ledger, "hardening.bind_now", &a.bind_now, &b.bind_now, wanted);
        held(ledger, "hardening.nx_stack", &a.nx_stack, &b.nx_stack, wanted);
        held(ledger, "hardening.canary", &a.canary, &b.canary, wanted);
        held(ledger, "hardening.fortify", &a.fortify, &b.fortify, ranked(&["no", "partial", "yes"]));
        held(ledger, "hardening.ibt", &a.ibt, &b.ibt, wanted);
        held(ledger, "hardening.shstk", &a.shstk, &b.shstk, wanted);
        held(ledger, "hardening.bti", &a.bti, &b.bti, wanted);
        held(ledger, "hardening.pac", &a.pac, &b.pac, wanted);
        for (what, a, b) in
            [("hardening.rpath", &a.rpath, &b.rpath), ("hardening.runpath", &a.runpath, &b.runpath)]
        {
            let (a, b) = (a.value.as_ref(), b.value.as_ref());
            value(ledger, what, a, b, of_paths(a, b));
        }
        held(ledger, "hardening.textrel", &a.textrel, &b.textrel, unwanted);
    });
}

fn instrumentation(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    let (a, b) = (&old.instrumentation, &new.instrumentation);
    let word = if old.elf.is_some() && new.elf.is_some() { "instrumentation" } else { "--with-debug" };
    step(ledger, word, |ledger| {
        held(ledger, "instrumentation.sanitizers", &a.sanitizers, &b.sanitizers, |a, b| {
            match (b.iter().all(|name| a.contains(name)), a.iter().all(|name| b.contains(name))) {
                (false, _) => Worse,
                (true, false) => Better,
                (true, true) => Neutral,
            }
        });
        held(ledger, "instrumentation.coverage", &a.coverage, &b.coverage, unwanted);
        held(ledger, "instrumentation.profiling", &a.profiling, &b.profiling, unwanted);
        held(ledger, "instrumentation.debug_build", &a.debug_build, &b.debug_build, unwanted);
        held(ledger, "instrumentation.assertions", &a.assertions, &b.assertions, |_, _| Neutral);
    });
    held(ledger, "lto", &old.lto, &new.lto, |a, b| match (a.as_str(), b.as_str()) {
        ("gcc" | "thin" | "full", "none") => Worse,
        ("none", "gcc" | "thin" | "full") => Better,
        _ => Neutral,
    });
    held(ledger, "pgo", &old.pgo, &new.pgo, wanted);
    held(ledger, "cpu.baseline", &old.cpu.baseline, &new.cpu.baseline, |_, _| Neutral);
}

/// What the ELF file is and needs.
fn file(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    let (Some(a), Some(b)) = (&old.elf, &new.elf) else {
        if old.elf.is_some() != new.elf.is_some() {
            ledger.not_compared.push("the file itself: one side is a text of nginx -V".to_owned());
        }
        return;
    };
    step(ledger, "libraries", |ledger| {
        let set = |needed: &[String]| -> BTreeSet<String> { needed.iter().cloned().collect() };
        let (a, b) = (set(&a.needed), set(&b.needed));
        for gone in a.difference(&b) {
            let what = format!("library:{gone}");
            ledger.change(
                &what,
                json!(gone),
                Value::Null,
                Neutral,
                format!("library {gone} no longer needed"),
            );
        }
        for come in b.difference(&a) {
            let what = format!("library:{come}");
            ledger.change(&what, Value::Null, json!(come), Neutral, format!("library {come} now needed"));
        }
    });
    value(ledger, "elf.machine", Some(&a.machine), Some(&b.machine), Neutral);
    value(ledger, "elf.kind", Some(&a.kind), Some(&b.kind), Neutral);
    value(ledger, "elf.static", Some(&a.is_static), Some(&b.is_static), Neutral);
    value(ledger, "elf.stripped", Some(&a.stripped), Some(&b.stripped), Neutral);
    value(ledger, "elf.interpreter", a.interpreter.as_ref(), b.interpreter.as_ref(), Neutral);
    value(ledger, "elf.soname", a.soname.as_ref(), b.soname.as_ref(), Neutral);
    let (a, b) = (old.debug_info.present, new.debug_info.present);
    value(ledger, "debug_info.present", Some(&a), Some(&b), Neutral);
}

fn size(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    let (a, b) = (old.optimization.text.bytes, new.optimization.text.bytes);
    if a == b || a == 0 || b == 0 {
        return;
    }
    let percent = (b as f64 - a as f64) / a as f64 * 100.0;
    let sentence = format!("code {a} → {b} bytes ({percent:+.1} %)");
    ledger.change("text.bytes", json!(a), json!(b), Neutral, sentence);
}

/// What differs from build to build and says nothing.
fn ignored(old: &Facts, new: &Facts, ledger: &mut Ledger) {
    let id = |facts: &Facts| facts.elf.as_ref().and_then(|elf| elf.build_id.clone());
    if id(old) != id(new) {
        ledger.ignored.push("build-id".to_owned());
    }
    let places = |facts: &Facts| -> BTreeSet<std::sync::Arc<str>> {
        facts.units.iter().flatten().filter_map(|unit| unit.comp_dir.clone()).collect()
    };
    let raw = |facts: &Facts| -> BTreeSet<String> {
        let arguments = facts.nginx.iter().filter_map(|nginx| nginx.configure_arguments.as_ref()).flatten();
        let words = arguments.filter_map(|a| a.value.as_deref()).flat_map(str::split_ascii_whitespace);
        words.filter(|word| is_path(word)).map(str::to_owned).collect()
    };
    if places(old) != places(new) || raw(old) != raw(new) {
        ledger.ignored.push("build paths".to_owned());
    }
}
