//! What is given to the library, and what must hold of the answer whatever was given. The fuzz targets call the same.

// All targets stand in one table, and of a whole file there is an answer.
#![allow(clippy::unnecessary_wraps)]

use flagaudit::audit::{Options, audit};
use flagaudit::compiler::recorded_form::{self, canonical};
use flagaudit::compiler::{cpu, options, producer, unit_kind};
use flagaudit::facts::{Facts, Origin, Status, TextAccount};
use flagaudit::finding::Severity;
use flagaudit::image::{Input, companion};
use flagaudit::policy::load::{load_builtin, load_str};
use flagaudit::policy::{Diagnostics, Known, LoadedPolicy, TargetKey, show, validate};
use flagaudit::report::{self, CheckReport, Checked, InspectReport, PolicyRef, Summary, Tool};
use flagaudit::rules::{self, Verdict};
use flagaudit::target::{Subject, package};
use flagaudit::{diff, nginx};
use jiff::civil::{Date, date};
use object::write::{Object, SectionId};
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One kind of input.
pub struct Target {
    /// Its name, also that of the fuzz target.
    pub name: &'static str,
    /// Reads it. Of a whole file, what was found.
    pub read: fn(&[u8]) -> Option<Facts>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "elf", read: elf },
    Target { name: "archive", read: archive },
    Target { name: "annobin", read: annobin },
    Target { name: "records", read: records },
    Target { name: "producer", read: producer },
    Target { name: "command_line", read: command_line },
    Target { name: "configure", read: configure },
    Target { name: "nginx_conf", read: nginx_conf },
    Target { name: "policy", read: policy },
    Target { name: "saved_report", read: saved_report },
];

const TODAY: Date = date(2026, 1, 1);
/// Most members of a package that are audited: each is a file like any other.
const MOST_MEMBERS: usize = 8;

/// What all runs share.
struct Setup {
    options: Options,
    folder: tempfile::TempDir,
    policies: Vec<LoadedPolicy>,
    nginx: Facts,
}

fn setup() -> &'static Setup {
    static SETUP: OnceLock<Setup> = OnceLock::new();
    SETUP.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
            .expect("a folder");
        let mut options = Options {
            // Nothing of this machine is looked at.
            companions: companion::Options {
                root: Some(folder.path().to_path_buf()),
                cache: None,
                ..companion::Options::default()
            },
            ..Options::default()
        };
        let policies = ["release", "nginx-gateway", "hardened"];
        let policies =
            policies.iter().map(|name| known(|known| load_builtin(name, known)).expect("built in"));
        let policies = policies.collect();
        let nginx = audit(&given("text", NGINX_V.as_bytes()), &options);
        options.nginx_conf = Some(folder.path().join("nginx.conf"));
        Setup { options, folder, policies, nginx }
    })
}

/// What `nginx -V` prints.
pub const NGINX_V: &str = "nginx version: nginx/1.27.4\nbuilt by gcc 12.2.0 (Debian 12.2.0-14)\n\
built with OpenSSL 3.0.15 3 Sep 2024\nTLS SNI support enabled\n\
configure arguments: --prefix=/etc/nginx --with-cc-opt='-g -O2 -fstack-protector-strong' \
--with-ld-opt=-Wl,-z,relro --with-http_ssl_module --with-http_v2_module --with-http_gzip_static_module \
--with-threads --with-http_geoip_module=dynamic --add-module=/src/headers-more-nginx-module-0.37\n";

fn known<T>(f: impl FnOnce(&Known<'_>) -> T) -> T {
    f(&Known {
        rules: &rules::ids(),
        modules: &|| nginx::catalogue::module_names().into_iter().map(str::to_owned).collect(),
        options: &|| nginx::catalogue::option_names().into_iter().map(str::to_owned).collect(),
        never_recorded: &|flag| match canonical(flag) {
            recorded_form::RecordedForm::NeverRecorded(why) => Some(why),
            _ => None,
        },
    })
}

fn given(name: &str, bytes: &[u8]) -> Subject {
    Subject { input: Some(Input::memory(bytes)), ..Subject::new(name, Origin::File) }
}

/// A number that depends on the bytes alone: what is dear is done for some inputs only, and for the same ones again.
fn pick(bytes: &[u8], of: usize) -> usize {
    bytes.iter().fold(17usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte))) % of
}

/// A whole file: audited, judged, and now and then reported.
#[expect(clippy::unnecessary_wraps, reason = "it stands in a table with others that give none")]
pub fn elf(bytes: &[u8]) -> Option<Facts> {
    let setup = setup();
    let facts = audit(&given("mutant", bytes), &Options { nginx_conf: None, ..setup.options.clone() });
    let policy = &setup.policies[pick(bytes, setup.policies.len())];
    judged(&facts, policy, pick(bytes, 16) == 0);
    Some(facts)
}

/// What must hold of every answer; with `shown`, every format too.
fn judged(facts: &Facts, policy: &LoadedPolicy, shown: bool) {
    adds_up(&facts.optimization.text);
    let judgement = rules::judge(facts, &policy.for_target(&TargetKey::of(facts)), TODAY);
    let verdict = rules::verdict(facts.status, &judgement.findings, Severity::Error);
    assert!(facts.status == Status::Ok || verdict == Verdict::Error, "{:?} passes", facts.status);
    assert!(facts.status == Status::Ok || !facts.problems.is_empty(), "damage without a word");
    if shown {
        show_all(vec![Checked { facts: facts.clone(), verdict, findings: judgement.findings }]);
    }
}

/// The parts sum to the whole.
fn adds_up(text: &TextAccount) {
    let parts = [
        text.padding,
        text.runtime,
        text.recorded,
        text.structural,
        text.declared,
        text.inferred,
        text.unknown,
    ];
    let sum = parts.iter().try_fold(0u64, |sum, part| sum.checked_add(*part));
    assert_eq!(sum, Some(text.bytes), "{text:?}");
}

/// Every format; the JSON reads back as what it was.
fn show_all(targets: Vec<Checked>) {
    let facts = || targets.iter().map(|checked| checked.facts.clone()).collect::<Vec<_>>();
    let summary = Summary { targets: targets.len() as u64, ..Summary::default() };
    let inspected = InspectReport {
        schema: "flagaudit/inspect/1".to_owned(),
        tool: Tool::this(),
        targets: facts(),
        summary,
    };
    let text = report::text::Options { quiet: false, verbose: true, width: 80 };
    report::text::inspect(&inspected, text);
    let document = report::json::render(&inspected).expect("JSON");
    let again: InspectReport = serde_json::from_str(&document).expect("the same again");
    assert_eq!(report::json::render(&again).expect("JSON"), document);
    report::html::inspect(&inspected).expect("a page");
    report::sarif::inspect(&inspected, None).expect("SARIF");
    report::markdown::inspect(&inspected);
    report::prometheus::inspect(&inspected);
    report::junit::inspect(&inspected);
    report::github::inspect(&inspected);
    if let [first, .., last] = &inspected.targets[..] {
        diff::compare(first, last);
    }
    let checked = CheckReport {
        schema: "flagaudit/check/1".to_owned(),
        tool: Tool::this(),
        policy: PolicyRef {
            name: "release".to_owned(),
            path: "builtin:release".to_owned(),
            sha256: String::new(),
            evaluated_on: TODAY.to_string(),
        },
        verdict: targets.iter().map(|target| target.verdict).max().unwrap_or(Verdict::Pass),
        targets,
        policy_findings: Vec::new(),
        summary,
    };
    report::text::check(&checked, text);
    report::json::check_summary(&checked).expect("JSON");
    report::html::check(&checked).expect("a page");
    report::sarif::check(&checked, &[], None).expect("SARIF");
    report::markdown::check(&checked);
    report::prometheus::check(&checked);
    report::junit::check(&checked, Severity::Error);
    report::github::check(&checked);
    report::github::summary(&checked);
}

/// A package, an image or an archive: opened, and some of what is in it audited.
pub fn archive(bytes: &[u8]) -> Option<Facts> {
    let setup = setup();
    match package::open(given("package", bytes), &setup.options.limits) {
        Err(subject) => {
            let facts = audit(&subject, &Options { nginx_conf: None, ..setup.options.clone() });
            judged(&facts, &setup.policies[0], false);
        }
        Ok(package) => {
            for subject in package.subjects.iter().take(MOST_MEMBERS) {
                if let Some(member) = &subject.member {
                    assert!(
                        !Path::new(member).components().any(|c| c.as_os_str() == ".."),
                        "{member} climbs"
                    );
                }
                elf_of(subject);
            }
        }
    }
    None
}

fn elf_of(subject: &Subject) {
    let setup = setup();
    let facts = audit(subject, &Options { nginx_conf: None, ..setup.options.clone() });
    judged(&facts, &setup.policies[0], false);
}

/// A relocatable file with code and the section given.
fn around(section: &str, bytes: &[u8], kind: u8) -> Vec<u8> {
    let (architecture, endian) = [
        (Architecture::X86_64, Endianness::Little),
        (Architecture::Aarch64, Endianness::Little),
        (Architecture::PowerPc, Endianness::Big),
        (Architecture::S390x, Endianness::Big),
    ][usize::from(kind & 3)];
    let mut object = Object::new(BinaryFormat::Elf, architecture, endian);
    let add = |object: &mut Object<'_>, name: &str, kind: SectionKind, data: &[u8]| -> SectionId {
        let id = object.add_section(Vec::new(), name.as_bytes().to_vec(), kind);
        object.append_section_data(id, data, 4);
        id
    };
    add(&mut object, ".text", SectionKind::Text, &[0x90; 64]);
    add(&mut object, section, SectionKind::Other, bytes);
    let mut file = object.write().expect("an ELF file");
    if kind & 4 != 0 {
        // As if it were linked: addresses mean something then.
        let wide = file[4] == 2;
        let at = if file[5] == 1 { 16 } else { 17 };
        file[at] = if wide { 3 } else { 2 };
    }
    file
}

/// Annobin's notes, in either form. The first byte chooses form, machine and kind of file.
pub fn annobin(bytes: &[u8]) -> Option<Facts> {
    let (&kind, rest) = bytes.split_first()?;
    let name = if kind & 8 == 0 { ".gnu.build.attributes" } else { ".annobin.notes" };
    elf(&around(name, rest, kind));
    None
}

/// Other sections in which compilers and build systems leave words, and the frame tables.
pub fn records(bytes: &[u8]) -> Option<Facts> {
    const NAMES: [&str; 16] = [
        ".GCC.command.line",
        ".comment",
        ".note.gnu.property",
        ".note.gnu.build-id",
        ".note.package",
        ".gnu_debuglink",
        ".gnu_debugaltlink",
        ".go.buildinfo",
        ".eh_frame",
        ".eh_frame_hdr",
        ".modinfo",
        ".dynamic",
        ".debug_info",
        ".debug_macro",
        ".LLVM.command.line",
        ".rodata",
    ];
    let (&kind, rest) = bytes.split_first()?;
    elf(&around(NAMES[usize::from(kind >> 4)], rest, kind));
    None
}

/// The words of compilers about themselves.
pub fn producer(bytes: &[u8]) -> Option<Facts> {
    let read = producer::parse(bytes);
    read.name();
    read.major();
    producer::parse_ident(bytes);
    producer::parse_command_line(bytes);
    let text = String::from_utf8_lossy(bytes);
    unit_kind::unit_kind(&read, &text, Some("/build/nginx"), None);
    unit_kind::library_of(&read, "src/x.c", Some(&text));
    None
}

/// Command lines taken apart, and single flags.
pub fn command_line(bytes: &[u8]) -> Option<Facts> {
    let text = String::from_utf8_lossy(bytes);
    options::declared_level(&text);
    let words = options::split_shell(&text);
    options::group(&words);
    let escaped = options::split_escaped(&text);
    cpu::cpu_need(&escaped);
    recorded_form::is_native(&escaped);
    for word in words.iter().take(64) {
        options::level_of(word);
        canonical(word);
        let once = recorded_form::normalise(word);
        assert_eq!(recorded_form::normalise(&once), once, "{word:?}");
        recorded_form::recorded_by(word, producer::Family::Clang, Some(16));
    }
    let raw = options::split_raw(&text);
    options::level(&raw, options::WithoutLevel::Unknown("nobody says"));
    None
}

/// The arguments of nginx's configure, and the text of `nginx -V` around them.
pub fn configure(bytes: &[u8]) -> Option<Facts> {
    let setup = setup();
    nginx::configure::parse(&String::from_utf8_lossy(bytes));
    let facts = audit(&given("text", bytes), &Options { nginx_conf: None, ..setup.options.clone() });
    judged(&facts, &setup.policies[1], pick(bytes, 16) == 0);
    None
}

/// A configuration of nginx, held against a build by all rules about configurations.
pub fn nginx_conf(bytes: &[u8]) -> Option<Facts> {
    let setup = setup();
    let path: PathBuf = setup.folder.path().join("nginx.conf");
    std::fs::write(path, bytes).expect("a written file");
    let facts = audit(&given("text", NGINX_V.as_bytes()), &setup.options);
    judged(&facts, &setup.policies[1], pick(bytes, 16) == 0);
    None
}

/// A policy: loaded, validated, shown, and used.
pub fn policy(bytes: &[u8]) -> Option<Facts> {
    let setup = setup();
    let Ok(text) = std::str::from_utf8(bytes) else { return None };
    known(|known| {
        match load_str("policy.toml", text, Some(setup.folder.path()), known) {
            Err(errors) => said(&errors),
            Ok(policy) => {
                said(&validate(&policy, known, TODAY));
                show::show(&policy);
                judged(&setup.nginx, &policy, pick(bytes, 16) == 0);
            }
        }
        None
    })
}

fn said(diagnostics: &Diagnostics) {
    diagnostics.render(false);
    diagnostics.counts();
}

/// A saved document of `inspect` or `check`: judged, compared and shown.
pub fn saved_report(bytes: &[u8]) -> Option<Facts> {
    let setup = setup();
    if let Ok(report) = serde_json::from_slice::<CheckReport>(bytes) {
        show_all(report.targets);
    } else if let Ok(report) = serde_json::from_slice::<InspectReport>(bytes) {
        let checked = |facts: Facts| {
            let policy = &setup.policies[pick(bytes, 3)];
            let judgement = rules::judge(&facts, &policy.for_target(&TargetKey::of(&facts)), TODAY);
            let verdict = rules::verdict(facts.status, &judgement.findings, Severity::Error);
            Checked { facts, verdict, findings: judgement.findings }
        };
        show_all(report.targets.into_iter().chain([setup.nginx.clone()]).map(checked).collect());
    }
    None
}
