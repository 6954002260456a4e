//! A configuration held beside the build that is to read it.

use super::Options;
use crate::facts::{Facts, Kind, Problem};
use crate::image::linkage;
use crate::image::pointers::Pointers;
use crate::image::symbols::Symbols;
use crate::image::{Image, Input};
use crate::limits::Limits;
use crate::nginx::config::{Directive, Loaded, LoadedModule, Model, source};
use crate::nginx::{self, Server};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where nginx is installed unless `--prefix` says otherwise (`auto/options`).
const PREFIX: &str = "/usr/local/nginx";
/// Most module files read.
const MAX_MODULES: usize = 200;

/// Reads the configuration that the user named, and the module files it loads.
pub(super) fn attach(server: Option<&Server>, options: &Options, facts: &mut Facts) {
    let Some(path) = &options.nginx_conf else { return };
    let Some(nginx) = &mut facts.nginx else { return };
    if facts.elf.as_ref().is_some_and(|elf| elf.kind == Kind::SharedObject) {
        return;
    }
    let root = options.companions.root.as_deref();
    let mut model = match Model::read(path, root, &options.limits) {
        Ok(model) => model,
        Err(error) => {
            let message = format!("{}: {error}", path.display());
            facts.problems.push(Problem::damage("configuration-unreadable", message));
            return;
        }
    };
    let prefix = nginx
        .configure_arguments
        .iter()
        .flatten()
        .rev()
        .find(|argument| argument.name == "--prefix")
        .and_then(|argument| argument.value.as_deref())
        .unwrap_or(PREFIX);
    let mut server = server.cloned();
    let lines: Vec<Directive> =
        model.main.iter().filter(|d| d.name == "load_module" && !d.args.is_empty()).cloned().collect();
    for line in lines.iter().take(MAX_MODULES) {
        let path = Path::new(prefix).join(line.first());
        let read = read_module(root, &path, &options.limits);
        let module = read.map(|(file, found)| {
            if let Some(server) = &mut server {
                nginx.dynamic_modules.push(nginx::loadable(server, &file));
                // What is loaded is there for the modules after it.
                server.modules.extend(file.names.iter().cloned());
                server.exports.extend(found.server.map(|own| own.exports).unwrap_or_default());
            }
            let directives = found.nginx.directives.unwrap_or_default();
            LoadedModule { names: file.names, directives: directives.into_iter().map(|d| d.name).collect() }
        });
        model.loaded.push(Loaded { path: path.display().to_string(), at: line.at, module });
    }
    facts.problems.extend(model.problems.iter().cloned());
    nginx.config = Some(model.facts());
    nginx.config_model = Some(Arc::new(model));
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
