//! Archives whose members become machine code at link time: what their compilers recorded is read, and what names no level
//! is unknown, never passed over.

#![allow(clippy::unwrap_used)]

mod common;

use common::{json, testdata};
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use serde_json::Value;

/// An object file without debug information, with one section of text.
fn object(section: &str, text: &[u8], code: &[u8]) -> Vec<u8> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let id = object.add_section(Vec::new(), section.into(), SectionKind::OtherString);
    object.append_section_data(id, text, 1);
    if !code.is_empty() {
        let id = object.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
        object.append_section_data(id, code, 16);
    }
    object.write().unwrap()
}

/// What `check` says of an archive of these members and of one that is known to be `-O3`.
fn archive_of(members: &[(&str, Vec<u8>)]) -> (i32, Value) {
    let sound = ("sound.o", std::fs::read(testdata("elf/tx2.o")).unwrap());
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in std::iter::once(&sound).chain(members) {
        let header =
            format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", format!("{name}/"), 0, 0, 0, 644, content.len());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libx.a");
    std::fs::write(&path, bytes).unwrap();
    let (status, document) = json(["check", "--no-config", "--units", path.to_str().unwrap()]);
    (status, document["targets"][0].clone())
}

fn rules(target: &Value) -> Vec<&str> {
    let findings = target["findings"].as_array().unwrap();
    findings
        .iter()
        .filter(|found| found["severity"] == "error")
        .map(|found| found["rule"].as_str().unwrap())
        .collect()
}

#[test]
fn a_sound_archive_passes() {
    let (status, target) = archive_of(&[("readme.txt", b"no code".to_vec())]);
    assert_eq!((status, rules(&target)), (0, vec![]), "{target}");
}

#[test]
fn options_kept_beside_intermediate_code_are_those_of_the_member() {
    let options =
        |level: &str| format!("'-fno-openmp' '-fPIC' '-march=x86-64' '{level}' '-flto'\0").into_bytes();
    let slim = |level| object(".gnu.lto_.opts", &options(level), &[]);
    let (status, target) = archive_of(&[("slow.o", slim("-O0"))]);
    assert_eq!((status, rules(&target)), (1, vec!["unoptimized-code"]), "{target}");
    assert_eq!(target["units"][1]["member"], "slow.o");
    assert_eq!(archive_of(&[("fast.o", slim("-O2"))]).0, 0);
}

#[test]
fn a_recorded_command_line_is_that_of_the_member() {
    let line = b"GNU C17 12.2.0 -mtune=generic -march=x86-64 -O0 -fPIC\0";
    let (status, target) = archive_of(&[("slow.o", object(".GCC.command.line", line, &[0x90; 32]))]);
    assert_eq!((status, rules(&target)), (1, vec!["unoptimized-code"]), "{target}");
    let unit = &target["units"][1];
    assert_eq!((&unit["compiler"], &unit["text_bytes"]), (&"gcc 12.2.0".into(), &32.into()));
    assert_eq!(unit["sources"], serde_json::json!(["gcc-command-line"]));
}

#[test]
fn bitcode_names_no_level_and_is_no_pass() {
    let bitcode = b"BC\xc0\xde and what follows".to_vec();
    let (status, target) = archive_of(&[("later.o", bitcode)]);
    assert_eq!((status, rules(&target)), (1, vec!["undetermined-optimization"]), "{target}");
    assert_eq!(target["optimization"]["complete"], false);
    let message = target["findings"].to_string();
    assert!(message.contains("later.o"), "{message}");
}

#[test]
fn bitcode_alone_is_called_what_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("later.o");
    std::fs::write(&path, b"BC\xc0\xde and what follows").unwrap();
    let (status, document) = json(["inspect", path.to_str().unwrap()]);
    let problem = document["targets"][0]["problems"].to_string();
    assert!(status == 2 && problem.contains("LLVM bitcode"), "{problem}");
}
