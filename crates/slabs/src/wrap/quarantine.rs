//! The quarantine: freed objects that are not reused yet. First in, first out, linked through themselves.

use slablab_platform::Platform;

/// The objects of one cache's quarantine. The caller of every function holds the quarantine's lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quarantine<Ptr> {
    /// The oldest and the newest object.
    ends: Option<(Ptr, Ptr)>,
    count: u64,
}

impl<Ptr> Default for Quarantine<Ptr> {
    fn default() -> Self {
        Quarantine { ends: None, count: 0 }
    }
}

impl<Ptr: Copy + Eq> Quarantine<Ptr> {
    /// The number of objects.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds an object.
    pub(super) fn push<P: Platform<Ptr = Ptr>>(&mut self, object: Ptr, link_offset: u32) {
        P::set_link(object, link_offset, None);
        self.ends = match self.ends {
            None => Some((object, object)),
            Some((oldest, youngest)) => {
                P::set_link(youngest, link_offset, Some(object));
                Some((oldest, object))
            }
        };
        self.count += 1;
    }

    /// Removes the oldest object.
    pub(super) fn pop<P: Platform<Ptr = Ptr>>(&mut self, link_offset: u32) -> Option<Ptr> {
        let (oldest, youngest) = self.ends?;
        self.ends = P::link(oldest, link_offset).map(|next| (next, youngest));
        self.count -= 1;
        Some(oldest)
    }
}
