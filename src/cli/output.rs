//! Where the report goes.

use super::{Colour, Format, OutputArguments};
use anstream::{AutoStream, ColorChoice};
use anyhow::Context;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Columns where the terminal does not tell.
const WIDTH: usize = 100;

/// The choice of colour for standard output. `NO_COLOR`, `CLICOLOR_FORCE` and a pipe are honoured.
fn choice(output: &OutputArguments) -> ColorChoice {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty() && v != "0");
    match output.color {
        Colour::Always => ColorChoice::Always,
        Colour::Never => ColorChoice::Never,
        Colour::Auto if output.output.is_some() => ColorChoice::Never,
        Colour::Auto if std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()) => ColorChoice::Never,
        Colour::Auto if set("CLICOLOR_FORCE") => ColorChoice::Always,
        Colour::Auto if !io::stdout().is_terminal() => ColorChoice::Never,
        Colour::Auto => ColorChoice::Auto,
    }
}

/// Options for the text renderer.
pub(super) fn text_options(output: &OutputArguments) -> crate::report::text::Options {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let terminal = || {
        let to_terminal = output.output.is_none() && io::stdout().is_terminal();
        let size = to_terminal.then(|| terminal_size::terminal_size_of(io::stdout())).flatten();
        size.map(|(width, _)| usize::from(width.0))
    };
    crate::report::text::Options {
        quiet: output.quiet,
        verbose: output.verbose,
        width: columns.or_else(terminal).unwrap_or(WIDTH).clamp(40, 200),
    }
}

/// Writes the report to standard output or, whole or not at all, to a file. A reader that has gone
/// away stops the output and changes no verdict.
pub(super) fn write(output: &OutputArguments, text: &str) -> anyhow::Result<()> {
    let machine = output.format != Format::Text;
    let Some(path) = &output.output else {
        if machine {
            return super::print(text.as_bytes()).map(|_| ());
        }
        let choice = choice(output);
        if choice == ColorChoice::Never {
            // In one piece, where the stream would make a call of each line.
            return super::print(anstream::adapter::strip_str(text).to_string().as_bytes()).map(|_| ());
        }
        let mut stream = AutoStream::new(io::stdout().lock(), choice);
        let result = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
        // It holds standard output locked.
        drop(stream);
        return super::written(result).map(|_| ());
    };
    let plain = match choice(output) {
        ColorChoice::Always | ColorChoice::AlwaysAnsi => text.to_owned(),
        _ if machine => text.to_owned(),
        _ => anstream::adapter::strip_str(text).to_string(),
    };
    write_file(path, plain.as_bytes()).with_context(|| format!("{} cannot be written", path.display()))
}

/// What a report is written to.
enum Destination {
    /// A device or a pipe: renaming over it would put a file in its place (as root even over /dev/null).
    Device,
    /// A file; a symbolic link goes on pointing where it points.
    File(std::path::PathBuf),
}

fn destination(path: &Path) -> io::Result<Destination> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Ok(Destination::Device),
        Ok(_) => Ok(Destination::File(std::fs::canonicalize(path)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Destination::File(path.to_path_buf())),
        Err(error) => Err(error),
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match destination(path)? {
        Destination::Device => std::fs::File::options().write(true).open(path)?.write_all(bytes),
        Destination::File(path) => {
            let mut file = temporary(&path)?;
            file.write_all(bytes)?;
            persist(file, &path)
        }
    }
}

/// A temporary file beside `path`.
fn temporary(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    tempfile::NamedTempFile::new_in(folder)
}

/// Gives a temporary file its name.
fn persist(file: tempfile::NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    // A temporary file is private; a report is for others, too.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(permissions)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Appends to the job summary that GitHub shows with a workflow run, if there is one. The environment names it, and so it
/// must be a plain file, and what is wrong with it changes no verdict.
pub(super) fn append_job_summary(text: &str) {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return };
    let special = std::fs::metadata(&path).is_ok_and(|found| !found.is_file());
    let written = if special {
        Err(io::Error::other("not a regular file"))
    } else {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
    };
    if let Err(error) = written {
        super::complain(&format!(
            "the job summary {} cannot be written: {error}",
            Path::new(&path).display()
        ));
    }
}

/// A report that is written line by line, as results come. A file is there only when it is whole.
pub(super) struct Lines {
    to: To,
}

enum To {
    /// Standard output; `None` once its reader has gone away.
    Stdout(Option<io::BufWriter<io::StdoutLock<'static>>>),
    File {
        path: std::path::PathBuf,
        file: io::BufWriter<tempfile::NamedTempFile>,
    },
    /// A device or pipe named as the output.
    Device(std::fs::File),
}

impl Lines {
    /// Opens standard output, or a temporary file beside the one that was asked for.
    pub fn open(output: &OutputArguments) -> anyhow::Result<Self> {
        let Some(path) = &output.output else {
            return Ok(Self { to: To::Stdout(Some(io::BufWriter::new(io::stdout().lock()))) });
        };
        let place = || format!("{} cannot be written", path.display());
        let to = match destination(path).with_context(place)? {
            Destination::Device => {
                To::Device(std::fs::File::options().write(true).open(path).with_context(place)?)
            }
            Destination::File(path) => {
                To::File { file: io::BufWriter::new(temporary(&path).with_context(place)?), path }
            }
        };
        Ok(Self { to })
    }

    /// Writes one line. Without a reader the run goes on if `anyway`, and ends otherwise.
    pub fn take(
        &mut self,
        line: Result<String, serde_json::Error>,
        anyway: bool,
    ) -> std::ops::ControlFlow<anyhow::Error> {
        use std::ops::ControlFlow::{Break, Continue};
        let line = match line {
            Ok(line) => line,
            Err(error) => return Break(error.into()),
        };
        match self.put(&line) {
            Ok(true) => Continue(()),
            Ok(false) if anyway => Continue(()),
            Ok(false) => Break(NobodyReads.into()),
            Err(error) => Break(error),
        }
    }

    /// Writes the last line, and gives a file its name.
    pub fn end(mut self, line: &str) -> anyhow::Result<()> {
        self.put(line)?;
        if let To::File { path, file } = self.to {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            persist(file, &path).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok(())
    }

    /// False if nobody reads any more.
    fn put(&mut self, line: &str) -> anyhow::Result<bool> {
        match &mut self.to {
            To::Stdout(stream) => {
                let Some(open) = stream else { return Ok(false) };
                match open.write_all(line.as_bytes()).and_then(|()| open.flush()) {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        // What is in the buffer is not tried again.
                        if let Some(open) = stream.take() {
                            let _ = open.into_parts();
                        }
                        Ok(false)
                    }
                    other => other.map(|()| true).context("standard output cannot be written"),
                }
            }
            To::File { path, file } => file
                .write_all(line.as_bytes())
                .map(|()| true)
                .with_context(|| format!("{} cannot be written", path.display())),
            To::Device(file) => {
                file.write_all(line.as_bytes()).map(|()| true).context("the output cannot be written")
            }
        }
    }
}

/// The reader of standard output has gone away.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the output")]
pub(super) struct NobodyReads;

/// The directory that relative paths in a report are relative to.
pub(super) fn working_directory() -> Option<std::path::PathBuf> {
    std::env::current_dir().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileTypeExt as _;

    #[test]
    fn a_device_stays_a_device() {
        let folder = tempfile::tempdir().unwrap();
        // Through a link, so that a failure of this test does not cost the machine its /dev/full.
        let link = folder.path().join("full");
        std::os::unix::fs::symlink("/dev/full", &link).unwrap();
        let error = write_file(&link, b"report").expect_err("the device is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(std::fs::metadata(&link).unwrap().file_type().is_char_device());
    }

    #[test]
    fn a_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("latest"), folder.path().join("report"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("report", &link).unwrap();
        write_file(&link, b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
    }
}
