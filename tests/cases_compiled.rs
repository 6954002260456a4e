//! What has to be compiled to be seen: each input is built here by gcc or rustc, and what is true of it is known.

#![allow(clippy::unwrap_used)]

mod common;

use common::json;
use serde_json::{Value, json as value};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// A folder to compile in.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Runs a command line there; its words are set apart by spaces.
    fn run(&self, line: &str) {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap());
        let output = command.args(words).current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn check(&self, name: &str) -> (i32, Value) {
        let path = self.path(name);
        let (status, report) = json(["check".as_ref(), "--no-config".as_ref(), path.as_os_str()]);
        (status, report["targets"][0].clone())
    }

    fn level(&self, name: &str) -> (Value, bool) {
        let optimization = self.check(name).1["optimization"].clone();
        (optimization["level"].clone(), optimization["complete"].as_bool().unwrap())
    }
}

/// `count` functions that call each other, named after a prefix.
fn functions(prefix: &str, count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        let rest = n.checked_sub(1).map_or("0".to_owned(), |before| format!("{prefix}{before}(a - 1, b)"));
        let _ = writeln!(
            text,
            "int {prefix}{n}(int a, int b) {{ int x = a * {}; for (int k = 0; k < a; k++) {{ x += k * b; b ^= x >> 2; }} \
             return a <= 0 ? b : x + {rest}; }}",
            n + 3
        );
    }
    text
}

#[test]
fn one_unit_of_a_joined_object_does_not_speak_for_the_others() {
    let bench = Bench::new();
    bench.write("f.c", &functions("f", 60));
    bench.write("g.c", &functions("g", 60));
    bench.write("z.s", ".text\n.globl z\nz: ret\n.section .note.GNU-stack,\"\",@progbits\n");
    bench.run("gcc -g -O2 -c f.c -o f.o");
    bench.run("gcc -O0 -c g.c -o g.o");
    bench.run("as -g z.s -o z.o");
    bench.run("ld -r f.o g.o -o joined.o");
    bench.run("ld -r z.o g.o -o beside-assembly.o");
    for name in ["joined.o", "beside-assembly.o"] {
        assert!(!bench.level(name).1, "{name}: nothing tells of g.c");
        let (status, target) = bench.check(name);
        assert_eq!((status, &target["status"]), (1, &value!("ok")), "{name}: {target}");
    }
    assert_eq!(bench.level("f.o"), (value!("O2"), true));
    // What a unit holds besides its functions is its own.
    bench.write("own.c", "asm(\".text\\n.skip 4000, 0x90\\n\"); int f(int a) { return a * 3; }");
    bench.run("gcc -g -O2 -ffunction-sections -c own.c -o own.o");
    assert_eq!(bench.level("own.o"), (value!("O2"), true));
}

#[test]
fn what_an_object_recorded_is_so_alone_and_in_an_archive() {
    let bench = Bench::new();
    bench.write("f.c", &functions("f", 60));
    for (name, options) in [("recorded", "-frecord-gcc-switches"), ("fat", "-flto -ffat-lto-objects")] {
        bench.run(&format!("gcc -O2 {options} -c f.c -o {name}.o"));
        bench.run(&format!("ar rc {name}.a {name}.o"));
        for file in [format!("{name}.o"), format!("{name}.a")] {
            assert_eq!(bench.level(&file), (value!("O2"), true), "{file}");
            assert_eq!(bench.check(&file).0, 0, "{file}");
        }
    }
}

#[test]
fn code_without_unwind_tables_is_read_where_it_is_the_lesser_part_too() {
    let bench = Bench::new();
    bench.write("f.c", &functions("f", 200));
    bench.write("g.c", &format!("{}int main(int c, char **v) {{ return g29(c, 3); }}", functions("g", 30)));
    bench.run("gcc -O2 -c f.c");
    bench.run("gcc -O0 -fno-asynchronous-unwind-tables -c g.c");
    bench.run("gcc -s g.o f.o -o program");
    let (status, target) = bench.check("program");
    assert_eq!(status, 1);
    assert_eq!(target["findings"][0]["rule"], "unoptimized-code");
    assert!(target["functions"]["o0_shaped"].as_u64().unwrap() >= 30);
}

#[test]
fn optimized_code_with_few_debug_information_is_not_taken_for_unoptimized() {
    let bench = Bench::new();
    bench.write("f.c", &format!("{}int main(int c, char **v) {{ return f29(c, 3); }}", functions("f", 30)));
    for options in ["-O2 -g1", "-O2 -g -fno-var-tracking"] {
        bench.run(&format!("gcc {options} -gno-record-gcc-switches f.c -o program"));
        assert_eq!(
            (bench.check("program").0, bench.level("program").0),
            (0, value!("optimized")),
            "{options}"
        );
    }
    for options in ["-O0 -g1", "-O0 -g"] {
        bench.run(&format!("gcc {options} -gno-record-gcc-switches f.c -o program"));
        assert_eq!((bench.check("program").0, bench.level("program").0), (1, value!("O0")), "{options}");
    }
}

#[test]
fn a_library_that_came_ready_made_does_not_vouch_for_the_program() {
    let bench = Bench::new();
    bench.write(
        "m.rs",
        "use std::io::Read;\n\
         fn parse(s: &str) -> Vec<i64> { s.split(',').filter_map(|x| x.trim().parse().ok()).collect() }\n\
         fn main() { let mut s = String::new(); std::io::stdin().read_to_string(&mut s).unwrap();\n\
         let v = parse(&s); println!(\"{}\", v.iter().sum::<i64>()); }\n",
    );
    for (name, level, expected) in [("development", 0, 1), ("release", 3, 0)] {
        bench.run(&format!("rustc --edition 2021 -C opt-level={level} m.rs -o {name}"));
        bench.run(&format!("strip {name} -o {name}-stripped"));
        for file in [name.to_owned(), format!("{name}-stripped")] {
            let (status, target) = bench.check(&file);
            assert_eq!(status, expected, "{file}: {}", target["optimization"]["reason"]);
        }
    }
}

#[test]
fn what_the_loader_and_the_headers_were_told_is_known() {
    let bench = Bench::new();
    bench.write("e.c", "int main(int c, char **v) { return c - 1; }");
    bench.run("gcc -g -O2 -Wl,-z,x86-64-v3 e.c -o isa");
    let cpu = bench.check("isa").1["cpu"]["baseline"].clone();
    assert_eq!((&cpu["value"], &cpu["sources"]), (&value!("x86-64-v3"), &value!(["gnu-property"])));

    // glibc's headers leave printf as it is at level 1.
    bench.write("p.c", "#include <stdio.h>\nint main(int c, char **v) { return printf(\"%d\", c); }");
    bench.run("gcc -g3 -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=1 p.c -o fortified");
    bench.run("gcc -g3 -O2 -U_FORTIFY_SOURCE p.c -o plain");
    for (name, expected) in [("fortified", "yes"), ("plain", "no")] {
        assert_eq!(bench.check(name).1["hardening"]["fortify"]["value"], expected, "{name}");
    }

    bench.run("gcc -O2 -fprofile-generate e.c -o profiled");
    bench.run("strip profiled -o stripped");
    let profiling = |name: &str| bench.check(name).1["instrumentation"]["profiling"]["value"].clone();
    assert_eq!((profiling("profiled"), profiling("stripped")), (value!(true), Value::Null));
}

#[test]
fn configure_arguments_that_cannot_be_told_are_not_guessed() {
    let bench = Bench::new();
    let text = |arguments: &str| {
        format!(
            "const char version[] = \"nginx version: nginx/1.22.1\";\n\
             const char first[] = \"configure arguments: {arguments}\\n\";\n\
             const char second[] = \"configure arguments: --with-threads\\n\";\n\
             int main(int c, char **v) {{ return version[c] + first[c] + second[c]; }}"
        )
    };
    bench.write("two.c", &text("--with-debug"));
    bench.write("long.c", &text(&"--with-threads ".repeat(5000)));
    for (name, problem) in [("two", "several-configure-texts"), ("long", "string-too-long")] {
        bench.run(&format!("gcc -O2 {name}.c -o {name}"));
        let target = bench.check(name).1;
        let told = target["problems"].as_array().unwrap().iter().any(|found| found["code"] == problem);
        assert!(told, "{name}: {}", target["problems"]);
        assert_eq!((&target["status"], &target["product"]["name"]), (&value!("partial"), &value!("nginx")));
        assert!(target["nginx"]["configure_arguments"].is_null(), "{name}: {}", target["nginx"]);
    }
}
