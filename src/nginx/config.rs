//! A configuration as nginx would read it: its directives with their places, and what could not be seen.
//!
//! Nothing here knows which directives exist; that is the build's business. Only what changes how text is read is known
//! by name: `include`, blocks whose lines are keys and not directives, and Lua blocks.

use crate::facts::{Config, Problem};
use crate::finding::Location;
use crate::limits::Limits;
use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

mod dump;
pub mod history;
pub mod lexer;
mod reader;
pub mod serving;
pub mod settings;
pub mod source;
pub mod values;

use reader::{Reader, Where};
use source::Source;

/// The file that directives of the command line are said to stand in.
pub const GIVEN: &str = "-g on the command line";

/// A place in the files of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place {
    /// Index into [`Model::files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// One directive, or one line of a block of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// Its first word, without quotes.
    pub name: String,
    /// The other words, without quotes and escapes.
    pub args: Vec<String>,
    /// Where its first word stands.
    pub at: Place,
    /// What follows.
    pub body: Body,
}

/// What follows a directive's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// `;`
    None,
    /// Directives, those of included files in their place.
    Block(Vec<Directive>),
    /// Keys with values.
    Keys(Vec<Directive>),
    /// Lua, not looked at.
    Lua,
    /// An `include` whose file could not be seen; what it holds is not known.
    Unseen,
}

impl Directive {
    /// The first argument, or an empty text.
    pub fn first(&self) -> &str {
        self.args.first().map(String::as_str).unwrap_or_default()
    }

    /// Whether its value is that word of a switch or an enumeration, which nginx compares without regard to case
    /// (`ngx_conf_set_flag_slot`, `ngx_conf_set_enum_slot`).
    pub fn says(&self, word: &str) -> bool {
        self.first().eq_ignore_ascii_case(word)
    }

    /// The directives in its block.
    pub fn children(&self) -> &[Directive] {
        match &self.body {
            Body::Block(list) => list,
            _ => &[],
        }
    }

    /// The lines of its block of keys.
    pub fn keys(&self) -> &[Directive] {
        match &self.body {
            Body::Keys(list) => list,
            _ => &[],
        }
    }
}

/// A file that the configuration names and that was not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotSeen {
    /// As the configuration names it.
    pub path: String,
    /// Where.
    pub at: Place,
    /// Why not.
    pub why: String,
}

/// A module file that `load_module` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The file, as the configuration names it.
    pub path: String,
    /// The `load_module` directive.
    pub at: Place,
    /// Modules in it and their directives; the reason where the file could not be read.
    pub module: Result<LoadedModule, String>,
}

/// What a module file holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadedModule {
    /// Module names.
    pub names: Vec<String>,
    /// Directives.
    pub directives: Vec<String>,
}

/// A configuration.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Files in the order in which they were first read.
    pub files: Vec<String>,
    /// Files named and not seen, those of `include`.
    pub not_seen: Vec<NotSeen>,
    /// Module files, in the order of `load_module`.
    pub loaded: Vec<Loaded>,
    /// The directives of the main context.
    pub main: Vec<Directive>,
    /// The text of a dump was read; every file there was is in it.
    pub is_dump: bool,
    /// The root file system in which files that directives name are looked up.
    pub root: Option<std::path::PathBuf>,
    /// What could not be read. Where a problem loses facts, the configuration is known only up to that place.
    pub problems: Vec<Problem>,
    /// `map`, `geo` and `split_clients` blocks of `http` by the variable they define: where they stand in `main`.
    tables: OnceLock<HashMap<String, Vec<(usize, usize)>>>,
    /// Names of places for [`settings::identity`].
    names: OnceLock<settings::Names>,
}

impl Model {
    /// Reads a configuration from its main file or from a dump, within the limits by default. Errors: the file itself
    /// cannot be read.
    pub fn read(path: &Path, root: Option<&Path>) -> Result<Self, String> {
        Self::read_after(None, path, root, &Limits::default())
    }

    /// The same after directives that nginx was given on its command line (`-g`), which come before those of the file.
    pub fn read_after(
        given: Option<&str>,
        path: &Path,
        root: Option<&Path>,
        limits: &Limits,
    ) -> Result<Self, String> {
        let (source, (name, bytes)) = Source::open(path, root, limits.conf_bytes)?;
        let mut model =
            Self { is_dump: source.is_dump(), root: root.map(Path::to_path_buf), ..Self::default() };
        let mut main = Vec::new();
        let mut reader = Reader::new(source, &mut model, limits);
        let outcome = given
            .map_or(Ok(()), |text| reader.file(GIVEN, text.as_bytes(), &mut main, Where::default()))
            .and_then(|()| reader.file(&name, &bytes, &mut main, Where::default()));
        model.main = main;
        if let Err(stop) = outcome {
            model.problems.push(Problem::damage(stop.code, stop.message));
        }
        model.say_what_is_missing();
        Ok(model)
    }

    /// Whether everything the main file leads to was read without a fault.
    pub fn is_whole(&self) -> bool {
        !self.problems.iter().any(|problem| problem.loses_facts)
    }

    /// The place of a finding.
    pub fn location(&self, at: Place) -> Location {
        let path = self.files.get(at.file as usize).cloned().unwrap_or_default();
        Location { path, line: at.line, column: at.column }
    }

    /// `file:line`, for texts.
    pub fn shown(&self, at: Place) -> String {
        let path = self.files.get(at.file as usize).map(String::as_str).unwrap_or_default();
        format!("{path}:{}", at.line)
    }

    /// The part of the document.
    pub fn facts(&self) -> Config {
        let modules = self.loaded.iter().filter(|loaded| loaded.module.is_err()).map(|loaded| &loaded.path);
        let mut not_seen: Vec<String> =
            self.not_seen.iter().map(|missing| &missing.path).chain(modules).cloned().collect();
        not_seen.sort_unstable();
        not_seen.dedup();
        Config { files: self.files.clone(), not_seen, chosen_by: crate::facts::ConfigChoice::default() }
    }

    /// Calls `visit` for every directive that is one, parents first; keys and Lua are passed over. `visit` gives whether to
    /// go into the block.
    pub fn walk<'m>(&'m self, visit: &mut dyn FnMut(&'m Directive) -> bool) {
        fn inner<'m>(list: &'m [Directive], visit: &mut dyn FnMut(&'m Directive) -> bool) {
            for directive in list {
                if visit(directive) {
                    inner(directive.children(), visit);
                }
            }
        }
        inner(&self.main, visit);
    }

    /// The `map`, `geo` and `split_clients` blocks of `http` that define a variable.
    pub fn tables(&self, variable: &str) -> impl Iterator<Item = &Directive> {
        let found = self.tables.get_or_init(|| {
            let mut out: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
            for (outer, http) in self.main.iter().enumerate().filter(|(_, d)| d.name == "http") {
                for (inner, table) in http.children().iter().enumerate() {
                    let is_table = matches!(table.name.as_str(), "map" | "geo" | "split_clients");
                    let name = table.args.last().and_then(|last| values::variable(last));
                    if let Some(name) = name.filter(|_| is_table && !table.keys().is_empty()) {
                        out.entry(name.to_owned()).or_default().push((outer, inner));
                    }
                }
            }
            out
        });
        let places = found.get(variable).map(Vec::as_slice).unwrap_or_default();
        places.iter().filter_map(|(outer, inner)| self.main.get(*outer)?.children().get(*inner))
    }

    fn say_what_is_missing(&mut self) {
        for missing in &self.not_seen {
            let path = self.files.get(missing.at.file as usize).map(String::as_str).unwrap_or_default();
            self.problems.push(Problem::notice(
                "include-not-seen",
                format!("{path}:{}: include {}: {}", missing.at.line, missing.path, missing.why),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model of files written to a directory; the first is the main one.
    fn model(files: &[(&str, &str)]) -> Model {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Model::read(&directory.path().join(files[0].0), Some(directory.path())).unwrap()
    }

    fn names(list: &[Directive]) -> Vec<&str> {
        list.iter().map(|d| d.name.as_str()).collect()
    }

    #[test]
    fn includes_stand_in_their_place() {
        let model = model(&[
            (
                "etc/nginx.conf",
                "a;\ninclude conf.d/*.conf;\nb { include /etc/inner; c; }\ntypes { include t; x/y z; }",
            ),
            ("etc/conf.d/1.conf", "one;"),
            ("etc/conf.d/2.conf", "\n two { three; }"),
            ("etc/inner", "in;"),
            ("etc/t", "text/html html;"),
        ]);
        assert_eq!(names(&model.main), ["a", "include", "one", "two", "b", "types"]);
        assert_eq!(names(model.main[4].children()), ["include", "in", "c"]);
        assert_eq!(names(model.main[5].keys()), ["include", "text/html", "x/y"]);
        assert_eq!(model.shown(model.main[3].at), "/etc/conf.d/2.conf:2");
        assert_eq!(model.location(model.main[3].at).column, 2);
        assert_eq!(model.facts().files.len(), 5);
        assert!(model.is_whole() && model.not_seen.is_empty());
        let mut seen = Vec::new();
        model.walk(&mut |d| {
            seen.push(d.name.as_str());
            true
        });
        assert!(seen.contains(&"three") && !seen.contains(&"text/html"));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let model =
            model(&[("nginx.conf", "http { include gone.conf; include none/*.conf; include *.none; }")]);
        assert_eq!(model.facts().not_seen, ["gone.conf", "none/*.conf"]);
        assert_eq!(model.problems.len(), 2);
        assert!(model.is_whole());
        assert!(model.problems[0].message.contains("nginx.conf:1: include gone.conf"));
        let body: Vec<&Body> = model.main[0].children().iter().map(|d| &d.body).collect();
        assert_eq!(body, [&Body::Unseen, &Body::Unseen, &Body::None]);
    }

    #[test]
    fn faults_and_bounds_end_the_reading_and_are_said() {
        for (text, want) in [
            ("a;\nhttp { b; c", "nginx.conf:2: unexpected end of file"),
            ("a;\nhttp { b;\n", "nginx.conf:3: unexpected end of file, expecting \"}\""),
            ("a; }", "unexpected \"}\""),
            ("include nginx.conf;", "includes nested more than 40 deep"),
        ] {
            let model = model(&[("nginx.conf", text)]);
            assert!(!model.is_whole());
            assert!(model.problems[0].message.contains(want), "{:?}", model.problems);
        }
        let deep = format!("{}{}", "a {".repeat(200), "}".repeat(200));
        assert!(model(&[("nginx.conf", &deep)]).problems[0].message.contains("nested more than 50 deep"));
        let kept = model(&[("nginx.conf", "http { b; c")]);
        assert_eq!(names(kept.main[0].children()), ["b"]);
    }
}
