//! CPUs that go off and on during a replay, as asked for.
//!
//! A recording knows nothing of it: the rows of a CPU that is off are run by another, its *stand-in*: the
//! next CPU of its node that is on, by number and from the last to the first; on a node whose CPUs are all
//! off, the next one of the nearest node that has one. All that can be wrong with commands is found here,
//! before anything runs.

use slablab_model::MachineSpec;
use slablab_platform::CpuId;
use slablab_readers::text::id_list;
use slablab_report::error::{Error, Result};
use slablab_trace::Metadata;
use std::fmt;

/// CPUs go off or on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// When, since the recording's first row, ns.
    pub time_ns: u64,
    /// Whose.
    pub what: What,
    /// Whether the CPUs come online. Otherwise they go offline.
    pub on: bool,
    /// As it was written, for errors and answers.
    pub text: String,
}

/// The CPUs a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// These.
    Cpus(Vec<u32>),
    /// All of these nodes; their memory stays.
    Nodes(Vec<u32>),
}

impl Command {
    /// Understands `1.5s` and `cpu3=off`.
    ///
    /// # Errors
    /// A text that is not such a time or state, and the expected form.
    pub fn parse(time: &str, what: &str) -> std::result::Result<Command, String> {
        let time_ns = nanoseconds(time)
            .ok_or_else(|| format!("expected a time as 1.5s, 20ms or 300us, found {time:?}"))?;
        let wrong = || {
            format!(
                "expected cpu or node, one or several, =on or =off, as cpu3=off, cpu8-15,20=on or node1=off, \
                 found {what:?}"
            )
        };
        let (units, state) = what.split_once('=').ok_or_else(wrong)?;
        let on = match state {
            "on" => true,
            "off" => false,
            _ => return Err(wrong()),
        };
        let ids =
            |list: &str| id_list(list).filter(|ids| !ids.is_empty() && !list.contains(' ')).ok_or_else(wrong);
        let what_of = match (units.strip_prefix("cpu"), units.strip_prefix("node")) {
            (Some(list), _) => What::Cpus(ids(list)?),
            (_, Some(list)) => What::Nodes(ids(list)?),
            _ => return Err(wrong()),
        };
        Ok(Command { time_ns, what: what_of, on, text: format!("{time} {what}") })
    }

    /// The CPUs of this machine that it is about.
    fn cpus(&self, machine: &MachineSpec) -> std::result::Result<Vec<u16>, String> {
        let cpus = machine.cpu_node.len();
        let below = |what: &str, ids: &[u32], count: usize| match ids.iter().find(|id| **id as usize >= count)
        {
            Some(id) if count == 1 => Err(format!("{what}{id} is not there: the machine has {what}0 alone")),
            Some(id) => {
                Err(format!("{what}{id} is not there: the machine has {what}0 to {what}{}", count - 1))
            }
            None => Ok(()),
        };
        match &self.what {
            What::Cpus(ids) => {
                below("cpu", ids, cpus)?;
                let mut cpus: Vec<u16> = ids.iter().map(|id| *id as u16).collect();
                cpus.sort_unstable();
                cpus.dedup();
                Ok(cpus)
            }
            What::Nodes(ids) => {
                below("node", ids, machine.nodes.len())?;
                let of_node = |node: u16| ids.contains(&node.into());
                let found: Vec<u16> =
                    (0..cpus as u16).filter(|cpu| of_node(machine.cpu_node[*cpu as usize])).collect();
                if found.is_empty() { Err("it has no CPUs".into()) } else { Ok(found) }
            }
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A decimal number of s, ms or us that is a whole number of nanoseconds.
pub fn nanoseconds(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let decimals = match &text[digits.len()..] {
        "s" => 9,
        "ms" => 6,
        "us" => 3,
        _ => return None,
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > decimals {
        return None;
    }
    format!("{whole}{part:0<decimals$}").parse().ok()
}

/// Seconds, with the decimals that say something.
fn seconds(ns: u64) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// What happens when, on one machine.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// In time order.
    pub(super) steps: Vec<Step>,
    /// What is assumed about it.
    pub(super) assumed: Vec<String>,
}

/// CPUs that go off, or on, at one time.
#[derive(Debug)]
pub(super) struct Step {
    /// On the recording's clock.
    pub(super) time_ns: u64,
    pub(super) on: bool,
    /// Those whose state changes.
    pub(super) cpus: Vec<CpuId>,
    /// The CPU that runs each CPU's rows from now on; a CPU that is online runs its own.
    pub(super) stand_ins: Vec<u16>,
}

impl Schedule {
    /// The commands in the order of their times; those of one time in the order given.
    ///
    /// # Errors
    /// A time after the end, a CPU or node that is not there, a command that changes nothing, and one after
    /// which no CPU would be on.
    pub(super) fn new(commands: &[Command], metadata: &Metadata, machine: &MachineSpec) -> Result<Schedule> {
        let mut commands: Vec<&Command> = commands.iter().collect();
        commands.sort_by_key(|command| command.time_ns);
        let mut on: Vec<bool> = (0..machine.cpu_node.len())
            .map(|cpu| machine.cpu_online.get(cpu).copied().unwrap_or(true))
            .collect();
        let mut schedule = Schedule::default();
        for command in &commands {
            let wrong = |what: String| Error::new(format!("--at {command}"), what);
            let times = &metadata.statistics;
            let length = times.last_time_ns.saturating_sub(times.first_time_ns);
            if command.time_ns > length {
                return Err(wrong(format!(
                    "expected a time up to {}, where the recording ends",
                    seconds(length)
                )));
            }
            let mut cpus = command.cpus(machine).map_err(wrong)?;
            cpus.retain(|cpu| on[*cpu as usize] != command.on);
            if cpus.is_empty() {
                return Err(wrong(format!("it is {} already", if command.on { "on" } else { "off" })));
            }
            cpus.iter().for_each(|cpu| on[*cpu as usize] = command.on);
            if !on.contains(&true) {
                return Err(wrong("no CPU would be on: expected one to stay".into()));
            }
            schedule.steps.push(Step {
                time_ns: times.first_time_ns.saturating_add(command.time_ns),
                on: command.on,
                cpus: cpus.into_iter().map(CpuId).collect(),
                stand_ins: stand_ins(&on, machine),
            });
        }
        if commands.iter().any(|command| matches!(command.what, What::Nodes(_)) && !command.on) {
            let text =
                "a node that goes off loses its CPUs and keeps its memory: slabs in use cannot be moved";
            schedule.assumed.push(text.into());
        }
        Ok(schedule)
    }
}

fn stand_ins(on: &[bool], machine: &MachineSpec) -> Vec<u16> {
    let cpus = on.len();
    let distance = |from: u16, to: u16| match machine.distance.get(from as usize) {
        Some(row) => row[to as usize],
        None if from == to => 10,
        None => 20,
    };
    let stand_in = |cpu: usize| {
        let home = machine.cpu_node[cpu];
        let next = (0..cpus).map(|step| (cpu + step) % cpus).filter(|other| on[*other]);
        // Its own node first, whatever a machine says of distances; the first of those equally near is the
        // next by number.
        next.min_by_key(|other| {
            let node = machine.cpu_node[*other];
            (node != home, distance(home, node), node)
        })
    };
    (0..cpus).map(|cpu| if on[cpu] { cpu } else { stand_in(cpu).expect("a CPU is on") } as u16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_trace::Statistics;

    #[test]
    fn times() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(nanoseconds(text), expected, "{text}");
        check("1.5s", Some(1_500_000_000));
        check("0s", Some(0));
        check("20ms", Some(20_000_000));
        check("0.000001ms", Some(1));
        check("300us", Some(300_000));
        check("18446744073s", Some(18_446_744_073_000_000_000));
        for wrong in [
            "",
            "s",
            "1",
            "1.s",
            ".5s",
            "1,5s",
            "-1s",
            "+1s",
            "1 s",
            "1m",
            "1.0000us",
            "99999999999s",
            "1.5.5s",
        ] {
            check(wrong, None);
        }
        assert_eq!(["0s", "1.5s", "0.02s"], [0, 1_500_000_000, 20_000_000].map(seconds)[..]);
    }

    #[test]
    fn commands() {
        let check = |text: &str, what: What, on: bool| {
            let command = Command::parse("2s", text).expect(text);
            assert_eq!((command.time_ns, command.what, command.on), (2_000_000_000, what, on), "{text}");
        };
        check("cpu3=off", What::Cpus(vec![3]), false);
        check("cpu8-10,20=on", What::Cpus(vec![8, 9, 10, 20]), true);
        check("node1=off", What::Nodes(vec![1]), false);
        for wrong in [
            "",
            "cpu3",
            "cpu=off",
            "3=off",
            "cpu3=of",
            "cpu3=OFF",
            "cpux=off",
            "cpu5-3=off",
            "core3=off",
            "cpu 3=off",
        ] {
            let said = Command::parse("2s", wrong).expect_err(wrong);
            assert!(said.contains("as cpu3=off") && said.contains(&format!("{wrong:?}")), "{said}");
        }
    }

    /// Six CPUs on three nodes; node 2 is nearer to node 0 than node 1 is.
    fn three_nodes() -> MachineSpec {
        MachineSpec {
            distance: vec![vec![10, 30, 20], vec![30, 10, 20], vec![20, 20, 10]],
            ..MachineSpec::uniform(6, 3, 1 << 30)
        }
    }

    fn schedule(commands: &[(&str, &str)]) -> std::result::Result<Vec<(u64, Vec<u16>)>, String> {
        schedule_on(&three_nodes(), commands)
    }

    fn schedule_on(
        machine: &MachineSpec,
        commands: &[(&str, &str)],
    ) -> std::result::Result<Vec<(u64, Vec<u16>)>, String> {
        let statistics =
            Statistics { first_time_ns: 7, last_time_ns: 2_000_000_007, ..Statistics::default() };
        let metadata = Metadata { statistics, ..Metadata::default() };
        let commands: Vec<Command> =
            commands.iter().map(|(time, what)| Command::parse(time, what).expect(what)).collect();
        let schedule = Schedule::new(&commands, &metadata, machine).map_err(|error| error.to_string())?;
        Ok(schedule.steps.into_iter().map(|step| (step.time_ns, step.stand_ins)).collect())
    }

    #[test]
    fn stand_ins_are_near() {
        let check = |commands: &[(&str, &str)], expected: &[u16]| {
            let found = schedule(commands).expect("the commands are right").pop().expect("a step").1;
            assert_eq!(found, expected, "{commands:?}");
        };
        check(&[("1s", "cpu0=off")], &[1, 1, 2, 3, 4, 5]);
        check(&[("1s", "cpu0,1,0-0=off"), ("1s", "cpu0=on")], &[0, 0, 2, 3, 4, 5]);
        check(&[("1s", "cpu5=off")], &[0, 1, 2, 3, 4, 4]);
        check(&[("1s", "node0=off")], &[4, 4, 2, 3, 4, 5]);
        check(&[("1s", "node2=off")], &[0, 1, 2, 3, 0, 0]);
        check(&[("1s", "node2=off"), ("1s", "cpu1=off"), ("1s", "cpu4=on")], &[0, 0, 2, 3, 4, 4]);
        check(&[("2s", "node0=on"), ("1s", "cpu0-4=off")], &[0, 1, 5, 5, 5, 5]);
        let times = schedule(&[("2s", "cpu0=on"), ("0s", "cpu0=off")]).expect("right");
        assert_eq!(times.iter().map(|step| step.0).collect::<Vec<_>>(), [7, 2_000_000_007]);
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let check = |commands: &[(&str, &str)], words: &str| {
            assert_eq!(schedule(commands).expect_err("it is wrong"), words);
        };
        check(&[("1s", "cpu6=off")], "--at 1s cpu6=off: cpu6 is not there: the machine has cpu0 to cpu5");
        check(
            &[("1s", "node3=off")],
            "--at 1s node3=off: node3 is not there: the machine has node0 to node2",
        );
        let alone = schedule_on(&MachineSpec::uniform(2, 1, 1 << 30), &[("1s", "node1=off")]);
        let said = "--at 1s node1=off: node1 is not there: the machine has node0 alone";
        assert_eq!(alone.expect_err("it is wrong"), said);
        check(&[("1s", "cpu1=on")], "--at 1s cpu1=on: it is on already");
        check(&[("1s", "cpu1=off"), ("2s", "cpu1=off")], "--at 2s cpu1=off: it is off already");
        check(
            &[("2.5s", "cpu1=off")],
            "--at 2.5s cpu1=off: expected a time up to 2s, where the recording ends",
        );
        check(&[("1s", "cpu0-5=off")], "--at 1s cpu0-5=off: no CPU would be on: expected one to stay");
    }
}
