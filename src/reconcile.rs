//! Claims become facts.

pub mod account;
