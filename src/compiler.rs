//! What a compiler's own words mean.

pub mod cpu;
pub mod level;
pub mod options;
pub mod producer;
pub mod recorded_form;
pub mod unit_kind;

pub use cpu::{CpuNeed, cpu_need};
pub use level::{Level, Satisfies};
pub use options::{LevelWord, Opt, Recorded};
pub use producer::{Family, Producer, Role};
pub use recorded_form::{RecordedForm, canonical, recorded_by};
pub use unit_kind::{Library, is_start_unit, library_of, unit_kind};
