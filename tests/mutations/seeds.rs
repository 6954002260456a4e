//! Sound inputs of every kind, from `testdata/` and written here. They are where mutation and fuzzing begin.

use super::targets::NGINX_V;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A name for messages, and the bytes.
pub type Seed = (String, Vec<u8>);

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Files below a folder of `testdata/`, in order, of which the beginning is wanted.
fn files(folder: &str, wanted: fn(&[u8]) -> bool) -> Vec<Seed> {
    let mut found = Vec::new();
    let mut folders = vec![testdata().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path).map_err(drop)
                && wanted(&bytes)
            {
                found.push((path.strip_prefix(testdata()).unwrap_or(&path).display().to_string(), bytes));
            }
        }
    }
    found.sort();
    found
}

fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

fn is_ar(bytes: &[u8]) -> bool {
    bytes.starts_with(b"!<arch>") || bytes.starts_with(b"!<thin>")
}

fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && bytes.len() < 16 << 10
}

/// The inputs that a target begins with.
pub fn of(target: &str) -> Vec<Seed> {
    match target {
        "elf" => elf(),
        "archive" => archives(),
        "annobin" => annobin(),
        "records" => records(),
        "producer" => texts(&PRODUCERS),
        "command_line" => texts(&COMMAND_LINES).into_iter().chain(texts(&PRODUCERS)).collect(),
        "configure" => configure(),
        "nginx_conf" => {
            files("nginx-conf", is_text).into_iter().filter(|(name, _)| !name.ends_with("md")).collect()
        }
        "policy" => policies(),
        "saved_report" => reports(),
        _ => Vec::new(),
    }
}

/// Words of the languages.
pub fn words(target: &str) -> &'static [&'static str] {
    match target {
        "policy" => &POLICY_WORDS,
        "nginx_conf" => &CONF_WORDS,
        "saved_report" => &REPORT_WORDS,
        "configure" => &CONFIGURE_WORDS,
        _ => &FLAG_WORDS,
    }
}

fn elf() -> Vec<Seed> {
    ["dwarf", "elf", "shape", "cases", "guide"]
        .iter()
        .flat_map(|folder| files(folder, |b| is_elf(b) || is_ar(b)))
        .collect()
}

/// `tar` with these members.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o755);
        builder.append_data(&mut header, name.trim_start_matches('/'), *bytes).expect("appended");
    }
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    builder.append_link(&mut link, "usr/bin/link", "../sbin/nginx").expect("appended");
    let mut link = tar::Header::new_ustar();
    link.set_entry_type(tar::EntryType::Link);
    link.set_size(0);
    builder.append_link(&mut link, "usr/bin/hard", files.first().map_or("x", |f| f.0)).expect("appended");
    builder.into_inner().expect("an archive")
}

/// `ar` with these members.
fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, "100644", content.len());
        bytes.extend(header.bytes());
        bytes.extend(*content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// Compressed by gzip's method.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// Compressed by a program, where it is installed.
fn compressed(program: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut child = Command::new(program)
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?.ok()?;
    output.status.success().then_some(output.stdout)
}

fn archives() -> Vec<Seed> {
    let read = |name: &str| std::fs::read(testdata().join(name)).expect("a fixture");
    let (program, object) = (read("dwarf/gcc12-O2"), read("elf/tx1.o"));
    let long = format!("usr/{}/nginx", "long/".repeat(40));
    let plain =
        tar(&[("usr/sbin/nginx", &program), ("usr/lib/a.o", &object), (&long, &object), ("etc/x", b"text")]);
    let layer = tar(&[("usr/sbin/nginx", &program), ("usr/lib/.wh.a.o", b"")]);
    let base = tar(&[("usr/lib/a.o", &object)]);
    let manifest = br#"[{"Config":"c.json","RepoTags":["edge:1"],"Layers":["a/layer.tar","b/layer.tar"]}]"#;
    let image = tar(&[("a/layer.tar", &base), ("b/layer.tar", &layer), ("manifest.json", manifest)]);
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let oci_manifest = format!(r#"{{"schemaVersion":2,"layers":[{{"digest":"sha256:{digest}"}}]}}"#);
    let index_digest = "a".repeat(64);
    let index = format!(r#"{{"schemaVersion":2,"manifests":[{{"digest":"sha256:{index_digest}"}}]}}"#);
    let oci = tar(&[
        ("index.json", index.as_bytes()),
        (&format!("blobs/sha256/{index_digest}"), oci_manifest.as_bytes()),
        (&format!("blobs/sha256/{digest}"), &gzip(&base)),
    ]);
    let zipped = gzip(&plain);
    let deb = ar(&[("debian-binary", b"2.0\n"), ("control.tar.gz", b""), ("data.tar.gz", &zipped)]);
    let mut found: Vec<Seed> = files("elf", is_ar);
    found.extend(files("cases", is_ar));
    let nested = tar(&[("pool/a.deb", &deb), ("pool/b.tar", &plain)]);
    for (name, bytes) in
        [("image.tar", image), ("oci.tar", oci), ("a.tar.gz", zipped), ("a.deb", deb), ("nested.tar", nested)]
    {
        found.push((name.to_owned(), bytes));
    }
    found.push(("a.gz".to_owned(), gzip(&program)));
    for tool in ["xz", "zstd"] {
        found.extend(compressed(tool, &plain).map(|bytes| (format!("a.tar.{tool}"), bytes)));
    }
    found.push(("a.tar".to_owned(), plain));
    found
}

/// Contents of the sections of these names in the fixtures, behind a byte that chooses.
fn sections(kinds: &[(&[u8], u8)]) -> Vec<Seed> {
    use object::{Object as _, ObjectSection as _};
    let mut found: Vec<Seed> = Vec::new();
    for (name, bytes) in elf() {
        let Ok(file) = object::File::parse(&bytes[..]) else { continue };
        for section in file.sections() {
            let Some((_, kind)) = kinds.iter().find(|(wanted, _)| section.name_bytes() == Ok(*wanted)) else {
                continue;
            };
            let Ok(data) = section.data() else { continue };
            for machine in [0, 4, 3] {
                let seed = [&[kind | machine], data.get(..data.len().min(4096)).unwrap_or_default()].concat();
                if !data.is_empty() && !found.iter().any(|(_, old)| *old == seed) {
                    found.push((format!("{name} {}", section.name().unwrap_or_default()), seed));
                }
            }
        }
    }
    found
}

fn annobin() -> Vec<Seed> {
    let mut found = sections(&[(b".gnu.build.attributes", 0), (b".annobin.notes", 8)]);
    for kind in [8, 12, 11] {
        found.push((format!("strings {kind}"), [&[kind][..], ANNOBIN_STRINGS].concat()));
    }
    found
}

fn records() -> Vec<Seed> {
    let mut found = sections(&[
        (b".GCC.command.line", 0x00),
        (b".comment", 0x10),
        (b".note.gnu.property", 0x20),
        (b".note.gnu.build-id", 0x30),
        (b".note.package", 0x40),
        (b".gnu_debuglink", 0x50),
        (b".gnu_debugaltlink", 0x60),
        (b".go.buildinfo", 0x70),
        (b".eh_frame", 0x80),
        (b".eh_frame_hdr", 0x90),
        (b".modinfo", 0xa0),
        (b".dynamic", 0xb0),
        (b".debug_info", 0xc0),
        (b".debug_macro", 0xd0),
        (b".LLVM.command.line", 0xe0),
        (b".rodata", 0xf0),
    ]);
    found.push(("modinfo".to_owned(), b"\xa0vermagic=6.1.0 SMP\0name=x\0".to_vec()));
    found.push(("version text".to_owned(), [b"\xf4", NGINX_V.as_bytes()].concat()));
    found
}

fn texts(list: &[&str]) -> Vec<Seed> {
    list.iter().map(|text| (text.chars().take(40).collect(), text.as_bytes().to_vec())).collect()
}

fn configure() -> Vec<Seed> {
    let mut found = vec![("nginx -V".to_owned(), NGINX_V.as_bytes().to_vec())];
    for (product, line) in [
        (
            "nginx version: openresty/1.25.3.1",
            "--with-cc-opt='-O2 -DNGX_LUA_ABORT_AT_PANIC' --add-module=../ngx_devel_kit-0.3.3",
        ),
        ("Angie version: Angie/1.8.1", "--with-ld-opt=\"-Wl,-z,now -pie\" --with-debug"),
        (
            "Tengine version: Tengine/3.1.0\nnginx version: nginx/1.24.0",
            "--with-cc='gcc -m64 -O3' --with-cpu-opt=generic",
        ),
        (
            "nginx version: nginx/0.7.62",
            "--with-cc-opt='-O2 -O0' --with-pcre=/src/pcre-8.45 --with-http_perl_module=dynamic",
        ),
    ] {
        found.push((
            product.to_owned(),
            format!("{product}\nbuilt by clang 16.0.6\nconfigure arguments: {line}\n").into_bytes(),
        ));
    }
    found
}

fn policies() -> Vec<Seed> {
    let mut found = files("policy", is_text);
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR"));
    for place in [
        "src/policy/builtin/release.toml",
        "src/policy/builtin/nginx-gateway.toml",
        "src/policy/builtin/hardened.toml",
    ] {
        found.extend(std::fs::read(built_in.join(place)).map(|bytes| (place.to_owned(), bytes)));
    }
    for entry in std::fs::read_dir(built_in.join("docs/policies")).into_iter().flatten().flatten() {
        found.extend(std::fs::read(entry.path()).map(|bytes| (entry.path().display().to_string(), bytes)));
    }
    found.push((
        "json".to_owned(),
        br#"{"schema":1,"extends":"builtin:release","optimization":{"minimum":"O2","exempt":["**/*.S"]},
            "flags":{"forbid":["-march=native","/-f.*/"]},"waiver":[{"rule":"unoptimized-code","unit":"src/*.c",
            "reason":"x","owner":"y","expires":"2027-03-31"}]}"#
            .to_vec(),
    ));
    found.sort();
    found
}

/// Documents as `inspect` and `check` save them.
fn reports() -> Vec<Seed> {
    let program = Path::new(env!("CARGO_BIN_EXE_flagaudit"));
    let mut found = Vec::new();
    for command in ["inspect", "check"] {
        for file in ["dwarf/gcc12-O0", "elf/annobin-note", "cases/h_gcov"] {
            let mut run = Command::new(program);
            run.args([command, "--units", "--functions", "--flags", "--format", "json"]);
            let output = run.arg(testdata().join(file)).output().expect("the program runs");
            assert!(output.stdout.starts_with(b"{"), "{command} {file}");
            found.push((format!("{command} {file}"), output.stdout));
        }
    }
    found
}

const ANNOBIN_STRINGS: &[u8] =
    b"AV:4p127500\0RV:running gcc 12.2.0 20220819\0BV:annobin gcc 12.2.0\0GW:0x3d60540 u2.c\0\
GW:0x3d60140 u2.c slow\0SP:3 u2.c\0PI:4\0CF:8\0FL:2 u2.c\0SC:1\0GA:-1\0IN:1/2/3/4 u2.c\0";

const PRODUCERS: [&str; 14] = [
    "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O -O2 -O0 -fasynchronous-unwind-tables",
    "GNU C++17 14.2.0 -mtune=generic -march=x86-64 -g -Os -fstack-protector-strong -fPIE",
    "GNU GIMPLE 12.2.0 -m64 -mtune=generic -march=x86-64 -g -O2 -fno-openmp -fltrans",
    "GNU AS 2.40",
    "GNU C 4.8.5 20150623 (Red Hat 4.8.5-44) -O3 -Wp,-D_FORTIFY_SOURCE=2",
    "GNU Fortran2008 13.1.0 -Ofast -march=native",
    "clang version 16.0.6 (https://github.com/llvm/llvm-project.git 7cbf1a2591520c2491aa35339f227775f4d3adf6)",
    "Debian clang version 14.0.6 /usr/lib/llvm-14/bin/clang -g -O2 -c a\\ b.c -DX=\"y z\" -frecord-command-line",
    "Apple LLVM version 10.0.1 (clang-1001.0.46.4)",
    "clang LLVM (rustc version 1.75.0 (82e1608df 2023-12-21))",
    "Go cmd/compile go1.22.1; -N -l regabi",
    "Intel(R) C Intel(R) 64 Compiler for applications running on Intel(R) 64, Version 2021.5.0 -O2",
    "The Netwide Assembler 2.15.05",
    "tcc 0.9.27",
];

const COMMAND_LINES: [&str; 6] = [
    "gcc -c -pipe -O -W -Wall -Wpointer-arith -g -O2 -fstack-protector-strong -Wp,-D_FORTIFY_SOURCE=2 -I src/core",
    "-O2 -flto=auto -ffat-lto-objects -march=x86-64-v3 -mtune=native -fsanitize=address,undefined --param=ssp-buffer-size=4",
    "cc1 -quiet -imultiarch x86_64-linux-gnu -D NAME='a \"b\" c' -Os -o /dev/null",
    "'-DX=\\'y\\'' \"-O$(echo 3)\" -O4 -Oz -Ofast -Og --coverage -pg -specs=/usr/share/dpkg/no-pie-compile.specs",
    "@response-file -Xclang -mrelax-all -mllvm -enable-x -Wl,-z,now -include \"a b.h\"",
    "--with-cc-opt=-O0 -- -O3",
];

const FLAG_WORDS: [&str; 42] = [
    " -O0",
    " -O1",
    " -O2",
    " -O3",
    " -Os",
    " -Oz",
    " -Og",
    " -Ofast",
    " -O",
    " -O99",
    " -Oshit",
    " -g",
    " -flto",
    " -flto=thin",
    " -fltrans",
    " -march=native",
    " -march=x86-64-v4",
    " -mtune=generic",
    " -fsanitize=address",
    " --coverage",
    " -pg",
    " --param",
    " --param=",
    " -D",
    " -I",
    " -Xclang ",
    " -Wl,",
    " -o ",
    " -include ",
    " @",
    " --",
    "'",
    "\"",
    "\\",
    "\\ ",
    "GNU C17 ",
    "clang version ",
    "Go cmd/compile ",
    "rustc version ",
    " (",
    ")",
    "\u{85}",
];

const CONFIGURE_WORDS: [&str; 26] = [
    "configure arguments: ",
    "nginx version: nginx/",
    "Angie version: Angie/",
    "built by gcc ",
    "built by clang ",
    "built with OpenSSL ",
    " --with-cc-opt=",
    " --with-ld-opt=",
    " --with-cc=",
    " --with-cpu-opt=",
    " --add-module=",
    " --add-dynamic-module=",
    " --with-debug",
    " --without-http_gzip_module",
    "=dynamic",
    "'",
    "\"",
    "\\",
    "\n",
    "\r\n",
    "\\\n",
    "TLS SNI support enabled\n",
    " -O0",
    " -O2",
    "running with ",
    "=",
];

const POLICY_WORDS: [&str; 44] = [
    "schema = 1\n",
    "extends = ",
    "\"builtin:release\"",
    "[optimization]\n",
    "minimum = ",
    "\"O2\"",
    "[flags]\n",
    "require = ",
    "forbid = ",
    "[\"-O*\"]",
    "[[target]]\n",
    "match = { path = \"**\" }\n",
    "[[waiver]]\n",
    "rule = ",
    "unit = ",
    "expires = ",
    "2027-03-31",
    "[nginx]\n",
    "version = ",
    "[\"~1.30.1\", \">= 1.31.2\"]",
    "[nginx.modules]\n",
    "exact = true\n",
    "[rules]\n",
    "\"error\"",
    "\"off\"",
    "{ add = [], remove = [] }",
    "\"/(a+)+$/\"",
    "\"/[/\"",
    "\"[a-\"",
    "\"**/**/**/{a,b}{c,d}*\"",
    "\"\"\"",
    "'''",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "=",
    ".",
    ",",
    "#",
    "null",
    "true",
    "\\u0000",
];

const CONF_WORDS: [&str; 42] = [
    "http {\n",
    "server {\n",
    "location / {\n",
    "location ~ \\.php$ {\n",
    "}\n",
    "{",
    "}",
    ";",
    "upstream u {\n",
    "server 127.0.0.1:1;\n",
    "keepalive 32;\n",
    "proxy_pass http://u;\n",
    "proxy_set_header Connection \"\";\n",
    "proxy_http_version 1.1;\n",
    "gzip on;\n",
    "gzip_static on;\n",
    "gunzip on;\n",
    "include *.conf;\n",
    "include nginx.conf;\n",
    "include /etc/passwd;\n",
    "include ",
    "load_module ",
    "map $a $b {\n",
    "types {\n",
    "default ",
    "if ($a) {\n",
    "$http_upgrade",
    "${",
    "set $x ",
    "'",
    "\"",
    "\\",
    "#",
    "\r\n",
    "root /;\n",
    "content_by_lua_block {\n",
    "[[",
    "]]",
    "return 200 '",
    "# configuration file nginx.conf:\n",
    "zone z 64k;\n",
    "resolver 1.1.1.1;\n",
];

const REPORT_WORDS: [&str; 24] = [
    "null",
    "true",
    "[]",
    "{}",
    "\"",
    "0",
    "-1",
    "1e308",
    "18446744073709551615",
    "\"O0\"",
    "\"O2\"",
    "\"unknown\"",
    "\"partial\"",
    "\"recorded\"",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "\"\u{202e}\"",
    "\"<script>\"",
    "\"]]>\"",
    ",",
    ":",
    "[",
    "{",
    "}",
];
