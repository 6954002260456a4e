//! Knowing from a binary alone how it was really built, and stopping the wrong build before it ships.
//!
//! The way a binary takes through the house: a target's bytes become an [`image::Image`]; witnesses
//! ([`evidence`], [`nginx`]) read it and return claims; reconciliation turns claims into
//! [`facts::Facts`]; rules judge facts by a policy and make findings; a report is rendered.
//! A lower layer never imports a higher one.

pub mod audit;
pub mod cli;
pub mod compiler;
pub mod diff;
pub mod evidence;
pub mod facts;
pub mod finding;
pub mod image;
pub mod limits;
pub mod nginx;
pub mod parallel;
pub mod policy;
pub mod reconcile;
pub mod report;
pub mod rules;
pub mod target;
pub mod wording;
