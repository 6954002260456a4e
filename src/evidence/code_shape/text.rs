//! Reading the text of many functions with few reads.

use crate::image::Image;
use crate::image::functions::Function;

/// Most bytes of one function that are looked at. Its state is settled long before.
const FUNCTION_BYTES: u64 = 16 << 10;

/// … and where the text is large: the entry and some 300 instructions, so that 150 MB take a second.
const FUNCTION_BYTES_IN_LARGE: u64 = 1 << 10;

/// Text that is large.
const LARGE: u64 = 16 << 20;

/// Largest window read at once. The memory of one is used again for the next, and stays in the processor's cache.
const WINDOW: u64 = 256 << 10;

/// Functions further apart than this are not read together: a second call costs less.
const GAP: u64 = 8 << 10;

/// One window of text and the functions in it.
pub(super) struct Window<'a> {
    /// Address of the first byte.
    pub base: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// Indices of the functions whose heads lie in the window.
    pub members: &'a [usize],
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
    fn read_into(&self, address: u64, size: u64, buffer: &mut Vec<u8>) -> bool {
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

/// Calls `visit` with windows that cover the chosen functions (indices in order of address).
/// Returns the bytes read and the number of functions whose text the file does not hold.
pub(super) fn windows(
    image: &Image,
    functions: &[Function],
    chosen: &[usize],
    most_of_each: u64,
    mut visit: impl FnMut(Window<'_>),
) -> (u64, u64) {
    let head = |function: &Function| function.size().min(most_of_each);
    let loaded = Loaded::of(image);
    let (mut read, mut missing) = (0u64, 0u64);
    let mut buffer = Vec::new();
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
        let members = chosen.get(from..to).unwrap_or_default();
        if loaded.read_into(base, size, &mut buffer) {
            read = read.saturating_add(size);
            visit(Window { base, bytes: &buffer, members });
        } else {
            missing += members.len() as u64;
        }
        from = to;
    }
    (read, missing)
}
