//! Reading the text of many functions with few reads.

use crate::image::Image;
use crate::image::functions::Function;
use std::ops::Range;

/// Most bytes of one function that are looked at. Its state is settled long before.
pub(super) const FUNCTION_BYTES: u64 = 16 << 10;

/// … and where the text is large: the entry and some 300 instructions, so that 150 MB take a second.
const FUNCTION_BYTES_IN_LARGE: u64 = 1 << 10;

/// Text that is large.
const LARGE: u64 = 16 << 20;

/// Largest window read at once. The memory of one is used again for the next, and stays in the processor's cache.
const WINDOW: u64 = 256 << 10;

/// Functions further apart than this are not read together: a second call costs less.
const GAP: u64 = 8 << 10;

/// A window of text: where it is, and which of the chosen functions have their heads in it.
pub(super) struct Stretch {
    /// Address of the first byte.
    pub base: u64,
    /// Size in bytes.
    pub size: u64,
    /// Positions in the list of chosen functions.
    pub members: Range<usize>,
}

/// The loaded segments in order of address, so that finding one is quick however many a damaged file has.
pub(super) struct Loaded<'a> {
    image: &'a Image,
    /// First address, address past the end, file offset.
    segments: Vec<(u64, u64, u64)>,
}

impl<'a> Loaded<'a> {
    pub(super) fn of(image: &'a Image) -> Self {
        let segments = image
            .loaded_segments()
            .filter_map(|s| Some((s.address, s.address.checked_add(s.file_size)?, s.offset)))
            .collect();
        Self { image, segments }
    }

    /// Where in the file an address is, and how many bytes of the segment are left from there.
    fn locate(&self, address: u64) -> Option<(u64, u64)> {
        let after = self.segments.partition_point(|(start, ..)| *start <= address);
        let &(start, end, offset) = self.segments.get(after.checked_sub(1)?)?;
        let left = end.checked_sub(address).filter(|&left| left > 0)?;
        Some((offset.checked_add(address - start)?, left))
    }

    /// Puts the bytes at an address into a buffer that is used again; false if no segment holds them all.
    pub(super) fn read_into(&self, address: u64, size: u64, buffer: &mut Vec<u8>) -> bool {
        let Some((offset, _)) = self.locate(address).filter(|&(_, left)| size <= left) else { return false };
        buffer.resize(size as usize, 0);
        self.image.input.read_at(offset, buffer).is_ok_and(|got| got as u64 == size)
    }

    /// The bytes at an address, if one segment holds them all.
    pub(super) fn read(&self, address: u64, size: u64) -> Option<Vec<u8>> {
        let (offset, _) = self.locate(address).filter(|&(_, left)| size <= left)?;
        self.image.read(offset, size, "code").ok()
    }
}

/// How many bytes of each function are looked at, where all of them have that many.
pub(super) fn most_of_each(all: u64) -> u64 {
    if all > LARGE { FUNCTION_BYTES_IN_LARGE } else { FUNCTION_BYTES }
}

/// Windows that cover the chosen functions (indices in order of address), in order of address.
pub(super) fn stretches(
    loaded: &Loaded<'_>,
    functions: &[Function],
    chosen: &[usize],
    most_of_each: u64,
) -> Vec<Stretch> {
    let head = |function: &Function| function.size().min(most_of_each);
    let mut stretches = Vec::new();
    let mut from = 0;
    while let Some(first) = chosen.get(from).and_then(|&index| functions.get(index)) {
        let base = first.start;
        let mut size = head(first);
        // A window across two segments would not be one piece of the file.
        let most = loaded.locate(base).map_or(0, |(_, left)| left).min(WINDOW);
        let mut to = from + 1;
        while let Some(next) = chosen.get(to).and_then(|&index| functions.get(index)) {
            let Some(wider) = next.start.checked_sub(base).and_then(|d| d.checked_add(head(next))) else {
                break;
            };
            let gap = next.start.saturating_sub(base).saturating_sub(size);
            if wider > most || gap > GAP {
                break;
            }
            size = size.max(wider);
            to += 1;
        }
        stretches.push(Stretch { base, size, members: from..to });
        from = to;
    }
    stretches
}
