//! The families of policies, one folder each: what becomes of pages, and who reclaims them.
//!
//! | family | kernels |
//! |---|---|
//! | [`classic`] | 6.x: active and inactive lists of a node, refault distance |
//! | [`generations`] | 6.1 and later with `lru_gen` |
//! | [`switch`] | the two before, one of which is on |
//! | [`split`] | 2.6.29: active and inactive lists of a zone, lumpy reclaim |
//! | [`v24`] | 2.4: walks over page tables, page ages; 2.4.10's two lists |
//! | [`cache_ext`] | no kernel: policies of papers, a file each, with the reclaimers of 6.x |
//!
//! A family of a kernel has these files, in this order, where it has these parts. What else it has comes
//! after them.
//!
//! | file | contents |
//! |---|---|
//! | `policy` | the choices in which kernels differ, their knobs and presets |
//! | `node` | a pass over a node, or a run of reclaim: which lists and caches, when it stops, who sleeps |
//! | `scan` | pages taken from a list and evicted |
//! | `balance` | how much of which list |

pub mod cache_ext;
pub mod classic;
pub mod generations;
pub mod split;
pub(crate) mod switch;
pub mod v24;

/// For tests: the choices of a release, with some changed as in `trim=no,tiny=no`.
#[cfg(test)]
pub(crate) fn with_knobs<P: crate::knob::Policy>(release: &str, knobs: &str) -> P {
    let preset = P::PRESETS.iter().find(|preset| preset.release == release).expect("a release");
    let mut policies = preset.policies;
    for (name, value) in knobs.split(',').filter_map(|knob| knob.split_once('=')) {
        let knob = P::KNOBS.iter().find(|knob| knob.name == name).expect("a knob");
        let value = knob.setting(&policies).read(value).expect("a value of the knob");
        (knob.set)(&mut policies, value);
    }
    policies
}
