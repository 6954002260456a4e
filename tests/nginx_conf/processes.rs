//! Running programs: the configuration is the one that the process itself reads.

use super::common;
use super::real::{self, Nginx};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A master with its workers; both end with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

fn start(nginx: &Nginx, directory: &Path, arguments: &[&str], port: u16) -> Running {
    let child = Command::new(&nginx.path)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let end = Instant::now() + Duration::from_secs(20);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(running.0.try_wait().unwrap().is_none(), "{arguments:?} ends");
        assert!(Instant::now() < end, "{arguments:?} does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    running
}

/// The child processes of one, once there are any.
fn children(of: u32) -> Vec<u32> {
    let path = format!("/proc/{of}/task/{of}/children");
    for _ in 0..200 {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let list: Vec<u32> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let is_worker = |pid: &u32| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with("nginx: worker process")
        };
        if !list.is_empty() && list.iter().all(is_worker) {
            return list;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{of} has no worker");
}

fn check(pid: u32) -> Value {
    let target = format!("pid:{pid}");
    common::json(["check", "--no-config", "-p", "builtin:nginx-gateway", target.as_str()]).1["targets"][0]
        .clone()
}

fn conf(directory: &Path, name: &str, port: u16) -> String {
    let text = format!(
        "pid nginx.pid; error_log stderr;\nevents {{}}\nhttp {{\nupstream backend {{ server 127.0.0.1:1; }}\nserver {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://backend; }} }}\n}}\n"
    );
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, super::contained(&text)).unwrap();
    path.display().to_string()
}

/// Files of the configuration, what chose it, and where the rule about upstreams found its fault.
fn seen(target: &Value) -> (Vec<String>, String, Vec<String>) {
    let config = &target["nginx"]["config"];
    let files = config["files"].as_array().unwrap_or_else(|| panic!("{}", target["problems"]));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = target["findings"].as_array().unwrap().iter();
    let places =
        found.filter(|f| f["rule"] == "upstream-without-keepalive").map(|f| text(&f["location"]["path"]));
    (files.iter().map(text).collect(), text(&config["chosen_by"]), places.collect())
}

fn programs(directory: &Path) -> (Nginx, Nginx, Nginx) {
    let mut debian = None;
    let mut wheel = None;
    let mut default = None;
    for nginx in real::programs(directory) {
        match nginx.name {
            "debian" => debian = Some(nginx),
            "wheel" => wheel = Some(nginx),
            "default" => default = Some(nginx),
            _ => {}
        }
    }
    (debian.unwrap(), wheel.unwrap(), default.unwrap())
}

#[test]
#[ignore = "needs the corpus"]
fn the_command_line_of_a_process_names_its_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    let (debian, _, default) = programs(&place);
    let logs = place.join("logs");
    std::fs::create_dir_all(&logs).unwrap();
    let prefix = place.display().to_string();

    // A master writes its title over its arguments; a worker's title holds none.
    let port = real::free_port();
    let file = conf(&place, "a b.conf", port);
    let given = "daemon off; worker_processes 1; user root;";
    let running =
        start(&debian, &place, &["-p", &prefix, "-g", given, "-e", "stderr", "-c", "a b.conf"], port);
    let master = running.0.id();
    let want =
        (vec!["-g on the command line".to_owned(), file.clone()], "command-line".to_owned(), vec![file]);
    assert_eq!(seen(&check(master)), want);
    for worker in children(master) {
        assert_eq!(seen(&check(worker)), want, "of the worker");
    }
    let text = common::run(["inspect".to_owned(), format!("pid:{master}")]).stdout;
    let line = format!("{} (from the command line; the copy on disk may differ from memory)", want.2[0]);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&text).contains(&words(&line)), "{text}");
    assert!(
        words(&text).contains("able threads, PCRE, PCRE JIT, HTTP/2, kTLS-capable, reuseport not file AIO,"),
        "{text}"
    );
    let threads = &check(master)["nginx"]["features"]["threads"];
    assert_eq!(threads["value"], true);
    assert_eq!(
        (&threads["strength"], &threads["sources"][0]),
        (&"structural".into(), &"module-table".into())
    );
    drop(running);

    // The built-in name below another prefix; one process alone keeps its arguments apart.
    let port = real::free_port();
    let file = conf(&place, "conf/nginx.conf", port);
    let running = start(&default, &place, &["-p", ".", "-g", "daemon off; master_process off;"], port);
    let (files, by, places) = seen(&check(running.0.id()));
    assert_eq!((files.last(), by.as_str(), places), (Some(&file), "command-line", vec![file.clone()]));
}

#[test]
#[ignore = "needs the corpus"]
fn without_arguments_the_built_in_path_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    let (_, wheel, _) = programs(&place);
    // This build's own prefix is the directory it is started in.
    let port = real::free_port();
    let file = conf(&place, "nginx.conf", port);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("daemon off; master_process off; {text}")).unwrap();
    let running = start(&wheel, &place, &[], port);
    let target = check(running.0.id());
    let (files, by, _) = seen(&target);
    assert_eq!((files, by.as_str()), (vec![file.clone()], "built-in"));
    // A file that is gone since is said, and the audit of the program goes on.
    std::fs::remove_file(&file).unwrap();
    let target = check(running.0.id());
    assert_eq!(target["nginx"]["config"], Value::Null);
    assert_eq!(target["status"], "ok");
    let codes: Vec<&str> =
        target["problems"].as_array().unwrap().iter().map(|p| p["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"configuration-unreadable"), "{codes:?}");
}
