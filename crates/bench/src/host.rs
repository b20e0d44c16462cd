//! The machine that ran, and what ran on it, in words: two runs are compared by this.

use crate::rig::PROFILE;
use schemars::JsonSchema;
use serde::Serialize;

/// The machine, the engine that slablab was, and how it was built.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Host {
    build: &'static str,
    cpu: Option<String>,
    engine: String,
    kernel: Option<String>,
    name: Option<String>,
}

/// This machine.
pub(crate) fn host() -> Host {
    let of = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_string());
    Host {
        build: PROFILE,
        cpu: of("/proc/cpuinfo").and_then(|text| model(&text)),
        engine: std::env::var("SLABLAB_ENGINE").unwrap_or_else(|_| "slablab's own".to_string()),
        kernel: of("/proc/sys/kernel/osrelease"),
        name: of("/proc/sys/kernel/hostname"),
    }
}

/// The first CPU's name in /proc/cpuinfo: `model name` on x86, `cpu` on Power, numbers on Arm.
fn model(text: &str) -> Option<String> {
    let value = |wanted: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == wanted).then(|| value.trim().to_string())
        })
    };
    let arm = || Some(format!("implementer {} part {}", value("CPU implementer")?, value("CPU part")?));
    value("model name").or_else(|| value("cpu")).or_else(arm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpus() {
        for (text, expected) in [
            ("processor\t: 0\nmodel name\t: AMD EPYC 7B13\n", Some("AMD EPYC 7B13")),
            ("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n", Some("POWER9, altivec supported")),
            ("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", Some("implementer 0x41 part 0xd0c")),
            ("processor\t: 0\n", None),
        ] {
            assert_eq!(model(text).as_deref(), expected, "{text}");
        }
    }
}
