//! Real nginx programs, on the loopback alone. Only what is started here is ended here.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An nginx of the corpus.
pub struct Nginx {
    pub name: &'static str,
    pub path: PathBuf,
}

/// The nginx programs of the corpus: Debian's 1.22, a static 1.31, and 1.22 built with few modules.
pub fn programs(directory: &Path) -> Vec<Nginx> {
    let corpus =
        PathBuf::from(std::env::var_os("FLAGAUDIT_CORPUS").expect("FLAGAUDIT_CORPUS names the corpus"));
    let wanted = [
        ("debian", "debian-nginx/usr/sbin/nginx"),
        ("wheel", "wheel/nginx"),
        ("default", "default"),
        ("O2nogz", "O2nogz"),
        ("bare", "bare"),
    ];
    let found: Vec<Nginx> = wanted
        .iter()
        .filter(|(_, path)| corpus.join(path).is_file())
        .map(|(name, path)| {
            // Files of a wheel are not executable.
            let copy = directory.join(name);
            crate::common::copy_program(&corpus.join(path), &copy);
            std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
            Nginx { name, path: copy }
        })
        .collect();
    assert!(found.len() >= 4, "the corpus is not complete");
    found
}

/// A configuration ready to be run below a directory: nothing outside it is written. Lines stay where they are.
pub fn contained(text: &str) -> String {
    const INSIDE: &str = "http { access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;";
    let text = if text.contains("pid ") {
        text.to_owned()
    } else {
        format!("pid nginx.pid; error_log stderr; {text}")
    };
    text.replacen("\nhttp {", &format!("\n{INSIDE}"), 1)
}

/// What `nginx -t` says of a file.
pub struct Tested {
    pub accepted: bool,
    pub said: String,
    /// Name, file and line of an unknown directive.
    pub unknown: Option<(String, String, u32)>,
}

impl Nginx {
    /// Runs `nginx -t`.
    pub fn test(&self, conf: &Path) -> Tested {
        let directory = conf.parent().unwrap();
        let output = Command::new(&self.path)
            .args(["-t", "-e", "stderr", "-p"])
            .arg(directory)
            .arg("-c")
            .arg(conf)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Tested { accepted: output.status.success(), unknown: unknown(&said), said }
    }

    /// Starts it with a configuration in the foreground, and waits for its port. `None` if it refuses.
    pub fn start(&self, conf: &Path, port: u16) -> Option<Running> {
        let directory = conf.parent().unwrap();
        let mut child = Command::new(&self.path)
            .args(["-g", "daemon off; master_process off;", "-e", "stderr", "-p"])
            .arg(directory)
            .arg("-c")
            .arg(conf)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(Running(child));
            }
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(Running(child));
        panic!("{} does not listen", self.name);
    }
}

fn unknown(said: &str) -> Option<(String, String, u32)> {
    let (_, rest) = said.split_once("unknown directive \"")?;
    let (name, rest) = rest.split_once("\" in ")?;
    let line = rest.lines().next()?;
    let (file, number) = line.rsplit_once(':')?;
    Some((name.to_owned(), file.to_owned(), number.parse().ok()?))
}

/// A started nginx; it ends with this.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port of the loopback that is free now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: Vec<u8>,
}

/// One request on a connection of its own.
pub fn get(port: u16, path: &str, headers: &str) -> Answer {
    // HTTP/1.0, so that no answer comes in chunks.
    get_with(port, path, headers, "1.0")
}

/// One request of that HTTP version.
pub fn get_with(port: u16, path: &str, headers: &str, version: &str) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
        .unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let headers = head.to_ascii_lowercase();
    let mut body = bytes[end..].to_vec();
    if headers.contains("transfer-encoding: chunked") {
        body = joined(&body);
    }
    Answer { status, headers, body }
}

/// The contents of chunks.
fn joined(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = bytes.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&bytes[..end]), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        out.extend(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 4 + size..];
    }
    out
}
