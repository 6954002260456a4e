//! What is read from servers that name their own build, held against what they print themselves.
//!
//! The programs are run by this test and never by what it tests.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::json;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A program of Debian 12, the product it is, and the commands that make it (or its own tool) name its build.
struct Server {
    file: &'static str,
    product: &'static str,
    says: &'static [&'static [&'static str]],
}

const SERVERS: &[Server] = &[
    Server { file: "/usr/sbin/haproxy", product: "haproxy", says: &[&["/usr/sbin/haproxy", "-vv"]] },
    Server { file: "/usr/sbin/named", product: "bind", says: &[&["/usr/sbin/named", "-V"]] },
    Server { file: "/usr/sbin/squid", product: "squid", says: &[&["/usr/sbin/squid", "-v"]] },
    Server { file: "/usr/sbin/varnishd", product: "varnish", says: &[&["/usr/sbin/varnishd", "-V"]] },
    Server { file: "/usr/sbin/unbound", product: "unbound", says: &[&["/usr/sbin/unbound", "-V"]] },
    Server { file: "/usr/sbin/knotd", product: "knot", says: &[&["/usr/sbin/knotd", "-V"]] },
    Server { file: "/usr/sbin/proftpd", product: "proftpd", says: &[&["/usr/sbin/proftpd", "-V"]] },
    Server {
        file: "/usr/sbin/pdns_server",
        product: "powerdns",
        says: &[&["/usr/sbin/pdns_server", "--version"]],
    },
    Server { file: "/usr/bin/ffmpeg", product: "ffmpeg", says: &[&["/usr/bin/ffmpeg", "-version"]] },
    Server {
        file: "/usr/lib/postgresql/15/bin/postgres",
        product: "postgresql",
        says: &[
            &["/usr/lib/postgresql/15/bin/postgres", "-V"],
            &["/usr/lib/postgresql/15/bin/pg_config", "--configure"],
            &["/usr/lib/postgresql/15/bin/pg_config"],
        ],
    },
    Server {
        file: "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
        product: "openssl",
        says: &[&["openssl", "version", "-a"]],
    },
    Server {
        file: "/usr/lib/erlang/erts-13.1.5/bin/beam.smp",
        product: "erlang",
        says: &[&["erl", "-version"]],
    },
];

/// What a program holds and prints only while it runs (`param.show cc_command`), or not at all in this version.
const NOT_PRINTED: &[(&str, &str)] = &[
    ("varnish", "cc_command"),
    ("knot", "Target"),
    ("knot", "Compiler"),
    ("knot", "CFLAGS"),
    ("knot", "LIBS"),
    ("erlang", "CFLAGS"),
    ("postgresql", "version"),
];

/// Programs that do not name the options they were built with.
const SILENT: &[&str] = &[
    "/usr/bin/redis-server",
    "/usr/bin/memcached",
    "/usr/sbin/lighttpd",
    "/usr/sbin/apache2",
    "/usr/sbin/mariadbd",
    "/usr/bin/php8.2",
    "/usr/sbin/exim4",
    "/usr/lib/x86_64-linux-gnu/libnode.so.108",
    "/usr/bin/openssl",
];

fn inspect(file: &str) -> Option<Value> {
    if !Path::new(file).exists() {
        eprintln!("no {file}: its package could not be installed when the corpus was made");
        return None;
    }
    let (status, report) = json(["inspect", "--units", file]);
    assert_eq!(status, 0, "{file}");
    Some(report["targets"][0].clone())
}

/// Words with single spaces, without quotes and backslashes: each program quotes in its own way.
fn plain(text: &str) -> String {
    let kept: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn printed(server: &Server) -> String {
    let mut all = String::new();
    for says in server.says {
        let Ok(output) = Command::new(says[0]).args(&says[1..]).output() else { continue };
        all += &String::from_utf8_lossy(&output.stdout);
        all += &String::from_utf8_lossy(&output.stderr);
    }
    plain(&all)
}

#[test]
#[ignore = "needs the corpus"]
fn every_line_is_what_the_program_says_itself() {
    let mut seen = 0;
    for server in SERVERS {
        let Some(target) = inspect(server.file) else { continue };
        let printed = printed(server);
        assert_eq!(target["product"]["name"], server.product, "{}", server.file);
        let version = target["product"]["version"].as_str().unwrap();
        assert!(printed.contains(version), "{}: {version} in {printed}", server.file);
        for line in target["build_strings"].as_array().unwrap() {
            if NOT_PRINTED.contains(&(server.product, line["key"].as_str().unwrap())) {
                continue;
            }
            let value = plain(line["value"].as_str().unwrap());
            assert!(printed.contains(&value), "{}: {}: {value}\nin {printed}", server.file, line["key"]);
        }
        let optimization = &target["optimization"];
        // Debian builds everything at -O2; where the program says so, its level is a declaration that the code bears out.
        let declares = optimization["strength"] == "declared";
        let level = if declares { "O2" } else { "optimized" };
        assert_eq!(optimization["level"], level, "{}: {optimization}", server.file);
        let sources = optimization["sources"].as_array().unwrap();
        assert!(sources.iter().any(|source| source == "code-shape"), "{}: {sources:?}", server.file);
        seen += 1;
    }
    assert!(seen >= 6, "only {seen} servers could be installed");
}

#[test]
#[ignore = "needs the corpus"]
fn programs_that_say_nothing_are_claimed_nothing_of() {
    for file in SILENT {
        let Some(target) = inspect(file) else { continue };
        assert_eq!(target["product"], Value::Null, "{file}");
        assert_eq!(target["build_strings"], serde_json::json!([]), "{file}");
        let optimization = &target["optimization"];
        assert_eq!(optimization["level"], "optimized", "{file}: {}", optimization["reason"]);
        assert_eq!(optimization["strength"], "inferred", "{file}");
        assert_eq!(target["conflicts"], serde_json::json!([]), "{file}");
    }
}

#[test]
#[ignore = "needs the corpus"]
fn none_of_them_is_a_bad_build() {
    let files = SERVERS.iter().map(|server| server.file).chain(SILENT.iter().copied());
    for file in files.filter(|file| Path::new(file).exists()) {
        let (status, report) = json(["check", "--no-config", file]);
        assert_eq!(status, 0, "{file}: {}", report["targets"][0]["findings"]);
    }
}
