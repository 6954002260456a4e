//! `flagaudit`: the command line over the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    flagaudit::cli::main()
}
