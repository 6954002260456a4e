//! A configuration held beside the build that is to read it.

use super::Options;
use crate::facts::{Config, ConfigChoice, ConfigureArgument, Facts, Kind, Nginx, Problem, Product};
use crate::image::linkage;
use crate::image::pointers::Pointers;
use crate::image::symbols::Symbols;
use crate::image::{Image, Input};
use crate::limits::Limits;
use crate::nginx::config::{Body, Directive, Loaded, LoadedModule, Model, source};
use crate::nginx::configure::last_value;
use crate::nginx::{self, Server, invocation, loadable};
use crate::target::process::CommandLine;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most module files read.
const MAX_MODULES: usize = 200;

/// A configuration that is to be read.
struct Wanted {
    /// Where it is on this machine.
    path: PathBuf,
    /// Where relative paths of `load_module` start from.
    prefix: PathBuf,
    /// Directives before it.
    given: Option<String>,
    by: ConfigChoice,
}

/// Reads the configuration that the user named or, for a running program, the one that it reads itself; and the module
/// files it loads.
pub(super) fn attach(
    server: Option<&Server>,
    command_line: Option<&CommandLine>,
    options: &Options,
    facts: &mut Facts,
) {
    let Some(nginx) = &facts.nginx else { return };
    if facts.elf.as_ref().is_some_and(|elf| elf.kind == Kind::SharedObject) {
        return;
    }
    let root = options.companions.root.as_deref();
    let product = facts.product.as_ref();
    let arguments = nginx.configure_arguments.as_deref();
    let wanted = match (&options.nginx_conf, command_line) {
        (Some(path), _) => {
            let own = Path::new(invocation::layout(product).0);
            let prefix = arguments.and_then(|list| last_value(list, "--prefix")).map_or(own, Path::new);
            Wanted { path: path.clone(), prefix: prefix.to_path_buf(), given: None, by: ConfigChoice::Option }
        }
        (None, Some(line)) => match of_process(line, product, arguments, root) {
            Ok(wanted) => wanted,
            Err(why) => {
                let message = format!("which configuration the process reads cannot be told: {why}");
                facts.problems.push(Problem::notice("configuration-not-known", message));
                return;
            }
        },
        (None, None) => return,
    };
    let mut model = match Model::read_after(wanted.given.as_deref(), &wanted.path, root, &options.limits) {
        Ok(model) => model,
        Err(error) => {
            let message = format!("{}: {error}", wanted.path.display());
            // What the user named must be had; what the process reads may be closed to this user.
            facts.problems.push(if wanted.by == ConfigChoice::Option {
                Problem::damage("configuration-unreadable", message)
            } else {
                Problem::notice("configuration-unreadable", message)
            });
            return;
        }
    };
    let Some(nginx) = &mut facts.nginx else { return };
    load_modules(&mut model, server, &wanted.prefix, root, &options.limits, nginx);
    facts.problems.extend(model.problems.iter().cloned());
    nginx.config = Some(Config { chosen_by: wanted.by, ..model.facts() });
    nginx.config_model = Some(Arc::new(model));
}

/// The configuration that a running program reads.
fn of_process(
    line: &CommandLine,
    product: Option<&Product>,
    arguments: Option<&[ConfigureArgument]>,
    root: Option<&Path>,
) -> Result<Wanted, String> {
    let invocation = invocation::invocation(&line.own, line.parent.as_deref())?;
    let chosen = invocation.configuration(product, arguments, line.directory.as_deref())?;
    let path = match root {
        // Links are followed inside its file system when the file is opened.
        Some(root) => root.join(chosen.file.strip_prefix("/").unwrap_or(&chosen.file)),
        None => chosen.file,
    };
    let by = if chosen.by_command_line { ConfigChoice::CommandLine } else { ConfigChoice::BuiltIn };
    Ok(Wanted { path, prefix: chosen.prefix, given: chosen.directives, by })
}

/// Reads the module files that the configuration names, and tells which of them the server takes.
fn load_modules(
    model: &mut Model,
    server: Option<&Server>,
    prefix: &Path,
    root: Option<&Path>,
    limits: &Limits,
    nginx: &mut Nginx,
) {
    let mut server = server.cloned();
    let lines: Vec<Directive> =
        model.main.iter().filter(|d| d.name == "load_module" && !d.args.is_empty()).cloned().collect();
    // Where something is not seen, another module may have been loaded before.
    let mut all_known = model.is_whole() && model.main.iter().all(|d| d.body != Body::Unseen);
    for line in lines.iter().take(MAX_MODULES) {
        let path = prefix.join(line.first());
        let module = read_module(root, &path, limits).map(|(file, found)| {
            if let Some(server) = &mut server {
                nginx.dynamic_modules.push(loadable(server, &file, all_known));
                // What is loaded is there for the modules after it.
                server.modules.extend(file.names.iter().cloned());
                server.exports.extend(found.server.map(|own| own.exports).unwrap_or_default());
            }
            let directives = found.nginx.directives.unwrap_or_default();
            LoadedModule { names: file.names, directives: directives.into_iter().map(|d| d.name).collect() }
        });
        all_known &= module.is_ok();
        model.loaded.push(Loaded { path: path.display().to_string(), at: line.at, module });
    }
}

fn read_module(
    root: Option<&Path>,
    path: &Path,
    limits: &Limits,
) -> Result<(nginx::ModuleFile, nginx::NginxFacts), String> {
    let file = source::open_absolute(root, path).map_err(|error| error.to_string())?;
    let input = Input::file(file).map_err(|error| error.to_string())?;
    let image = Image::open(input, limits).map_err(|error| error.to_string())?;
    let linkage = linkage::read(&image);
    let pointers = Pointers::read(&image, &linkage);
    let symbols = Symbols::new();
    let shown: PathBuf = path.to_path_buf();
    let found = nginx::read(&image, &linkage, &symbols, &pointers);
    let file = nginx::read_module(&image, &linkage, &symbols, &pointers, &shown.display().to_string());
    file.zip(found).ok_or_else(|| "no module structures in the file".to_owned())
}
