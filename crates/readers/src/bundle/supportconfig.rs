//! Files of supportconfig, SUSE's support bundle: outputs of commands and files of /proc one after another in
//! one text, each under a head:
//!
//! ```text
//! #==[ Command ]======================================#
//! # /bin/uname -a
//! Linux host 5.14.21 #1 SMP x86_64 GNU/Linux
//! ```

/// Texts of the bundle that have anything of slabs, memory or CPUs.
pub(super) const FILES: [&str; 5] =
    ["basic-environment.txt", "boot.txt", "hardware.txt", "memory.txt", "proc.txt"];

/// The sections of a text that are files of a dump: the path that a dump has it at, and the content.
pub(super) fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let heads = text.match_indices("#==[").filter(|(at, _)| *at == 0 || text.as_bytes()[at - 1] == b'\n');
    heads.filter_map(|(at, _)| {
        // The head, the command, then the content up to the next head.
        let (_, rest) = text[at..].split_once('\n')?;
        let (command, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        let content = rest.find("\n#==[").map_or(rest, |end| &rest[..end + 1]);
        Some((path(command.strip_prefix('#')?.trim())?, content))
    })
}

/// Where a dump has the output of a command, or the file that is named instead of one.
fn path(command: &str) -> Option<&str> {
    // `- Last 500 lines` and the like may follow.
    let command = command.split(" - ").next().unwrap_or(command).trim();
    let mut words = command.split_whitespace();
    let program = words.next()?;
    let argument = words.next();
    if program.starts_with("/proc/") || program.starts_with("/sys/") {
        return argument.is_none().then_some(&program[1..]);
    }
    match (program.rsplit('/').next()?, argument) {
        ("cat", Some(file)) if file.starts_with("/proc/") || file.starts_with("/sys/") => Some(&file[1..]),
        ("uname", Some("-a")) => Some("sos_commands/kernel/uname_-a"),
        ("date", None) => Some("sos_commands/date/date"),
        ("uptime", None) => Some("sos_commands/host/uptime"),
        ("lscpu", None) => Some("sos_commands/processor/lscpu"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_contents() {
        let text = "=====\n#==[ Command ]==#\n# /bin/uname -a\nLinux host\n\n#==[ Configuration File ]==#\n\
                    # /proc/meminfo\nMemTotal: 1 kB\n#==[ Command ]==#\n# /usr/bin/free -k\nfree\n\
                    #==[ Command ]==#\n# /bin/cat /proc/slabinfo\nslabinfo";
        let found: Vec<_> = sections(text).collect();
        let expected = [
            ("sos_commands/kernel/uname_-a", "Linux host\n\n"),
            ("proc/meminfo", "MemTotal: 1 kB\n"),
            ("proc/slabinfo", "slabinfo"),
        ];
        assert_eq!(found, expected);
        assert_eq!(sections("").count(), 0);
        assert_eq!(sections("#==[ Command ]").count(), 0);
    }
}
