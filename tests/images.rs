//! Real packages and a real root file system: packed in every way they give the same answers as the tree itself.

#![allow(clippy::unwrap_used)]

mod common;

use common::{corpus, json, run, testdata};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Answers by name inside the tree, without what tells where it was found.
fn answers(arguments: &[&str], strip: &str) -> BTreeMap<String, Value> {
    let run = run(["inspect", "-f", "ndjson"].iter().chain(arguments));
    assert!(run.status == 0, "{}", run.stderr);
    let mut all = BTreeMap::new();
    for line in run.stdout.lines() {
        let mut facts: Value = serde_json::from_str(line).unwrap();
        if facts["type"] != "target" {
            continue;
        }
        let path = facts["path"].as_str().unwrap();
        let name = match facts["member"].as_str() {
            Some(member) => member.to_owned(),
            None => format!("/{}", path.strip_prefix(strip).unwrap().trim_start_matches('/')),
        };
        for key in ["path", "path_bytes", "member", "origin"] {
            facts[key] = Value::Null;
        }
        facts["debug_info"]["path"] = Value::Null;
        assert!(all.insert(name.clone(), facts).is_none(), "{name} twice");
    }
    all
}

fn same(name: &str, tree: &BTreeMap<String, Value>, packed: &BTreeMap<String, Value>) {
    let names = |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(tree), names(packed), "{name}");
    for (member, facts) in tree {
        assert_eq!(facts, &packed[member], "{name}!{member}");
    }
}

fn tool(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs the corpus"]
fn fifty_packages_are_their_unpacked_trees() {
    let mut packages: Vec<PathBuf> = std::fs::read_dir(corpus("debs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "deb"))
        .collect();
    packages.sort();
    assert!(packages.len() >= 50, "{} packages", packages.len());
    let mut programs = 0;
    for package in packages {
        let tree = tempfile::tempdir().unwrap();
        let (package, root) = (package.to_str().unwrap(), tree.path().to_str().unwrap());
        tool("dpkg-deb", &["-x", package, root]);
        let unpacked = answers(&["--allow-empty", root], root);
        programs += unpacked.len();
        same(package, &unpacked, &answers(&["--allow-empty", package], ""));
    }
    assert!(programs > 200, "{programs} programs");
}

#[test]
#[ignore = "needs the corpus"]
fn rpm_packages_in_every_compression() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().to_str().unwrap();
    let spec = format!(
        "Name: t\nVersion: 1\nRelease: 1\nSummary: test\nLicense: none\n%description\ntest\n%install\n\
         mkdir -p %{{buildroot}}/usr/bin %{{buildroot}}/usr/share/doc/t\n\
         cp {program} %{{buildroot}}/usr/bin/program\n\
         ln %{{buildroot}}/usr/bin/program %{{buildroot}}/usr/bin/another\n\
         ln -s program %{{buildroot}}/usr/bin/link\necho text > %{{buildroot}}/usr/share/doc/t/readme\n\
         cp {stripped} %{{buildroot}}/usr/bin/stripped\n%files\n/usr/bin/*\n/usr/share/doc/t/readme\n",
        program = testdata("dwarf/gcc12-O2").display(),
        stripped = testdata("elf/gcc12-stripped").display()
    );
    std::fs::write(directory.path().join("t.spec"), spec).unwrap();
    for payload in ["w9.gzdio", "w7.xzdio", "w19.zstdio", "w9.bzdio", "w7.lzdio", "w.ufdio"] {
        let out = format!("{top}/{payload}");
        let definitions = [
            format!("_topdir {top}"),
            format!("_rpmdir {out}"),
            format!("_binary_payload {payload}"),
            "_build_id_links none".to_owned(),
            "__os_install_post %{nil}".to_owned(),
            "debug_package %{nil}".to_owned(),
        ];
        let mut arguments = vec!["-bb", "--quiet"];
        for definition in &definitions {
            arguments.extend(["--define", definition]);
        }
        let spec = format!("{top}/t.spec");
        arguments.push(&spec);
        tool("rpmbuild", &arguments);
        let package = walk(Path::new(&out)).into_iter().find(|path| path.extension().is_some()).unwrap();
        let (status, report) = json(["inspect".as_ref(), package.as_os_str()]);
        assert_eq!(status, 0, "{payload}");
        let members: Vec<&str> = report["targets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|facts| facts["member"].as_str().unwrap())
            .collect();
        assert_eq!(members, ["/usr/bin/another", "/usr/bin/stripped"], "{payload}");
        assert_eq!(report["targets"][0]["optimization"]["level"], "O2", "{payload}");
        assert_eq!(report["summary"]["skipped"], 1, "{payload}");
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

/// Writes the archives that container tools write.
struct Packer {
    layers: Vec<(Vec<u8>, String)>,
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn entry(builder: &mut tar::Builder<impl Write>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o755);
    builder.append_data(&mut header, name, bytes).unwrap();
}

impl Packer {
    fn new(layers: Vec<Vec<u8>>) -> Self {
        Self { layers: layers.into_iter().map(|layer| (layer.clone(), digest(&layer))).collect() }
    }

    fn config(&self) -> Vec<u8> {
        let ids: Vec<String> = self.layers.iter().map(|(_, id)| format!("sha256:{id}")).collect();
        json!({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": ids}})
            .to_string()
            .into_bytes()
    }

    /// As `docker save` writes it: a folder a layer, the list last.
    fn saved(&self, to: &Path) {
        let mut builder = tar::Builder::new(std::fs::File::create(to).unwrap());
        let config = self.config();
        let mut names = Vec::new();
        for (layer, id) in &self.layers {
            entry(&mut builder, &format!("{id}/VERSION"), b"1.0");
            entry(&mut builder, &format!("{id}/json"), json!({"id": id}).to_string().as_bytes());
            entry(&mut builder, &format!("{id}/layer.tar"), layer);
            names.push(format!("{id}/layer.tar"));
        }
        let name = format!("{}.json", digest(&config));
        entry(&mut builder, &name, &config);
        let manifest = json!([{"Config": name, "RepoTags": ["edge:1"], "Layers": names}]);
        entry(&mut builder, "manifest.json", manifest.to_string().as_bytes());
        entry(&mut builder, "repositories", b"{\"edge\":{\"1\":\"x\"}}");
        builder.finish().unwrap();
    }

    /// As OCI tools write it: blobs by digest, an index of indices, compressed layers.
    fn layout(&self, to: &Path) {
        let mut builder = tar::Builder::new(std::fs::File::create(to).unwrap());
        let mut blob = |bytes: &[u8], kind: &str| {
            let id = digest(bytes);
            entry(&mut builder, &format!("blobs/sha256/{id}"), bytes);
            json!({"mediaType": format!("application/vnd.oci.image.{kind}"), "digest": format!("sha256:{id}"), "size": bytes.len()})
        };
        let layers: Vec<Value> =
            self.layers.iter().map(|(layer, _)| blob(&gzip(layer), "layer.v1.tar+gzip")).collect();
        let config = blob(&self.config(), "config.v1+json");
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers}).to_string();
        let manifest = blob(manifest.as_bytes(), "manifest.v1+json");
        let index = json!({"schemaVersion": 2, "manifests": [manifest]}).to_string();
        let index = blob(index.as_bytes(), "index.v1+json");
        entry(&mut builder, "oci-layout", b"{\"imageLayoutVersion\":\"1.0.0\"}");
        entry(
            &mut builder,
            "index.json",
            json!({"schemaVersion": 2, "manifests": [index]}).to_string().as_bytes(),
        );
        builder.finish().unwrap();
    }
}

#[test]
#[ignore = "needs the corpus"]
fn a_root_file_system_is_the_same_in_every_archive() {
    let root = corpus("rootfs");
    let root_text = root.to_str().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let plain = place("rootfs.tar");
    tool("tar", &["-C", root_text, "-cf", plain.to_str().unwrap(), "."]);
    let tree = answers(&[root_text], root_text);
    assert!(tree.len() > 300, "{} programs", tree.len());
    same("tar", &tree, &answers(&[&text(&plain)], ""));
    tool("gzip", &["-1k", plain.to_str().unwrap()]);
    same("tar.gz", &tree, &answers(&[&text(&place("rootfs.tar.gz"))], ""));

    // A second layer, and the tree that it makes of the first one.
    let changed = place("changed");
    tool("cp", &["-a", root_text, changed.to_str().unwrap()]);
    std::fs::remove_file(changed.join("usr/bin/tac")).unwrap();
    std::fs::remove_dir_all(changed.join("usr/lib/apt")).unwrap();
    std::fs::create_dir_all(changed.join("usr/lib/apt/methods")).unwrap();
    let program = std::fs::read(testdata("dwarf/gcc12-O2")).unwrap();
    for name in ["usr/lib/apt/methods/own", "usr/bin/ls", "usr/bin/through-a-link", "opt/app/program"] {
        let file = changed.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, &program).unwrap();
    }
    symlink("/opt/app", changed.join("srv/app")).unwrap();
    let mut second = tar::Builder::new(Vec::new());
    entry(&mut second, "bin/.wh.tac", b"");
    entry(&mut second, "usr/lib/apt/.wh..wh..opq", b"");
    entry(&mut second, "usr/lib/apt/methods/own", &program);
    entry(&mut second, "usr/bin/ls", &program);
    entry(&mut second, "bin/through-a-link", &program);
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    second.append_link(&mut link, "srv/app", "/opt/app").unwrap();
    let mut third = tar::Builder::new(Vec::new());
    entry(&mut third, "srv/app/program", &program);
    let layers =
        vec![std::fs::read(&plain).unwrap(), second.into_inner().unwrap(), third.into_inner().unwrap()];
    let packer = Packer::new(layers);
    let expected = answers(&[changed.to_str().unwrap()], changed.to_str().unwrap());
    assert!(!expected.contains_key("/usr/bin/tac") && expected.contains_key("/opt/app/program"));
    packer.saved(&place("saved.tar"));
    same("docker save", &expected, &answers(&[&text(&place("saved.tar"))], ""));
    packer.layout(&place("layout.tar"));
    same("OCI", &expected, &answers(&[&text(&place("layout.tar"))], ""));
    let inside = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(inside, 5, "nothing else is written");
}
