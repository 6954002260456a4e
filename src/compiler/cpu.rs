//! Options that choose a processor, and the x86-64 level that code compiled with them needs.
//!
//! Levels are those of the x86-64 psABI ("Micro-Architecture Levels"). What each `-march` value switches on was
//! measured with the predefined macros of gcc 12 and clang 19 for every name they know.

/// What options say about the processor the code needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuNeed {
    /// The smallest x86-64 level (`x86-64`, `x86-64-v2`, …) that has everything the options allow the compiler to use, of
    /// what tells levels apart; `None` where no option names a known x86-64 processor or feature.
    pub baseline: Option<&'static str>,
    /// Options that choose a processor or one of its features, in order, without repetition. Options that only
    /// switch a feature off are left out: they ask nothing of the processor.
    pub flags: Vec<String>,
}

const LEVELS: [&str; 4] = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"];

/// `-march` values by the level they need, x86-64 only.
const PROCESSORS: [&[&str]; 4] = [
    &["x86-64", "generic", "k8", "opteron", "athlon64", "athlon-fx"],
    &[
        "x86-64-v2",
        "nocona",
        "core2",
        "penryn",
        "nehalem",
        "corei7",
        "westmere",
        "eden-x2",
        "eden-x4",
        "nano",
        "nano-1000",
        "nano-2000",
        "nano-3000",
        "nano-x2",
        "nano-x4",
        "k8-sse3",
        "opteron-sse3",
        "athlon64-sse3",
    ],
    &[
        "x86-64-v3",
        "sandybridge",
        "corei7-avx",
        "ivybridge",
        "core-avx-i",
        "haswell",
        "core-avx2",
        "broadwell",
        "skylake",
        "alderlake",
        "arrowlake",
        "arrowlake-s",
        "clearwaterforest",
        "gracemont",
        "grandridge",
        "lunarlake",
        "meteorlake",
        "pantherlake",
        "raptorlake",
        "sierraforest",
        "bonnell",
        "atom",
        "silvermont",
        "slm",
        "goldmont",
        "goldmont-plus",
        "tremont",
        "amdfam10",
        "barcelona",
        "bdver1",
        "bdver2",
        "bdver3",
        "bdver4",
        "btver1",
        "btver2",
        "znver1",
        "znver2",
        "znver3",
    ],
    &[
        "x86-64-v4",
        "skylake-avx512",
        "skx",
        "cannonlake",
        "cascadelake",
        "cooperlake",
        "icelake-client",
        "icelake-server",
        "rocketlake",
        "tigerlake",
        "sapphirerapids",
        "emeraldrapids",
        "graniterapids",
        "graniterapids-d",
        "knl",
        "knm",
        "znver4",
        "znver5",
    ],
];

/// Feature options by the level that has the feature.
const FEATURES: [&[&str]; 4] = [
    &["mmx", "sse", "sse2", "fxsr"],
    &["sse3", "ssse3", "sse4", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf", "crc32"],
    &["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "abm", "movbe", "xsave"],
    &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
];

/// Features that no level has.
const OUTSIDE: &[&str] = &[
    "3dnow",
    "3dnowa",
    "adx",
    "aes",
    "apxf",
    "clflushopt",
    "clwb",
    "clzero",
    "cmpccxadd",
    "enqcmd",
    "fma4",
    "fsgsbase",
    "gfni",
    "kl",
    "lwp",
    "movdir64b",
    "movdiri",
    "mwaitx",
    "pclmul",
    "pconfig",
    "pku",
    "prefetchi",
    "prfchw",
    "rdpid",
    "rdrnd",
    "rdseed",
    "rtm",
    "serialize",
    "sha",
    "sha512",
    "sm3",
    "sm4",
    "sse4a",
    "tbm",
    "tsxldtrk",
    "vaes",
    "vpclmulqdq",
    "waitpkg",
    "wbnoinvd",
    "widekl",
    "xop",
    "xsavec",
    "xsaveopt",
    "xsaves",
];

/// Options whose value names a processor, an architecture or a floating-point unit.
const NAMING: &[&str] = &["-march=", "-mcpu=", "-mtune=", "-mfpu=", "-mfloat-abi=", "-mfpmath="];

/// The level an x86-64 `-march` value needs.
pub fn baseline_of(processor: &str) -> Option<&'static str> {
    level_of(processor).map(|level| LEVELS[level])
}

fn level_of(processor: &str) -> Option<usize> {
    PROCESSORS.iter().position(|names| names.contains(&processor))
}

/// Most features and options kept: more than any processor has, so that a list made to be long costs nothing.
const MOST: usize = 400;

/// What a unit's options say about the processor its code needs. As with all options, the last of a kind wins.
pub fn cpu_need<S: AsRef<str>>(options: &[S]) -> CpuNeed {
    let mut need = CpuNeed::default();
    let mut march = None;
    let mut features: Vec<(&str, bool)> = Vec::new();
    for option in options.iter().map(AsRef::as_ref) {
        let Some(rest) = option.strip_prefix("-m") else { continue };
        let mut wanted = true;
        if let Some(processor) = option.strip_prefix("-march=") {
            march = Some(processor);
        } else if !NAMING.iter().any(|prefix| option.starts_with(prefix)) {
            let (name, on) = rest.strip_prefix("no-").map_or((rest, true), |name| (name, false));
            if !is_feature(name) || features.len() >= MOST {
                continue;
            }
            features.retain(|(other, _)| *other != name);
            features.push((name, on));
            wanted = on;
        }
        if wanted && need.flags.len() < MOST && !need.flags.iter().any(|flag| flag == option) {
            need.flags.push(option.to_owned());
        }
    }
    let named = march.map(level_of);
    // AVX-512 all hangs on its foundation.
    let without_512 = features.contains(&("avx512f", false));
    let by_name = named.flatten().map(|level| if without_512 { level.min(2) } else { level });
    let by_feature = features.iter().filter(|(_, on)| *on).filter_map(|(name, _)| feature_level(name)).max();
    // Features alone say what is needed at least; with a processor no table knows, nothing is certain.
    if named != Some(None) {
        need.baseline = by_name.max(by_feature).map(|level| LEVELS[level]);
    }
    need
}

fn feature_level(name: &str) -> Option<usize> {
    FEATURES
        .iter()
        .position(|names| names.contains(&name))
        .or_else(|| name.starts_with("avx512").then_some(3))
}

fn is_feature(name: &str) -> bool {
    let families = ["avx", "amx-", "uintr", "hreset"];
    feature_level(name).is_some()
        || OUTSIDE.contains(&name)
        || families.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(options: &str) -> CpuNeed {
        cpu_need(&options.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn levels_by_processor() {
        for (processor, level) in [
            ("x86-64", Some("x86-64")),
            ("nehalem", Some("x86-64-v2")),
            ("core2", Some("x86-64-v2")),
            ("sandybridge", Some("x86-64-v3")),
            ("haswell", Some("x86-64-v3")),
            ("znver3", Some("x86-64-v3")),
            ("znver4", Some("x86-64-v4")),
            ("skylake-avx512", Some("x86-64-v4")),
            ("i686", None),
            ("armv8-a", None),
            ("", None),
        ] {
            assert_eq!(baseline_of(processor), level, "{processor}");
        }
    }

    #[test]
    fn features_raise_the_level() {
        assert_eq!(need("-mtune=generic -march=x86-64 -O2").baseline, Some("x86-64"));
        assert_eq!(need("-march=x86-64 -mavx2 -O2").baseline, Some("x86-64-v3"));
        assert_eq!(need("-march=x86-64 -msse4.2").baseline, Some("x86-64-v2"));
        assert_eq!(need("-mavx512vbmi -march=x86-64").baseline, Some("x86-64-v4"));
        assert_eq!(need("-march=x86-64 -mavx2 -mno-avx2").baseline, Some("x86-64"));
        assert_eq!(need("-march=znver3 -mavx512f").baseline, Some("x86-64-v4"));
        assert_eq!(need("-march=skylake-avx512 -mno-avx512f").baseline, Some("x86-64-v3"));
    }

    #[test]
    fn the_last_processor_wins_and_an_unknown_one_is_unknown() {
        assert_eq!(need("-march=haswell -march=x86-64").baseline, Some("x86-64"));
        assert_eq!(need("-march=futurelake -mavx2").baseline, None);
        assert_eq!(need("-O2 -g").baseline, None);
    }

    #[test]
    fn only_options_that_ask_something_of_a_processor_are_listed() {
        let need = need(
            "-m64 -mtune=generic -march=x86-64-v2 -mno-red-zone -mno-avx -maes -maes -mcmodel=large -O2",
        );
        assert_eq!(need.flags, ["-mtune=generic", "-march=x86-64-v2", "-maes"]);
    }
}
