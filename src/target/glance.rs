//! A quick look at an ELF file, before it is audited: what it takes to see which targets belong together.

use crate::image::{Image, Input, identity, notes};
use crate::limits::Limits;

/// What a look at the headers and the build-id tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Glance {
    /// Size in bytes.
    pub size: u64,
    /// Build-id.
    pub build_id: Option<Vec<u8>>,
    /// The debug information of another file, and no program.
    pub separate_debug: bool,
}

/// Looks at an ELF file; `None` if it is none, or its headers are damaged.
pub fn glance(input: &Input, limits: &Limits) -> Option<Glance> {
    let image = Image::open(input.clone(), limits).ok()?;
    Some(Glance {
        size: input.len(),
        build_id: notes::build_id(&image),
        separate_debug: identity::is_separate_debug(&image),
    })
}
