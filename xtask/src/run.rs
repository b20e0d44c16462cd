//! Runs steps and prints the time that each took: wall time, and CPU time of all its processes.

use crate::counts::Counts;
use crate::steps::{Need, Step};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Clock ticks a second in /proc/self/stat: the same on every Linux that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// The folder, in the root of the repository, of programs that steps need.
const TOOLS: &str = "target/tools";

/// The seconds of a step that ended.
struct Took {
    name: &'static str,
    ran: bool,
    wall_s: f64,
    cpu_s: f64,
}

/// Runs the steps in order up to the first that fails. Prints the table of seconds, and last the sum of the
/// test runner's counts.
pub(crate) fn run(steps: &[&'static Step]) -> ExitCode {
    let root = root();
    let mut counts = Counts::default();
    let mut took = Vec::new();
    let mut failed = None;
    for step in steps {
        println!("== {}: {}", step.name, step.about);
        let (start, cpu_before) = (Instant::now(), children_cpu_s());
        let ready = step.needs.iter().all(is_met);
        let done = !ready || step.commands.iter().all(|command| execute(command, root, &mut counts));
        took.push(Took {
            name: step.name,
            ran: ready,
            wall_s: start.elapsed().as_secs_f64(),
            cpu_s: children_cpu_s() - cpu_before,
        });
        if !done {
            failed = Some(step.name);
            break;
        }
    }
    println!("\nstep          wall s   CPU s");
    for Took { name, ran, wall_s, cpu_s } in &took {
        let remark = if *ran { "" } else { "  not run" };
        println!("{name:<12}{wall_s:>8.0}{cpu_s:>8.0}{remark}");
    }
    let (wall_s, cpu_s) = took.iter().fold((0.0, 0.0), |sum, step| (sum.0 + step.wall_s, sum.1 + step.cpu_s));
    println!("{:<12}{wall_s:>8.0}{cpu_s:>8.0}", "all");
    if let Some(name) = failed {
        println!("step {name} failed; again: cargo xtask ci --only {name}");
    }
    if counts != Counts::default() {
        println!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.ignored);
    }
    if failed.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The folder of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository")
}

/// Runs one command in the root of the repository. Returns whether it succeeded. Its standard output is
/// passed on, and its test summaries are added to `counts`.
fn execute(command: &str, root: &Path, counts: &mut Counts) -> bool {
    let words: Vec<&str> = command.split(' ').collect();
    let settings = words.iter().take_while(|word| word.contains('=') && !word.starts_with('-')).count();
    let mut child = Command::new(words[settings]);
    child.args(&words[settings + 1..]).current_dir(root).stdout(Stdio::piped()).env("PATH", path());
    child.envs(words[..settings].iter().filter_map(|word| word.split_once('=')));
    let mut running = match child.spawn() {
        Ok(running) => running,
        Err(error) => {
            println!("{command}: {error}");
            return false;
        }
    };
    let output = running.stdout.take().expect("standard output is a pipe");
    let mut out = std::io::stdout().lock();
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        counts.add(&String::from_utf8_lossy(&line));
        // If the reader of this program's output has closed the pipe, the step continues.
        let _ = out.write_all(&line).and_then(|()| out.write_all(b"\n"));
    }
    match running.wait() {
        Ok(status) if status.success() => true,
        Ok(status) => {
            println!("{command}: {status}");
            false
        }
        Err(error) => {
            println!("{command}: {error}");
            false
        }
    }
}

/// Installs `need` if it is missing and this machine allows it. Returns whether the step can run. If a
/// program is still missing, the step runs, and its commands report the program by name.
fn is_met(need: &Need) -> bool {
    match need {
        Need::Program { names, variable, package } => {
            let here = std::env::var_os(variable).is_some() || names.iter().any(|name| on_path(name));
            if !here && is_root() && on_path("apt-get") {
                println!("installing {package}");
                let apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"];
                let _ = succeeds(&[&apt[..], &["update"]].concat())
                    && succeeds(&[&apt[..], &["install", "-y", package]].concat());
            }
            true
        }
        Need::Tool { name, version } => {
            let (folder, package) = (root().join(TOOLS), format!("{name}@{version}"));
            let folder = folder.to_string_lossy();
            let install = ["cargo", "install", "--quiet", "--debug", "--locked", "--root"];
            let install = [&install[..], &[&folder, &package]].concat();
            let met = on_path(name) || {
                println!("installing {package} into {TOOLS}");
                succeeds(&install)
            };
            if !met {
                println!("not run: no program {name} on PATH, and {} did not succeed", install.join(" "));
            }
            met
        }
        Need::Target(target) => {
            let met = || {
                let asked =
                    Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
                asked.is_ok_and(|said| Path::new(String::from_utf8_lossy(&said.stdout).trim()).is_dir())
            };
            let met = met() || (succeeds(&["rustup", "target", "add", target]) && met());
            if !met {
                println!("not run: rustup target add {target} did not succeed");
            }
            met
        }
    }
}

/// Runs a command without its standard output. Returns whether the command succeeded.
fn succeeds(command: &[&str]) -> bool {
    let status = Command::new(command[0]).args(&command[1..]).stdout(Stdio::null()).status();
    let done = status.is_ok_and(|status| status.success());
    if !done {
        println!("{}: failed", command.join(" "));
    }
    done
}

fn on_path(program: &str) -> bool {
    std::env::split_paths(&path()).any(|folder| folder.join(program).is_file())
}

/// The folders in which steps find programs.
fn path() -> OsString {
    let given = std::env::var_os("PATH").unwrap_or_default();
    let tools = root().join(TOOLS).join("bin");
    std::env::join_paths(std::env::split_paths(&given).chain([tools])).unwrap_or(given)
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// CPU seconds of all descendants that were waited for. 0 if there is no /proc.
fn children_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 16 and 17 of proc(5); the second field may hold spaces and ends with the last parenthesis.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_SECOND
}
