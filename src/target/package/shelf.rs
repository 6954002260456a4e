//! One file for the programs of many packages: each package holds a file open, and there may be more packages than files
//! that a process may have open.

use super::spool::Spool;
use super::stream::InputReader;
use crate::image::Input;
use crate::parallel::lock;
use crate::target::Subject;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Packages that may hold a file open each. What comes later is copied to the common one.
const HELD: usize = 16;

/// Where programs of packages are kept.
#[derive(Debug, Default)]
pub struct Shelf {
    held: AtomicUsize,
    common: Mutex<Option<Spool>>,
}

impl Shelf {
    /// Takes the programs of one package, so that they hold no file of their own open if there are many packages already.
    /// A program that cannot be copied is refused with the reason.
    pub fn keep(&self, subjects: &mut [Subject]) {
        let holds = subjects.iter().filter_map(|subject| subject.input.as_ref()).any(Input::holds_file);
        if !holds || self.held.fetch_add(1, Ordering::Relaxed) < HELD {
            return;
        }
        for subject in subjects {
            let Some(input) = subject.input.take_if(|input| input.holds_file()) else { continue };
            match self.copy(&input) {
                Ok(copy) => subject.input = Some(copy),
                Err(error) => subject.refused = Some(format!("it cannot be kept: {error}")),
            }
        }
    }

    fn copy(&self, input: &Input) -> io::Result<Input> {
        let mut common = lock(&self.common);
        let spool = match &mut *common {
            Some(spool) => spool,
            none => none.insert(Spool::new()?),
        };
        let longer = || io::Error::other("the package became longer");
        let copy = spool.keep(InputReader::new(input), input.len())?.ok_or_else(longer)?;
        if copy.len() < input.len() {
            return Err(io::Error::other("the package became shorter"));
        }
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Origin;
    use std::io::Write as _;

    fn held(text: &str) -> Subject {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Subject { input: Some(Input::file(file).unwrap()), ..Subject::new(text, Origin::Archive) }
    }

    #[test]
    fn programs_of_many_packages_share_one_file() {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = open();
        let shelf = Shelf::default();
        let mut all: Vec<[Subject; 2]> = Vec::new();
        for n in 0..200 {
            let mut package = [held(&format!("first {n}")), held(&format!("second {n}"))];
            shelf.keep(&mut package);
            all.push(package);
        }
        // Other tests of this process open files, too.
        assert!(open() < before + 2 * HELD + 100, "{} before, {} now", before, open());
        for subject in all.iter().flatten() {
            let input = subject.input.as_ref().unwrap();
            let bytes = input.read_vec(0, input.len(), 1000, "it").unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), subject.path.to_str().unwrap());
        }
    }

    #[test]
    fn what_is_in_memory_stays_there() {
        let shelf = Shelf::default();
        for _ in 0..3 * HELD {
            let input = Some(Input::memory(&b"x"[..]));
            let mut subjects = [Subject { input, ..Subject::new("x", Origin::Archive) }];
            shelf.keep(&mut subjects);
            assert!(subjects[0].input.as_ref().is_some_and(|input| !input.holds_file()));
        }
    }
}
