//! Requests by their sectors, and what merges among them: used by CFQ, deadline and none.

use crate::block::disk::bio::{Bio, Limits, RequestId, Requests, Side};
use std::collections::{BTreeSet, VecDeque};

/// Requests in the order of their first sectors.
#[derive(Debug, Default)]
pub(crate) struct Sorted(BTreeSet<(u64, RequestId)>);

/// A merge: the request that grew, and the request that became a part of it.
pub(crate) struct Merged {
    pub(crate) into: RequestId,
    pub(crate) gone: Option<RequestId>,
}

/// Takes a queued request out of a list in order of arrival; its place there. Most are near the front.
pub(crate) fn leave(fifo: &mut VecDeque<RequestId>, id: RequestId) -> usize {
    let at = fifo.iter().position(|other| *other == id).expect("a queued request is in its fifo");
    fifo.remove(at);
    at
}

/// Takes over in a list in order of arrival that a request became a part of another one: that one has the
/// earlier place of both.
pub(crate) fn fuse(fifo: &mut VecDeque<RequestId>, into: RequestId, gone: RequestId) {
    let at = leave(fifo, gone);
    let at = leave(fifo, into).min(at);
    fifo.insert(at, into);
}

impl Sorted {
    pub(crate) fn add(&mut self, requests: &Requests, id: RequestId) {
        self.0.insert((requests.get(id).sector, id));
    }

    pub(crate) fn remove(&mut self, requests: &Requests, id: RequestId) {
        let was = self.0.remove(&(requests.get(id).sector, id));
        assert!(was, "request {id:?} is not in the elevator");
    }

    /// The first request at `sector` or after it.
    pub(crate) fn at_or_after(&self, sector: u64) -> Option<RequestId> {
        self.0.range((sector, RequestId(0))..).next().map(|(_, id)| *id)
    }

    /// The last request before `sector`.
    pub(crate) fn before(&self, sector: u64) -> Option<RequestId> {
        self.0.range(..(sector, RequestId(0))).next_back().map(|(_, id)| *id)
    }

    pub(crate) fn first(&self) -> Option<RequestId> {
        self.0.first().map(|(_, id)| *id)
    }

    /// Adds a bio to a request that it follows, or else to one that it comes before. The request may then be
    /// adjacent to another one, which becomes a part of it.
    pub(crate) fn merge(
        &mut self,
        requests: &mut Requests,
        bio: &Bio,
        key: u64,
        limits: Limits,
    ) -> Option<Merged> {
        let behind = self.before(bio.sector + 1);
        let ahead = self.at_or_after(bio.end());
        let fits = |id: RequestId, side| requests.get(id).side(bio, limits) == Some(side);
        if let Some(into) = behind.filter(|id| fits(*id, Side::Back)) {
            requests.extend(into, bio, key, Side::Back);
            let gone = ahead.filter(|second| requests.fuse_fits(into, *second, limits));
            gone.inspect(|second| self.fuse(requests, into, *second));
            return Some(Merged { into, gone });
        }
        let into = ahead.filter(|id| fits(*id, Side::Front))?;
        self.remove(requests, into);
        requests.extend(into, bio, key, Side::Front);
        self.add(requests, into);
        let first = behind.filter(|first| requests.fuse_fits(*first, into, limits));
        match first {
            Some(first) => {
                self.fuse(requests, first, into);
                Some(Merged { into: first, gone: Some(into) })
            }
            None => Some(Merged { into, gone: None }),
        }
    }

    fn fuse(&mut self, requests: &mut Requests, first: RequestId, second: RequestId) {
        self.remove(requests, second);
        requests.fuse(first, second);
    }
}
