//! Dynamic modules given beside the server that is to load them.

use super::Options;
use crate::facts::{Facts, Kind};
use crate::image::pointers::Pointers;
use crate::image::symbols::Symbols;
use crate::image::{Image, linkage};
use crate::nginx::{self, ModuleFile, Server};
use crate::target::Subject;

/// Holds every dynamic module among the targets against every nginx among them. `targets` are the facts of `subjects`,
/// in the same order.
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
    for (subject, facts) in subjects.iter().zip(targets.iter_mut()) {
        if !is_server(facts) {
            continue;
        }
        let server = server(subject, options);
        if let (Some(server), Some(nginx)) = (server, &mut facts.nginx) {
            nginx
                .dynamic_modules
                .extend(modules.iter().map(|module| nginx::loadable(&server, module, false)));
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
