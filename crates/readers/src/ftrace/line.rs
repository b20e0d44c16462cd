//! One line of a text recording: task, CPU, time, event, and the text of the event's fields.
//!
//! ```text
//!             bash-17055   [001] d..1. 20524.826648: kmalloc: call_site=.. ptr=..           trace, trace_pipe
//!             bash-17055   (  17055) [001] d..1. 20524.826648: kmalloc: ..                  with record-tgid
//!     recording.sh-4665    [000]  3255.511126: kmem_cache_free:      (__fput+0x141) ..      trace-cmd report
//!  perf 5041/5041 [000] 3263.230511557: kmem:kmalloc: call_site=.. ptr=..                   perf script
//! ```
//! Nothing has a fixed column. A task's name may have spaces and brackets; so the first `[number]` that is
//! followed by a time and an event decides, and what is in front of it is read from its end.

use crate::event::Context;
use crate::text::number;

/// A line taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line<'a> {
    pub(super) comm: &'a str,
    pub(super) pid: i32,
    pub(super) cpu: u32,
    pub(super) context: Option<Context>,
    pub(super) time_ns: u64,
    /// Whether the time is a whole number, as clocks that do not count seconds print it.
    pub(super) ticks: bool,
    /// The event's name without its system; empty for a line of a tracer, such as a function and its caller.
    pub(super) event: &'a str,
    /// What is behind the event's name.
    pub(super) fields: &'a str,
}

impl Line<'_> {
    /// Whether the task's name is not known: a kernel prints `<...>` then, perf a colon and the number.
    pub(super) fn is_nameless(&self) -> bool {
        let number = self.comm.strip_prefix(':').and_then(pid);
        self.comm == "<...>" || number.is_some_and(|number| number == self.pid)
    }
}

/// Takes `line` apart; `None` if it is not of that form.
pub(super) fn parse(line: &str) -> Option<Line<'_>> {
    let mut from = 0;
    loop {
        let open = from + line[from..].find('[')?;
        from = open + 1;
        if let Some((cpu, rest)) = bracketed(&line[from..])
            && let Some(tail) = tail(rest)
            && let Some((comm, pid)) = task(&line[..open], tail.system)
        {
            let Tail { context, time_ns, ticks, event, fields, .. } = tail;
            return Some(Line { comm, pid, cpu, context, time_ns, ticks, event, fields });
        }
    }
}

/// `001] rest` is 1 and the rest.
fn bracketed(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_once(']')?;
    Some((number(digits)?, rest))
}

/// What is behind the CPU.
struct Tail<'a> {
    context: Option<Context>,
    time_ns: u64,
    ticks: bool,
    /// Whether the event has its system in front, as perf writes it.
    system: bool,
    event: &'a str,
    fields: &'a str,
}

fn tail(text: &str) -> Option<Tail<'_>> {
    let (first, rest) = word(text)?;
    // Without the option irq-info, and in reports, the time comes at once.
    let (context, (time, rest)) =
        if first.ends_with(':') { (None, (first, rest)) } else { (Some(flags(first)?), word(rest)?) };
    let time = time.strip_suffix(':')?;
    let (time_ns, ticks) = nanoseconds(time)?;
    let mut rest = rest.trim_start();
    // perf writes the period of a sample here when it varies, trace-cmd the time since the event before when
    // asked.
    if let Some((first, after)) = rest.split_once(char::is_whitespace)
        && let number_of = first.strip_prefix("(+").and_then(|first| first.strip_suffix(')')).unwrap_or(first)
        && number::<u64>(number_of).is_some()
    {
        rest = after.trim_start();
    }
    let (name, fields) = match rest.split_once(": ").or_else(|| Some((rest.strip_suffix(':')?, ""))) {
        Some((name, fields)) if !name.contains(char::is_whitespace) => (name, fields),
        _ => ("", rest),
    };
    let (system, event) = name.split_once(':').map_or((false, name), |(_, event)| (true, event));
    let system = system || name.is_empty() && rest.starts_with("PERF_RECORD_");
    Some(Tail { context: context.flatten(), time_ns, ticks, system, event, fields: fields.trim_start() })
}

/// The first word and what is behind it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace)?;
    Some((word, rest))
}

/// The task in front of the CPU.
fn task(text: &str, system: bool) -> Option<(&str, i32)> {
    let mut text = text.trim_end();
    if system {
        // `comm tid` or `comm pid/tid`.
        let (comm, ids) = text.rsplit_once(char::is_whitespace)?;
        let tid = ids.rsplit_once('/').map_or(ids, |(_, tid)| tid);
        return Some((comm.trim(), pid(tid)?));
    }
    // `comm-pid`, and the thread group in parentheses.
    if let Some((before, group)) = text.strip_suffix(')').and_then(|text| text.rsplit_once('('))
        && (pid(group.trim()).is_some() || group.contains('-'))
    {
        text = before.trim_end();
    }
    let (comm, id) = text.rsplit_once('-')?;
    Some((comm.trim_start(), pid(id)?))
}

/// A task's number. perf writes -1 if the number is unknown.
fn pid(text: &str) -> Option<i32> {
    if text == "-1" { Some(-1) } else { number(text) }
}

/// `3263.230511557` seconds, or a whole number of something else, which is taken as nanoseconds.
fn nanoseconds(text: &str) -> Option<(u64, bool)> {
    let Some((seconds, part)) = text.split_once('.') else { return Some((number(text)?, true)) };
    let digits = part.len() as u32;
    if digits == 0 || digits > 9 {
        return None;
    }
    let part = number::<u64>(part)? * 10u64.pow(9 - digits);
    Some((number::<u64>(seconds)?.checked_mul(1_000_000_000)?.checked_add(part)?, false))
}

/// The flags of the `trace` file: interrupts, need-resched, kind of interrupt, preempt depth, and since 5.15
/// migrate depth. `None` if they are no such word, `Some(None)` if they do not say where the task stood.
fn flags(word: &str) -> Option<Option<Context>> {
    // As TRACE_FLAG_* in a binary recording.
    const IRQS_OFF: u8 = 0x01;
    const NEED_RESCHED: u8 = 0x04;
    const HARDIRQ: u8 = 0x08;
    const SOFTIRQ: u8 = 0x10;
    const PREEMPT_RESCHED: u8 = 0x20;
    const NMI: u8 = 0x40;
    const BH_OFF: u8 = 0x80;
    let letters = word.as_bytes();
    let &[irqs, resched, kind, preempt, ref migrate @ ..] = letters else { return None };
    let mut bits = match irqs {
        b'.' => 0,
        b'd' => IRQS_OFF,
        b'D' => IRQS_OFF | BH_OFF,
        b'b' => BH_OFF,
        b'X' => return Some(None),
        _ => return None,
    };
    bits |= match resched {
        b'N' | b'B' => NEED_RESCHED | PREEMPT_RESCHED,
        b'n' | b'L' | b'b' | b'l' => NEED_RESCHED,
        b'p' => PREEMPT_RESCHED,
        b'.' => 0,
        _ => return None,
    };
    bits |= match kind {
        b'Z' => NMI | HARDIRQ,
        b'z' => NMI,
        b'H' => HARDIRQ | SOFTIRQ,
        b'h' => HARDIRQ,
        b's' => SOFTIRQ,
        b'.' => 0,
        _ => return None,
    };
    let depth = |letter: u8| match letter {
        b'.' => Some(0),
        letter => (letter as char).to_digit(16).map(|depth| depth as u8),
    };
    let preempt = depth(preempt)?
        | match migrate {
            [] => 0,
            [depth_of, ..] if migrate.len() <= 2 => depth(*depth_of)? << 4,
            _ => return None,
        };
    Some(Some(Context { flags: bits, preempt }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_program() {
        #[track_caller]
        fn check(line: &str, expected: Option<(&str, i32, u32, u64, &str, &str)>) {
            let found = parse(line);
            let found = found.map(|l| (l.comm, l.pid, l.cpu, l.time_ns, l.event, l.fields));
            assert_eq!(found, expected, "{line}");
        }
        let time = 20_524_826_648_000;
        check(
            "            bash-17055   [001] d..1. 20524.826648: kmalloc: ptr=1 a=b",
            Some(("bash", 17055, 1, time, "kmalloc", "ptr=1 a=b")),
        );
        check("bash-17055 [001] d..1 20524.826648: kfree: x", Some(("bash", 17055, 1, time, "kfree", "x")));
        check("bash-17055 [001] 20524.826648: kfree: x", Some(("bash", 17055, 1, time, "kfree", "x")));
        check(
            "  a-b [x] c-7 (  17055) [001] ..... 20524.826648: kfree: x",
            Some(("a-b [x] c", 7, 1, time, "kfree", "x")),
        );
        check(
            "  a (b)-7 (-------) [001] .... 20524.826648: kfree: x",
            Some(("a (b)", 7, 1, time, "kfree", "x")),
        );
        check("  <idle>-0 [001] .Ns.. 20524.826648: kfree: x", Some(("<idle>", 0, 1, time, "kfree", "x")));
        check(
            " x-4255  [000]  3.5: kfree:      (f+0x1) p=1",
            Some(("x", 4255, 0, 3_500_000_000, "kfree", "(f+0x1) p=1")),
        );
        check(
            " my perf 5041/5042 [012] 3.230511557: kmem:kmalloc: ptr=1",
            Some(("my perf", 5042, 12, 3_230_511_557, "kmalloc", "ptr=1")),
        );
        check(
            "a-1 5042 [012] 3.5:   1 kmem:kfree: p=1",
            Some(("a-1", 5042, 12, 3_500_000_000, "kfree", "p=1")),
        );
        check(":-1 -1 [000] 3.5: kmem:kfree: p=1", Some((":-1", -1, 0, 3_500_000_000, "kfree", "p=1")));
        check("a-1 [000] ..... 3.5: do_x <-do_y", Some(("a", 1, 0, 3_500_000_000, "", "do_x <-do_y")));
        check("a-1 [000] ..... 12345: kfree: p=1", Some(("a", 1, 0, 12345, "kfree", "p=1")));
        check("# TASK-PID CPU#", None);
        check("a-1 [000] ..... 3.x: kfree: p=1", None);
        check("a [000] ..... 3.5: kfree: p=1", None);
        check("ffffffff8117c2a5 kfree+0x5 ([kernel.kallsyms])", None);
    }

    #[test]
    fn a_task_may_have_no_name() {
        #[track_caller]
        fn check(task: &str, expected: bool) {
            let line = format!("{task} [000] 3.5: kmem:kfree: ptr=1");
            let parsed = parse(&line).unwrap();
            assert_eq!(parsed.is_nameless(), expected, "{parsed:?}");
        }
        check(":-1 -1/-1", true);
        check(":12 7/12", true);
        check(":12 12", true);
        check(":12 13", false);
        check(": 13", false);
        check("<...> 13", true);
        check("<idle> 0", false);
    }

    #[test]
    fn flags_are_those_of_a_binary_recording() {
        #[track_caller]
        fn check(word: &str, expected: Option<Option<(u8, u8)>>) {
            let found = flags(word).map(|context| context.map(|context| (context.flags, context.preempt)));
            assert_eq!(found, expected, "{word}");
        }
        check(".....", Some(Some((0, 0))));
        check("d.h1.", Some(Some((0x09, 1))));
        check("DNH3a", Some(Some((0x81 | 0x24 | 0x18, 0xa3))));
        check("b.s2", Some(Some((0x90, 2))));
        check("X..1.", Some(None));
        check("d..", None);
        check("3.5..", None);
    }
}
