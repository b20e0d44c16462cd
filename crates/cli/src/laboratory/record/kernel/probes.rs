//! Probes on what has no event of its own: bulk calls, and the sheaves of `kfree_rcu`.
//!
//! They are dynamic events of tracefs (fprobe), which perf and an instance record like those of kmem. They
//! belong to the whole kernel, so their group has this process's number and start in its name, and a shell
//! that stands by removes them when this process ends, however that comes. If both are killed, the next
//! recording removes them.

use crate::outcome::{Failure, tell};
use slablab_recorder::Owner;
use slablab_recorder::probes::{Definition, KINDS, Kind};
use slablab_report::visible;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What the names of groups begin with.
const PREFIX: &str = "slablab_";

/// Removes the probes of the group `$2` from the list at `$1`, when standard input ends. Those that are still
/// in use stay for another try.
const REMOVE: &str = r#"read line
i=0
while [ $i -lt 30 ] && grep -q "^f:$2/" "$1"; do
  i=$((i + 1))
  grep "^f:$2/" "$1" | while read name rest; do echo "-:${name#f:}" >> "$1"; done
  grep -q "^f:$2/" "$1" && sleep 0.1
done"#;

/// A probe that is set.
pub(super) struct Probe {
    /// The event's name.
    pub(super) name: String,
    /// Which events count.
    pub(super) filter: String,
}

/// Probes that are set until this is dropped.
pub(super) struct Probes {
    pub(super) group: String,
    pub(super) set: Vec<Probe>,
    list: PathBuf,
    /// What is seen by them.
    seen: Vec<&'static str>,
    why_not: Vec<String>,
    remover: Option<Child>,
}

impl Probes {
    /// Sets what the kernel of the tracefs at `root` allows. The recording goes on without the rest.
    pub(super) fn set(root: Result<PathBuf, Failure>, wanted: bool) -> Probes {
        let list = root.as_deref().unwrap_or(Path::new("")).join("dynamic_events");
        let group = format!("{PREFIX}{}", Owner::own().to_string().replace('-', "_"));
        let mut probes =
            Probes { group, set: Vec::new(), list, seen: Vec::new(), why_not: Vec::new(), remover: None };
        let readme = root.map(|root| fs::read_to_string(root.join("README")).unwrap_or_default());
        match readme {
            _ if !wanted => probes.why_not.push("--no-probes".into()),
            Err(failure) => probes.why_not.push(failure.to_string()),
            Ok(readme) if !readme.contains("f[:[<group>/]") => {
                probes.why_not.push("the kernel has no events of fprobe (CONFIG_FPROBE_EVENTS)".into());
            }
            Ok(_) => {
                probes.stand_by();
                let symbols = super::facts::kallsyms().unwrap_or_default();
                KINDS.iter().for_each(|kind| probes.set_kind(kind, &symbols));
            }
        }
        probes
    }

    /// Before there is a probe: nobody may end this process in between and leave it.
    fn stand_by(&mut self) {
        let mut command = Command::new("sh");
        command.args(["-c", REMOVE, "sh"]).arg(&self.list).arg(&self.group);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        self.remover = command.spawn().ok();
    }

    fn set_kind(&mut self, kind: &Kind, symbols: &[u8]) {
        let has = |name: &&&str| symbols.split(|byte| *byte == b'\n').any(|line| is_of(line, name));
        let Some(function) = kind.functions.iter().find(has) else {
            if !kind.is_new {
                self.why_not.push(format!("{}: no function {}", kind.what, kind.functions[0]));
            }
            return;
        };
        let before = self.set.len();
        for Definition { name, filter, texts } in (kind.probes)(function) {
            let set = texts.iter().map(|text| self.add(&format!("f:{}/{name} {text}", self.group)));
            let mut refused = None;
            let is_set = set.into_iter().any(|set| set.map_err(|error| refused = Some(error)).is_ok());
            if !is_set {
                let why = refused.map_or(String::new(), |error| error.to_string());
                self.why_not.push(format!("{}: {why}", kind.what));
                // A part of a call is worse than none.
                self.set.drain(before..).for_each(drop);
                return;
            }
            self.set.push(Probe { name, filter });
        }
        self.seen.push(kind.what);
    }

    fn add(&self, line: &str) -> std::io::Result<()> {
        File::options().append(true).open(&self.list)?.write_all(format!("{line}\n").as_bytes())
    }

    /// For the description of the recording.
    pub(super) fn about(&self) -> serde_json::Value {
        serde_json::json!({ "of": self.seen, "why_not": self.why_not })
    }

    /// For people.
    pub(super) fn sentence(&self) -> String {
        match (self.seen.join(", "), self.why_not.join("; ")) {
            (seen, why) if why.is_empty() => seen,
            (seen, why) if seen.is_empty() => format!("none: {why}"),
            (seen, why) => format!("{seen}; not {why}"),
        }
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        if let Some(mut child) = self.remover.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

/// Removes the probes of recorders that were killed.
pub(super) fn clear(root: &Path) {
    let list = root.join("dynamic_events");
    let text = fs::read_to_string(&list).unwrap_or_default();
    for name in text.lines().filter_map(dead) {
        let removed = File::options().append(true).open(&list);
        match removed.and_then(|mut file| file.write_all(format!("-:{name}\n").as_bytes())) {
            Ok(()) => tell(format_args!("{name}: removed; a slablab that was killed had left this probe")),
            Err(error) => tell(format_args!("{}: {error}, removing {name}", visible::path(&list))),
        }
    }
}

/// The group and name of a line's probe, if its recorder is dead.
fn dead(line: &str) -> Option<&str> {
    let name = line.strip_prefix("f:")?.split(' ').next()?;
    let owner = name.split('/').next()?.strip_prefix(PREFIX)?.replace('_', "-");
    Owner::parse(&owner).filter(|owner| !owner.is_alive()).map(|_| name)
}

/// Whether a line of the kernel's symbols is that of `name`.
fn is_of(line: &[u8], name: &str) -> bool {
    line.split(|byte| byte.is_ascii_whitespace()).nth(2).is_some_and(|found| found == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_the_dead() {
        #[track_caller]
        fn check(line: &str, expected: Option<&str>) {
            assert_eq!(dead(line), expected, "{line}");
        }
        let own = Owner::own().to_string().replace('-', "_");
        check(&format!("f:{PREFIX}{own}/x kfree"), None);
        // Above the kernel's largest number.
        check("f:slablab_8388608_7/x kfree ptr=$arg1", Some("slablab_8388608_7/x"));
        check("p:slablab_8388608_7/x kfree", None);
        check("f:others_8388608_7/x kfree", None);
        check("f:slablab_x/y kfree", None);
    }
}
