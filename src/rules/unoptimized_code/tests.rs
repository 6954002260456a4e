//! Tests of `unoptimized-code`.

use super::*;
use crate::facts::Bound;
use crate::finding::FindingStatus;
use crate::rules::testing::*;

const ID: &str = "unoptimized-code";

#[test]
fn all_units_at_o0_make_one_error() {
    let found = only(&nginx(137, Level::O0), &policy(), ID);
    assert_eq!(found.message, "137 of 137 units are -O0 (policy: at least O2)");
    assert_eq!((found.severity, found.status), (Severity::Error, FindingStatus::Violation));
    assert_eq!((found.units.len(), found.units_total), (50, 137));
    assert_eq!(found.policy.unwrap().line, 6);
    assert_eq!(found.strength, Strength::Recorded);
    assert!(found.remedy.unwrap().contains("--with-cc-opt"));
}

#[test]
fn mixed_levels_are_summed_up_worst_and_biggest_first() {
    let mut units: Vec<Unit> = (0..120).map(|n| unit(&format!("src/u{n}.c"), Level::O2)).collect();
    units.push(unit("src/z.c", Level::O1));
    units.push(unit("src/y.c", Level::O0));
    let mut big = unit("src/zz.c", Level::O1);
    big.text_bytes = 5000;
    units.push(big);
    let found = only(&with_units(units), &policy(), ID);
    assert_eq!(found.message, "3 of 123 units are below -O2: 1 -O0, 2 -O1 (policy: at least O2)");
    let names: Vec<&str> = found.units.iter().map(|unit| unit.name.as_str()).collect();
    assert_eq!(names, ["src/y.c", "src/zz.c", "src/z.c"]);
}

#[test]
fn good_code_passes_and_silence_is_not_asked() {
    assert_passed(&nginx(3, Level::O2), &policy(), ID);
    assert_passed(&stripped(Level::O2), &policy(), ID);
    let mut silent = policy();
    silent.optimization.minimum = None;
    assert_silent(&nginx(3, Level::O0), &silent, ID);
}

#[test]
fn recommended_is_a_warning_even_for_what_is_allowed() {
    let mut wanted = policy();
    wanted.optimization.allow = vec![at(Level::Os, 7)];
    assert_passed(&nginx(2, Level::Os), &wanted, ID);
    wanted.optimization.recommended = Some(at(Level::O2, 8));
    let found = only(&nginx(2, Level::Os), &wanted, ID);
    assert_eq!(found.severity, Severity::Warning);
    assert_eq!(found.message, "2 of 2 units are -Os (policy: recommended O2)");
    wanted.optimization.allow.clear();
    assert_eq!(only(&nginx(2, Level::Os), &wanted, ID).severity, Severity::Error);
}

#[test]
fn exempt_assembler_and_library_units_are_not_judged() {
    let mut asm = unit("src/a.S", Level::Unknown);
    asm.kind = UnitKind::Assembly;
    let mut library = unit("deflate.c", Level::O0);
    library.kind = UnitKind::Library;
    let facts = with_units(vec![unit("src/a.c", Level::O2), unit("src/slow.c", Level::O0), asm, library]);
    let mut wanted = policy();
    wanted.optimization.exempt = vec![glob("src/slow.c", 12)];
    assert_passed(&facts, &wanted, ID);
    wanted.optimization.libraries =
        Some(crate::policy::LibrariesPolicy { minimum: Some(at(Level::O1, 13)), undetermined: None });
    assert_eq!(
        only(&facts, &wanted, ID).message,
        "1 of 1 library unit is -O0 (policy: libraries at least O1)"
    );
}

#[test]
fn a_stripped_file_is_judged_by_its_code() {
    let mut facts = stripped(Level::O0);
    facts.functions.o0_shaped = 890;
    facts.functions.runs = vec![run(0x1000, 890, None)];
    let found = only(&facts, &policy(), ID);
    assert_eq!(found.message, "890 of 900 judged functions are shaped like -O0 (policy: at least O2)");
    assert_eq!(found.strength, Strength::Inferred);
    assert_eq!(found.ranges.len(), 1);

    let mut declared = stripped(Level::O0);
    declared.functions = crate::facts::Functions::default();
    declared.optimization.strength = Strength::Declared;
    assert_eq!(
        only(&declared, &policy(), ID).message,
        "the code is -O0 as the build declares it (policy: at least O2)"
    );
}

#[test]
fn a_run_that_no_unit_describes_is_found_beside_good_units() {
    let mut facts = nginx(3, Level::O2);
    facts.functions.runs = vec![run(0x9000, 12, Some("ngx_http_memcached_module"))];
    let found = only(&facts, &policy(), ID);
    assert_eq!(
        found.message,
        "12 functions in 1 address range (ngx_http_memcached_module) that no unit describes are shaped like -O0 (policy: at least O2)"
    );
    assert_eq!(found.severity, Severity::Error);
}

#[test]
fn a_run_in_a_described_unit_is_not_told_twice_and_a_lone_function_is_a_warning() {
    let mut bad = unit("src/bad.c", Level::O0);
    bad.ranges.push(0x9000..0xa000);
    let mut facts = with_units(vec![bad, unit("src/good.c", Level::O2)]);
    facts.functions.runs = vec![run(0x9000, 12, None)];
    assert_eq!(only(&facts, &policy(), ID).message, "1 of 2 units is -O0 (policy: at least O2)");

    let units = facts.units.as_mut().unwrap();
    units[0].level = Level::O2;
    facts.functions.runs[0].functions = 1;
    let found = only(&facts, &policy(), ID);
    assert_eq!(found.severity, Severity::Warning);
    assert_eq!(found.units[0].name, "src/bad.c");
    let mut strict = policy();
    strict.optimization.exempt = vec![glob("src/bad.c", 3)];
    assert_passed(&facts, &strict, ID);
}

#[test]
fn a_lower_bound_is_left_to_the_other_rule() {
    let mut facts = stripped(Level::O2);
    facts.optimization.bound = Bound::AtLeast;
    let mut wanted = policy();
    wanted.optimization.minimum = Some(at(Level::O3, 6));
    assert_passed(&facts, &wanted, ID);
    facts.optimization.bound = Bound::Exact;
    assert_eq!(of(&facts, &wanted, ID).len(), 1);
}

fn run(start: u64, functions: u64, module: Option<&str>) -> FunctionRun {
    FunctionRun {
        start,
        end: start + 0x800,
        name: None,
        unit: None,
        module: module.map(Into::into),
        level: Level::O0,
        functions,
    }
}

#[test]
fn a_library_built_along_is_named_where_nothing_was_read() {
    let mut facts = stripped(Level::O2);
    let arguments = facts.nginx.as_mut().unwrap().configure_arguments.get_or_insert_default();
    arguments.push(argument("--with-zlib", Some("../zlib")));
    arguments.push(argument("--with-zlib-opt", Some("-g")));
    facts.functions.judged = 500;
    // The code was read: it speaks for itself.
    assert_passed(&facts, &policy(), ID);
    facts.functions.judged = 0;
    let found = only(&facts, &policy(), ID);
    assert_eq!(found.message, "zlib, which is built along, is declared to be -O0 (policy: at least O2)");
    assert_eq!((found.severity, found.strength), (Severity::Error, Strength::Declared));
    assert!(found.remedy.unwrap().contains("write --with-zlib-opt='-g -O2'"));
    facts.nginx.as_mut().unwrap().configure_arguments.as_mut().unwrap().pop();
    assert_passed(&facts, &policy(), ID);
}
