//! The file tree that layers make, one laid over the other (OCI image specification, "Image Layer Filesystem Changeset").

use super::contents::{Contents, Event, Found};
use std::collections::{BTreeMap, HashSet};

/// Most links followed for one name (Linux `MAXSYMLINKS`).
const MOST_LINKS: usize = 40;
/// Marks a name of a lower layer as gone.
const WHITEOUT: &str = ".wh.";
/// Marks everything that lower layers have in a directory as gone.
const OPAQUE: &str = ".wh..wh..opq";

#[derive(Debug)]
enum Node {
    File(Option<Found>),
    Directory,
    Symlink(String),
}

/// Longest name of a file, in bytes.
const MOST_PATH: usize = 4096;

/// What a name stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A program, by the number that all its names share.
    Program(usize),
    /// Something that is no program.
    NoProgram,
    /// A link to this, which is not there.
    Dangling(String),
    /// Nothing.
    Nowhere,
}

/// A tree and the layer each name comes from.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, (usize, Node)>,
    layer: usize,
    /// Names below which this layer has cleared already: nothing of lower ones comes back.
    cleared: HashSet<String>,
}

impl Tree {
    /// Lays one more layer over the tree.
    pub(super) fn lay(&mut self, contents: &Contents, ids: &mut usize) {
        self.layer += 1;
        self.cleared.clear();
        // Found files get numbers that hold for the whole image; hard links keep sharing theirs.
        let base = *ids;
        *ids += contents.found.len();
        for (name, event) in &contents.events {
            let Some((folder, last)) = name.rsplit_once('/') else { continue };
            let folder = self.resolve(folder);
            if last == OPAQUE {
                self.remove_below(&folder);
                continue;
            }
            if let Some(gone) = last.strip_prefix(WHITEOUT) {
                let gone = format!("{folder}/{gone}");
                self.remove_below(&gone);
                self.nodes.retain_one(&gone, self.layer);
                continue;
            }
            let path = format!("{folder}/{last}");
            let node = match event {
                Event::Directory => {
                    // A directory over a link to a directory is that directory.
                    if !matches!(self.nodes.get(&path), Some((_, Node::Symlink(_)))) {
                        self.nodes.insert(path, (self.layer, Node::Directory));
                    }
                    continue;
                }
                Event::Symlink(target) => Node::Symlink(target.clone()),
                Event::Link(target) => {
                    let (folder, last) = target.rsplit_once('/').unwrap_or_default();
                    let target = format!("{}/{last}", self.resolve(folder));
                    match self.nodes.get(&target) {
                        Some((_, Node::File(found))) => {
                            Node::File(found.clone().map(|found| Found { name: path.clone(), ..found }))
                        }
                        _ => Node::File(None),
                    }
                }
                Event::File(at) => {
                    let found = at.and_then(|at| contents.found.get(at)).cloned();
                    Node::File(found.map(|found| Found { id: base + found.id, name: path.clone(), ..found }))
                }
            };
            self.remove_below(&path);
            self.nodes.insert(path, (self.layer, node));
        }
    }

    /// Removes what lower layers have below a name.
    fn remove_below(&mut self, path: &str) {
        if !self.cleared.insert(path.to_owned()) {
            return;
        }
        let layer = self.layer;
        let from = format!("{path}/");
        let gone: Vec<String> = self
            .nodes
            .range(from.clone()..)
            .take_while(|(name, _)| name.starts_with(&from))
            .filter(|(_, (of, _))| *of < layer)
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            self.nodes.remove(&name);
        }
    }

    /// A folder with links followed inside the tree; `..` at the root stays there.
    fn resolve(&self, folder: &str) -> String {
        let mut links = 0;
        let mut todo: Vec<String> = folder.split('/').rev().map(str::to_owned).collect();
        let mut at = String::new();
        while let Some(part) = todo.pop() {
            // No file has such a name (Linux `PATH_MAX`).
            if at.len() > MOST_PATH {
                break;
            }
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    at.truncate(at.rfind('/').unwrap_or_default());
                    continue;
                }
                _ => {}
            }
            let next = format!("{at}/{part}");
            match self.nodes.get(&next) {
                Some((_, Node::Symlink(target))) if links < MOST_LINKS => {
                    links += 1;
                    if target.starts_with('/') {
                        at.clear();
                    }
                    todo.extend(target.split('/').rev().map(str::to_owned));
                }
                _ => at = next,
            }
        }
        at
    }

    /// The files that are left.
    pub(super) fn found(&self) -> impl Iterator<Item = &Found> {
        self.nodes.values().filter_map(|(_, node)| match node {
            Node::File(found) => found.as_ref(),
            Node::Directory | Node::Symlink(_) => None,
        })
    }

    /// All names that end with a component.
    pub(super) fn ending(&self, last: &str) -> impl Iterator<Item = &str> {
        let ends = move |name: &&str| name.rsplit('/').next() == Some(last);
        self.nodes.keys().map(String::as_str).filter(ends)
    }

    /// What a name stands for, links followed inside the tree.
    pub(super) fn find(&self, name: &str) -> Place {
        let path = self.resolve(name);
        let program = |found: &Option<Found>| found.as_ref().filter(|found| found.is_program).map(|f| f.id);
        match self.nodes.get(&path) {
            Some((_, Node::File(found))) => program(found).map_or(Place::NoProgram, Place::Program),
            Some((_, Node::Directory)) => Place::NoProgram,
            _ if path == super::contents::clean(name.as_bytes()).unwrap_or_default() => Place::Nowhere,
            _ => Place::Dangling(path),
        }
    }
}

trait RetainOne {
    fn retain_one(&mut self, name: &str, layer: usize);
}

impl RetainOne for BTreeMap<String, (usize, Node)> {
    /// Removes a name that a lower layer has.
    fn retain_one(&mut self, name: &str, layer: usize) {
        if self.get(name).is_some_and(|(of, _)| *of < layer) {
            self.remove(name);
        }
    }
}
