//! What a single cache has otherwise than its engine: what the recording kernel's files say, and knobs in the
//! engine's text, `CACHE/knob=value`, which win.

use super::tuned::Tuned;
use slablab_slabs::knob::{Policy, With, change, is_called};

/// What a cache has of its own.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    pub(super) tuned: Tuned,
    /// The cache's name.
    pub(super) name: &'a str,
    /// Knobs of single caches, as the grammar has them.
    pub(super) caches: &'a str,
}

impl Own<'_> {
    /// The policy of this cache where `policy` is the engine's.
    pub(crate) fn of<T: Policy>(&self, policy: T) -> T {
        let mut own = With(policy, T::KNOBS);
        for (_, knob) in parts(self.caches).filter(|(cache, _)| is_called(self.name, cache)) {
            change(knob, &mut [&mut own], &[]).expect("the text was parsed");
        }
        own.0
    }
}

/// The first part that is of none of these caches.
pub(super) fn unmet<'a>(caches: &'a str, names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let is_met = |cache: &str| names.clone().any(|name| is_called(name, cache));
    parts(caches).map(|(cache, _)| cache).find(|cache| !is_met(cache))
}

/// Caches and knobs.
fn parts(caches: &str) -> impl Iterator<Item = (&str, &str)> {
    caches.split(',').filter_map(|part| part.rsplit_once('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_slabs::engines::slub::SlubPolicy;

    #[test]
    fn knobs_are_of_caches_by_name() {
        #[track_caller]
        fn check(caches: &str, name: &str, expected: SlubPolicy) {
            let own = Own { tuned: Tuned::default(), name, caches };
            assert_eq!(own.of(SlubPolicy::V7_3), expected, "{caches} {name}");
        }
        let min_partial = |slabs| SlubPolicy { min_partial_slabs: Some(slabs), ..SlubPolicy::V7_3 };
        check("", "dentry", SlubPolicy::V7_3);
        check(",dentry/min_partial=3", "dentry", min_partial(3));
        check(",dentry/min_partial=3", "filp", SlubPolicy::V7_3);
        check(",den*/min_partial=3,dentry/min_partial=4", "dentry", min_partial(4));
        check(",dm/io/min_partial=3", "dm/io", min_partial(3));
    }

    #[test]
    fn a_knob_of_no_cache_is_found() {
        let check = |caches, expected| {
            assert_eq!(unmet(caches, ["dentry", "filp"].into_iter()), expected, "{caches}");
        };
        check("", None);
        check(",dentry/min_partial=3,f*/min_partial=3", None);
        check(",dentry/min_partial=3,dentri/min_partial=3", Some("dentri"));
    }
}
