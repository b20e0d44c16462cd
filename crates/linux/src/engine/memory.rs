//! What a check needs of a tree's allocator: the bytes of objects, which lie in the image's memory, and the
//! frames that it keeps for itself.

use super::cache::Linux;
use crate::image::Booting;
use slablab_engines::ended;
use slablab_platform::Platform;

/// What shim/caches.c says of bytes that are all the value.
const NONE: u64 = u64::MAX;

impl<P: Platform> Linux<P> {
    fn ask(&self, function: u64, arguments: [u64; 5]) -> u64 {
        let image = &self.shared.image;
        image
            .run(0, function, arguments, &Booting(image))
            .unwrap_or_else(|finding| ended(finding.to_string()))
    }

    /// Writes a value over the first bytes of an object.
    pub fn fill(&self, object: P::Ptr, bytes: u32, value: u8) {
        let arguments = [self.address(object), bytes.into(), value.into(), 0, 0];
        self.ask(self.shared.image.functions.fill, arguments);
    }

    /// The first of so many bytes of an object that is not the value, and what it is.
    pub fn differs(&self, object: P::Ptr, bytes: u32, value: u8) -> Option<(u32, u8)> {
        let arguments = [self.address(object), bytes.into(), value.into(), 0, 0];
        match self.ask(self.shared.image.functions.differs, arguments) {
            NONE => None,
            found => Some((found as u32, (found >> 32) as u8)),
        }
    }

    /// Frames of the machine that are slabs of the tree's own caches, of which no engine was asked for.
    pub fn own_frames(&self) -> u64 {
        let image = &self.shared.image;
        let is_own = |first: u64| {
            let cache = self.ask(image.functions.cache_of, [image.address_of(first, 0), 0, 0, 0, 0]);
            cache != 0 && !self.shared.books.ids.borrow().contains_key(&cache)
        };
        let blocks = self.shared.blocks.borrow();
        blocks.iter().filter(|(first, _)| is_own(**first)).map(|(_, block)| 1 << block.order).sum()
    }
}
