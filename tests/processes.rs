//! Running programs: what is audited is what runs, whatever became of its file.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Run, copy_program, flagaudit, json, run, testdata};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Starts a program that was just copied. A test on another thread may fork while the copy is still open for
/// writing; its child then holds the file for an instant (ETXTBSY).
fn spawn(command: &mut Command) -> Child {
    for _ in 0..100 {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            started => return started.unwrap_or_else(|error| panic!("{command:?}: {error}")),
        }
    }
    panic!("{command:?} stays busy")
}

/// A process that is ended when the test is over.
struct Running(Child);

impl Running {
    fn start(program: &Path, name: &str) -> Self {
        let mut command = Command::new(program);
        command.arg0(name).arg("60").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = spawn(&mut command);
        let running = Self(child);
        // Until exec has happened the link still leads to this test.
        for _ in 0..200 {
            let exe = std::fs::read_link(format!("/proc/{}/exe", running.pid())).unwrap_or_default();
            if exe.to_string_lossy().contains(&*program.file_name().expect("a name").to_string_lossy()) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        running
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn target(&self) -> String {
        format!("pid:{}", self.pid())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The real file behind `sleep`.
fn sleep() -> PathBuf {
    let path = ["/usr/bin/sleep", "/bin/sleep"].map(Path::new).into_iter().find(|path| path.exists());
    path.expect("sleep").canonicalize().expect("its file")
}

/// A copy of sleep under another name; programs that are one file with many names do not go by `argv[0]` here.
fn copy(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    copy_program(&sleep(), &path);
    path
}

fn build_id(path: &Path) -> Value {
    json(["inspect".as_ref(), path.as_os_str()]).1["targets"][0]["elf"]["build_id"].clone()
}

fn inspect(target: &str) -> (i32, Value) {
    let (status, report) = json(["inspect", target]);
    (status, report["targets"][0].clone())
}

fn check(target: &str) -> Run {
    run(["check", "--no-config", target])
}

#[test]
fn a_running_program_is_its_installed_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = copy(directory.path(), "zz");
    let running = Running::start(&program, "sleep");
    let (status, facts) = inspect(&running.target());
    assert_eq!(status, 0);
    assert_eq!((&facts["origin"], &facts["path"]), (&"process".into(), &running.target().into()));
    assert_eq!(facts["process"]["pid"], running.pid());
    assert_eq!(facts["process"]["command"], "sleep 60");
    assert_eq!(facts["process"]["exe"], program.to_string_lossy().as_ref());
    assert_eq!(facts["process"]["deleted"], false);
    assert_eq!(facts["elf"]["build_id"], build_id(&sleep()));
    assert_eq!(facts["process"]["on_disk_build_id"], facts["elf"]["build_id"]);
    let text = run(["inspect".to_owned(), "--pid".to_owned(), running.pid().to_string()]).stdout;
    assert!(text.starts_with(&format!("pid {} zz   {}\n", running.pid(), program.display())), "{text}");
    assert!(text.contains("running = installed file: yes"), "{text}");
}

#[test]
fn a_replaced_file_is_not_what_is_audited() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = copy(directory.path(), "zz");
    let running = Running::start(&program, "sleep");
    std::fs::remove_file(&program).expect("removed");
    std::fs::copy(testdata("dwarf/gcc12-O2"), &program).expect("replaced");
    let (status, facts) = inspect(&running.target());
    assert_eq!(status, 0);
    assert_eq!(facts["process"]["deleted"], true);
    assert_eq!(facts["elf"]["build_id"], build_id(&sleep()), "the old file runs");
    assert_eq!(facts["process"]["on_disk_build_id"], build_id(&testdata("dwarf/gcc12-O2")));
    assert_eq!(facts["process"]["exe"], program.to_string_lossy().as_ref());
    let run = check(&running.target());
    assert!(run.stdout.contains("stale-process"), "{}", run.stdout);
    assert!(run.stdout.contains("running = installed file: no"), "{}", run.stdout);
}

#[test]
fn a_file_moved_aside_for_another_is_not_the_installed_one() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let server = Running::start(&copy(directory.path(), "zz-moved"), "zz-moved");
    // As nginx's `make install` does.
    std::fs::rename(place("zz-moved"), place("zz-moved.old")).unwrap();
    let (_, before) = inspect(&server.target());
    assert_eq!(before["process"]["deleted"], false, "nothing was put there yet: {before}");
    std::fs::copy("/bin/true", place("zz-moved")).unwrap();
    let (status, facts) = inspect(&server.target());
    assert_eq!(status, 0);
    assert_eq!(facts["elf"]["build_id"], build_id(&place("zz-moved.old")));
    assert_eq!(facts["process"]["on_disk_build_id"], build_id(Path::new("/bin/true")));
    assert_eq!(facts["process"]["same_file"], false);
    assert_eq!(facts["process"]["exe"], place("zz-moved").to_string_lossy().as_ref());
    assert!(check(&server.target()).stdout.contains("stale-process"));
}

#[test]
fn a_file_started_through_a_link_that_leads_to_it_was_not_moved() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    for folder in ["bin", "opt"] {
        std::fs::create_dir(place(folder)).unwrap();
    }
    let link = place("bin/zz-linked");
    std::os::unix::fs::symlink("../opt/zz-linked.bak", &link).unwrap();
    let program = copy(&place("opt"), "zz-linked.bak");
    std::fs::copy("/bin/true", place("opt/zz-linked")).unwrap();
    let server = Running::start(&program, link.to_str().unwrap());
    let (_, facts) = inspect(&server.target());
    assert_eq!(
        (&facts["process"]["deleted"], &facts["process"]["same_file"]),
        (&false.into(), &true.into()),
        "{facts}"
    );
    assert!(!check(&server.target()).stdout.contains("stale-process"));
    // The link leads to the new file by now: what runs was moved aside.
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("../opt/zz-linked", &link).unwrap();
    let (_, facts) = inspect(&server.target());
    assert_eq!(facts["process"]["same_file"], false, "{facts}");
    assert!(check(&server.target()).stdout.contains("stale-process"));
    // And to something else: nothing is said of it.
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
    assert!(!check(&server.target()).stdout.contains("stale-process"));
}

#[test]
fn a_deleted_file_is_audited_and_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = copy(directory.path(), "zz");
    let running = Running::start(&program, "sleep");
    std::fs::remove_file(&program).expect("removed");
    let (_, facts) = inspect(&running.target());
    assert_eq!(facts["process"]["deleted"], true);
    assert_eq!(facts["process"]["on_disk_build_id"], Value::Null);
    assert_eq!(facts["elf"]["build_id"], build_id(&sleep()));
    assert!(check(&running.target()).stdout.contains("deleted or replaced since it was started"));
    // The same build put back is the same program: nothing to restart.
    copy(directory.path(), "zz");
    assert!(!check(&running.target()).stdout.contains("stale-process"));
}

#[test]
fn a_name_that_really_ends_in_deleted_is_a_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = copy(directory.path(), "zz (deleted)");
    // A file under the shorter name must not be taken for it.
    std::fs::copy(testdata("dwarf/gcc12-O2"), directory.path().join("zz")).expect("copied");
    let running = Running::start(&program, "sleep");
    let (_, facts) = inspect(&running.target());
    assert_eq!(facts["process"]["deleted"], false);
    assert_eq!(facts["process"]["exe"], program.to_string_lossy().as_ref());
    assert_eq!(facts["process"]["on_disk_build_id"], build_id(&sleep()));
    std::fs::remove_file(&program).expect("removed");
    let (_, facts) = inspect(&running.target());
    assert_eq!(facts["process"]["deleted"], true);
    assert_eq!(facts["process"]["exe"], program.to_string_lossy().as_ref());
    assert_eq!(facts["process"]["on_disk_build_id"], Value::Null);
}

#[test]
fn the_link_given_as_a_file_is_that_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = copy(directory.path(), "zz");
    let running = Running::start(&program, "sleep");
    std::fs::remove_file(&program).expect("removed");
    let link = format!("/proc/{}/exe", running.pid());
    let (status, facts) = inspect(&link);
    assert_eq!(status, 0);
    assert_eq!((&facts["origin"], &facts["path"]), (&"file".into(), &link.into()));
    assert_eq!(facts["elf"]["build_id"], build_id(&sleep()));
}

#[test]
fn a_number_without_a_program_is_status_2() {
    let run = run(["inspect", "pid:4194999"]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("pid:4194999: no such process"), "{}", run.stderr);
    // Kernel threads: none in a container with its own process ids.
    let is_kernel_thread = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| text.contains("Kthread:\t1"))
    };
    if let Some(pid) = (2..100).find(is_kernel_thread) {
        let run = common::run(["inspect".to_owned(), format!("pid:{pid}")]);
        assert_eq!(run.status, 2);
        assert!(run.stderr.contains("a kernel thread"), "{}", run.stderr);
    }
}

#[test]
fn a_zombie_is_no_error_among_others_and_one_by_number() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = copy(directory.path(), "zombie-zz");
    let mut running = Running::start(&program, "sleep");
    running.0.kill().expect("ended");
    // Not waited for: it stays a zombie.
    for _ in 0..200 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.pid())).expect("a process");
        if stat.contains(") Z ") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let one = run(["inspect".to_owned(), running.target()]);
    assert_eq!(one.status, 2);
    assert!(one.stderr.contains("a zombie"), "{}", one.stderr);
    let all = run(["inspect", "--processes", "^zombie-zz$", "--allow-empty"]);
    assert_eq!(all.status, 0, "{}", all.stderr);
}

#[test]
fn processes_of_one_file_are_one_target() {
    let directory = tempfile::tempdir().expect("a directory");
    // A shell that runs itself: parent and child have the same file.
    let shell = ["/bin/dash", "/bin/sh", "/usr/bin/bash"].map(Path::new).into_iter().find(|p| p.exists());
    let program = directory.path().join("zz-shell");
    copy_program(&shell.expect("a shell").canonicalize().expect("its file"), &program);
    let script = format!("{0} -c 'read x; :' & {0} -c 'read x; :' & read x; :", program.display());
    let mut command = Command::new(&program);
    // The children read from a pipe that stays open until the test drops it.
    command.arg("-c").arg(format!("exec 3<&0; {}", script.replace("read x", "read x <&3")));
    let child = spawn(command.stdin(Stdio::piped()).stdout(Stdio::null()));
    let running = Running(child);
    let mut found = Value::Null;
    for _ in 0..100 {
        let (_, report) = json(["inspect", "--processes", "^zz-shell$"]);
        found = report;
        if found["targets"][0]["process"]["children"] == 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(found["targets"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found["targets"][0]["process"]["pid"], running.pid());
    assert_eq!(found["targets"][0]["process"]["children"], 2);
    let (_, facts) = inspect(&running.target());
    assert_eq!(facts["process"]["children"], 2);
}

#[test]
fn all_processes_are_audited_and_none_stops_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = copy(directory.path(), "zz-all");
    let running = Running::start(&program, "sleep");
    let (status, report) = json(["inspect", "--processes"]);
    assert_eq!(status, 0);
    let targets = report["targets"].as_array().expect("targets");
    assert!(targets.iter().any(|facts| facts["process"]["pid"] == running.pid()));
    assert!(targets.iter().all(|facts| facts["status"] != "failed"));
    let none = run(["inspect", "--processes", "^no-such-process-name$"]);
    assert_eq!(none.status, 2);
    assert!(none.stderr.contains("no running process matches"), "{}", none.stderr);
    assert_eq!(run(["inspect", "--processes", "("]).status, 2);
}

#[test]
fn without_permission_processes_are_counted_and_the_capability_named() {
    let may =
        Command::new("setpriv").args(["--reuid=65534", "--regid=65534", "--clear-groups", "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        return; // Not the superuser: there is nobody to become.
    }
    let directory = tempfile::tempdir().expect("a directory");
    let program = copy(directory.path(), "zz-root");
    let running = Running::start(&program, "sleep");
    let ours = flagaudit();
    let unprivileged = |arguments: &[&str]| -> Run {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(ours.get_program());
        command.args(arguments).output().expect("runs").into()
    };
    if unprivileged(&["--version"]).status != 0 {
        return; // The program lies where only the superuser may read.
    }
    let some = unprivileged(&["inspect", "--processes", "^zz-root$"]);
    assert_eq!(some.status, 2, "none could be read: {}", some.stderr);
    assert!(some.stderr.contains("1 process may not be read without CAP_SYS_PTRACE"), "{}", some.stderr);
    assert!(some.stdout.contains("1 unreadable"), "{}", some.stdout);
    let number = unprivileged(&["inspect", &running.target()]);
    assert_eq!(number.status, 2);
    assert!(number.stderr.contains("CAP_SYS_PTRACE"), "{}", number.stderr);
}

#[test]
fn a_library_under_another_mount_is_not_taken_for_the_one_that_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("mappings");
    let mut library = maps.lines().filter_map(|line| line.split_whitespace().last());
    let Some(library) = library.find(|name| name.contains("libgcc_s.so")) else { return };
    for name in ["libzz.so", "other.so"] {
        std::fs::copy(library, directory.path().join(name)).expect("copied");
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), mode).expect("may be entered");
    let program = copy(directory.path(), "zz-mounted");
    let ours = flagaudit();
    let become_nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let script = format!(
        "cd '{0}' && {become_nobody} '{1}' --version >/dev/null || exit 77
        {become_nobody} env LD_PRELOAD='{0}/libzz.so' '{2}' 60 & pid=$!
        until grep -q libzz.so /proc/$pid/maps; do kill -0 $pid || exit 77; sleep 0.05; done
        {become_nobody} '{1}' check --no-config -f json pid:$pid >before.json
        mount --bind other.so libzz.so && {become_nobody} '{1}' check --no-config -f json pid:$pid >after.json
        kill $pid; test -s after.json || exit 77",
        directory.path().display(),
        ours.get_program().to_string_lossy(),
        program.display(),
    );
    let status = Command::new("unshare").args(["-m", "sh", "-c", &script]).stderr(Stdio::null()).status();
    if !status.is_ok_and(|status| status.success()) {
        return; // Not the superuser, or the program lies where only the superuser may read.
    }
    let report =
        |name: &str| -> String { std::fs::read_to_string(directory.path().join(name)).expect("a report") };
    assert!(!report("before.json").contains("libraries-unknown"), "{}", report("before.json"));
    let after = report("after.json");
    assert!(after.contains("libraries-unknown") && after.contains("libzz.so is the library"), "{after}");
}

#[test]
fn another_mount_namespace_is_no_other_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("place");
    std::fs::create_dir(&place).expect("made");
    let script = format!(
        "mount -t tmpfs none '{0}' && cp '{1}' '{0}/zz-mount' && exec '{0}/zz-mount' 60",
        place.display(),
        sleep().display()
    );
    let child = Command::new("unshare").args(["-m", "sh", "-c", &script]).stderr(Stdio::null()).spawn();
    let Ok(child) = child else { return };
    let mut running = Running(child);
    for _ in 0..200 {
        let exe = std::fs::read_link(format!("/proc/{}/exe", running.pid())).unwrap_or_default();
        if exe.ends_with("zz-mount") {
            break;
        }
        if running.0.try_wait().expect("waited").is_some() {
            return; // Namespaces are not allowed here.
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(!place.join("zz-mount").exists());
    let (status, facts) = inspect(&running.target());
    assert_eq!(status, 0);
    assert_eq!(facts["elf"]["build_id"], build_id(&sleep()));
    assert_eq!(facts["process"]["deleted"], false);
    assert_eq!(facts["process"]["on_disk_build_id"], facts["elf"]["build_id"]);
}

/// Waits until a file of that name is what a process runs, or has mapped. `false` if the process has ended before.
fn runs(running: &mut Running, name: &str) -> bool {
    for _ in 0..200 {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", running.pid())).unwrap_or_default();
        if maps.contains(name) {
            return true;
        }
        if running.0.try_wait().expect("waited").is_some() {
            return false;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    false
}

/// The dynamic loader that `sleep` asks for.
fn loader() -> PathBuf {
    let facts = json(["inspect".as_ref(), sleep().as_os_str()]).1["targets"][0].clone();
    PathBuf::from(facts["elf"]["interpreter"].as_str().expect("an interpreter"))
}

#[test]
fn a_program_started_through_the_loader_is_not_the_loader() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = copy(directory.path(), "zz-loaded");
    let mut command = Command::new(loader());
    command.args(["--inhibit-cache", "./zz-loaded", "60"]).current_dir(directory.path());
    let mut running = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("started"));
    assert!(runs(&mut running, "zz-loaded"));
    let (status, facts) = inspect(&running.target());
    assert_eq!(status, 0, "{facts}");
    assert_eq!(facts["process"]["exe"], program.to_string_lossy().as_ref());
    assert_eq!(facts["elf"]["build_id"], build_id(&program));
    assert_eq!((&facts["process"]["deleted"], &facts["process"]["same_file"]), (&false.into(), &true.into()));

    // A name that leads elsewhere by now is found among what is mapped.
    let mut command = Command::new(loader());
    command.arg0("server: master").args(["--argv0", "x", "/proc/self/cwd/zz-loaded", "60"]);
    let mut running =
        Running(command.current_dir(directory.path()).stdout(Stdio::null()).spawn().expect("started"));
    assert!(runs(&mut running, "zz-loaded"));
    assert_eq!(inspect(&running.target()).1["elf"]["build_id"], build_id(&program));
}

#[test]
fn a_link_to_the_release_in_use_that_leads_on_is_a_replaced_program() {
    let directory = tempfile::tempdir().expect("a directory");
    for release in ["v1", "v2"] {
        std::fs::create_dir(directory.path().join(release)).expect("made");
    }
    let link = directory.path().join("current");
    std::os::unix::fs::symlink("v1", &link).expect("linked");
    let program = copy(&directory.path().join("v1"), "zz-release");
    copy_program(&testdata("cases/gcc12-noO"), &directory.path().join("v2/zz-release"));
    let started = link.join("zz-release");
    let running = Running::start(&started, started.to_str().expect("text"));
    assert_eq!(inspect(&running.target()).1["process"]["same_file"], true);
    std::fs::remove_file(&link).expect("removed");
    std::os::unix::fs::symlink("v2", &link).expect("linked");
    let (status, facts) = inspect(&running.target());
    assert_eq!((status, &facts["elf"]["build_id"]), (0, &build_id(&program)));
    assert_eq!((&facts["process"]["deleted"], &facts["process"]["same_file"]), (&true.into(), &false.into()));
    assert_eq!(facts["process"]["on_disk_build_id"], build_id(&testdata("cases/gcc12-noO")));
    let text = check(&running.target()).stdout;
    assert!(text.contains("warning[stale-process]"), "{text}");

    // Under another name it is a wrapper's business.
    std::fs::rename(directory.path().join("v2/zz-release"), directory.path().join("v2/other"))
        .expect("moved");
    std::os::unix::fs::symlink("other", directory.path().join("v2/zz-release")).expect("linked");
    assert_eq!(inspect(&running.target()).1["process"]["same_file"], true);
}

/// Needs root; others cannot change their root.
#[test]
fn a_file_replaced_under_a_chroot_is_found_where_it_lies() {
    let directory = tempfile::tempdir().expect("a directory");
    let own = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let library = own.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let Some(library) = library.into_iter().find(|name| name.ends_with("/libc.so.6")) else { return };
    let below = |path: &Path| directory.path().join(path.strip_prefix("/").expect("absolute"));
    let asked = json(["inspect".as_ref(), sleep().as_os_str()]).1["targets"][0]["elf"]["needed"].clone();
    if asked != serde_json::json!(["libc.so.6"]) {
        return;
    }
    for file in [Path::new(library), &loader()] {
        std::fs::create_dir_all(below(file).parent().expect("a directory")).expect("made");
        std::fs::copy(file, below(file)).expect("copied");
    }
    let program = copy(directory.path(), "zz-root");
    // Outside there is another file at the name that it is started by in there, and at the end of a link.
    let outside = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(outside.path().join("v2")).expect("made");
    copy_program(&testdata("cases/gcc12-noO"), &outside.path().join("v2/zz-root"));
    let link = outside.path().join("current");
    std::os::unix::fs::symlink("v2", &link).expect("linked");
    let inside = below(&link);
    std::fs::create_dir_all(inside.parent().expect("a directory")).expect("made");
    std::os::unix::fs::symlink("/", &inside).expect("linked");
    let started = link.join("zz-root");
    let mut command = Command::new("chroot");
    command.arg(directory.path()).arg(&started).arg("60").stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(child) = command.spawn() else { return };
    let mut running = Running(child);
    if !runs(&mut running, "zz-root") {
        return;
    }
    assert_eq!(inspect(&running.target()).1["process"]["same_file"], true);
    let new = directory.path().join("new");
    std::fs::copy(testdata("cases/gcc12-noO"), &new).expect("copied");
    std::fs::rename(&new, &program).expect("replaced");
    let (status, facts) = inspect(&running.target());
    assert_eq!(status, 0);
    assert_eq!(facts["elf"]["build_id"], build_id(&sleep()));
    assert_eq!((&facts["process"]["deleted"], &facts["process"]["same_file"]), (&true.into(), &false.into()));
    assert_eq!(facts["process"]["on_disk_build_id"], build_id(&testdata("cases/gcc12-noO")));
}
