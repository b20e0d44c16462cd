//! Linus' elevator of 2.4: one list in ascending order, patience in place of a read preference.
//!
//! Each request may be passed by a number of others: its patience, 8192 for a read and 16384 for a write. A
//! new block goes from the tail towards the head, and each request that it meets loses 1. A request without
//! patience stops it. A merge costs each request behind it the block's sectors. docs/theory/block.md 5.

use super::sorted::Merged;
use crate::block::disk::bio::{Bio, Direction, Limits, RequestId, Requests, Side};

/// The patience of new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinusSpec {
    /// Of a read.
    pub read: u32,
    /// Of a write.
    pub write: u32,
}

/// The list, the request that is dispatched next first.
#[derive(Debug)]
pub(crate) struct Linus {
    spec: LinusSpec,
    list: Vec<RequestId>,
    /// Where the bio that was offered last would be put: behind so many requests.
    place: usize,
}

impl Linus {
    pub(crate) fn new(spec: LinusSpec) -> Linus {
        Linus { spec, list: Vec::new(), place: 0 }
    }

    /// Walks from the tail to the head: merges the bio, or notes the place where a request of it goes.
    pub(crate) fn merge(
        &mut self,
        requests: &mut Requests,
        bio: &Bio,
        key: u64,
        limits: Limits,
    ) -> Option<Merged> {
        let mut place = None;
        for at in (0..self.list.len()).rev() {
            let id = self.list[at];
            let request = requests.get_mut(id);
            if request.note == 0 {
                break;
            }
            request.note -= 1;
            if place.is_none() && self.is_between(requests, bio, at) {
                place = Some(at + 1);
            }
            let request = requests.get(id);
            let alike = request.direction == bio.direction
                && request.sectors + bio.sectors <= limits.sectors
                && request.segments < limits.segments;
            if !alike {
                continue;
            }
            if request.note < u64::from(bio.sectors) {
                break;
            }
            if let Some(side) = request.side(bio, limits) {
                return Some(self.merge_at(requests, bio, key, limits, (at, side)));
            }
        }
        self.place = place.unwrap_or(self.list.len());
        None
    }

    /// Whether the bio belongs between the request at `at` and its successor: in ascending order, or where
    /// the list wraps to a lower sector. Behind the last request only if there is no other place.
    fn is_between(&self, requests: &Requests, bio: &Bio, at: usize) -> bool {
        let Some(next) = self.list.get(at + 1) else { return false };
        let (this, next) = (requests.get(self.list[at]).sector, requests.get(*next).sector);
        match this < next {
            true => this < bio.sector && bio.sector < next,
            false => this < bio.sector || bio.sector < next,
        }
    }

    fn merge_at(
        &mut self,
        requests: &mut Requests,
        bio: &Bio,
        key: u64,
        limits: Limits,
        (at, side): (usize, Side),
    ) -> Merged {
        let id = self.list[at];
        let pays = |requests: &mut Requests, id| {
            let note = &mut requests.get_mut(id).note;
            *note = note.saturating_sub(bio.sectors.into());
        };
        self.list[at + 1..].iter().for_each(|behind| pays(requests, *behind));
        if side == Side::Front {
            pays(requests, id);
        }
        requests.extend(id, bio, key, side);
        let neighbours = match side {
            Side::Back => (at + 1 < self.list.len()).then(|| (at, at + 1)),
            Side::Front => at.checked_sub(1).map(|before| (before, at)),
        };
        let fuses = neighbours
            .filter(|(first, second)| requests.fuse_fits(self.list[*first], self.list[*second], limits));
        match fuses {
            Some((first, second)) => {
                let (into, gone) = (self.list[first], self.list.remove(second));
                requests.fuse(into, gone);
                Merged { into, gone: Some(gone) }
            }
            None => Merged { into: id, gone: None },
        }
    }

    /// Puts a request where the walk of its bio ended.
    pub(crate) fn add(&mut self, requests: &mut Requests, id: RequestId) {
        let request = requests.get_mut(id);
        request.note = u64::from(match request.direction {
            Direction::Read => self.spec.read,
            Direction::Write => self.spec.write,
        });
        let place = self.place.min(self.list.len());
        self.list.insert(place, id);
    }

    /// Takes the request at the head.
    pub(crate) fn take(&mut self) -> Option<RequestId> {
        (!self.list.is_empty()).then(|| self.list.remove(0))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
