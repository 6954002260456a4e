//! One target from bytes to facts: the witnesses are asked in order, and reconciliation decides.

use crate::compiler::Level;
use crate::evidence::Held;
use crate::evidence::{comment, gcc_command_line, hardening, imports, instrumentation, lto_options, traps};
use crate::facts::{DebugInfo, Facts, Functions, Optimization, Problem, Status, Unit, UnitKind};
use crate::image::functions::{self, FunctionTable};
use crate::image::identity;
use crate::image::linkage::{self, Linkage};
use crate::image::pointers::Pointers;
use crate::image::ranges::{self, Sieve};
use crate::image::symbols::{Entry, Symbols};
use crate::image::{Image, ImageError, Input, archive, companion, notes};
use crate::limits::Limits;
use crate::nginx;
use crate::parallel;
use crate::reconcile::account::{self, Accounting};
use crate::reconcile::{self, Witnessed, units};
use crate::target::Subject;
use crate::target::libraries::Resolver;
use object::elf;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

mod code;
mod configuration;
mod debug;
mod doubt;
pub mod group;
mod loaded;
mod macros;
mod members;
mod modules;
mod relocatable;
mod words;

use words::{build_texts, raise_baseline, recorded_elsewhere, take_nginx, take_package};

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Bounds.
    pub limits: Limits,
    /// Where separate debug information may lie.
    pub companions: companion::Options,
    /// An nginx configuration, or a dump of `nginx -T`, to be held against nginx servers.
    pub nginx_conf: Option<PathBuf>,
    /// Follow libraries and dynamic modules, too.
    pub libraries: Option<Arc<Resolver>>,
    /// How many threads may work on one target; 0 is 1. The facts are the same, whatever the number.
    pub workers: usize,
}

/// Audits one target. Nothing that is wrong with it is an error here: problems are facts.
pub fn audit(subject: &Subject, options: &Options) -> Facts {
    let mut facts = blank(subject);
    let input = match subject.open(&options.limits) {
        Ok(input) => input,
        Err(error) => return failed(facts, "unreadable", error.to_string()),
    };
    // A process may see another root file system than this program does.
    let own_root;
    let options = match &subject.root {
        Some(root) if options.companions.root.is_none() => {
            let companions = companion::Options { root: Some(root.clone()), ..options.companions.clone() };
            own_root = Options { companions, ..options.clone() };
            &own_root
        }
        _ => options,
    };
    match Image::open(input.clone(), &options.limits) {
        Ok(mut image) => {
            image.workers = options.workers;
            of_image(&image, subject, options, &mut facts);
        }
        Err(ImageError::NotElf) if archive::is_archive(&input) => {
            members::read(&input, subject.place(), options, &mut facts);
        }
        Err(ImageError::NotElf) => of_other(&input, options, &mut facts),
        Err(ImageError::Io(error)) => return failed(facts, "unreadable", error.to_string()),
        Err(error) => return failed(facts, "damaged-elf-header", error.to_string()),
    }
    if facts.status == Status::Ok && facts.problems.iter().any(|problem| problem.loses_facts) {
        facts.status = Status::Partial;
    }
    facts
}

/// What is known of a target that was not audited any more.
pub fn interrupted(subject: &Subject) -> Facts {
    failed(blank(subject), INTERRUPTED, "interrupted before it was audited".to_owned())
}

/// Whether a target was not audited any more.
pub fn is_interrupted(facts: &Facts) -> bool {
    facts.problems.iter().any(|problem| problem.code == INTERRUPTED)
}

const INTERRUPTED: &str = "interrupted";

fn blank(subject: &Subject) -> Facts {
    subject.named(Facts {
        path: String::new(),
        path_bytes: None,
        origin: subject.origin,
        member: None,
        process: None,
        library: None,
        status: Status::Ok,
        problems: Vec::new(),
        elf: None,
        product: None,
        debug_info: DebugInfo::default(),
        optimization: Optimization::default(),
        conflicts: Vec::new(),
        compilers: Vec::new(),
        lto: Held::unknown(),
        pgo: Held::unknown(),
        unit_count: 0,
        units: Some(Vec::new()),
        functions: Functions::default(),
        flags: Some(Vec::new()),
        hardening: crate::facts::Hardening::default(),
        instrumentation: crate::facts::Instrumentation::default(),
        cpu: crate::facts::Cpu::default(),
        nginx: None,
        build_strings: Vec::new(),
    })
}

fn failed(mut facts: Facts, code: &str, message: String) -> Facts {
    facts.status = Status::Failed;
    facts.problems.push(Problem::damage(code, message));
    facts
}

/// Bytes that are no ELF file: the text of `nginx -V`, or nothing this program audits.
fn of_other(input: &Input, options: &Options, facts: &mut Facts) {
    let fail = |facts: &mut Facts, why: &str| {
        facts.status = Status::Failed;
        facts.problems.push(Problem::damage("not-elf", why));
    };
    if input.is_empty() {
        return fail(facts, "empty file");
    }
    if input.len() <= options.limits.text_bytes
        && let Ok(text) = input.read_vec(0, input.len(), options.limits.text_bytes, "text")
        && let Some(found) = nginx::read_text(&text)
    {
        let why =
            found.declared.as_ref().filter(|said| said.level == Level::Unknown).map(|said| said.why.clone());
        let declared = take_nginx(found, facts);
        configuration::attach(None, None, options, facts);
        let mut seen = Witnessed { declared, ..Witnessed::default() };
        let mut absent = "only the text of nginx -V is at hand, not the binary".to_owned();
        if let Some(why) = why {
            let _ = write!(absent, "; {why}");
        }
        seen.debug_absent = Some(absent);
        conclude(seen, facts, false);
        return;
    }
    if input.len() > options.limits.text_bytes {
        let most = options.limits.text_bytes;
        return fail(facts, &format!("not an ELF file; texts of more than {most} bytes are not looked at"));
    }
    if members::is_bitcode(input) {
        return fail(
            facts,
            "no ELF file but LLVM bitcode, which becomes code at link time: give what it is linked into",
        );
    }
    fail(facts, "not an ELF file, and not the text of nginx -V");
}

fn of_image(image: &Image, subject: &Subject, options: &Options, facts: &mut Facts) {
    let path = subject.place();
    facts.problems.extend(image.problems.iter().cloned());
    let linkage = linkage::read(image);
    facts.problems.extend(linkage.problems.iter().cloned());
    let notes = notes::read(image);
    facts.problems.extend(notes.problems.iter().cloned());
    facts.elf = Some(identity::elf_facts(image, &linkage, notes.build_id.as_deref()));
    let symbols = Symbols::new();
    let pointers = Pointers::read(image, &linkage);
    let comment = comment::read(image);
    facts.problems.extend(comment.problems.iter().cloned());
    facts.hardening = hardening::read(image, &linkage, &symbols, &notes, &comment);
    // Names, texts, units and frames are in different parts of a file.
    let (instrumentation, (mut understood, mut table)) = parallel::both(
        if worth_a_thread(image) { image.workers } else { 1 },
        || {
            // Code of x86 is decoded later, by tables that are made when they are first needed.
            if image.workers > 1 && matches!(image.header.machine, elf::EM_X86_64 | elf::EM_386) {
                crate::evidence::code_shape::make_tables();
            }
            instrumentation::read(image, &linkage, &symbols)
        },
        || (debug::read(image, path, &notes, options, facts), functions::read(image)),
    );
    facts.instrumentation = instrumentation;
    understood.own_library(linkage.soname.as_deref());
    for unit in understood.units.iter_mut().filter(|unit| unit.kind == UnitKind::Source) {
        if crate::compiler::is_start_unit(&unit.name, &unit.ranges, image.header.entry) {
            unit.kind = UnitKind::Toolchain;
        }
    }
    let shared = image.is_relocatable().then(|| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        relocatable::share(image, &name, &mut understood, &mut facts.problems)
    });
    let mut seen =
        Witnessed { units: understood.units, relocatable: image.is_relocatable(), ..Witnessed::default() };
    seen.debug_absent = Some(debug_absent(image, facts));
    seen.code_elsewhere = identity::is_separate_debug(image);
    if let Some(bytes) = shared {
        seen.account.bytes = bytes;
    } else {
        let mut accounting = accounting(image, &seen.units);
        let undescribed = &accounting.gaps(&table).undescribed;
        // Symbols cost time and memory where there are many: they are read only to name what no unit describes.
        if !undescribed.is_empty() {
            name_functions(image, &symbols, &linkage, undescribed, &mut table);
            accounting.gaps(&table);
        }
        seen.account = accounting.finish();
        for (unit, bytes) in seen.units.iter_mut().zip(&seen.account.per_unit) {
            unit.text_bytes = *bytes;
        }
    }
    let (mut handlers, mut filters) = (Vec::new(), Vec::new());
    let kernel = identity::is_kernel(image, &linkage);
    // What a program's tables say and what its code shows are read one beside the other.
    let (program, mut code) = parallel::both(
        if !kernel && has_much_code(image) { image.workers } else { 1 },
        || (!kernel).then(|| nginx::read(image, &linkage, &symbols, &pointers)).flatten(),
        || code::read(image, &table, &seen),
    );
    if let Some(mut found) = program {
        handlers = std::mem::take(&mut found.handlers);
        filters = std::mem::take(&mut found.filters);
        let server = found.server.take().map(Arc::new);
        seen.declared = take_nginx(found, facts);
        configuration::attach(server.as_deref(), subject.command_line.as_ref(), options, facts);
        if let Some(nginx) = &mut facts.nginx {
            nginx.server = server;
        }
    } else if !kernel {
        seen.declared = build_texts(image, &linkage, facts);
    }
    take_package(image, &notes, facts);
    macros::tell_rest(&understood.defined, facts);
    seen.claims = std::mem::take(&mut facts.optimization.claims);
    let framed = table.functions.iter().filter(|f| f.from == functions::Origin::EhFrame);
    let framed: Vec<Range<u64>> = framed.map(|f| f.start..f.end).collect();
    let unframed = ranges::subtract(&crate::image::merge(seen.account.undescribed.clone()), &framed);
    if let Some(lines) = gcc_command_line::read(image) {
        seen.lines_cover = lines.cover(gcc_command_line::source_files(symbols.full(image)));
        seen.claims.extend(lines.claims());
        facts.problems.extend(lines.problems);
    }
    seen.claims.extend(lto_options::claims(&lto_options::read(image)));
    seen.recorded_ranges = recorded_elsewhere(image, &unframed, &mut seen.claims, facts);
    seen.claims.extend(imports::claims(&linkage, symbols.dynamic(image, &linkage), &comment));
    if facts.compilers.iter().all(|seen| seen.units == 0) {
        let named = units::compilers_named(comment.compilers());
        if !named.is_empty() {
            facts.compilers = named;
        }
    }
    traps::tell(code.shapes(), &mut facts.instrumentation);
    code::name_modules(&mut code.seen.runs, &handlers);
    seen.code = code.seen.clone();
    facts.problems.extend(table.problems.iter().filter(|_| !seen.relocatable).cloned());
    if !seen.code_elsewhere {
        facts.problems.extend(code.shapes().flat_map(|shape| &shape.problems).cloned());
    }
    conclude(seen, facts, kernel);
    raise_baseline(&notes, &mut facts.cpu);
    if facts.optimization.level == Level::Unknown
        && image.is_relocatable()
        && relocatable::holds_no_code(image)
    {
        facts.optimization.no_code = true;
        "the file holds no code".clone_into(&mut facts.optimization.reason);
    }
    let mut runs = std::mem::take(&mut facts.functions.runs);
    let nameless: Vec<Range<u64>> =
        runs.iter().filter(|run| run.name.is_none()).map(|run| run.start..run.end).collect();
    if !nameless.is_empty() {
        name_functions(image, &symbols, &linkage, &nameless, &mut table);
        for run in runs.iter_mut().filter(|run| run.name.is_none()) {
            run.name = table.at(run.start).and_then(|function| function.name.clone());
        }
    }
    facts.functions = code::functions(&table, &code, runs);
    facts.optimization.tail_calls = code::tail_calls(image, &table, &code, &filters);
    facts.problems.extend(symbols.problems());
    facts.problems.extend(pointers.problems());
    facts.problems.sort();
    facts.problems.dedup();
}

/// Whether there are so many symbols, or so much code and constants, that going through them takes longer than it takes to
/// start a thread.
fn worth_a_thread(image: &Image) -> bool {
    const SYMBOLS: u64 = 512 << 10;
    let symbols = || image.sections.iter().any(|s| s.kind == elf::SHT_SYMTAB && s.size >= SYMBOLS);
    has_much_code(image) || symbols()
}

fn has_much_code(image: &Image) -> bool {
    const CODE: u64 = 256 << 10;
    ranges::total(&image.text_ranges()) >= CODE
}

fn accounting<'i>(image: &'i Image, units: &[Unit]) -> Accounting<'i> {
    let described: Vec<account::Described<'_>> = units
        .iter()
        .map(|unit| account::Described {
            ranges: &unit.ranges,
            level: unit.level,
            link_time: unit.kind == UnitKind::LtoPartition,
        })
        .collect();
    Accounting::new(image, &described)
}

/// Adds functions that only symbols know, and names, inside the given ranges.
fn name_functions(
    image: &Image,
    symbols: &Symbols,
    linkage: &Linkage,
    ranges: &[Range<u64>],
    table: &mut FunctionTable,
) {
    let inside = Sieve::new(ranges);
    let wanted = |s: &Entry| s.kind() == elf::STT_FUNC && !s.undefined() && inside.contains(s.value);
    let mut named: Vec<(u64, u64, String)> = Vec::new();
    symbols.select(image, linkage, wanted, |s| {
        named.push((s.value, s.size, String::from_utf8_lossy(s.base_name()).into_owned()));
    });
    table.add_symbols(image, named.iter().map(|(start, size, name)| (*start, *size, name.as_str())));
}

/// Why no unit tells: what is there and could not be read is not absent.
fn debug_absent(image: &Image, facts: &Facts) -> String {
    if let Some(missing) = facts.debug_info.missing.first() {
        return missing.clone();
    }
    let of_units = |problem: &&Problem| problem.loses_facts && problem.code.ends_with("debug-info");
    if let Some(problem) = facts.problems.iter().find(of_units) {
        return format!("the debug information cannot be read ({})", problem.message);
    }
    if image.section(".debug_sup").is_some() {
        return "a supplementary file of dwz, which holds what debug files have in common".to_owned();
    }
    let sentence = if facts.debug_info.present {
        "the debug information has no compilation unit"
    } else {
        "no debug information"
    };
    sentence.to_owned()
}

/// Reconciles and takes the outcome over. A `kernel` and its modules are instrumented for their own tracer.
fn conclude(seen: Witnessed, facts: &mut Facts, kernel: bool) {
    let outcome = reconcile::reconcile(seen);
    facts.optimization = outcome.optimization;
    facts.conflicts.extend(outcome.conflicts);
    facts.functions.runs = outcome.runs;
    facts.lto = units::lto(&outcome.units);
    facts.pgo = reconcile::instrumented::recorded(&outcome.units, kernel, &mut facts.instrumentation);
    units::cpu(&outcome.units, &mut facts.cpu);
    facts.flags = Some(units::flag_counts(&outcome.units));
    facts.unit_count = outcome.units.iter().filter(|u| u.kind != UnitKind::LtoPartition).count() as u64;
    facts.units = Some(outcome.units);
}
