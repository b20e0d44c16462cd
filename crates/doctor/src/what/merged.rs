//! The made-up names of merged caches.
//!
//! SLUB folds a new cache into an older one where size, alignment and the flags that matter agree; the shared
//! cache's folder in sysfs has a name made of these flags and its size, and the caches' own names are links
//! to it. The letters are those of the kernels since 2.6.23; which of them can appear together depends on the
//! release.

use schemars::JsonSchema;
use serde::Serialize;

/// The letters and what they stand for.
const FLAGS: [Flag; 6] = [
    Flag { letter: 'd', meaning: "from memory for old DMA devices (ZONE_DMA)" },
    Flag { letter: 'D', meaning: "from memory below 4 GiB (ZONE_DMA32)" },
    Flag { letter: 'a', meaning: "counted as reclaimable" },
    Flag { letter: 'F', meaning: "with consistency checks" },
    Flag { letter: 'A', meaning: "charged to memory cgroups" },
    Flag {
        letter: 't',
        meaning: "open to kmemcheck, as nearly every cache of the kernels before 4.15: says nothing more",
    },
];

/// One letter of a made-up name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Flag {
    /// As it stands in the name.
    pub letter: char,
    /// What it stands for, in words.
    pub meaning: &'static str,
}

/// What a made-up name says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Merged {
    /// Bytes from one object to the next, alignment and metadata included (`slab_size` in sysfs).
    #[serde(rename = "slab_size_bytes")]
    pub slab_size: u64,
    /// The letters in it, in their order.
    pub flags: Vec<Flag>,
}

impl Merged {
    /// Reads `:0000192`, `:a-0000104`, `:aA-0000256`; `None` for any other name.
    pub fn parse(name: &str) -> Option<Merged> {
        let rest = name.strip_prefix(':')?;
        let (letters, digits) = match rest.split_once('-') {
            Some(("", _)) => return None,
            Some(both) => both,
            None => ("", rest),
        };
        let flags = letters.chars().map(|letter| FLAGS.into_iter().find(|flag| flag.letter == letter));
        let flags = flags.collect::<Option<Vec<_>>>()?;
        let is_size = digits.len() >= 7 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let slab_size = digits.parse().ok().filter(|_| is_size)?;
        Some(Merged { slab_size, flags })
    }
}
