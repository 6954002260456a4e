//! What a compiler's own words mean.

pub mod level;
pub mod options;
pub mod producer;

pub use level::{Level, Satisfies};
