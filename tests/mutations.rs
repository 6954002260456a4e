//! Damaged files: no panic, no hang, no hunger, and no damage that passes for health.
//!
//! Every binary of `testdata/` is damaged in places chosen by a generator with a fixed seed: fields of headers set to
//! extremes, bytes and words inside sections, whole runs, and truncation. What was found is told with the number of the
//! mutation, which is enough to repeat it.
//!
//! `FLAGAUDIT_MUTATIONS` sets the number of mutations a file, `FLAGAUDIT_MUTATION_FILES` (paths separated by colons)
//! adds files, `FLAGAUDIT_MUTATION_SEED` sets the seed, and damaged files that failed are kept in the directory that
//! `FLAGAUDIT_MUTATION_KEEP` names.

use flagaudit::audit::{Options, audit};
use flagaudit::compiler::Level;
use flagaudit::facts::{Facts, Origin, Status};
use flagaudit::target::Subject;
use std::fmt::Write as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Mutations a file, where nobody asks for more: a few seconds in all.
const MUTATIONS: u64 = 12;
const LONGEST: Duration = Duration::from_secs(2);
const MOST_MEMORY: u64 = 256 << 20;

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Where what lies in an undamaged file.
struct Layout {
    big: bool,
    /// Fields of headers, with a name of their kind.
    fields: Vec<(String, Range<usize>)>,
    /// Contents of sections that are no machine code.
    contents: Vec<(String, Range<usize>)>,
}

fn number(bytes: &[u8], at: Range<usize>, big: bool) -> usize {
    let field = bytes.get(at).unwrap_or_default();
    let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    let value = if big { field.iter().fold(0, fold) } else { field.iter().rev().fold(0, fold) };
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl Layout {
    /// Of an ELF file whose headers are in order; of anything else, the whole file is contents.
    fn of(bytes: &[u8]) -> Self {
        let all = vec![("file".to_owned(), 0..bytes.len())];
        let plain = Self { big: false, fields: Vec::new(), contents: all.clone() };
        if bytes.get(..4) != Some(b"\x7fELF") || bytes.len() < 64 {
            return plain;
        }
        let (wide, big) = (bytes[4] == 2, bytes[5] == 2);
        let at = |offset: usize, sizes: &[usize], index: usize| {
            let start = offset + sizes[..index].iter().sum::<usize>();
            start..start + sizes[index]
        };
        let word = if wide { 8 } else { 4 };
        let header = [4, 1, 1, 1, 1, 8, 2, 2, 4, word, word, word, 4, 2, 2, 2, 2, 2, 2];
        let section = [4, 4, word, word, word, word, 4, 4, word, word];
        let segment = if wide { [4, 4, 8, 8, 8, 8, 8, 8] } else { [4, 4, 4, 4, 4, 4, 4, 4] };
        let read = |range| number(bytes, range, big);
        let mut fields: Vec<(String, Range<usize>)> =
            (0..header.len()).map(|i| (format!("header field {i}"), at(0, &header, i))).collect();
        let mut contents = Vec::new();
        let (phoff, shoff) = (read(at(0, &header, 10)), read(at(0, &header, 11)));
        let (phnum, shnum) = (read(at(0, &header, 15)), read(at(0, &header, 17)));
        let fits = |offset: usize, count: usize, size: usize| {
            count
                .checked_mul(size)
                .and_then(|all| all.checked_add(offset))
                .is_some_and(|end| end <= bytes.len())
        };
        let size = segment.iter().sum();
        if fits(phoff, phnum, size) {
            for n in 0..phnum {
                fields.extend(
                    (0..segment.len())
                        .map(|i| (format!("segment {n} field {i}"), at(phoff + n * size, &segment, i))),
                );
            }
        }
        let size = section.iter().sum();
        if fits(shoff, shnum, size) {
            for n in 0..shnum {
                let start = shoff + n * size;
                fields.extend(
                    (0..section.len()).map(|i| (format!("section {n} field {i}"), at(start, &section, i))),
                );
                let (kind, flags) = (read(at(start, &section, 1)), read(at(start, &section, 2)));
                let (offset, len) = (read(at(start, &section, 4)), read(at(start, &section, 5)));
                // SHT_NOBITS has no bytes; SHF_EXECINSTR is machine code.
                if kind != 8 && flags & 4 == 0 && len > 0 && fits(offset, len, 1) {
                    contents.push((format!("section {n}"), offset..offset + len));
                }
            }
        }
        Self { big, fields, contents: if contents.is_empty() { all } else { contents } }
    }

    /// Damages the bytes; returns what was done.
    fn damage(&self, bytes: &mut Vec<u8>, random: &mut Random) -> String {
        let old = bytes.len();
        let extremes = |random: &mut Random, size: usize| -> Vec<u8> {
            let near = random.below(64) as u64;
            let values = [
                0,
                1,
                2,
                near,
                0x7f,
                0xff,
                0x7fff,
                0xffff,
                0x7fff_ffff,
                0xffff_fff0,
                u64::from(u32::MAX),
                1 << 40,
                u64::MAX >> 1,
                u64::MAX - near,
                u64::MAX,
                old as u64,
                (old as u64).saturating_sub(near),
            ];
            let value = if random.below(6) == 0 { random.next() } else { random.one_of(&values) };
            let little = value.to_le_bytes();
            let mut field: Vec<u8> = little.iter().copied().take(size.min(8)).collect();
            if self.big {
                field.reverse();
            }
            field
        };
        let kind = random.below(16);
        if kind == 0 {
            let (name, place) = self.contents[random.below(self.contents.len())].clone();
            let len = match random.below(3) {
                0 => random.below(old),
                1 => place.start.saturating_add(random.below(16)),
                _ => place.end.saturating_sub(random.below(16)),
            };
            bytes.truncate(len);
            return format!("truncated to {len} bytes, near {name}");
        }
        if kind < 7 && !self.fields.is_empty() {
            // A second field half of the time: one size that is wrong is often caught by another that is right.
            let mut done = String::new();
            for _ in 0..=random.below(2) {
                let (name, at) = self.fields[random.below(self.fields.len())].clone();
                let value = extremes(random, at.len());
                bytes[at.start..at.start + value.len()].copy_from_slice(&value);
                let _ = write!(done, "{name} := {value:02x?}; ");
            }
            return done;
        }
        let (name, place) = self.contents[random.below(self.contents.len())].clone();
        let start = place.start + random.below(place.len());
        let room = place.end - start;
        let (what, value) = match kind {
            7..=9 => ("bit", vec![bytes[start] ^ (1 << random.below(8))]),
            10 => ("byte", vec![random.next() as u8]),
            11 | 12 => {
                let size = random.one_of(&[1, 2, 4, 8]);
                ("extreme", extremes(random, size))
            }
            13 => ("leb128", [&[0xff; 9][..], &[random.one_of(&[0x00, 0x01, 0x7f, 0xff])]].concat()),
            14 => ("run", vec![random.one_of(&[0, 0xff, 0x80, 0x01]); 1 + random.below(64)]),
            _ => {
                let from = place.start + random.below(place.len());
                ("copy", bytes[from..place.end.min(from + 32)].to_vec())
            }
        };
        let len = value.len().min(room);
        bytes[start..start + len].copy_from_slice(&value[..len]);
        format!("{name} +{:#x}: {what} {:02x?}", start - place.start, &value[..len])
    }
}

fn look(path: &Path) -> Facts {
    audit(&Subject::new(path, Origin::File), &Options::default())
}

/// Most memory held since the last call, in bytes, from the kernel's high-water mark.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().unwrap_or(0);
    // 5 sets the mark back (proc_pid_clear_refs(5)); where that is not allowed the mark is of the whole run.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    kib << 10
}

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut found = Vec::new();
    for folder in ["dwarf", "elf", "shape", "cases"] {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else { continue };
        found.extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()));
    }
    found.retain(|path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"!<arch>") || bytes.starts_with(b"!<thin>")
    });
    found.sort();
    let more = std::env::var("FLAGAUDIT_MUTATION_FILES").unwrap_or_default();
    found.extend(more.split(':').filter(|path| !path.is_empty()).map(PathBuf::from));
    found
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn damage_costs_facts_and_nothing_else() {
    let seed = setting("FLAGAUDIT_MUTATION_SEED", 1);
    let count = setting("FLAGAUDIT_MUTATIONS", MUTATIONS);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut failures = String::new();
    let (mut inputs, mut slowest, mut most) = (0u64, Duration::ZERO, 0);
    let files = files();
    assert!(files.len() > 80, "only {} files were found", files.len());
    for (index, path) in files.iter().enumerate() {
        let bytes = std::fs::read(path).expect("a readable file");
        let layout = Layout::of(&bytes);
        let place = folder.path().join(path.file_name().expect("a name"));
        std::fs::write(&place, &bytes).expect("a written file");
        let sound = look(&place);
        memory();
        for n in 0..count {
            let mut random = Random(seed ^ (index as u64) << 40 ^ n << 8);
            let mut damaged = bytes.clone();
            let what = layout.damage(&mut damaged, &mut random);
            std::fs::write(&place, &damaged).expect("a written file");
            inputs += 1;
            let start = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| look(&place)));
            let mut took = start.elapsed();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let mut fail = |why: String| {
                let _ = writeln!(failures, "{name} mutation {n} ({what}): {why}");
                if let Ok(keep) = std::env::var("FLAGAUDIT_MUTATION_KEEP") {
                    let _ = std::fs::write(Path::new(&keep).join(format!("{name}.{n}")), &damaged);
                }
            };
            let held = memory();
            let Ok(facts) = outcome else {
                fail("panic".to_owned());
                continue;
            };
            if took > LONGEST {
                // A busy machine is no hang.
                let start = Instant::now();
                look(&place);
                took = took.min(start.elapsed());
            }
            (slowest, most) = (slowest.max(took), most.max(held));
            if took > LONGEST {
                fail(format!("took {took:?}"));
            }
            if held > MOST_MEMORY {
                fail(format!("held {} MiB", held >> 20));
            }
            // Damage may hide a level, and a producer of which a letter is lost may ask for less. Nothing may make
            // code look better than it is and leave the answer complete.
            let (was, is) = (&sound.optimization, &facts.optimization);
            let better = match (was.level, is.level) {
                (Level::Unknown, _) | (_, Level::Unknown) => false,
                (was, Level::Optimized) => was == Level::O0,
                (was, is) => was < is && was != Level::Optimized,
            };
            if better && is.complete && facts.status == Status::Ok {
                fail(format!("the level {:?} became {:?}: {}", was.level, is.level, is.reason));
            }
        }
    }
    eprintln!("{inputs} inputs, slowest {slowest:?}, most memory {} MiB", most >> 20);
    assert!(failures.is_empty(), "seed {seed}:\n{failures}");
}
