//! Reading the text of many functions with few reads.

use crate::image::Image;
use crate::image::functions::Function;

/// Most bytes of one function that are looked at. Its state is settled long before.
pub(super) const FUNCTION_BYTES: u64 = 16 << 10;

/// Largest window read at once.
const WINDOW: u64 = 4 << 20;

/// Functions further apart than this are not read together.
const GAP: u64 = 64 << 10;

/// One window of text and the functions in it.
pub(super) struct Window<'a> {
    /// Address of the first byte.
    pub base: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// Indices of the functions whose heads lie in the window.
    pub members: &'a [usize],
}

/// How many bytes of a function are looked at.
pub(super) fn head(function: &Function) -> u64 {
    function.size().min(FUNCTION_BYTES)
}

/// Calls `visit` with windows that cover the chosen functions (indices in order of address).
/// Returns the bytes read and the number of functions whose text the file does not hold.
pub(super) fn windows(
    image: &Image,
    functions: &[Function],
    chosen: &[usize],
    mut visit: impl FnMut(Window<'_>),
) -> (u64, u64) {
    let (mut read, mut missing) = (0u64, 0u64);
    let mut from = 0;
    while let Some(first) = chosen.get(from).and_then(|&index| functions.get(index)) {
        let base = first.start;
        let mut size = head(first);
        let mut to = from + 1;
        while let Some(next) = chosen.get(to).and_then(|&index| functions.get(index)) {
            let Some(wider) = next.start.checked_sub(base).and_then(|d| d.checked_add(head(next))) else {
                break;
            };
            let gap = next.start.saturating_sub(base).saturating_sub(size);
            // Within one segment; a window across two would not be one piece of the file.
            if wider > WINDOW || gap > GAP || image.file_range(base, wider).is_none() {
                break;
            }
            size = size.max(wider);
            to += 1;
        }
        let members = chosen.get(from..to).unwrap_or_default();
        match image.read_address(base, size) {
            Some(bytes) => {
                read = read.saturating_add(size);
                visit(Window { base, bytes: &bytes, members });
            }
            None => missing += members.len() as u64,
        }
        from = to;
    }
    (read, missing)
}
