//! Blocks of instructions: how many each has, from the code itself.
//!
//! The compiler of the instrumented image calls a function at the begin of each block. From there to the next
//! such call, or to a jump that is always taken, are the block's instructions. Those that report do not
//! count: the calls, and what they get. What else the reports change (registers are kept in memory over
//! calls) is taken out by a factor for each function: its instructions in the plain image by those in this
//! one.

use super::child::{Ending, run};
use slablab_report::Error;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Parts of an instruction in the file.
pub(crate) const PARTS: u64 = 16;

/// The call at the begin of a block.
const BEGIN: &str = "<__sanitizer_cov_trace_pc>";

/// Registers of the arguments of a report.
const ARGUMENTS: [&str; 6] = ["%rdi", "%edi", "%rsi", "%esi", "%rdx", "%edx"];

/// The instructions of a program, by function: address and text.
type Code = HashMap<String, Vec<(u64, String)>>;

/// The text of a file of blocks: for each the offset in the image's text behind the call at its begin, and
/// its instructions in parts.
///
/// # Errors
/// Those of objdump; [`Ending::Stopped`].
pub(super) fn blocks(
    plain: &Path,
    instrumented: &Path,
    go: &mut dyn FnMut() -> bool,
) -> Result<String, Ending> {
    let mut code = |path: &Path| -> Result<Code, Ending> {
        let mut command = Command::new("objdump");
        let ran =
            run(command.args(["-d", "--no-show-raw-insn"]).arg(path).env("LC_ALL", "C"), &mut |_| go())?;
        match ran.status.success() {
            true => Ok(parse(&ran.lines)),
            false => Err(Error::new(path, format!("objdump ended with {}", ran.status)).into()),
        }
    };
    let (plain, instrumented) = (code(plain)?, code(instrumented)?);
    Ok(count(&plain, &instrumented))
}

fn parse(lines: &[String]) -> Code {
    let (mut code, mut function) = (Code::new(), String::new());
    for line in lines {
        if let Some(name) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            function = name.1.to_string();
            continue;
        }
        let Some((address, text)) = line.split_once(":\t") else { continue };
        if let Ok(address) = u64::from_str_radix(address.trim(), 16) {
            code.entry(function.clone()).or_default().push((address, text.trim().to_string()));
        }
    }
    code
}

fn is_report(text: &str) -> bool {
    text.starts_with("call") && ["<__tsan_", "<__kcsan_", BEGIN].iter().any(|name| text.contains(name))
}

/// Whether an instruction of a function counts: none that reports, that fills, or that makes an argument of a
/// report.
fn counted(code: &[(u64, String)]) -> Vec<bool> {
    let mut counted: Vec<bool> = code
        .iter()
        .map(|(_, text)| !is_report(text) && !text.starts_with("nop") && !text.starts_with("endbr"))
        .collect();
    for (at, (_, text)) in code.iter().enumerate().filter(|(_, (_, text))| is_report(text)) {
        let mut left = match text {
            _ if text.contains(BEGIN) => 0,
            _ if text.contains("<__kcsan_") || text.contains("_range>") => 3,
            _ => 1,
        };
        for before in (at.saturating_sub(5)..at).rev() {
            let is_argument = ARGUMENTS.iter().any(|register| {
                code[before].1.strip_suffix(register).is_some_and(|rest| rest.ends_with(','))
            });
            if left > 0 && counted[before] && is_argument {
                counted[before] = false;
                left -= 1;
            }
        }
    }
    counted
}

fn total(code: &[(u64, String)]) -> u64 {
    counted(code).iter().filter(|counted| **counted).count() as u64
}

fn count(plain: &Code, instrumented: &Code) -> String {
    let start = instrumented.values().flatten().map(|(address, _)| *address).min().unwrap_or(0);
    let reports =
        || instrumented.iter().filter(|(_, code)| code.iter().any(|(_, text)| text.contains(BEGIN)));
    let both = || reports().filter_map(|(name, code)| Some((total(plain.get(name)?), total(code))));
    let whole = both().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let mut blocks: Vec<(u64, u64)> = Vec::new();
    for (name, code) in reports() {
        let (of, by) = plain.get(name).map_or(whole, |plain| (total(plain), total(code)));
        let counted = counted(code);
        let begins = code.iter().enumerate().filter(|(_, (_, text))| text.contains(BEGIN));
        for (at, _) in begins {
            let rest = at + 1..code.len();
            let Some(first) = code.get(at + 1) else { continue };
            let mut sum = 0;
            for next in rest.take_while(|next| !code[*next].1.contains(BEGIN)) {
                sum += u64::from(counted[next]);
                if ["jmp", "ret", "ud2"].iter().any(|end| code[next].1.starts_with(end)) {
                    break;
                }
            }
            blocks.push((first.0 - start, sum * PARTS * of / by.max(1)));
        }
    }
    blocks.sort_unstable();
    let mut text = String::new();
    for (at, parts) in blocks {
        writeln!(text, "{at:x} {}", parts.min(u16::MAX.into())).expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of two blocks, and what it is without reports.
    const PLAIN: &str = "\n0000000010000000 <f>:\n    10000000:\tpush   %rbx\n    10000001:\tmov    (%rdi),%eax\n    \
        10000003:\ttest   %eax,%eax\n    10000005:\tje     10000008 <f+0x8>\n    10000007:\tinc    %eax\n    \
        10000008:\tpop    %rbx\n    10000009:\tret\n";
    const INSTRUMENTED: &str = "\n0000000010000000 <f>:\n    10000000:\tpush   %rbx\n    10000001:\tmov    %rdi,%rbx\n    \
        10000004:\tcall   10000100 <__sanitizer_cov_trace_pc>\n    10000009:\tmov    %rbx,%rdi\n    \
        1000000c:\tcall   10000110 <__tsan_read4>\n    10000011:\tmov    (%rbx),%eax\n    \
        10000013:\ttest   %eax,%eax\n    10000015:\tje     1000001e <f+0x1e>\n    \
        10000017:\tcall   10000100 <__sanitizer_cov_trace_pc>\n    1000001c:\tinc    %eax\n    \
        1000001e:\tpop    %rbx\n    1000001f:\tret\n    10000020:\tnop\n";

    #[test]
    fn reports_do_not_count() {
        let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
        let code = parse(&lines(INSTRUMENTED));
        let texts = code["f"].iter().zip(counted(&code["f"]));
        let counted: Vec<&str> = texts.filter(|(_, counted)| *counted).map(|(line, _)| &*line.1).collect();
        assert_eq!(counted.len(), 8, "{counted:?}");
        // Seven instructions of eight are the code's own; three are in each block.
        assert_eq!(count(&parse(&lines(PLAIN)), &code), "9 42\n1c 42\n");
    }
}
