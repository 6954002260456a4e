//! The names that the programs of a package have: one is listed, and links give them others.

use super::contents::Contents;
use super::tree::{Place, Tree};
use std::collections::HashMap;

/// What is said of a name that the package does not have.
pub(super) const NOTHING: &str = "no program of this name in the package";

/// Names of a package or an image.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The file trees, and what the names in them begin with.
    trees: Vec<(String, Tree)>,
    /// A package's entries, of which a tree is made once a name is asked for.
    entries: Contents,
    /// The name under which each program is listed, by its number.
    listed: HashMap<usize, String>,
    /// Further names of programs that are listed, with their numbers.
    further: Vec<(String, usize)>,
}

impl Names {
    /// Of an image, which has trees, or of a package, which has entries.
    pub(super) fn new(contents: &mut Contents) -> Self {
        let trees = std::mem::take(&mut contents.trees);
        let events = std::mem::take(&mut contents.events);
        let found = if trees.is_empty() { contents.found.clone() } else { Vec::new() };
        Self { trees, entries: Contents::of(found, events), listed: HashMap::new(), further: Vec::new() }
    }

    /// Lists a program.
    pub(super) fn list(&mut self, id: usize, name: &str) {
        self.listed.insert(id, name.to_owned());
    }

    /// Adds a hard link of a program that is listed.
    pub(super) fn link(&mut self, id: usize, name: String) {
        self.further.push((name, id));
    }

    /// The names that end with a component, each with the one under which its program is listed.
    pub(super) fn ending(&mut self, last: &str) -> Vec<(String, String)> {
        let in_trees: Vec<(String, usize)> = self
            .trees()
            .iter()
            .flat_map(|(prefix, tree)| {
                tree.ending(last).filter_map(move |name| match tree.find(name) {
                    Place::Program(id) => Some((format!("{prefix}{name}"), id)),
                    _ => None,
                })
            })
            .collect();
        let further = self.further.iter().filter(|(name, _)| name.rsplit('/').next() == Some(last));
        let all = in_trees.into_iter().chain(further.cloned());
        all.filter_map(|(name, id)| Some((name, self.listed.get(&id)?.clone()))).collect()
    }

    /// The trees, for which a package's entries are laid out the first time.
    fn trees(&mut self) -> &[(String, Tree)] {
        if self.trees.is_empty() {
            let mut tree = Tree::default();
            tree.lay(&std::mem::take(&mut self.entries), &mut 0);
            self.trees.push((String::new(), tree));
        }
        &self.trees
    }

    /// The name under which a program is listed that `member`, without a leading slash, is a name of; `Err` says what is
    /// there instead.
    pub(super) fn listed(&mut self, member: &str) -> Result<String, String> {
        let linked = self.further.iter().find(|(name, _)| name.trim_start_matches('/') == member);
        if let Some(listed) = linked.and_then(|(_, id)| self.listed.get(id)) {
            return Ok(listed.clone());
        }
        // Names of several images begin with the image's.
        let inside = |(prefix, tree): &(String, Tree)| {
            let name = member.strip_prefix(prefix.as_str())?;
            Some(tree.find(&format!("/{name}")))
        };
        let place = self.trees().iter().filter_map(inside).find(|place| *place != Place::Nowhere);
        match place {
            Some(Place::Program(id)) => self.listed.get(&id).cloned().ok_or_else(|| NOTHING.to_owned()),
            Some(Place::NoProgram) => {
                Err("no program, but something else has this name in the package".to_owned())
            }
            Some(Place::Dangling(target)) => {
                Err(format!("a symbolic link to {target}, which is not in the package"))
            }
            Some(Place::Nowhere) | None => Err(NOTHING.to_owned()),
        }
    }
}
