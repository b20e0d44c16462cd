//! The program `slablab` with one more engine, `pile`.

mod pile;

use pile::Pile;
use std::process::ExitCode;

slablab::benched!(Pile);

fn main() -> ExitCode {
    let checks = slablab_check::own::checks::<Pile>();
    slablab::Program::default().engine::<Pile>().bench::<Pile>().checks("pile", &checks).main()
}
