use super::*;
use crate::evidence::testing::open;
use crate::image::linkage;

fn instrumentation(name: &str) -> Instrumentation {
    let image = open(name);
    read(&image, &linkage::read(&image), &Symbols::new())
}

#[test]
fn every_name_that_is_noted_is_looked_for() {
    let others = [
        "__gcov_init",
        "__gcov_exit",
        "__gcov_indirect_call",
        "__gcov_time_profiler_counter",
        "llvm_gcov_init",
        "__llvm_profile_runtime",
        "__llvm_profile_register_function",
        "__sanitizer_cov_trace_pc",
        "mcount",
        "_mcount",
        "__gnu_mcount_nc",
        "__fentry__",
        "__monstartup",
        "__cyg_profile_func_enter",
        "__cyg_profile_func_exit",
        "LLVMFuzzerTestOneInput",
        "LLVMFuzzerRunDriver",
        "__sanitizer_cov_pcs_init",
        "__assert_fail",
        "__assert_perror_fail",
        "__assert2",
        "ExceptionalCondition",
    ];
    let telling = TELLING.as_ref().unwrap();
    for name in SANITIZERS.iter().flat_map(|sanitizer| sanitizer.calls).chain(&others) {
        assert!(telling.begin(name.as_bytes()), "{name}");
    }
    assert!(!telling.begin(b"__x64_sys_read"));
}

#[test]
fn sanitizers_are_named() {
    for (name, expected) in [
        ("h_asan", vec!["address"]),
        ("h_ubsan", vec!["undefined"]),
        ("h_gcov", vec![]),
        ("musl-static", vec![]),
    ] {
        let held = instrumentation(name).sanitizers;
        let value = held.value.unwrap_or_else(|| panic!("{name}: unknown"));
        assert_eq!(value, expected, "{name}");
        assert_eq!(held.strength, Strength::Structural, "{name}");
    }
}

#[test]
fn a_fuzz_target_is_no_sanitizer_s_until_something_drives_it() {
    let value = |name: &str| instrumentation(name).sanitizers.value;
    assert_eq!(value("fuzz-target.so"), Some(vec![]));
    assert_eq!(value("fuzz-driven.so"), Some(vec!["fuzzer".to_owned()]));
}

#[test]
fn coverage_is_seen_after_stripping() {
    for (name, expected) in [
        ("h_gcov", true),
        ("gcov-stripped", true),
        ("gcov-static", true),
        ("h_pg", false),
        ("gcc12-O0", false),
        ("musl-static", false),
    ] {
        assert_eq!(instrumentation(name).coverage.value, Some(expected), "{name}");
    }
}

#[test]
fn profiling_is_not_the_start_file_that_every_program_has() {
    // Every one of these refers to __gmon_start__.
    for (name, expected) in
        [("h_pg", true), ("h_instr", true), ("pg-ssp", true), ("h_relro", false), ("h_asan", false)]
    {
        assert_eq!(instrumentation(name).profiling.value, Some(expected), "{name}");
    }
}

#[test]
fn assertions_show_by_a_call_and_their_absence_shows_nothing() {
    assert_eq!(instrumentation("assert-import").assertions.value, Some(true));
    assert_eq!(instrumentation("withassert.so").assertions.value, Some(true));
    // The function is there, and nobody calls it.
    assert_eq!(instrumentation("noassert.so").assertions, Held::unknown());
    assert_eq!(instrumentation("gcc12-O0").assertions, Held::unknown());
    assert_eq!(instrumentation("musl-static").assertions, Held::unknown(), "the library's own");
}

#[test]
fn without_section_headers_the_same_is_seen() {
    let image = open("gcov-stripped");
    let mut bytes = image.read(0, image.input.len(), "file").unwrap();
    // e_shoff, e_shnum and e_shstrndx of a 64-bit header.
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    let image = Image::open(crate::image::Input::memory(bytes), &image.limits).unwrap();
    assert!(image.sections.is_empty());
    let seen = read(&image, &linkage::read(&image), &Symbols::new());
    assert_eq!(seen.coverage.value, Some(true));
    // A profile that is made counts in the same files.
    assert_eq!(seen.profiling.value, None);
}

#[test]
fn damage_leaves_it_unknown() {
    let seen = instrumentation("v_trunc");
    assert_eq!((seen.sanitizers.value, seen.coverage.value, seen.profiling.value), (None, None, None));
}

/// A file with one of its sections called like that of a kernel module.
fn with_modinfo(name: &str) -> Image {
    let image = open(name);
    let mut bytes = image.read(0, image.input.len(), "file").unwrap();
    let at = memmem::rfind(&bytes, b".comment\0").unwrap();
    bytes[at..at + 9].copy_from_slice(b".modinfo\0");
    let image = Image::open(crate::image::Input::memory(bytes), &image.limits).unwrap();
    assert!(image.section(".modinfo").is_some());
    image
}

#[test]
fn a_program_is_no_kernel_whatever_its_sections_are_called() {
    for (name, coverage) in
        [("gcov-stripped", true), ("gcov-static", true), ("h_pg", false), ("gcc12-O0", false)]
    {
        let image = with_modinfo(name);
        let linkage = linkage::read(&image);
        assert!(!is_kernel(&image, &linkage), "{name}");
        let seen = read(&image, &linkage, &Symbols::new());
        assert_eq!(seen.coverage.value, Some(coverage), "{name}");
        // Counts that name no symbols may be a profile's.
        let profiling = (!coverage).then_some(name == "h_pg");
        assert_eq!(seen.profiling.value, profiling, "{name}");
    }
    let module = with_modinfo("tx1.o");
    assert!(is_kernel(&module, &linkage::read(&module)));
}
