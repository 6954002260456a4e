//! The nginx family: what these programs say about their own build, and what their data shows.

pub mod catalogue;
pub mod configure;
pub mod version;
