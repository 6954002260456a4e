//! nginx's header and body filters, found without symbols in the functions that chain them.
//!
//! A filter module's `postconfiguration` (`src/http/ngx_http_config.h`) saves the head of the chain and puts its own
//! function there. The variable that several modules store a function into is such a head, and what they store are the
//! filters. Addresses are followed through registers in straight-line order, which is all these
//! functions need.

use super::memory::Memory;
use crate::image::pointers::Pointers;
use object::elf;
use std::collections::{BTreeMap, BTreeSet};

mod aarch64;
mod x86_64;

/// Bytes of a `postconfiguration` looked at: those that only chain a filter take 20 to 120, and the longest of nginx 1,100 at `-O0`.
const LOOKED_AT: u64 = 2048;
/// Modules that must store into one variable. Every build with HTTP has at least six body filters; other variables that
/// hold a function are set by one or two.
const HEAD_USERS: usize = 3;
/// Most functions looked at.
const MAX_MODULES: usize = 2048;

/// A function's address that is stored into a variable: (variable, function).
type Store = (u64, u64);

/// Reads the stores of a function from its code, its address and what relocated words hold.
type Reader = fn(&[u8], u64, &dyn Fn(u64) -> Option<u64>) -> Vec<Store>;

/// How far branches reach that were seen in a function: it does not end before.
struct Reach {
    code: std::ops::Range<u64>,
    furthest: u64,
}

impl Reach {
    fn new(code: &[u8], address: u64) -> Self {
        Self { code: address..address.saturating_add(code.len() as u64), furthest: address }
    }

    /// A branch to this address was seen.
    fn to(&mut self, target: u64) {
        if self.code.contains(&target) {
            self.furthest = self.furthest.max(target);
        }
    }

    /// Whether a function that does not go on to `next` by itself ends before it.
    fn ends_at(&self, next: u64) -> bool {
        self.furthest < next
    }
}

/// The addresses of the filters, ascending; empty where they cannot be told, also on machines other than x86-64 and
/// `AArch64`.
pub(super) fn installed(memory: &Memory<'_>, pointers: &Pointers, postconfigurations: &[u64]) -> Vec<u64> {
    let stores_of: Reader = match memory.image.header.machine {
        elf::EM_X86_64 => x86_64::stores,
        elf::EM_AARCH64 => aarch64::stores,
        _ => return Vec::new(),
    };
    // What the global offset table and other relocated words hold.
    let word_at = |slot: u64| pointers.value_at(memory.image, slot);
    let is_code = |address: u64| {
        memory.image.loaded_segments().any(|s| {
            s.flags & elf::PF_X.0 != 0 && address.checked_sub(s.address).is_some_and(|at| at < s.file_size)
        })
    };
    let mut heads: BTreeMap<u64, BTreeMap<u64, BTreeSet<u64>>> = BTreeMap::new();
    for &function in postconfigurations.iter().take(MAX_MODULES) {
        // The last bytes of a segment may be fewer.
        let code = (0..4).find_map(|halvings| memory.read(function, LOOKED_AT >> halvings));
        for (variable, target) in stores_of(&code.unwrap_or_default(), function, &word_at) {
            if is_code(target) && !is_code(variable) {
                heads.entry(variable).or_default().entry(function).or_default().insert(target);
            }
        }
    }
    let mut filters: Vec<u64> = heads
        .into_values()
        .filter(|users| users.len() >= HEAD_USERS)
        .flat_map(|users| users.into_values().flatten())
        .collect();
    filters.sort_unstable();
    filters.dedup();
    filters
}
