//! A configuration held beside the build that is to read it.

use super::Options;
use crate::facts::{
    Config, ConfigChoice, ConfigureArgument, DynamicModule, Facts, Kind, Nginx, Problem, Product,
};
use crate::image::linkage;
use crate::image::pointers::Pointers;
use crate::image::symbols::Symbols;
use crate::image::{Image, ImageError, Input};
use crate::limits::Limits;
use crate::nginx::config::{Body, Directive, Loaded, LoadedModule, Model, source};
use crate::nginx::configure::last_value;
use crate::nginx::{self, Server, invocation, loadable};
use crate::target::process::CommandLine;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most module files read.
const MAX_MODULES: usize = 200;
/// Size of the header that the dynamic loader wants to see first (`elf/dl-load.c` in glibc).
const ELF_HEADER: u64 = 64;
/// Why nothing can be said of a module held against a text.
const NO_SERVER: &str = "the server's signature is in its binary, and only the text of nginx -V is at hand";

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
        let shown = path.display().to_string();
        let module = match read_module(root, &path, limits) {
            Ok((file, found)) => {
                nginx.dynamic_modules.push(match &server {
                    Some(server) => loadable(server, &file, all_known),
                    None => open_question(&shown, Some(&file), NO_SERVER.to_owned()),
                });
                if let Some(server) = &mut server {
                    // What is loaded is there for the modules after it.
                    server.modules.extend(file.names.iter().cloned());
                    server.exports.extend(found.server.map(|own| own.exports).unwrap_or_default());
                }
                let directives = found.nginx.directives.unwrap_or_default();
                let directives = directives.into_iter().map(|d| d.name).collect();
                Ok(LoadedModule { names: file.names, directives })
            }
            Err(unread) => {
                let open = open_question(&shown, None, format!("{shown}: {}", unread.why));
                nginx.dynamic_modules.push(match unread.refused {
                    // The files of a text's server may be others than those of this machine.
                    Some(words) if server.is_some() => DynamicModule {
                        loadable: Some(false),
                        why_not: Some(format!("dlopen() \"{shown}\" failed ({words})")),
                        ..open
                    },
                    _ => open,
                });
                Err(unread.why)
            }
        };
        all_known &= module.is_ok();
        model.loaded.push(Loaded { path: shown, at: line.at, module });
    }
    if lines.len() > MAX_MODULES {
        let message = format!("{} lines of load_module: only {MAX_MODULES} files are read", lines.len());
        model.problems.push(Problem::damage("too-many-modules", message));
    }
}

/// A module file of which nothing tells whether it would load; the reason.
fn open_question(path: &str, file: Option<&nginx::ModuleFile>, why: String) -> DynamicModule {
    DynamicModule {
        path: path.to_owned(),
        name: file.and_then(|file| file.names.first().cloned()),
        version: None,
        signature: file.and_then(|file| file.signature.clone()),
        loadable: None,
        why_not: Some(why),
    }
}

/// Why a module file could not be read.
struct Unread {
    why: String,
    /// The words in which the dynamic loader refuses it, where it certainly does.
    refused: Option<&'static str>,
}

impl<E: std::fmt::Display> From<E> for Unread {
    fn from(error: E) -> Self {
        Self { why: error.to_string(), refused: None }
    }
}

fn open_image(root: Option<&Path>, path: &Path, limits: &Limits) -> Result<Image, Unread> {
    let input = Input::file(source::open_absolute(root, path)?)?;
    let short = input.len() < ELF_HEADER;
    let refused = |error: &ImageError| match error {
        ImageError::Io(_) => None,
        _ if short => Some("file too short"),
        ImageError::NotElf | ImageError::BadHeader(_) | ImageError::Truncated(_) => {
            Some("invalid ELF header")
        }
    };
    Image::open(input, limits).map_err(|error| Unread { refused: refused(&error), ..error.into() })
}

fn read_module(
    root: Option<&Path>,
    path: &Path,
    limits: &Limits,
) -> Result<(nginx::ModuleFile, nginx::NginxFacts), Unread> {
    let image = open_image(root, path, limits)?;
    let linkage = linkage::read(&image);
    let pointers = Pointers::read(&image, &linkage);
    let symbols = Symbols::new();
    let shown: PathBuf = path.to_path_buf();
    let found = nginx::read(&image, &linkage, &symbols, &pointers);
    let file = nginx::read_module(&image, &linkage, &symbols, &pointers, &shown.display().to_string());
    Ok(file.zip(found).ok_or("no module structures in the file")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Origin;
    use crate::target::Subject;

    const LINES: &str = "load_module gone.so; load_module text.so; load_module empty.so;";

    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("nginx.conf"), LINES).unwrap();
        std::fs::write(directory.path().join("text.so"), "version https://git-lfs.example\n".repeat(4))
            .unwrap();
        std::fs::write(directory.path().join("empty.so"), "").unwrap();
        directory
    }

    fn told(modules: &[DynamicModule]) -> Vec<(Option<bool>, &str)> {
        let words = |m: &DynamicModule| m.why_not.as_deref().unwrap_or_default().rfind(['(', ':']).unwrap();
        modules.iter().map(|m| (m.loadable, &m.why_not.as_deref().unwrap()[words(m)..])).collect()
    }

    #[test]
    fn files_that_are_no_modules_are_refused_and_missing_ones_are_open() {
        let directory = directory();
        let mut model = Model::read(&directory.path().join("nginx.conf"), None).unwrap();
        let mut nginx = nginx::read_text(b"configure arguments:").unwrap().nginx;
        let server = Some(Server::default());
        load_modules(&mut model, server.as_ref(), directory.path(), None, &Limits::default(), &mut nginx);
        let gone = directory.path().join("gone.so");
        assert!(nginx.dynamic_modules[0].why_not.as_ref().unwrap().starts_with(gone.to_str().unwrap()));
        let told = told(&nginx.dynamic_modules);
        assert_eq!((told[0].0, told.len()), (None, 3));
        assert_eq!(told[1..], [(Some(false), "(invalid ELF header)"), (Some(false), "(file too short)")]);
    }

    #[test]
    fn nothing_is_certain_of_modules_held_against_a_text() {
        let directory = directory();
        let text = directory.path().join("v.txt");
        let arguments = format!("configure arguments: --prefix={}\n", directory.path().display());
        std::fs::write(&text, format!("nginx version: nginx/1.22.1\n{arguments}")).unwrap();
        let options = Options { nginx_conf: Some(directory.path().join("nginx.conf")), ..Options::default() };
        let facts = super::super::audit(&Subject::new(text, Origin::File), &options);
        let modules = facts.nginx.unwrap().dynamic_modules;
        assert_eq!(modules.len(), 3);
        assert!(modules.iter().all(|m| m.loadable.is_none() && m.why_not.is_some() && m.name.is_none()));
    }
}
