//! Where the loaders look.

use crate::image::confined::{Directory, open_inside};
use crate::image::linkage::Linkage;
use object::elf;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Largest configuration file read, in bytes.
const MOST_BYTES: u64 = 1 << 20;
/// Most configuration files read.
const MOST_FILES: usize = 1000;
/// How deep files may include files.
const MOST_DEPTH: usize = 8;
/// Most directories taken from them.
const MOST_FOLDERS: usize = 256;

/// Which loader, and what it puts for `$LIB` and `$PLATFORM`.
#[derive(Debug, Clone)]
pub(super) struct Loader {
    /// musl's, which follows other rules.
    pub musl: bool,
    libs: Vec<&'static str>,
    platforms: &'static [&'static str],
    /// The name that musl's own path file has, such as `x86_64`.
    musl_arch: String,
}

impl Loader {
    /// The loader that a program names as its interpreter.
    pub fn of(linkage: &Linkage, is_64: bool, machine: elf::Machine) -> Self {
        let interpreter = linkage.interpreter.as_deref().unwrap_or_default();
        let name = interpreter.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let musl_arch = name
            .strip_prefix(b"ld-musl-")
            .and_then(|rest| rest.strip_suffix(b".so.1"))
            .map(|arch| String::from_utf8_lossy(arch).into_owned());
        // Debian's directories come first; `lib64` and `lib` are those of other distributions.
        let mut libs: Vec<&'static str> = match (machine, is_64) {
            (elf::EM_X86_64, true) => vec!["lib/x86_64-linux-gnu"],
            (elf::EM_X86_64, false) => vec!["lib/x86_64-linux-gnux32", "libx32"],
            (elf::EM_386, _) => vec!["lib/i386-linux-gnu", "lib32"],
            (elf::EM_AARCH64, _) => vec!["lib/aarch64-linux-gnu"],
            (elf::EM_ARM, _) => vec!["lib/arm-linux-gnueabihf", "lib/arm-linux-gnueabi"],
            (elf::EM_RISCV, true) => vec!["lib/riscv64-linux-gnu", "lib64/lp64d"],
            (elf::EM_PPC64, _) => vec!["lib/powerpc64le-linux-gnu"],
            (elf::EM_S390, true) => vec!["lib/s390x-linux-gnu"],
            (elf::EM_LOONGARCH, true) => vec!["lib/loongarch64-linux-gnu"],
            _ => Vec::new(),
        };
        if is_64 {
            libs.push("lib64");
        }
        libs.push("lib");
        let platforms: &[&str] = match machine {
            elf::EM_X86_64 => &["x86_64", "haswell", "xeon_phi"],
            elf::EM_386 => &["i686", "i586", "i486", "i386"],
            elf::EM_AARCH64 => &["aarch64"],
            _ => &[],
        };
        Self { musl: musl_arch.is_some(), libs, platforms, musl_arch: musl_arch.unwrap_or_default() }
    }

    /// The directories searched at last.
    pub fn default_folders(&self, root: &Path) -> impl Iterator<Item = PathBuf> {
        let folders: Vec<PathBuf> = if self.musl {
            let file = format!("/etc/ld-musl-{}.path", self.musl_arch);
            match text(root, Path::new(&file)) {
                Some(bytes) => bytes
                    .split(|&byte| byte == b':' || byte == b'\n')
                    .filter(|part| !part.is_empty())
                    .map(|part| PathBuf::from(OsStr::from_bytes(part)))
                    .collect(),
                None => ["/lib", "/usr/local/lib", "/usr/lib"].map(PathBuf::from).into(),
            }
        } else {
            let both = |lib: &&str| [format!("/{lib}"), format!("/usr/{lib}")].map(PathBuf::from);
            self.libs.iter().flat_map(both).collect()
        };
        folders.into_iter()
    }
}

/// Puts values for `$ORIGIN`, `$LIB` and `$PLATFORM`, with or without braces (ld.so(8), "Dynamic string tokens"). Where
/// a value is one of several, all are tried. Nothing where `$ORIGIN` is not known, or for an empty text.
pub(super) fn expand(text: &[u8], origin: Option<&Path>, loader: &Loader) -> Vec<PathBuf> {
    let mut all: Vec<Vec<u8>> = vec![Vec::new()];
    let mut rest = text;
    if text.is_empty() {
        return Vec::new();
    }
    while let Some((&first, after)) = rest.split_first() {
        let token = ["ORIGIN", "LIB", "PLATFORM"].into_iter().find_map(|token| {
            if first != b'$' {
                return None;
            }
            if let Some(left) = after.strip_prefix(token.as_bytes()) {
                // `$LIBRARY` is no token.
                let ends = !left.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
                return ends.then_some((token, left));
            }
            let braced = after.strip_prefix(b"{")?.strip_prefix(token.as_bytes())?.strip_prefix(b"}")?;
            Some((token, braced))
        });
        let Some((token, left)) = token else {
            for one in &mut all {
                one.push(first);
            }
            rest = after;
            continue;
        };
        let values: Vec<&[u8]> = match token {
            "ORIGIN" => origin.map(|origin| origin.as_os_str().as_bytes()).into_iter().collect(),
            "LIB" => loader.libs.iter().map(|lib| lib.as_bytes()).collect(),
            _ => loader.platforms.iter().map(|platform| platform.as_bytes()).collect(),
        };
        all = all
            .iter()
            .flat_map(|one| values.iter().map(move |value| [one.as_slice(), value].concat()))
            // No file has a longer name (Linux `PATH_MAX`).
            .filter(|one| one.len() <= 4096)
            .take(16)
            .collect();
        rest = left;
    }
    all.into_iter().map(|one| PathBuf::from(OsStr::from_bytes(&one))).collect()
}

fn text(root: &Path, path: &Path) -> Option<Vec<u8>> {
    let (file, _) = open_inside(root, path).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The directories of `/etc/ld.so.conf` and the files it includes (ldconfig(8)), in order.
pub(super) fn configured(root: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut files = 0;
    read_configuration(root, Path::new("/etc/ld.so.conf"), 0, &mut files, &mut folders);
    folders
}

fn read_configuration(root: &Path, path: &Path, depth: usize, files: &mut usize, folders: &mut Vec<PathBuf>) {
    *files += 1;
    if depth > MOST_DEPTH || *files > MOST_FILES {
        return;
    }
    let Some(bytes) = text(root, path) else { return };
    for line in bytes.split(|&byte| byte == b'\n') {
        let line = line.split(|&byte| byte == b'#').next().unwrap_or_default().trim_ascii();
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        match words.next() {
            None | Some(b"hwcap") => {}
            Some(b"include") => {
                for pattern in words {
                    *files += 1;
                    if *files > MOST_FILES {
                        return;
                    }
                    let pattern = Path::new(OsStr::from_bytes(pattern));
                    let pattern = path.parent().unwrap_or(Path::new("/")).join(pattern);
                    for included in matching(root, &pattern) {
                        read_configuration(root, &included, depth + 1, files, folders);
                    }
                }
            }
            Some(_) => {
                let separates = |byte: &u8| byte.is_ascii_whitespace() || *byte == b':' || *byte == b',';
                for part in line.split(separates) {
                    // `folder=libc6` names the kind of library in it.
                    let part = part.split(|&byte| byte == b'=').next().unwrap_or_default();
                    if part.starts_with(b"/") && folders.len() < MOST_FOLDERS {
                        folders.push(PathBuf::from(OsStr::from_bytes(part)));
                    }
                }
            }
        }
    }
}

/// The files that a pattern matches, sorted as glob(3) does; only the last component may hold wildcards.
fn matching(root: &Path, pattern: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name()) else { return Vec::new() };
    let Ok(glob) = globset::GlobBuilder::new(&name.to_string_lossy()).literal_separator(true).build() else {
        return Vec::new();
    };
    let matcher = glob.compile_matcher();
    let found = Directory::open(root).and_then(|root| root.find(folder)?.entries());
    let Ok(entries) = found else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.name));
    // A leading dot is matched by a dot only.
    let hidden = |name: &OsStr| name.as_bytes().starts_with(b".");
    let explicit = hidden(name);
    let mut names: Vec<_> =
        names.filter(|found| matcher.is_match(found) && (explicit || !hidden(found))).collect();
    names.sort();
    names.into_iter().map(|found| folder.join(found)).collect()
}

/// The objects of `/etc/ld.so.preload`.
pub(super) fn preloaded(root: &Path) -> Vec<PathBuf> {
    let bytes = text(root, Path::new("/etc/ld.so.preload")).unwrap_or_default();
    let lines = bytes.split(|&byte| byte == b'\n');
    let lines = lines.map(|line| line.split(|&byte| byte == b'#').next().unwrap_or_default());
    lines
        .flat_map(|line| line.split(|byte| byte.is_ascii_whitespace() || *byte == b':'))
        .filter(|part| !part.is_empty())
        .map(|part| PathBuf::from(OsStr::from_bytes(part)))
        .collect()
}
