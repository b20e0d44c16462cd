//! Which page tables a walk looks at: those of spaces that ran, and of them those that were dense.
//!
//! A filter remembers tables that were dense: at least one entry in eight was accessed. The walk that makes
//! generation n + 1 looks only at tables that the walk before or an eviction since put in the filter of n. A
//! walk that enters no space leaves the next one's filter as it was: at first there is none, and the next
//! walk looks at all tables.

use crate::ids::{RegionId, SpaceId};
use crate::mappings::Kind;
use crate::spaces::Backing;
use crate::state::State;

/// Pages below which a space is not walked (from memory).
const LEAST: u32 = 64;
/// Bits of a filter, as a power of two (from memory).
const SHIFT: u32 = 15;

/// A set that may hold more than was put in: two bits a member.
#[derive(Debug, Default)]
pub(super) struct Filter {
    /// Nothing was put in, and nothing asked: everything is in.
    words: Option<Vec<u64>>,
}

impl Filter {
    pub(super) fn reset(&mut self) {
        self.words = Some(vec![0; (1 << SHIFT) / 64]);
    }

    /// The two bits of a table. The hash is ours (assumed): the kernel's is of an address.
    fn bits(region: RegionId, table: u32) -> [usize; 2] {
        let mut hash = u64::from(region.0) << 32 | u64::from(table);
        hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        let mask = (1 << SHIFT) - 1;
        [hash as usize & mask, (hash >> SHIFT) as usize & mask]
    }

    pub(super) fn put(&mut self, region: RegionId, table: u32) {
        let Some(words) = &mut self.words else { return };
        for bit in Filter::bits(region, table) {
            words[bit / 64] |= 1 << (bit % 64);
        }
    }

    pub(super) fn holds(&self, region: RegionId, table: u32) -> bool {
        let Some(words) = &self.words else { return true };
        Filter::bits(region, table).iter().all(|bit| words[bit / 64] >> (bit % 64) & 1 == 1)
    }
}

/// The walks of a node.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    pub(super) filters: [Filter; 2],
    /// A walk is under way: no other one begins.
    pub(crate) is_busy: bool,
    /// It has entered a space.
    has_entered: bool,
    /// Each space's mapped accesses at its last walk: it did not run since if they are the same.
    ran: Vec<Option<(u32, u32)>>,
}

/// Where a walk is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) space: SpaceId,
    /// The place of the region in its space.
    pub(crate) region: usize,
    pub(crate) table: u32,
}

impl Walker {
    /// A walk begins.
    pub(crate) fn begin(&mut self) {
        (self.is_busy, self.has_entered) = (true, false);
    }

    /// A task of a space runs, without an access.
    pub(crate) fn runs(&mut self, space: SpaceId) {
        if let Some(ran) = self.ran.get_mut(space.0 as usize) {
            *ran = None;
        }
    }

    /// Whether the walk that makes the generation after `seq` enters a space: it ran since the last walk, and
    /// has enough pages (`should_skip_mm`; docs/theory/vm.md 4.7).
    pub(crate) fn enters(&mut self, state: &State, seq: u64, space: SpaceId, swaps: bool) -> bool {
        if !state.spaces.exists(space) {
            return false;
        }
        let regions = &state.spaces.space(space).regions;
        let pages = |id: &RegionId| {
            let region = state.spaces.region(*id);
            if swaps || is_file(state, region.backing) { region.resident } else { 0 }
        };
        let accesses = (state.spaces.space(space).epoch, state.spaces.space(space).since_flush);
        let at = space.0 as usize;
        self.ran.resize(self.ran.len().max(at + 1), None);
        let ran = self.ran[at].replace(accesses) != Some(accesses);
        let enters = ran && regions.iter().map(pages).sum::<u32>() >= LEAST;
        if enters && !std::mem::replace(&mut self.has_entered, true) {
            self.filters[(seq + 1) as usize % 2].reset();
        }
        enters
    }
}

/// Whether a region's pages are of the type of files.
pub(super) fn is_file(state: &State, backing: Backing) -> bool {
    match backing {
        Backing::Anon(_) => false,
        Backing::Mapping(id) => state.mappings.get(id).kind != Kind::Tmpfs,
    }
}
