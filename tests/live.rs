//! Real servers under the eyes of the program: an upgrade with both masters alive, another file system, memory only.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Run, corpus, flagaudit, json, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// An nginx in a folder of its own, ended with the test.
struct Server {
    folder: tempfile::TempDir,
    /// The master.
    pid: u32,
}

/// Starts a program that was just copied: another test may hold the copy open for writing for an instant (ETXTBSY).
fn spawn(command: &mut Command) -> Child {
    for _ in 0..100 {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            started => return started.unwrap(),
        }
    }
    panic!("{command:?} stays busy")
}

/// A port that nobody listens on.
fn port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Writes what an nginx needs to run; gives the configuration's path.
fn prepare(folder: &Path, head: &str) -> PathBuf {
    for name in ["logs", "client", "proxy", "fastcgi", "uwsgi", "scgi"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    let here = folder.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("    {name}_temp_path {here}/{};\n", name.trim_end_matches("_body")))
        .concat();
    let text = format!(
        "{head}\nworker_processes 2;\npid {here}/logs/nginx.pid;\nerror_log {here}/logs/error.log;\nevents {{}}\n\
         http {{\n{temporary}    access_log off;\n    server {{ listen 127.0.0.1:{}; }}\n}}\n",
        port()
    );
    let conf = folder.join("nginx.conf");
    std::fs::write(&conf, text).unwrap();
    conf
}

impl Server {
    /// Copies a build to `folder/nginx` and starts it, as a daemon: in the foreground nginx ignores USR2.
    fn start(build: &Path, head: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("nginx");
        std::fs::copy(build, &program).unwrap();
        let conf = prepare(folder.path(), head);
        let mut command = Command::new(&program);
        command.arg("-p").arg(folder.path()).arg("-c").arg(&conf).stderr(Stdio::null());
        assert!(spawn(&mut command).wait().unwrap().success());
        let mut server = Self { folder, pid: 0 };
        let read =
            || std::fs::read_to_string(server.folder.path().join("logs/nginx.pid")).unwrap_or_default();
        server.wait(|| read().trim().parse().is_ok_and(|pid: u32| children(pid).len() >= 2));
        server.pid = read().trim().parse().unwrap();
        server
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("nginx")
    }

    fn wait(&self, ready: impl Fn() -> bool) {
        for _ in 0..500 {
            if ready() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("not ready: {}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("logs/error.log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.pid == 0 {
            return;
        }
        let mut all = vec![self.pid];
        let mut at = 0;
        while let Some(pid) = all.get(at) {
            all.extend(children(*pid));
            at += 1;
        }
        for pid in all {
            signal(pid, "KILL");
        }
    }
}

/// Processes whose parent is `of`.
fn children(of: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).stderr(Stdio::null()).status();
}

fn build_id(path: &Path) -> Value {
    json(["inspect".as_ref(), path.as_os_str()]).1["targets"][0]["elf"]["build_id"].clone()
}

fn inspect(pid: u32) -> Value {
    let (status, report) = json(["inspect".to_owned(), format!("pid:{pid}")]);
    assert_eq!(status, 0, "{report}");
    report["targets"][0].clone()
}

#[test]
#[ignore = "needs the corpus"]
fn an_upgrade_on_the_fly_has_two_builds() {
    let (old, new) = (corpus("O2"), corpus("O0"));
    let server = Server::start(&old, "");
    let master = server.pid;
    // The new build is moved to the old one's name, as packages do it.
    std::fs::copy(&new, server.folder.path().join("next")).unwrap();
    std::fs::rename(server.folder.path().join("next"), server.program()).unwrap();
    let before = inspect(master);
    assert_eq!(
        (&before["elf"]["build_id"], &before["process"]["on_disk_build_id"]),
        (&build_id(&old), &build_id(&new))
    );
    assert_eq!(before["process"]["children"], 2);
    assert_eq!(before["optimization"]["level"], "O2");
    signal(master, "USR2");
    let upgraded = || children(master).into_iter().find(|pid| children(*pid).len() >= 2);
    server.wait(|| upgraded().is_some());
    let next = upgraded().unwrap();
    let (status, report) = json(["inspect", "--processes", "^nginx$"]);
    assert_eq!(status, 0);
    let ours = |pid: u32| -> Value {
        let list = report["targets"].as_array().unwrap();
        list.iter().find(|facts| facts["process"]["pid"] == pid).cloned().unwrap_or(Value::Null)
    };
    let (first, second) = (ours(master), ours(next));
    assert_eq!(
        (&first["optimization"]["level"], &first["process"]["children"]),
        (&"O2".into(), &2.into()),
        "{}",
        server.log()
    );
    assert_eq!((&second["optimization"]["level"], &second["process"]["children"]), (&"O0".into(), &2.into()));
    assert_eq!((&first["process"]["deleted"], &second["process"]["deleted"]), (&true.into(), &false.into()));
    // At night: the old one is stale, the new one is the bad build.
    let text = run(["check", "--no-config", &format!("pid:{master}"), &format!("pid:{next}")]);
    assert_eq!(text.status, 1);
    assert!(text.stdout.contains(&format!("PASS  pid {master} nginx master, 2 workers")), "{}", text.stdout);
    assert!(text.stdout.contains(&format!("FAIL  pid {next} nginx master, 2 workers")), "{}", text.stdout);
    assert!(text.stdout.contains("stale-process"), "{}", text.stdout);
    let difference =
        run(["diff", &format!("pid:{master}"), &format!("pid:{next}"), "--fail-on", "regression"]);
    assert_eq!(difference.status, 1, "{}", difference.stdout);
}

#[test]
#[ignore = "needs the corpus"]
fn modules_and_libraries_that_are_really_mapped() {
    let module = corpus("debian-nginx-stream/usr/lib/nginx/modules/ngx_stream_module.so");
    let server =
        Server::start(&corpus("debian-nginx/usr/sbin/nginx"), &format!("load_module {};", module.display()));
    let facts = inspect(server.pid);
    let loaded = facts["nginx"]["dynamic_modules"].as_array().unwrap();
    assert_eq!(loaded.len(), 1, "{loaded:?}");
    assert_eq!(loaded[0]["path"], module.to_string_lossy().as_ref());
    assert_eq!(loaded[0]["loadable"], true);
    let text = run(["inspect".to_owned(), format!("pid:{}", server.pid)]).stdout;
    assert!(text.contains("(loaded: stream)"), "{text}");
    let (status, report) =
        json(["inspect".to_owned(), "--libraries".to_owned(), format!("pid:{}", server.pid)]);
    assert_eq!(status, 0, "{report}");
    let mapped: Vec<&str> = report["targets"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|facts| facts["library"]["found_by"] == "mapped")
        .map(|facts| facts["path"].as_str().unwrap())
        .collect();
    for wanted in ["libcrypto.so", "libpcre2-8.so", "libc.so.6", "libz.so", "ngx_stream_module.so"] {
        assert!(mapped.iter().any(|path| path.contains(wanted)), "{wanted} in {mapped:?}");
    }
}

#[test]
#[ignore = "needs the corpus"]
fn a_library_replaced_under_a_running_program_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let compile = |source: &str, arguments: &[&str]| {
        std::fs::write(place("s.c"), source).unwrap();
        let status =
            Command::new("gcc").current_dir(folder.path()).arg("s.c").args(arguments).status().unwrap();
        assert!(status.success());
    };
    compile("int f(void) { return 1; }", &["-O2", "-shared", "-fPIC", "-Wl,--build-id", "-o", "libf.so"]);
    let main =
        "#include <unistd.h>\nint f(void); int main(void) { write(1, \"x\", f()); pause(); return 0; }";
    compile(main, &["-O2", "-o", "p", "-L.", "-lf", "-Wl,-rpath,$ORIGIN"]);
    let mut child = spawn(Command::new(place("p")).stdout(Stdio::piped()));
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    let target = format!("pid:{}", child.id());
    assert_eq!(inspect(child.id())["process"]["replaced"], Value::Array(Vec::new()));
    compile("int f(void) { return 2; }", &["-O0", "-shared", "-fPIC", "-Wl,--build-id", "-o", "new.so"]);
    std::fs::copy(place("libf.so"), place("old.so")).unwrap();
    std::fs::rename(place("new.so"), place("libf.so")).unwrap();
    let facts = inspect(child.id());
    assert_eq!(facts["process"]["replaced"], serde_json::json!([place("libf.so")]));
    assert_eq!(facts["process"]["deleted"], false);
    let text = run(["check", "--no-config", &target]).stdout;
    assert!(text.contains("stale-process") && text.contains("libf.so"), "{text}");
    // What runs is audited, and not what lies there now.
    let (_, report) = json(["inspect", "--libraries", &target]);
    let list = report["targets"].as_array().unwrap();
    let library = list.iter().find(|facts| facts["path"] == place("libf.so").to_string_lossy().as_ref());
    assert_eq!(library.unwrap()["elf"]["build_id"], build_id(&place("old.so")), "{report}");
    // The same build copied anew is the same library.
    std::fs::rename(place("old.so"), place("libf.so")).unwrap();
    assert_eq!(inspect(child.id())["process"]["replaced"], Value::Array(Vec::new()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
#[ignore = "needs the corpus"]
fn another_nginx_at_the_same_path_in_its_own_namespaces() {
    let outside = Server::start(&corpus("O2"), "");
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(corpus("O0"), folder.path().join("other")).unwrap();
    let conf = prepare(folder.path(), "");
    let path = outside.program();
    let script = format!(
        "mount --bind '{0}/other' '{1}' && exec '{1}' -g 'daemon off;' -p '{0}' -c '{2}'",
        folder.path().display(),
        path.display(),
        conf.display()
    );
    let child =
        Command::new("unshare").args(["-m", "-p", "-f", "sh", "-c", &script]).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let inner = || children(child.id()).into_iter().find(|pid| children(*pid).len() >= 2);
    for _ in 0..500 {
        if inner().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let Some(pid) = inner() else {
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(why.contains("Operation not permitted") || why.contains("unshare failed"), "{why}");
        eprintln!("namespaces are not allowed here: {why}");
        return;
    };
    let (there, here) = (inspect(pid), inspect(outside.pid));
    for pid in children(pid) {
        signal(pid, "KILL");
    }
    signal(pid, "KILL");
    let _ = child.wait();
    assert_eq!(
        (&there["process"]["exe"], &here["process"]["exe"]),
        (&here["process"]["exe"], &there["process"]["exe"])
    );
    assert_eq!(
        (&there["optimization"]["level"], &here["optimization"]["level"]),
        (&"O0".into(), &"O2".into())
    );
    for facts in [&there, &here] {
        assert_eq!(facts["process"]["deleted"], false);
        assert_eq!(facts["process"]["on_disk_build_id"], facts["elf"]["build_id"]);
        assert_eq!(facts["process"]["children"], 2);
    }
}

#[test]
#[ignore = "needs the corpus"]
fn a_program_in_memory_only() {
    let sleep = Path::new("/usr/bin/sleep").canonicalize().unwrap();
    // Python is there wherever the corpus was made.
    let script = format!(
        "import os\nfd = os.memfd_create('server')\nos.write(fd, open('{}', 'rb').read())\nos.execve(fd, ['sleep', '60'], {{}})",
        sleep.display()
    );
    let mut child = Command::new("python3").args(["-c", &script]).spawn().unwrap();
    for _ in 0..500 {
        let exe = std::fs::read_link(format!("/proc/{}/exe", child.id())).unwrap_or_default();
        if exe.to_string_lossy().starts_with("/memfd:") {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let facts = inspect(child.id());
    let report = run(["check", "--no-config", &format!("pid:{}", child.id())]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(facts["elf"]["build_id"], build_id(&sleep));
    assert_eq!(facts["process"]["deleted"], true);
    assert_eq!(facts["process"]["on_disk_build_id"], Value::Null);
    assert!(facts["process"]["exe"].as_str().unwrap().starts_with("/memfd:server"));
    assert!(report.stdout.contains("stale-process"), "{}", report.stdout);
}

#[test]
#[ignore = "needs the corpus"]
fn nobody_is_told_which_capability_is_missing() {
    let server = Server::start(&corpus("O2"), "");
    let unprivileged = |arguments: &[&str]| -> Run {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(flagaudit().get_program());
        command.args(arguments).output().unwrap().into()
    };
    if unprivileged(&["--version"]).status != 0 {
        return; // Not the superuser, or the program lies where only the superuser may read.
    }
    let all = unprivileged(&["inspect", "--processes", "^nginx$"]);
    assert!(all.stderr.contains("may not be read without CAP_SYS_PTRACE"), "{}", all.stderr);
    assert!(!all.stdout.contains(&format!("pid {} ", server.pid)), "the master is root's: {}", all.stdout);
    // nginx lets its workers be read by their own user (PR_SET_DUMPABLE).
    let workers = children(server.pid);
    assert!(
        workers.iter().any(|pid| all.stdout.contains(&format!("pid {pid} nginx worker"))),
        "{}",
        all.stdout
    );
    let one = unprivileged(&["inspect", &format!("pid:{}", server.pid)]);
    assert_eq!(one.status, 2);
    assert!(one.stderr.contains("CAP_SYS_PTRACE"), "{}", one.stderr);
}
