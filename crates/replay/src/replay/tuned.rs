//! The knobs that the recording kernel ran with, cache by cache.
//!
//! An administrator writes `cpu_partial` and `min_partial` of one cache, or a row of /proc/slabinfo under
//! SLAB; and caches that are debugged have no lists at CPUs, or short ones. An engine of the recording
//! kernel's family takes them over. A knob in the engine's text is of every cache, and wins.

use super::before::CacheBefore;
use slablab_slabs::Preset;
use slablab_slabs::engines::slab::SlabPolicy;
use slablab_slabs::engines::slub::SlubPolicy;

/// What a cache had otherwise than the rules of its kernel give; the default: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuned {
    /// SLUB: slabs that a node's list keeps.
    pub min_partial: Option<u32>,
    /// SLUB: objects that a CPU's partial list should hold.
    pub cpu_partial: Option<u32>,
    /// SLAB: objects in a CPU's array.
    pub limit: Option<u32>,
    /// SLAB: objects moved at once.
    pub batchcount: Option<u32>,
    /// SLAB: batches in a node's shared array.
    pub shared: Option<u32>,
    /// Red zones, poison, users, checks or tracing: the cache works without lists at CPUs.
    pub debugged: bool,
}

/// The largest values that the knobs `limit` and `shared` of SLAB take. A dump may say any numbers.
const LIMIT_MAX: u32 = 65535;
const SHARED_MAX: u32 = 1024;

impl Tuned {
    /// What the dump says of a cache of a machine that ran `kernel`. A value that is the kernel's rule is
    /// none: another release's engine has that release's rule.
    pub(super) fn of(cache: &CacheBefore, kernel: &Preset, page_size: u32) -> Tuned {
        let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let set = |found: Option<u64>, rule: u32| found.map(number).filter(|found| *found != rule);
        let size = number(cache.size).max(1);
        let knobs = &cache.knobs;
        match kernel {
            Preset::Slub(policy) => {
                let debugged = knobs.debugged;
                // The kernel itself gives debugged caches no partial lists at CPUs.
                let of_cpus = knobs.cpu_partial.filter(|_| !debugged && policy.cpu_slab);
                Tuned {
                    min_partial: set(knobs.min_partial, policy.min_partial_of(size)),
                    cpu_partial: set(of_cpus, policy.cpu_partial_of(size, page_size)),
                    debugged,
                    ..Tuned::default()
                }
            }
            Preset::Slab(_) => Tuned {
                limit: knobs.limit.map(|objects| number(objects).min(LIMIT_MAX)),
                batchcount: knobs.batchcount.map(|objects| number(objects).min(LIMIT_MAX)),
                shared: knobs.shared.map(|batches| number(batches).min(SHARED_MAX)),
                ..Tuned::default()
            },
            Preset::Slqb(_) | Preset::Slob(_) | Preset::Registered(_) => Tuned::default(),
        }
    }

    /// The policy of this cache where `asked` is the engine's.
    pub(super) fn slub(&self, asked: &SlubPolicy) -> SlubPolicy {
        let usual = asked.cpu_partial_factor == 1;
        let number = |of: Option<u32>| of.map(|of| u16::try_from(of).unwrap_or(u16::MAX));
        let (min_partial, cpu_partial) = (number(self.min_partial), number(self.cpu_partial));
        SlubPolicy {
            min_partial_slabs: asked.min_partial_slabs.or(min_partial),
            cpu_partial_objects: asked.cpu_partial_objects.or(cpu_partial.filter(|_| usual)),
            ..*asked
        }
    }

    /// The policy of this cache where `asked` is the engine's.
    pub(super) fn slab(&self, asked: &SlabPolicy) -> SlabPolicy {
        SlabPolicy {
            limit: asked.limit.or(self.limit),
            // Half of a limit that was asked for, not of the kernel's.
            batchcount: asked.batchcount.or(self.batchcount.filter(|_| asked.limit.is_none())),
            shared: asked.shared.or(self.shared),
            ..*asked
        }
    }

    /// Names and values, as the kernel's files have them.
    fn words(&self) -> impl Iterator<Item = String> {
        let named = [("min_partial", self.min_partial), ("cpu_partial", self.cpu_partial)];
        named.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?)))
    }
}

/// Caches that are named in the sentence, at most.
const NAMED: usize = 5;

/// A sentence about what engines of the recording kernel's family take over; `None` for nothing.
pub(super) fn sentence<'a>(caches: impl Iterator<Item = (&'a str, &'a Tuned)>) -> Option<String> {
    let (mut set, mut debugged, mut arrays) = (Vec::new(), 0, 0);
    for (name, tuned) in caches {
        let words: Vec<String> = tuned.words().collect();
        if !words.is_empty() {
            set.push(format!("{name} {}", words.join(" ")));
        }
        debugged += usize::from(tuned.debugged);
        arrays += usize::from(tuned.limit.is_some());
    }
    let mut said = Vec::new();
    if !set.is_empty() {
        let more = if set.len() > NAMED { ", ..." } else { "" };
        let named = set[..set.len().min(NAMED)].join(", ");
        said.push(format!("{} caches have other limits than their size gives ({named}{more})", set.len()));
    }
    if debugged > 0 {
        said.push(format!("{debugged} caches are debugged and have no lists at CPUs"));
    }
    if arrays > 0 {
        said.push(format!("arrays of {arrays} caches are as large as /proc/slabinfo says"));
    }
    let engines = "engines of the recording kernel's family take over what its files say of each cache";
    (!said.is_empty()).then(|| format!("{engines}: {}", said.join("; ")))
}
