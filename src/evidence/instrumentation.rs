//! Instrumentation: sanitizers, coverage, profiling, assertions.
//!
//! Imports prove that code calls a run-time library. Symbols that the file defines prove only that the library is in
//! it, which for a statically linked one is as good. In stripped static files the library's own strings are left.

use super::texts::{self, Texts};
use super::{Held, Source, Strength, lto_options};
use crate::facts::Instrumentation;
use crate::image::Image;
use crate::image::bytes::Format;
use crate::image::identity::{is_kernel, is_packed, is_separate_debug};
use crate::image::linkage::Linkage;
use crate::image::symbols::{Beginnings, Symbol, Symbols};
use memchr::memmem;
use object::elf;
use std::sync::LazyLock;

/// A sanitizer: its name as in `-fsanitize=`, shared run-time libraries, functions that instrumented code calls, and
/// the run-time library's own name and option variable.
struct Sanitizer {
    name: &'static str,
    libraries: &'static [&'static str],
    calls: &'static [&'static str],
    tool: &'static str,
    options: &'static str,
}

const SANITIZERS: [Sanitizer; 6] = [
    Sanitizer {
        name: "address",
        libraries: &["libasan.so", "libclang_rt.asan"],
        calls: &["__asan_init", "__asan_report_", "__asan_handle_no_return", "__asan_load", "__asan_store"],
        tool: "AddressSanitizer",
        options: "ASAN_OPTIONS",
    },
    Sanitizer {
        name: "hwaddress",
        libraries: &["libhwasan.so", "libclang_rt.hwasan"],
        calls: &["__hwasan_init", "__hwasan_load", "__hwasan_store", "__hwasan_tag_mismatch"],
        tool: "HWAddressSanitizer",
        options: "HWASAN_OPTIONS",
    },
    Sanitizer {
        name: "memory",
        libraries: &["libclang_rt.msan"],
        calls: &["__msan_init", "__msan_warning", "__msan_get_context_state"],
        tool: "MemorySanitizer",
        options: "MSAN_OPTIONS",
    },
    Sanitizer {
        name: "thread",
        libraries: &["libtsan.so", "libclang_rt.tsan"],
        calls: &["__tsan_init", "__tsan_func_entry", "__tsan_read", "__tsan_write"],
        tool: "ThreadSanitizer",
        options: "TSAN_OPTIONS",
    },
    Sanitizer {
        name: "leak",
        libraries: &["liblsan.so", "libclang_rt.lsan"],
        calls: &["__lsan_init"],
        tool: "LeakSanitizer",
        options: "LSAN_OPTIONS",
    },
    Sanitizer {
        name: "undefined",
        libraries: &["libubsan.so", "libclang_rt.ubsan"],
        calls: &["__ubsan_handle_"],
        tool: "UndefinedBehaviorSanitizer",
        options: "UBSAN_OPTIONS",
    },
];

/// Said by the part that all of LLVM's and GCC's run-time libraries share: a whole string, and the beginning of one.
const SHARED_RUNTIME: &str = "SUMMARY: %s: %s";
const SHARED_RUNTIME_ERROR: &str = "ERROR: %s failed to ";
/// The minimal run-time library of `UndefinedBehaviorSanitizer`.
const MINIMAL_UBSAN: &str = "ubsan: type-mismatch by 0x";
/// The environment variable of clang's instrumentation profile, and its default file name.
const LLVM_PROFILE: [&str; 2] = ["LLVM_PROFILE_FILE", "default.profraw"];
/// Most definitions of one name whose callers are searched for: each search reads all code.
const MOST_SEARCHES: usize = 2;
/// The environment variable and file of gprof's run-time.
const GMON: [&str; 2] = ["GMON_OUT_PREFIX", "gmon.out"];

/// One thing seen: whose evidence it is, and what it is in words.
#[derive(Clone)]
struct Sight {
    source: Source,
    words: String,
}

impl Sight {
    fn elf(words: impl Into<String>) -> Self {
        Self { source: Source::Elf, words: words.into() }
    }
}

/// What one pass over the symbol tables notes: for each kind of name, where it was first seen.
#[derive(Default)]
struct Names {
    /// Sanitizers whose functions are called.
    called: [Option<Sight>; SANITIZERS.len()],
    /// Sanitizers whose functions are in the file.
    contained: [Option<Sight>; SANITIZERS.len()],
    gcov: Option<Sight>,
    value_profile: Option<Sight>,
    llvm_profile: Option<Sight>,
    traced_coverage: Option<Sight>,
    mcount: Option<Sight>,
    gprof_start: Option<Sight>,
    function_hooks: Option<Sight>,
    fuzzer: Option<Sight>,
    fuzzer_driver: Option<Sight>,
    assertions: Option<Sight>,
    looked_for_calls: usize,
    /// Whether there was any table that could be read whole.
    readable: bool,
}

/// Reads what the file shows of its instrumentation. `debug_build` is for those who know the program.
///
/// A sanitizer that only traps (`-fsanitize-trap`) calls nothing and is not seen here (see [`super::traps`]).
pub fn read(image: &Image, linkage: &Linkage, symbols: &Symbols) -> Instrumentation {
    if is_separate_debug(image) || image.header.kind == elf::ET_CORE || is_packed(image) {
        return Instrumentation::default();
    }
    let names = names(image, linkage, symbols);
    // A kernel has no runtime of these among its constants, of which there are many megabytes: only its names tell.
    let kernel = is_kernel(image, linkage);
    let texts = if kernel {
        Texts::none()
    } else {
        TEXTS.as_ref().map(|wanted| texts::search(image, wanted)).unwrap_or_default()
    };
    // A static program has no imports; what it contains is told by its texts even when it is stripped. Code that is made at
    // link time is instrumented then.
    let told = texts.complete
        && (names.readable || !kernel && linkage.linked && linkage.complete && !linkage.has_dynamic)
        && !is_intermediate(image);
    let told_apart = told && (names.gcov.is_some() || texts.gcda.is_empty());
    Instrumentation {
        sanitizers: sanitizers(linkage, &names, &texts, told),
        coverage: held(coverage(image, &names, &texts), told),
        // `-fprofile-generate` and `--coverage` have gcov's run-time library in common, and only symbols tell them apart.
        profiling: match profiling(image, linkage, &names, &texts) {
            None if !told_apart && told => {
                Held::unknown().seen("gcov's run-time library is in it, for coverage or to make a profile")
            }
            sight => held(sight, told_apart),
        },
        debug_build: Held::unknown(),
        assertions: names.assertions.map_or_else(Held::unknown, |sight| {
            Held::new(true, Strength::Structural, sight.source).seen(sight.words)
        }),
    }
}

/// Whether all code of a file is in GCC's own language, of which link-time optimization makes machine code.
pub fn is_intermediate(image: &Image) -> bool {
    image.is_relocatable()
        && !image.sections.iter().any(|section| section.is_text() && section.size > 0)
        && lto_options::has_code(image)
}

fn held(by: Option<Sight>, told: bool) -> Held<bool> {
    match by {
        Some(sight) => Held::new(true, Strength::Structural, sight.source).seen(sight.words),
        None if told => Held::new(false, Strength::Structural, Source::Elf),
        None => Held::unknown(),
    }
}

/// Names looked for besides those of [`SANITIZERS`]: the hooks of gcov, mcount, LLVM's profiles, gprof and
/// `-finstrument-functions`, a fuzzer's entry, what assertions call.
const OTHERS: [&str; 14] = [
    "__gcov_",
    "llvm_gcov_init",
    "__llvm_profile_r",
    "__sanitizer_cov_",
    "mcount",
    "_mcount",
    "__gnu_mcount_nc",
    "__fentry__",
    "__monstartup",
    "__cyg_profile_func_e",
    "LLVMFuzzer",
    "__assert_",
    "__assert2",
    "ExceptionalCondition",
];

/// Texts of the run-time libraries.
static TEXTS: LazyLock<Option<texts::Wanted>> = LazyLock::new(|| {
    let tools = SANITIZERS.iter().flat_map(|sanitizer| [sanitizer.tool, sanitizer.options]);
    let strings = [SHARED_RUNTIME].into_iter().chain(LLVM_PROFILE).chain(GMON).chain(tools);
    texts::Wanted::new(&strings.collect::<Vec<_>>(), &[SHARED_RUNTIME_ERROR, MINIMAL_UBSAN])
});

/// How the names that tell begin: of the others nothing is looked at.
static TELLING: LazyLock<Option<Beginnings>> = LazyLock::new(|| {
    let calls = SANITIZERS.iter().flat_map(|sanitizer| sanitizer.calls).copied();
    Beginnings::new(&calls.chain(OTHERS).collect::<Vec<_>>())
});

fn names(image: &Image, linkage: &Linkage, symbols: &Symbols) -> Names {
    let mut out = Names::default();
    let Some(telling) = &*TELLING else { return out };
    let dynamic = symbols.dynamic(image, linkage);
    out.readable = !dynamic.is_empty() && dynamic.problems.is_empty();
    telling.among(dynamic).for_each(|symbol| out.note(image, linkage, &symbol, Source::Imports));
    let note = |symbol: &Symbol<'_>| out.note(image, linkage, symbol, Source::Symbols);
    let sound = symbols.search_full(image, telling, note);
    out.readable |= sound;
    out
}

impl Names {
    fn note(&mut self, image: &Image, linkage: &Linkage, symbol: &Symbol<'_>, table: Source) {
        if matches!(symbol.kind, elf::STT_FILE | elf::STT_SECTION) {
            return;
        }
        let name = symbol.base_name();
        // A definition is not an import, whichever table it stands in.
        let source = if symbol.undefined { table } else { Source::Symbols };
        let is = |known: &str| name == known.as_bytes();
        let starts = |prefix: &str| name.starts_with(prefix.as_bytes());
        // A weak reference is only an offer: many programs talk to a sanitizer if one happens to be there.
        let asked = symbol.undefined && !symbol.is_weak();
        // A static C library contains a hook only if somebody asked for it.
        let here = asked || linkage.is_static;
        let note = |seen: &mut Option<Sight>, there: bool| {
            if there && seen.is_none() {
                let verb = if symbol.undefined { "refers to" } else { "contains" };
                let words = format!("it {verb} {}", String::from_utf8_lossy(name));
                *seen = Some(Sight { source, words });
            }
        };
        if starts("__") {
            let lists = self.called.iter_mut().zip(&mut self.contained);
            for (sanitizer, (called, contained)) in SANITIZERS.iter().zip(lists) {
                let its = sanitizer.calls.iter().any(|call| starts(call));
                note(called, its && asked);
                note(contained, its && !symbol.undefined && !symbol.is_weak());
            }
        }
        note(&mut self.gcov, starts("__gcov_init") || starts("__gcov_exit") || starts("llvm_gcov_init"));
        note(
            &mut self.value_profile,
            starts("__gcov_time_profiler_counter")
                || starts("__gcov_indirect_call")
                || starts("__gcov_") && memmem::find(name, b"_profiler").is_some(),
        );
        note(
            &mut self.llvm_profile,
            is("__llvm_profile_runtime") || starts("__llvm_profile_register_function"),
        );
        note(&mut self.traced_coverage, asked && starts("__sanitizer_cov_trace_"));
        let hook = is("mcount") || is("_mcount") || is("__gnu_mcount_nc") || is("__fentry__");
        note(&mut self.mcount, here && hook);
        // `gcrt1.o` calls `__monstartup`. Programs that profile themselves on request (gdb's `maint set profile`)
        // import `monstartup` and `_mcleanup`, and nothing in them is instrumented.
        note(&mut self.gprof_start, here && is("__monstartup"));
        note(
            &mut self.function_hooks,
            here && (is("__cyg_profile_func_enter") || is("__cyg_profile_func_exit")),
        );
        note(&mut self.fuzzer, !symbol.undefined && is("LLVMFuzzerTestOneInput"));
        // Whoever writes a fuzz target defines that function, also where it is compiled like any other (CPython's
        // `_xxtestfuzz`). The driver, or code that reports where it is, is libFuzzer's.
        let driven = is("LLVMFuzzerRunDriver")
            || ["__sanitizer_cov_trace_", "__sanitizer_cov_8bit_counters_init", "__sanitizer_cov_pcs_init"]
                .into_iter()
                .any(starts);
        note(&mut self.fuzzer_driver, driven && !symbol.is_weak());
        // A static C library asserts things itself.
        let asserts = is("__assert_fail") || is("__assert_perror_fail") || is("__assert2");
        note(&mut self.assertions, asked && asserts && !linkage.is_static);
        // PostgreSQL defines the function its assertions call in every build; only a call tells.
        if is("ExceptionalCondition") && self.assertions.is_none() && self.looked_for_calls < MOST_SEARCHES {
            self.looked_for_calls += 1;
            let called = asked || !symbol.undefined && is_called(image, symbol.value);
            note(&mut self.assertions, called);
        }
    }
}

/// Whether any code calls or jumps straight to an address, on the processors where that has one simple form.
fn is_called(image: &Image, target: u64) -> bool {
    let x86 = matches!(image.header.machine, elf::EM_X86_64 | elf::EM_386);
    if !x86 && image.header.machine != elf::EM_AARCH64 {
        return false;
    }
    let mut left = image.limits.code_bytes;
    for range in image.text_ranges() {
        let mut at = range.start;
        while at < range.end && left > 0 {
            let size = (range.end - at).min(1 << 20).min(left);
            let Some(code) = image.read_address(at, size) else { break };
            let aims = |offset: usize, distance: i64, from: u64| {
                at.wrapping_add(offset as u64).wrapping_add(from).wrapping_add_signed(distance) == target
            };
            let found = if x86 {
                memchr::memchr2_iter(0xe8, 0xe9, &code).any(|offset| {
                    let distance = LITTLE.u32(&code, offset.saturating_add(1));
                    distance.is_some_and(|distance| aims(offset, i64::from(distance.cast_signed()), 5))
                })
            } else {
                code.chunks_exact(4).enumerate().any(|(index, bytes)| {
                    let word = LITTLE.u32(bytes, 0).unwrap_or(0);
                    // B and BL: 26 bits of signed distance in words.
                    let distance = i64::from((word << 6).cast_signed() >> 6) * 4;
                    word & 0x7c00_0000 == 0x1400_0000 && aims(index * 4, distance, 0)
                })
            };
            if found {
                return true;
            }
            // Two windows overlap by one instruction, which for fixed-size ones is a whole word.
            let step = if range.end - at > size && size > 8 { size - 4 } else { size };
            at = at.saturating_add(step);
            left = left.saturating_sub(size);
        }
    }
    false
}

const LITTLE: Format = Format { is_64: true, little_endian: true };

/// Whether an archive is called like one of the run-time libraries of GCC's and LLVM's instrumentation.
pub fn is_runtime_archive(file_name: &[u8]) -> bool {
    let name = file_name.strip_suffix(b".a").unwrap_or_default();
    let shared = |library: &&str| library.strip_suffix(".so").map(str::as_bytes) == Some(name);
    name.starts_with(b"libclang_rt.")
        || name == b"libgcov"
        || SANITIZERS.iter().any(|sanitizer| sanitizer.libraries.iter().any(&shared))
}

/// The file is a run-time library of a sanitizer itself.
fn is_runtime(linkage: &Linkage) -> bool {
    let soname = linkage.soname.as_deref().unwrap_or_default();
    let starts = |prefix: &str| soname.starts_with(prefix.as_bytes());
    starts("libclang_rt.") || SANITIZERS.iter().any(|s| s.libraries.iter().any(|library| starts(library)))
}

fn sanitizers(linkage: &Linkage, names: &Names, texts: &Texts, told: bool) -> Held<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    let mut sources = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let runtime = texts.has(SHARED_RUNTIME) && texts.has(SHARED_RUNTIME_ERROR);
    let seen = names.called.iter().zip(&names.contained);
    for (sanitizer, (called, contained)) in SANITIZERS.iter().zip(seen) {
        let needed = linkage
            .needed
            .iter()
            .find(|library| sanitizer.libraries.iter().any(|prefix| library.starts_with(prefix.as_bytes())))
            .map(|library| Sight::elf(format!("it needs {}", String::from_utf8_lossy(library))));
        // The larger run-time libraries contain those of `leak` and `undefined`, which proves no use of them.
        let bundled = matches!(sanitizer.name, "leak" | "undefined") && !found.is_empty();
        let text = runtime && texts.has(sanitizer.tool) && texts.has(sanitizer.options);
        let minimal = sanitizer.name == "undefined" && texts.has(MINIMAL_UBSAN);
        let sight = needed
            .or_else(|| called.clone())
            .or_else(|| contained.clone().filter(|_| !bundled))
            .or_else(|| {
                let words = format!("the texts of {}'s run-time library are in it", sanitizer.tool);
                ((text && !bundled) || minimal).then(|| Sight::elf(words))
            });
        if let Some(sight) = sight.filter(|_| !is_runtime(linkage)) {
            found.push(sanitizer.name.to_owned());
            sources.push(sight.source);
            words.push(sight.words);
        }
    }
    if let (Some(sight), Some(driver)) = (&names.fuzzer, &names.fuzzer_driver) {
        found.push("fuzzer".to_owned());
        sources.push(sight.source);
        words.push(format!("{} and {}", sight.words, driver.words.trim_start_matches("it ")));
    }
    if found.is_empty() {
        if !told {
            return Held::unknown();
        }
        sources.push(Source::Elf);
    }
    found.sort_unstable();
    sources.sort_unstable();
    sources.dedup();
    let seen = (!words.is_empty()).then(|| words.join("; "));
    Held { value: Some(found), strength: Strength::Structural, sources, seen }
}

/// The first of these sections that the file has.
fn section(image: &Image, names: &[&str]) -> Option<Sight> {
    let name = names.iter().find(|name| image.section(name).is_some())?;
    Some(Sight::elf(format!("it has a section {name}")))
}

fn coverage(image: &Image, names: &Names, texts: &Texts) -> Option<Sight> {
    const SECTIONS: [&str; 5] =
        ["__llvm_covmap", "__llvm_covfun", "__sancov_guards", "__sancov_cntrs", "__sancov_bools"];
    let files = || {
        let first = texts.gcda.first()?;
        Some(Sight::elf(format!("it names its count file {}", String::from_utf8_lossy(first))))
    };
    let called = names.gcov.clone().or_else(|| names.traced_coverage.clone());
    called.or_else(|| section(image, &SECTIONS)).or_else(files)
}

fn profiling(image: &Image, linkage: &Linkage, names: &Names, texts: &Texts) -> Option<Sight> {
    const SECTIONS: [&str; 3] = ["__llvm_prf_cnts", "__llvm_prf_data", "xray_instr_map"];
    // The kernel and its modules call the tracer's hook everywhere, and patch it out.
    let kernel = is_kernel(image, linkage);
    let run_time = |list: &[&str]| {
        let all = list.iter().all(|text| texts.has(text));
        all.then(|| {
            Sight::elf(format!("texts of the profiler's run-time library are in it: {}", list.join(", ")))
        })
    };
    let seen = [
        names.mcount.clone().filter(|_| !kernel),
        names.gprof_start.clone(),
        names.function_hooks.clone(),
        names.value_profile.clone(),
        names.llvm_profile.clone(),
        section(image, &SECTIONS),
        run_time(&GMON).filter(|_| linkage.is_static),
        run_time(&LLVM_PROFILE),
    ];
    seen.into_iter().flatten().next()
}

#[cfg(test)]
mod tests;
