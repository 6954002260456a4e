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

/// Something of a page to do, in its order.
#[derive(Debug)]
enum Step {
    /// A command line, with the exit statuses it may have: what `# exit N` says, else 0, and for a gate 0 or 1.
    Run(String, Vec<i32>),
    /// A block whose first line is a comment with a file's name: that file.
    Write(String, String),
}

/// What of a line in a block of this kind is a command.
fn command(kind: &str, line: &str) -> Option<String> {
    let line = match kind {
        "sh" => line,
        "console" => line.strip_prefix("$ ")?,
        "yaml" => {
            let item = line.trim_start().strip_prefix("- ")?;
            let item = item.strip_prefix("run: ").unwrap_or(item);
            item.starts_with("flagaudit ").then_some(item)?
        }
        "groovy" => line.trim_start().strip_prefix("sh '")?.strip_suffix('\'')?,
        "make" => line.strip_prefix('\t')?,
        "ini" => line.strip_prefix("ExecStart=")?,
        _ => return None,
    };
    let known = line.contains("flagaudit ") && !line.trim_start().starts_with('#');
    // Absolute paths stand for the reader's machine.
    let local = line
        .replace("/var/lib/prometheus/node-exporter/", "./")
        .replace("/etc/flagaudit/", "./")
        .replace("/usr/sbin/nginx", "objs/nginx")
        .replace("/usr/bin/flagaudit", "flagaudit")
        .replace("~/", "./")
        .replace("\"$GITHUB_STEP_SUMMARY\"", "summary.md");
    known.then_some(local)
}

fn step(kind: &str, line: &str) -> Option<Step> {
    let command = command(kind, line)?;
    let said = command.split_once("# exit ").and_then(|(_, s)| s.trim().parse().ok());
    let allowed = match said {
        // Whether such a process runs is up to the machine.
        Some(status) if command.contains("--processes") => vec![status, 0, 1],
        Some(status) => vec![status],
        None if command.contains("flagaudit check") => vec![0, 1],
        None => vec![0],
    };
    Some(Step::Run(command, allowed))
}

fn steps(page: &str) -> Vec<Step> {
    let mut found = Vec::new();
    let mut block: Option<(String, Vec<&str>)> = None;
    for line in page.lines() {
        match (&mut block, line.trim_start().strip_prefix("```")) {
            (None, Some(kind)) => block = Some((kind.to_owned(), Vec::new())),
            (None, None) => {}
            (Some((kind, lines)), None) => {
                found.extend(step(kind, line));
                lines.push(line);
            }
            (Some((kind, lines)), Some(_)) => {
                let name = lines.first().and_then(|first| first.strip_prefix("# "));
                let name = name.filter(|name| {
                    kind == "toml"
                        && Path::new(name).extension().is_some_and(|end| end == "toml")
                        && !name.contains(' ')
                });
                found.extend(name.map(|name| Step::Write(name.to_owned(), lines.join("\n") + "\n")));
                block = None;
            }
        }
    }
    found
}

/// A working directory in which the documented commands make sense, with a stand-in for `nginx` in its `bin/`.
fn workshop() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    for folder in ["objs", "good", "build", "bin", ".local/share/bash-completion/completions", ".zfunc"] {
        std::fs::create_dir_all(path(folder)).expect("made");
    }
    std::fs::create_dir_all(path(".config/fish/completions")).expect("made");
    for bad in ["objs/nginx", "build/nginx"] {
        std::fs::copy(testdata("guide/bad"), path(bad)).expect("copied");
    }
    std::fs::copy(testdata("guide/good"), path("good/nginx")).expect("copied");
    std::fs::write(path("nginx.conf"), "events {}\nhttp { server { listen 80; } }\n").expect("written");
    for policy in ["edge.toml", "flagaudit.toml", "fleet.toml"] {
        std::fs::write(path(policy), "schema = 1\nextends = \"builtin:release\"\n").expect("written");
    }
    let script = "#!/bin/sh\necho 'nginx version: nginx/1.22.1' >&2\n\
                  echo \"configure arguments: --with-cc-opt='-g -O2'\" >&2\n";
    std::fs::write(path("bin/nginx"), script).expect("written");
    let mode: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path("bin/nginx"), mode).expect("permissions");
    directory
}

/// Takes the steps in a directory of their own; the number of commands run.
fn walk_through(name: &str, steps: Vec<Step>) -> usize {
    let directory = workshop();
    let program = Path::new(env!("CARGO_BIN_EXE_flagaudit"));
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        program.parent().expect("a folder").display(),
        directory.path().join("bin").display()
    );
    let mut count = 0;
    for step in steps {
        let (command, expected) = match step {
            Step::Write(name, text) => {
                std::fs::write(directory.path().join(name), text).expect("written");
                continue;
            }
            Step::Run(command, expected) => (command, expected),
        };
        let output = Command::new("/bin/sh")
            .args(["-c", &command])
            .current_dir(directory.path())
            .env_clear()
            .env("PATH", &path)
            .env("HOME", directory.path())
            .stdin(std::process::Stdio::null())
            .output()
            .expect("a shell");
        assert!(
            output.status.code().is_some_and(|status| expected.contains(&status)),
            "{name}: {command}\nstatus {:?}\n{}{}",
            output.status.code(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        count += 1;
    }
    count
}

#[test]
fn every_command_shown_runs() {
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        count += walk_through(&page.display().to_string(), steps(&text));
    }
    assert!(count > 40, "{count} commands");
}

#[test]
fn every_example_of_the_help_runs() {
    let mut count = 0;
    for command in ["", "inspect", "check", "diff", "explain", "policy", "completions"] {
        let arguments: Vec<&str> = [command, "--help"].into_iter().filter(|a| !a.is_empty()).collect();
        let help = common::run(&arguments).stdout;
        let (_, examples) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("no example: {help}"));
        let examples = examples.lines().take_while(|line| !line.is_empty());
        let steps = examples.map(|line| {
            // What it is for stands behind two spaces and more.
            let line = line.trim_start().replace("/usr/sbin/nginx", "objs/nginx").replace("~/", "./");
            let command = line.split_once("  ").map_or(line.as_str(), |(command, _)| command).to_owned();
            let allowed = if command.contains("--processes") || command.contains("pid:") {
                vec![0, 1, 2]
            } else if command.contains("flagaudit check") || command.contains("--fail-on") {
                vec![0, 1]
            } else {
                vec![0]
            };
            Step::Run(command, allowed)
        });
        let mut all: Vec<Step> = Vec::new();
        if command == "diff" || command == "check" {
            all.push(Step::Run(
                "flagaudit inspect -f json --units -o good.json good/nginx".to_owned(),
                vec![0],
            ));
        }
        all.extend(steps);
        count += walk_through(&format!("--help of {command:?}"), all);
    }
    assert!(count > 25, "{count} commands");
}

#[test]
fn links_between_pages_lead_somewhere() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for target in
            text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
        {
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            let file = target.split('#').next().unwrap_or(target);
            let folder = page.parent().expect("a folder");
            assert!(folder.join(file).exists(), "{}: {target}", page.display());
        }
    }
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
