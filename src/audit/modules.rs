//! Dynamic modules given beside the server that is to load them.

use super::Options;
use crate::facts::{DynamicModule, Facts, Kind};
use crate::image::pointers::Pointers;
use crate::image::symbols::Symbols;
use crate::image::{Image, linkage};
use crate::nginx::{self, ModuleFile, Server};
use crate::target::Subject;

/// Holds every dynamic module among the targets against every nginx among them. `targets` are the facts of `subjects`,
/// in the same order. A module that one of several servers loads is not held against the others.
pub fn hold_modules(subjects: &[Subject], targets: &mut [Facts], options: &Options) {
    let is_module = |facts: &Facts| facts.product.as_ref().is_some_and(|p| p.name == "nginx-module");
    let is_server = |facts: &Facts| {
        let kind = facts.elf.as_ref().map(|elf| elf.kind);
        facts.nginx.is_some() && !is_module(facts) && matches!(kind, Some(Kind::Executable | Kind::Pie))
    };
    if !targets.iter().any(is_module) || !targets.iter().any(is_server) {
        return;
    }
    let modules: Vec<ModuleFile> = subjects
        .iter()
        .zip(targets.iter())
        .filter(|(_, facts)| is_module(facts))
        .filter_map(|(subject, facts)| module(subject, &name(facts), options))
        .collect();
    let servers: Vec<(usize, Server)> = subjects
        .iter()
        .zip(targets.iter())
        .enumerate()
        .filter(|(_, (_, facts))| is_server(facts))
        .filter_map(|(index, (subject, _))| Some((index, server(subject, options)?)))
        .collect();
    for module in &modules {
        let held: Vec<(usize, DynamicModule)> =
            servers.iter().map(|(index, server)| (*index, nginx::loadable(server, module))).collect();
        // Several builds lie side by side, as in a fleet's store: the module belongs to those that load it, and another's
        // refusal is no fault.
        let has_a_home = held.iter().any(|(_, module)| module.loadable == Some(true));
        for (index, module) in held {
            let nginx = targets.get_mut(index).and_then(|facts| facts.nginx.as_mut());
            if let Some(nginx) = nginx.filter(|_| !has_a_home || module.loadable == Some(true)) {
                nginx.dynamic_modules.push(module);
            }
        }
    }
}

fn name(facts: &Facts) -> String {
    match &facts.member {
        Some(member) => format!("{}!{member}", facts.path),
        None => facts.path.clone(),
    }
}

fn image(subject: &Subject, options: &Options) -> Option<Image> {
    let input = subject.open(options.limits.stream_bytes).ok()?;
    Image::open(input, &options.limits).ok()
}

fn module(subject: &Subject, name: &str, options: &Options) -> Option<ModuleFile> {
    let image = image(subject, options)?;
    let linkage = linkage::read(&image);
    let pointers = Pointers::read(&image, &linkage);
    nginx::read_module(&image, &linkage, &Symbols::new(), &pointers, name)
}

fn server(subject: &Subject, options: &Options) -> Option<Server> {
    let image = image(subject, options)?;
    let linkage = linkage::read(&image);
    let pointers = Pointers::read(&image, &linkage);
    nginx::read(&image, &linkage, &Symbols::new(), &pointers)?.server
}
