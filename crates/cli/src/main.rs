//! The program `slablab`.

use std::process::ExitCode;

fn main() -> ExitCode {
    slablab::Program::default().main()
}
