//! Whose a folder or an instance is that outlives processes: its name has the process's number and start.

use std::fmt;
use std::fs;

/// A process, told apart from later ones with its number by its start. Its text is `PID-START`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process's number.
    pub pid: u32,
    /// The start in the kernel's ticks since the boot; `None` if the name has none.
    pub start: Option<u64>,
}

impl Owner {
    /// This process.
    pub fn own() -> Owner {
        let pid = std::process::id();
        Owner { pid, start: state_of(pid).map(|(_, start)| start) }
    }

    /// The owner that a name ends with, `PID-START` or `PID`.
    pub fn parse(text: &str) -> Option<Owner> {
        let (pid, start) = match text.split_once('-') {
            Some((pid, start)) => (pid, Some(start)),
            None => (text, None),
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(pid) || !start.is_none_or(is_number) {
            return None;
        }
        Some(Owner { pid: pid.parse().ok()?, start: start.map(str::parse).transpose().ok()? })
    }

    /// Whether the process lives. Where /proc is not mounted, every process may.
    pub fn is_alive(&self) -> bool {
        if state_of(std::process::id()).is_none() {
            return true;
        }
        state_of(self.pid).is_some_and(|(state, start)| {
            // A process that ended stays until its parent has asked for its end.
            !matches!(state, b'Z' | b'X') && self.start.is_none_or(|own| own == start)
        })
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}-{}", self.pid, self.start.unwrap_or(0))
    }
}

/// A process's state, and its start. `None`: there is no such process.
fn state_of(pid: u32) -> Option<(u8, u64)> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may contain anything.
    let after = &text[text.iter().rposition(|byte| *byte == b')')? + 1..];
    let text = String::from_utf8_lossy(after);
    let words: Vec<&str> = text.split_whitespace().collect();
    // Fields 3 and 22 of proc_pid_stat(5).
    Some((*words.first()?.as_bytes().first()?, words.get(19)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let own = Owner::own();
        assert_eq!(Owner::parse(&own.to_string()), Some(own));
        assert!(own.is_alive());
        let start = own.start.expect("/proc is mounted");
        for (text, alive) in [
            (format!("{}", own.pid), true),
            (format!("{}-{}", own.pid, start + 1), false),
            // Above the kernel's largest number.
            (format!("{}-{start}", 1 << 23), false),
        ] {
            assert_eq!(Owner::parse(&text).expect("an owner").is_alive(), alive, "{text}");
        }
        for text in ["", "-", "1-", "-1", "+1", "1-2-3", "1.2", "x", "99999999999"] {
            assert_eq!(Owner::parse(text), None, "{text}");
        }
    }

    /// A child that has ended, whose end nobody has asked for.
    #[test]
    fn a_zombie_is_dead() {
        let mut child = std::process::Command::new("true").spawn().expect("it runs");
        let owner = Owner { pid: child.id(), start: None };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while owner.is_alive() {
            assert!(std::time::Instant::now() < deadline, "true does not end");
            std::thread::yield_now();
        }
        child.wait().expect("it ended");
    }
}
