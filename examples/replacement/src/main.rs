//! The program `slablab` with one more policy of page replacement, `vm@6.1,clock`.

mod clock;

use std::process::ExitCode;

fn main() -> ExitCode {
    slablab::Program::default().replacement::<clock::Choices>().main()
}
