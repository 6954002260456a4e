//! Programs that were started by naming the dynamic loader: `ld-linux-x86-64.so.2 ./server`.
//!
//! The kernel started the loader then, and `/proc/N/exe` is that; the program is a file that the loader mapped (`ld.so(8)`).
//! Bundles that carry their own C library are started so.

use super::installed::{opened, read};
use crate::image::Input;
use crate::image::confined::open_inside;
use crate::target::mapped::{self, Mapped};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Options of glibc's and musl's loaders that take the next word (`elf/rtld.c`, `ldso/dynlink.c`).
const WITH_VALUE: [&[u8]; 7] = [
    b"--library-path",
    b"--inhibit-rpath",
    b"--audit",
    b"--preload",
    b"--argv0",
    b"--glibc-hwcaps-prepend",
    b"--glibc-hwcaps-mask",
];

/// The program that a loader runs.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) place: PathBuf,
    pub(super) input: Input,
    pub(super) identity: (u64, u64),
    /// Its file has no longer that name.
    pub(super) replaced: bool,
    /// The file that is there now, where it is another one.
    pub(super) on_disk: Option<Input>,
}

/// Whether a file is a dynamic loader, by the names that the C libraries give theirs.
pub(super) fn is_loader(place: &Path) -> bool {
    let name = place.file_name().map(OsStr::as_bytes).unwrap_or_default();
    let named =
        [&b"ld-linux"[..], b"ld-musl-", b"ld64.so", b"ld.so"].iter().any(|begin| name.starts_with(begin));
    // glibc before 2.34: ld-2.31.so.
    named || name.strip_prefix(b"ld-").is_some_and(|rest| rest.starts_with(b"2.") && rest.ends_with(b".so"))
}

/// The word of the command line that names the program.
fn program_word(line: &[u8]) -> Option<&Path> {
    let mut words = line.split(|byte| *byte == 0).skip(1);
    loop {
        let word = words.next()?;
        if WITH_VALUE.contains(&word) {
            words.next()?;
        } else if word == b"--" {
            return words.next().map(|word| Path::new(OsStr::from_bytes(word)));
        } else if !word.is_empty() && !word.starts_with(b"--") {
            return Some(Path::new(OsStr::from_bytes(word)));
        }
    }
}

/// What the loader runs. `None` where nothing on the command line or among the mappings tells, `Err` where it cannot be
/// read, with the reason.
pub(super) fn program(
    pid: u32,
    started: u64,
    loader: (u64, u64),
    root: &Path,
    line: &[u8],
    directory: Option<&Path>,
) -> Option<Result<Loaded, String>> {
    let word = program_word(line)?;
    let listing = match mapped::mapped(pid, started, Some(loader)) {
        Ok(listing) => listing,
        Err(why) => return Some(Err(format!("its mappings: {why}"))),
    };
    let given = directory.unwrap_or(Path::new("/")).join(word);
    let inside = read(open_inside(root, &given).map(|(file, _)| file));
    let there = inside.or_else(|| opened(&given)).map(|(_, found)| found);
    let is_it = |file: &&Mapped| file.bytes.as_ref().is_ok_and(|(_, found)| Some(*found) == there);
    let same_name = |file: &&Mapped| file.path.file_name() == word.file_name();
    let file = listing.files.iter().find(is_it).or_else(|| listing.files.iter().find(same_name))?;
    Some(match file.bytes.clone() {
        Ok((input, identity)) => Ok(Loaded {
            place: file.path.clone(),
            input,
            identity,
            replaced: file.replaced,
            on_disk: file.on_disk.clone(),
        }),
        Err(why) => Err(format!("{}: {why}", file.path.display())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_by_name() {
        for name in
            ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1", "/lib/ld-2.31.so", "/lib64/ld64.so.2"]
        {
            assert!(is_loader(Path::new(name)), "{name}");
        }
        for name in ["/usr/bin/ld", "/usr/bin/ld-gold", "/opt/ld-2", "/usr/bin/ldd", "/"] {
            assert!(!is_loader(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn the_first_word_that_is_no_option_names_the_program() {
        let of = |line: &[u8]| program_word(line).map(Path::to_path_buf);
        assert_eq!(of(b"/lib64/ld.so\0./srv\0-x\0"), Some("./srv".into()));
        assert_eq!(
            of(b"ld.so\0--library-path\0/opt/lib\0--inhibit-cache\0/opt/srv\0"),
            Some("/opt/srv".into())
        );
        assert_eq!(of(b"ld.so\0--library-path\0"), None);
        assert_eq!(of(b"nginx: master process\0"), None);
    }
}
