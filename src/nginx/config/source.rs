//! Where the text of a configuration comes from: files below the directory of the main one, or the dump of `nginx -T`.

use super::dump;
use crate::image::confined::{self, Directory};
use globset::{GlobBuilder, GlobMatcher};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most files that one pattern may give.
const MAX_MATCHES: usize = 4096;
/// Most entries of one directory looked at.
const MAX_ENTRIES: usize = 65_536;

/// A file's path, as nginx would name it, and its bytes.
pub type Text = (String, Vec<u8>);

/// What an `include` or `load_module` argument leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// These files, in nginx's order. None is right for a pattern.
    Texts(Vec<Text>),
    /// The file is not to be had; the reason.
    Missing(String),
    /// Reading it would go over the bound.
    TooMuch,
}

/// The files of one configuration.
#[derive(Debug)]
pub struct Source {
    kind: Kind,
    /// Directory that relative includes start from.
    directory: String,
    left: u64,
}

#[derive(Debug)]
enum Kind {
    Files { root: Option<PathBuf>, directory: PathBuf },
    Dump(Vec<Text>),
}

impl Source {
    /// Opens the main file. `root` is a root file system in which absolute paths are looked up.
    /// Errors: the file cannot be read, is no regular file, or is too large.
    /// `most` is the number of bytes that all files together may have.
    pub fn open(path: &Path, root: Option<&Path>, most: u64) -> Result<(Self, Text), String> {
        let shown = path.display().to_string();
        let inside = root.and_then(|root| Some((root, confined::seen_from(root, path)?)));
        let file = match &inside {
            Some((root, inside)) => confined::open_inside(root, inside).map(|(file, _)| file),
            None => confined::open_regular(path),
        };
        let file = file.map_err(|error| error.to_string())?;
        let mut left = most;
        let bytes =
            read(file, &mut left)?.ok_or_else(|| format!("more than {most} bytes of configuration"))?;
        if let Some(texts) = dump::files(&bytes) {
            let Some(main) = texts.first().cloned() else { return Err("the dump holds no file".to_owned()) };
            let directory = parent(&main.0).to_owned();
            return Ok((Self { kind: Kind::Dump(texts), directory, left }, main));
        }
        let directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
        // A file inside the root is named as the program would name it there.
        let shown = inside.map_or(shown, |(_, path)| path.display().to_string());
        let source = Self {
            directory: parent(&shown).to_owned(),
            kind: Kind::Files { root: root.map(Path::to_path_buf), directory },
            left,
        };
        Ok((source, (shown, bytes)))
    }

    /// Whether the text is a dump, which holds every file there was.
    pub fn is_dump(&self) -> bool {
        matches!(self.kind, Kind::Dump(_))
    }

    /// The files that the argument of an `include` names.
    pub fn include(&mut self, argument: &str) -> Found {
        let full = if argument.starts_with('/') || self.directory.is_empty() {
            argument.to_owned()
        } else {
            format!("{}/{argument}", self.directory.trim_end_matches('/'))
        };
        let is_pattern = full.contains(['*', '?', '[']);
        match &self.kind {
            Kind::Dump(texts) => {
                let mut found: Vec<Text> = if is_pattern {
                    let Some(pattern) = Pattern::new(&full) else { return Found::Texts(Vec::new()) };
                    texts.iter().filter(|(path, _)| pattern.matches(path)).cloned().collect()
                } else {
                    texts.iter().find(|(path, _)| *path == full).cloned().into_iter().collect()
                };
                if found.is_empty() && !is_pattern {
                    return Found::Missing("not in the dump".to_owned());
                }
                found.sort_by(|a, b| a.0.cmp(&b.0));
                // A dump may include a file in many places: each copy counts.
                let size: u64 = found.iter().map(|(_, bytes)| bytes.len() as u64).sum();
                match self.left.checked_sub(size) {
                    Some(left) => self.left = left,
                    None => return Found::TooMuch,
                }
                Found::Texts(found)
            }
            Kind::Files { root, directory } => {
                let place = Place {
                    root: root.clone(),
                    directory: directory.clone(),
                    relative: !argument.starts_with('/'),
                };
                let paths = if is_pattern {
                    match place.expand(argument) {
                        Ok(paths) => paths,
                        Err(why) => return Found::Missing(why),
                    }
                } else {
                    vec![argument.to_owned()]
                };
                self.texts(&place, &paths)
            }
        }
    }

    fn texts(&mut self, place: &Place, paths: &[String]) -> Found {
        let mut out = Vec::new();
        for path in paths {
            let file = match place.open(path) {
                Ok(file) => file,
                Err(error) => return Found::Missing(error.to_string()),
            };
            match read(file, &mut self.left) {
                Ok(Some(bytes)) => {
                    let shown = if place.relative && !self.directory.is_empty() {
                        format!("{}/{path}", self.directory.trim_end_matches('/'))
                    } else {
                        path.clone()
                    };
                    out.push((shown, bytes));
                }
                Ok(None) => return Found::TooMuch,
                Err(why) => return Found::Missing(why),
            }
        }
        Found::Texts(out)
    }
}

/// Opens a file named by its path in the file system the configuration is for.
pub fn open_absolute(root: Option<&Path>, path: &Path) -> std::io::Result<File> {
    match root {
        Some(root) => confined::open_inside(root, path).map(|(file, _)| file),
        None => confined::open_regular(path),
    }
}

/// The directory of that path in the file system the configuration is for, held open.
pub fn directory_of(root: Option<&Path>, path: &Path) -> std::io::Result<Directory> {
    match root {
        Some(root) => Directory::open(root)?.find(path)?.directory(),
        None => Directory::open(path),
    }
}

/// How paths of one argument become files.
struct Place {
    root: Option<PathBuf>,
    directory: PathBuf,
    relative: bool,
}

impl Place {
    fn open(&self, path: &str) -> std::io::Result<File> {
        if self.relative {
            let whole = self.directory.join(path);
            if let Some(root) = &self.root
                && let Some(inside) = confined::seen_from(root, &self.directory)
            {
                return confined::open_inside(root, &inside.join(path)).map(|(file, _)| file);
            }
            return confined::open_regular(&whole);
        }
        open_absolute(self.root.as_deref(), Path::new(path))
    }

    /// The directory of that path.
    fn directory(&self, path: &str) -> std::io::Result<Directory> {
        if !self.relative {
            return directory_of(self.root.as_deref(), Path::new(path));
        }
        if let Some(root) = &self.root
            && let Some(inside) = confined::seen_from(root, &self.directory)
        {
            return directory_of(Some(root), &inside.join(path));
        }
        let path = self.directory.join(path);
        let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
        Directory::open(&path)
    }

    /// Files that a pattern names, sorted. An error tells that the pattern's fixed directory is not there, in which case
    /// nothing is known about the files.
    fn expand(&self, pattern: &str) -> Result<Vec<String>, String> {
        let mut bases = vec![if pattern.starts_with('/') { "/".to_owned() } else { String::new() }];
        let mut fixed = true;
        let components: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
        for (index, component) in components.iter().enumerate() {
            let last = index + 1 == components.len();
            let join = |base: &str, name: &str| {
                if base.is_empty() || base.ends_with('/') {
                    format!("{base}{name}")
                } else {
                    format!("{base}/{name}")
                }
            };
            if !component.contains(['*', '?', '[']) {
                for base in &mut bases {
                    *base = join(base, component);
                }
                if last {
                    bases.retain(|path| self.open(path).is_ok());
                }
                continue;
            }
            let Some(matcher) = component_matcher(component) else { return Ok(Vec::new()) };
            let mut next = Vec::new();
            for base in &bases {
                let Ok(directory) = self.directory(base) else {
                    if fixed {
                        return Err(format!("the directory {base} is not to be had"));
                    }
                    continue;
                };
                let entries = directory.entries(Path::new("")).map_err(|error| format!("{base}: {error}"))?;
                let mut names: Vec<String> = entries
                    .take(MAX_ENTRIES)
                    .filter_map(|entry| entry.ok()?.name.into_string().ok())
                    .filter(|name| matches_component(&matcher, component, name))
                    .collect();
                names.sort_unstable();
                next.extend(names.iter().map(|name| join(base, name)));
                if next.len() > MAX_MATCHES {
                    return Err(format!("{pattern} names more than {MAX_MATCHES} files"));
                }
            }
            fixed = false;
            bases = next;
        }
        Ok(bases)
    }
}

/// A whole path as a pattern, component by component.
struct Pattern(Vec<(String, GlobMatcher)>);

impl Pattern {
    fn new(pattern: &str) -> Option<Self> {
        let parts = pattern.split('/').map(|part| Some((part.to_owned(), component_matcher(part)?)));
        parts.collect::<Option<Vec<_>>>().map(Self)
    }

    fn matches(&self, path: &str) -> bool {
        let mut names = path.split('/');
        self.0
            .iter()
            .all(|(text, matcher)| names.next().is_some_and(|name| matches_component(matcher, text, name)))
            && names.next().is_none()
    }
}

/// One component as `glob(3)` without flags understands it: braces are ordinary characters.
fn component_matcher(component: &str) -> Option<GlobMatcher> {
    let mut escaped = String::with_capacity(component.len());
    for character in component.chars() {
        match character {
            '{' => escaped.push_str("[{]"),
            '}' => escaped.push_str("[}]"),
            other => escaped.push(other),
        }
    }
    let glob = GlobBuilder::new(&escaped).literal_separator(true).backslash_escape(true).build().ok()?;
    Some(glob.compile_matcher())
}

/// A leading dot is matched only by a dot.
fn matches_component(matcher: &GlobMatcher, pattern: &str, name: &str) -> bool {
    (!name.starts_with('.') || pattern.starts_with('.')) && matcher.is_match(name)
}

/// Reads a file whole; `None` if it is larger than what is left.
fn read(file: File, left: &mut u64) -> Result<Option<Vec<u8>>, String> {
    let mut bytes = Vec::new();
    let limit = *left;
    let got =
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let rest = limit.checked_sub(got as u64);
    *left = rest.unwrap_or(0);
    Ok(rest.map(|_| bytes))
}

fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir_all(root.join("etc/nginx/conf.d")).unwrap();
        std::fs::create_dir_all(root.join("etc/nginx/empty")).unwrap();
        for name in ["nginx.conf", "conf.d/b.conf", "conf.d/a.conf", "conf.d/.hidden.conf", "conf.d/{x}.conf"]
        {
            std::fs::write(root.join("etc/nginx").join(name), name).unwrap();
        }
        directory
    }

    fn names(found: Found) -> Vec<String> {
        match found {
            Found::Texts(texts) => texts.into_iter().map(|(path, _)| path).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn patterns_start_at_the_main_file_and_absolute_ones_at_the_root() {
        let directory = tree();
        let root = directory.path();
        let (mut source, main) =
            Source::open(&root.join("etc/nginx/nginx.conf"), Some(root), 32 << 20).unwrap();
        assert_eq!(main.0, "/etc/nginx/nginx.conf");
        let all = ["a.conf", "b.conf", "{x}.conf"].map(|name| format!("/etc/nginx/conf.d/{name}"));
        assert_eq!(names(source.include("conf.d/*.conf")), all);
        assert_eq!(names(source.include("/etc/*/conf.d/[ab].conf")), all[..2]);
        assert_eq!(names(source.include("/etc/nginx/conf.d/{*}.conf")), all[2..]);
        assert_eq!(names(source.include("empty/*.conf")), Vec::<String>::new());
        assert_eq!(names(source.include("conf.d/a.conf")), all[..1]);
        assert!(matches!(source.include("/etc/gone/*.conf"), Found::Missing(_)));
        assert!(matches!(source.include("mime.types"), Found::Missing(_)));
        assert!(matches!(source.include("conf.d"), Found::Missing(_)));
        let host = root.join("etc/nginx/nginx.conf");
        let (mut source, main) = Source::open(&host, None, 32 << 20).unwrap();
        assert_eq!(main.0, host.display().to_string());
        assert_eq!(
            names(source.include("conf.d/a.conf")),
            [root.join("etc/nginx/conf.d/a.conf").display().to_string()]
        );
    }

    #[test]
    fn a_dump_is_its_own_file_system() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dump");
        let text = "nginx: the configuration file /etc/nginx/nginx.conf syntax is ok\n# configuration file /etc/nginx/nginx.conf:\nmain;\n\n# configuration file /etc/nginx/conf.d/b.conf:\nb;\n# configuration file /etc/nginx/conf.d/a.conf:\na;\n";
        std::fs::write(&path, text).unwrap();
        let (mut source, main) = Source::open(&path, None, 32 << 20).unwrap();
        assert!(source.is_dump());
        assert_eq!((main.0.as_str(), main.1.as_slice()), ("/etc/nginx/nginx.conf", &b"main;\n\n"[..]));
        assert_eq!(
            names(source.include("conf.d/*")),
            ["/etc/nginx/conf.d/a.conf", "/etc/nginx/conf.d/b.conf"]
        );
        assert_eq!(names(source.include("/gone/*")), Vec::<String>::new());
        assert_eq!(source.include("/etc/nginx/mime.types"), Found::Missing("not in the dump".to_owned()));
        for before in [
            "\u{feff}",
            "\u{feff}\r\nnginx: configuration file /etc/nginx/nginx.conf test is successful\r\n",
            "2026/11/30 12:00:00 [warn] 7#7: conflicting server name \"x\" on 0.0.0.0:80, ignored\n",
            "2026/11/30 12:00:00 [notice] 7#7: using the \"epoll\" event method\n",
            "Defaulted container \"nginx\" out of: nginx, sidecar\n",
        ] {
            std::fs::write(&path, format!("{before}{text}")).unwrap();
            let (source, main) = Source::open(&path, None, 32 << 20).unwrap();
            assert!(source.is_dump() && main.1 == b"main;\n\n", "{before:?}");
        }
        std::fs::write(&path, format!("user x;\n{text}")).unwrap();
        assert!(!Source::open(&path, None, 32 << 20).unwrap().0.is_dump());
        std::fs::write(&path, "# configuration files of ours\nmain;").unwrap();
        assert!(!Source::open(&path, None, 32 << 20).unwrap().0.is_dump());
    }
}
