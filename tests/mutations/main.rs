//! Damaged input: no panic, no hang, no hunger, and no damage that passes for health.
//!
//! Sound inputs of every kind (`seeds`) are damaged by a generator with a fixed seed (`damage`) and read (`targets`). A
//! mutant is told by its target and number, which is enough to make it again.
//!
//! | variable | meaning |
//! |---|---|
//! | `FLAGAUDIT_MUTATIONS` | mutants in all (default: a few seconds' worth) |
//! | `FLAGAUDIT_MUTATION_SECONDS` | stop after that time, whatever the number |
//! | `FLAGAUDIT_MUTATION_SEED` | the generator's seed (default 1) |
//! | `FLAGAUDIT_MUTATION_TARGETS` | names of targets, separated by commas (default: all) |
//! | `FLAGAUDIT_MUTATION_FILES` | paths of more ELF files, separated by colons |
//! | `FLAGAUDIT_MUTATION_KEEP` | a folder in which mutants that failed are kept |
//! | `FLAGAUDIT_MUTATION_ONE` | make and read this one mutant of the target again, by number |

mod damage;
mod layout;
mod seeds;
mod targets;

use damage::Random;
use flagaudit::compiler::Level;
use flagaudit::facts::{Facts, Status};
use layout::{Layout, Part};
use peak_alloc::PeakAlloc;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Mutants where nobody asks for more.
const MUTANTS: u64 = 6000;
const LONGEST: Duration = Duration::from_secs(2);
/// A mutant that takes so long is never coming back; busy machines do not hold one up that long.
const HANG: Duration = Duration::from_secs(60);
const MOST_MEMORY: usize = 256 << 20;
/// Of a thousand mutants, how many are of each kind; whole files are the fair share.
const SHARES: [(&str, u64); 10] = [
    ("elf", 400),
    ("archive", 60),
    ("annobin", 60),
    ("records", 80),
    ("producer", 90),
    ("command_line", 90),
    ("configure", 60),
    ("nginx_conf", 60),
    ("policy", 80),
    ("saved_report", 20),
];

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// One sound input and what is known of it.
struct Sound {
    name: String,
    bytes: Vec<u8>,
    layout: Layout,
    facts: Option<Facts>,
    words: BTreeMap<Vec<u8>, usize>,
}

/// What is fed to one target.
struct Feed {
    target: &'static targets::Target,
    sound: Vec<Sound>,
    words: &'static [&'static str],
}

/// One mutant.
struct Mutant {
    of: usize,
    what: String,
    parts: Vec<Part>,
    bytes: Vec<u8>,
}

impl Feed {
    fn of(target: &'static targets::Target) -> Self {
        let mut seeds = seeds::of(target.name);
        if target.name == "elf" {
            let more = std::env::var("FLAGAUDIT_MUTATION_FILES").unwrap_or_default();
            for path in more.split(':').filter(|path| !path.is_empty()) {
                seeds.push((path.to_owned(), std::fs::read(path).expect("a readable file")));
            }
        }
        let sound = seeds.into_iter().map(|(name, bytes)| Sound {
            name,
            layout: Layout::of(&bytes),
            facts: (target.read)(&bytes),
            words: level_words(&bytes),
            bytes,
        });
        Self { target, sound: sound.collect(), words: seeds::words(target.name) }
    }

    /// Mutant number `n`, the same every time.
    fn mutant(&self, seed: u64, n: u64) -> Mutant {
        let mut random = Random(seed.rotate_left(40) ^ n);
        // Every file has its turn; what is done to it is chance.
        let of = n as usize % self.sound.len();
        let sound = &self.sound[of];
        let mut bytes = sound.bytes.clone();
        let mut parts = vec![Part::Contents];
        let what = match self.target.name {
            "elf" | "annobin" | "records" => {
                let (what, touched) = damage::binary(&sound.layout, &mut bytes, &mut random);
                parts = touched;
                what
            }
            "archive" => {
                let binary = random.below(2) == 0;
                let what = if binary {
                    damage::binary(&sound.layout, &mut bytes, &mut random).0
                } else {
                    // Headers of archives are texts.
                    let other = random.below(self.sound.len());
                    damage::text(&mut bytes, &self.sound[other].bytes, self.words, &mut random)
                };
                damage::mend_tar(&mut bytes);
                if random.below(4) == 0 {
                    bytes = seeds::gzip(&bytes);
                }
                what
            }
            _ => {
                let other = random.below(self.sound.len());
                damage::text(&mut bytes, &self.sound[other].bytes, self.words, &mut random)
            }
        };
        Mutant { of, what, parts, bytes }
    }
}

/// The texts in which compilers speak of themselves, each with its number: where damage changes these, the truth is another,
/// and no reader can tell.
fn level_words(bytes: &[u8]) -> BTreeMap<Vec<u8>, usize> {
    const MARKS: [&[u8]; 4] = [b"-O", b"GNU ", b"clang", b"rustc"];
    let mut words = BTreeMap::new();
    for text in bytes.split(|byte| !byte.is_ascii_graphic() && *byte != b' ') {
        if MARKS.iter().any(|mark| memchr::memmem::find(text, mark).is_some()) {
            *words.entry(text.to_vec()).or_default() += 1;
        }
    }
    words
}

/// Damage may hide a level, and a producer of which a letter is lost may ask for less. Nothing may make code look better
/// than it is and leave the answer complete.
fn looks_better(was: &Facts, is: &Facts) -> bool {
    let better = match (was.optimization.level, is.optimization.level) {
        (Level::Unknown, _) | (_, Level::Unknown) => false,
        (was, Level::Optimized) => was == Level::O0,
        (was, is) => was < is && was != Level::Optimized,
    };
    better && is.optimization.complete && is.status == Status::Ok && is.conflicts.is_empty()
}

/// What is being read, for the one who watches.
static RUNNING: [AtomicU64; 3] = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];

/// Ends the process, naming the mutant, if one never comes back.
fn watch(begun: Instant) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let [target, n, at] = [0, 1, 2].map(|i| RUNNING[i].load(Ordering::SeqCst));
            let now = begun.elapsed().as_millis() as u64;
            if at > 0 && now.saturating_sub(at) > HANG.as_millis() as u64 {
                let name = targets::TARGETS[target as usize].name;
                let _ = writeln!(std::io::stderr(), "HANG: {name} mutant {n}");
                std::process::abort();
            }
        }
    });
}

#[derive(Default)]
struct Tally {
    mutants: u64,
    slowest: Duration,
    most: usize,
    spent: Duration,
    /// Mutants that say another thing without contradicting themselves.
    other_words: u64,
    failures: String,
    failed: u64,
}

fn read_one(feed: &Feed, n: u64, seed: u64, tally: &mut Tally) {
    let mutant = feed.mutant(seed, n);
    let sound = &feed.sound[mutant.of];
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| (feed.target.read)(&mutant.bytes)));
    let mut took = start.elapsed();
    let held = ALLOCATOR.peak_usage().saturating_sub(before);
    let mut fail = |why: String| {
        tally.failed += 1;
        if tally.failed < 200 {
            let _ = writeln!(
                tally.failures,
                "{} mutant {n} of {} ({}): {why}",
                feed.target.name, sound.name, mutant.what
            );
        }
        if let Some(keep) = std::env::var_os("FLAGAUDIT_MUTATION_KEEP") {
            let _ =
                std::fs::write(PathBuf::from(keep).join(format!("{}.{n}", feed.target.name)), &mutant.bytes);
        }
    };
    match &outcome {
        Err(panic) => {
            let why = panic.downcast_ref::<String>().cloned();
            fail(format!(
                "panic: {}",
                why.or(panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
            ));
        }
        Ok(Some(facts)) => {
            if let Some(was) = &sound.facts
                && !mutant.parts.contains(&Part::Code)
                && looks_better(was, facts)
            {
                if level_words(&mutant.bytes) == sound.words {
                    let (was, is) = (was.optimization.level, facts.optimization.level);
                    fail(format!("the level {was:?} became {is:?}: {}", facts.optimization.reason));
                } else {
                    tally.other_words += 1;
                }
            }
        }
        Ok(None) => {}
    }
    drop(outcome);
    if held > MOST_MEMORY {
        fail(format!("held {} MiB", held >> 20));
    }
    // A busy machine is no hang.
    for _ in 0..3 {
        if took > LONGEST {
            let start = Instant::now();
            let _ = catch_unwind(AssertUnwindSafe(|| (feed.target.read)(&mutant.bytes)));
            took = took.min(start.elapsed());
        }
    }
    if took > LONGEST {
        fail(format!("took {took:?}"));
    }
    tally.mutants += 1;
    tally.spent += took;
    tally.slowest = tally.slowest.max(took);
    tally.most = tally.most.max(held);
}

/// The feeds that the settings ask for, each with its share.
fn feeds() -> Vec<(Feed, u64)> {
    let wanted = std::env::var("FLAGAUDIT_MUTATION_TARGETS").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(',').filter(|name| !name.is_empty()).collect();
    let chosen = targets::TARGETS.iter().filter(|target| wanted.is_empty() || wanted.contains(&target.name));
    chosen
        .map(|target| {
            let share =
                SHARES.iter().find(|(name, _)| *name == target.name).expect("every target has a share").1;
            (Feed::of(target), share)
        })
        .collect()
}

#[test]
fn damage_costs_facts_and_nothing_else() {
    // Panics are findings and are told once, at the end.
    std::panic::set_hook(Box::new(|_| {}));
    let seed = setting("FLAGAUDIT_MUTATION_SEED").unwrap_or(1);
    let count = setting("FLAGAUDIT_MUTATIONS").unwrap_or(MUTANTS);
    let seconds = setting("FLAGAUDIT_MUTATION_SECONDS").map(Duration::from_secs);
    let feeds = feeds();
    let all: u64 = feeds.iter().map(|(_, share)| share).sum();
    let begun = Instant::now();
    watch(begun);
    let mut tallies: Vec<Tally> = feeds.iter().map(|_| Tally::default()).collect();
    if let Some(n) = setting("FLAGAUDIT_MUTATION_ONE") {
        read_one(&feeds[0].0, n, seed, &mut tallies[0]);
    } else {
        // In rounds, so that a run that is cut short has read of everything.
        let mut done = 0;
        let mut told = Instant::now();
        while done < count && seconds.is_none_or(|most| begun.elapsed() < most) {
            for ((feed, share), tally) in feeds.iter().zip(&mut tallies) {
                let index = targets::TARGETS.iter().position(|t| t.name == feed.target.name).unwrap_or(0);
                RUNNING[0].store(index as u64, Ordering::SeqCst);
                for _ in 0..*share {
                    RUNNING[1].store(tally.mutants, Ordering::SeqCst);
                    RUNNING[2].store(begun.elapsed().as_millis() as u64 + 1, Ordering::SeqCst);
                    read_one(feed, tally.mutants, seed, tally);
                    done += 1;
                }
            }
            if told.elapsed() > Duration::from_secs(30) {
                told = Instant::now();
                let failed: u64 = tallies.iter().map(|tally| tally.failed).sum();
                eprintln!("{done} mutants, {failed} findings, {:?}", begun.elapsed());
            }
        }
        assert!(all > 0);
    }
    RUNNING[2].store(0, Ordering::SeqCst);
    println!("target         sound  mutants      mean   slowest  memory  other words  findings");
    for ((feed, _), tally) in feeds.iter().zip(&tallies) {
        println!(
            "{:<14} {:>5} {:>8} {:>9.0?} {:>9.0?} {:>5} K {:>12} {:>9}",
            feed.target.name,
            feed.sound.len(),
            tally.mutants,
            tally.spent / (tally.mutants.max(1) as u32),
            tally.slowest,
            tally.most >> 10,
            tally.other_words,
            tally.failed
        );
        assert!(feed.sound.len() >= 4, "{}: too few sound inputs", feed.target.name);
    }
    let done: u64 = tallies.iter().map(|tally| tally.mutants).sum();
    println!("{done} mutants in {:?}, seed {seed}", begun.elapsed());
    let failures: String = tallies.iter().map(|tally| tally.failures.as_str()).collect();
    let _ = std::panic::take_hook();
    assert!(failures.is_empty(), "seed {seed}:\n{failures}");
}

/// Nothing of any fixture is out of the generator's reach: fields of all three tables of headers, and the contents of every
/// section, as another reader finds them.
#[test]
fn every_part_of_every_fixture_can_be_damaged() {
    use object::{Object as _, ObjectSection as _};
    let mut whole = 0;
    for (name, bytes) in seeds::of("elf") {
        let layout = Layout::of(&bytes);
        assert!(!layout.contents.is_empty(), "{name}");
        let Ok(file) = object::File::parse(&bytes[..]) else { continue };
        let (mut sections, mut with_bytes) = (1, 0);
        for section in file.sections() {
            sections += 1;
            let Some((offset, size)) = section.file_range().filter(|(_, size)| *size > 0) else { continue };
            with_bytes += 1;
            let place = offset as usize..(offset + size) as usize;
            assert!(
                layout.contents.iter().any(|(_, held, _)| *held == place),
                "{name}: {:?}",
                section.name()
            );
        }
        let segments = layout.fields.iter().filter(|(field, _)| field.starts_with("segment ")).count();
        let of_sections = layout.fields.iter().filter(|(field, _)| field.starts_with("section ")).count();
        assert_eq!(layout.fields.len() - segments - of_sections, 19, "{name}");
        if with_bytes > 0 {
            whole += 1;
            assert_eq!(of_sections, 10 * sections, "{name}");
            assert_eq!(segments > 0, file.segments().next().is_some(), "{name}");
        }
    }
    assert!(whole > 150, "{whole}");
}

/// Every target has sound inputs to begin with; with `FLAGAUDIT_FUZZ_SEEDS` they are kept in that folder.
#[test]
fn seeds_are_there_for_every_target() {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = std::env::var_os("FLAGAUDIT_FUZZ_SEEDS")
        .map_or_else(|| temporary.path().to_path_buf(), PathBuf::from);
    for target in targets::TARGETS {
        let place = folder.join(target.name);
        std::fs::create_dir_all(&place).expect("a folder");
        let seeds = seeds::of(target.name);
        assert!(!seeds.is_empty(), "{}", target.name);
        for (index, (name, bytes)) in seeds.into_iter().enumerate() {
            assert!(!bytes.is_empty(), "{}: {name}", target.name);
            std::fs::write(place.join(format!("seed-{index:04}")), bytes).expect("a written file");
        }
    }
}
