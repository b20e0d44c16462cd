//! The program `slablab` with one more engine, `pile`.

mod pile;

use pile::Pile;
use std::process::ExitCode;

fn main() -> ExitCode {
    slablab::Program::default().engine::<Pile>().checks("pile", &slablab_check::own::checks::<Pile>()).main()
}
