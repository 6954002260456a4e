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
}

impl Names {
    /// Of an image, which has trees, or of a package, which has entries.
    pub(super) fn new(contents: &mut Contents) -> Self {
        let trees = std::mem::take(&mut contents.trees);
        let events = std::mem::take(&mut contents.events);
        let found = if trees.is_empty() { contents.found.clone() } else { Vec::new() };
        Self { trees, entries: Contents::of(found, events), listed: HashMap::new() }
    }

    /// Lists a program.
    pub(super) fn list(&mut self, id: usize, name: &str) {
        self.listed.insert(id, name.to_owned());
    }

    /// The name under which a program is listed that `member`, without a leading slash, is a name of; `Err` says what is
    /// there instead.
    pub(super) fn listed(&mut self, member: &str) -> Result<String, String> {
        if self.trees.is_empty() {
            let mut tree = Tree::default();
            tree.lay(&std::mem::take(&mut self.entries), &mut 0);
            self.trees.push((String::new(), tree));
        }
        // Names of several images begin with the image's.
        let inside = |(prefix, tree): &(String, Tree)| {
            let name = member.strip_prefix(prefix.as_str())?;
            Some(tree.find(&format!("/{name}")))
        };
        let place = self.trees.iter().filter_map(inside).find(|place| *place != Place::Nowhere);
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
