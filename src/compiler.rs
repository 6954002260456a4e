//! What a compiler's own words mean.

pub mod level;
pub mod options;
pub mod producer;
pub mod unit_kind;

pub use level::{Level, Satisfies};
pub use options::{LevelWord, Opt, Recorded};
pub use producer::{Family, Producer, Role};
pub use unit_kind::{Library, library_of, unit_kind};
