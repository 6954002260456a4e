//! What the documentation shows is run. `FLAGAUDIT_BLESS=1` renews the generated parts.

mod common;

use common::testdata;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let docs = std::fs::read_dir(root().join("docs")).expect("docs/").flatten().map(|e| e.path());
    pages.extend(docs.filter(|p| p.extension().is_some_and(|e| e == "md")));
    pages.sort();
    pages
}

/// The command lines of a page, with the exit statuses each may have: what `# exit N` says, else 0, and for a gate 0 or 1.
fn commands(page: &str) -> Vec<(String, Vec<i32>)> {
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    for line in page.lines() {
        if let Some(info) = line.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(info.to_owned()) };
            continue;
        }
        let command = match block.as_deref() {
            Some("sh") => Some(line),
            Some("console") => line.strip_prefix("$ "),
            Some("yaml") => line.trim_start().strip_prefix("- run: "),
            _ => None,
        };
        let Some(command) = command.filter(|c| c.contains("flagaudit ") && !c.trim_start().starts_with('#'))
        else {
            continue;
        };
        let said = command.split_once("# exit ").and_then(|(_, s)| s.trim().parse().ok());
        let allowed = match said {
            Some(status) => vec![status],
            None if command.contains("flagaudit check") => vec![0, 1],
            None => vec![0],
        };
        found.push((command.to_owned(), allowed));
    }
    found
}

/// A working directory in which the documented commands make sense, with a stand-in for `nginx` in its `bin/`.
fn workshop() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    for folder in ["objs", "good", "build", "bin"] {
        std::fs::create_dir(path(folder)).expect("made");
    }
    for bad in ["objs/nginx", "build/nginx"] {
        std::fs::copy(testdata("dwarf/gcc12-lto-mixed"), path(bad)).expect("copied");
    }
    std::fs::copy(testdata("dwarf/gcc12-O2"), path("good/nginx")).expect("copied");
    std::fs::write(path("nginx.conf"), "events {}\nhttp { server { listen 80; } }\n").expect("written");
    for policy in ["edge.toml", "flagaudit.toml"] {
        std::fs::write(path(policy), "schema = 1\nextends = \"builtin:release\"\n").expect("written");
    }
    let script = "#!/bin/sh\necho 'nginx version: nginx/1.22.1' >&2\n\
                  echo \"configure arguments: --with-cc-opt='-g -O2'\" >&2\n";
    std::fs::write(path("bin/nginx"), script).expect("written");
    let mode: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path("bin/nginx"), mode).expect("permissions");
    directory
}

#[test]
fn every_command_shown_runs() {
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        let directory = workshop();
        for (command, expected) in commands(&text) {
            // Absolute paths stand for the reader's machine.
            let local = command
                .replace("/var/lib/prometheus/node-exporter/", "./")
                .replace("/usr/sbin/nginx", "objs/nginx")
                .replace("\"$GITHUB_STEP_SUMMARY\"", "summary.md");
            let program = Path::new(env!("CARGO_BIN_EXE_flagaudit"));
            let path = format!(
                "{}:{}:/usr/bin:/bin",
                program.parent().expect("a folder").display(),
                directory.path().join("bin").display()
            );
            let output = Command::new("/bin/sh")
                .args(["-c", &local])
                .current_dir(directory.path())
                .env_clear()
                .env("PATH", path)
                .env("HOME", directory.path())
                .output()
                .expect("a shell");
            assert!(
                output.status.code().is_some_and(|status| expected.contains(&status)),
                "{}: {command}\n{}{}",
                page.display(),
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            count += 1;
        }
    }
    assert!(count > 12, "{count} commands");
}

/// A table that the program makes, between its marks in a page.
fn is_current(page: &str, mark: &str, table: &str) {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).expect("a page");
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let (head, rest) = text.split_once(&begin).expect("a mark");
    let (_, tail) = rest.split_once(&end).expect("an end");
    let current = format!("{head}{begin}{table}{end}{tail}");
    if std::env::var_os("FLAGAUDIT_BLESS").is_some() {
        std::fs::write(&path, &current).expect("written");
    }
    let text = std::fs::read_to_string(&path).expect("a page");
    assert!(text == current, "the {mark} in {page} are stale: FLAGAUDIT_BLESS=1 cargo test --test docs");
}

#[test]
fn the_table_of_rules_is_current() {
    is_current("README.md", "rules", &flagaudit::rules::markdown_table());
}

#[test]
fn the_table_of_limits_is_current() {
    is_current("docs/limits.md", "limits", &flagaudit::limits::markdown_table());
}
