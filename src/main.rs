//! `flagaudit`: the command line.
fn main() {}
