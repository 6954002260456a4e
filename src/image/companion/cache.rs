//! Where debuginfod's client keeps what it has fetched.

use crate::image::document;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest user database read, in bytes.
const MOST_USERS: u64 = 16 << 20;

/// The folder in which the debuginfod client keeps what it has fetched for the user who runs this program, in the place
/// that the client takes by itself. The home directory is that of the user database and not of the environment: who can
/// set a variable must not be able to say where evidence comes from.
pub fn own_cache() -> Option<PathBuf> {
    let database = document::read(Path::new("/etc/passwd"), MOST_USERS, Some(Duration::ZERO)).ok()?;
    let home = home_of(rustix::process::geteuid().as_raw(), &database)?;
    Some(home.join(".cache/debuginfod_client"))
}

/// The sixth field of the user's line (`passwd(5)`), if it is an absolute path.
fn home_of(user: u32, database: &[u8]) -> Option<PathBuf> {
    let line = database
        .split(|&byte| byte == b'\n')
        .map(|line| line.split(|&byte| byte == b':').collect::<Vec<_>>());
    let mine = line.into_iter().find(|fields| fields.get(2) == Some(&user.to_string().as_bytes()))?;
    let home = Path::new(OsStr::from_bytes(mine.get(5)?));
    home.is_absolute().then(|| home.to_path_buf())
}

/// The same as the client is told by the environment (`debuginfod_find_debuginfo(3)`), for one who allows to ask it.
pub fn client_cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("DEBUGINFOD_CACHE_PATH").or_else(|| {
        let base = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
        Some(base.join("debuginfod_client"))
    })
}
