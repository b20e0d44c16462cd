#![doc = include_str!("../../../../docs/sheaves.md")]

mod barn;
mod bulk;
mod elastic;
mod exchange;
mod exposed;
mod keep;
mod prefill;
mod rcu;

pub(in crate::engines::slub) use barn::BarnLock;
pub use elastic::LARGE_OVER;
pub(in crate::engines::slub) use elastic::{SHEAVES_A_CALL, barn_full};

use super::direct::Busy;
use super::runs::WINDOW;
use super::{Refill, Slot, Slub, Tally};
use crate::backing::Backing;
use crate::lent::word;
use crate::report::Misuse;
use crate::slab::Slab;
use barn::Refused;
use core::cell::Cell;
use keep::Batch;
use slablab_pages::Pages;
use slablab_platform::{Event, Gfp, HotArray, Local, NodeId, PerCpu, Platform};

/// Objects that leave a sheaf for slabs at a time where sheaves grow.
const BATCH_MAX: usize = 32;

/// A sheaf and how many objects are in it.
struct Stock<P: Platform> {
    sheaf: P::Ptr,
    size: u32,
}

impl<P: Platform> Clone for Stock<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for Stock<P> {}

impl<P: Platform> Stock<P> {
    fn empty(sheaf: P::Ptr) -> Self {
        Stock { sheaf, size: 0 }
    }
}

/// The next object of a main sheaf, asked for by node.
enum Next<P: Platform> {
    /// It is of the node, and was taken.
    Taken(P::Ptr),
    /// It is of another node.
    OfOtherNode,
    /// There is none.
    None,
}

/// Why a full main sheaf is not exchanged.
enum NoRoom<P: Platform> {
    /// The main sheaf can grow instead.
    Young,
    NoBarn,
    /// The slot has no spare; the number is the node of its barn.
    NoSpare(NodeId),
    /// The spare is full too, and the barn has no empty sheaf.
    NoEmpty,
    /// The spare is full too, and the barn takes no more full ones.
    FullBarn(Stock<P>),
}

/// The part of a slot that the hot array does not hold.
pub(super) struct CpuSheaves<P: Platform> {
    /// The second sheaf, exchanged with the main one. In a cell: `exchange` does not hold the slot.
    spare: Cell<Option<Stock<P>>>,
    /// Collects objects whose readers may still run.
    rcu: Option<Stock<P>>,
    /// Bytes that were counted for the main sheaf ([`Local::reserve`]).
    reserved: u32,
    /// The main sheaf's size when a periodic shrink last looked, plus 1; 0 before the first look.
    seen: u32,
}

impl<P: Platform> Default for CpuSheaves<P> {
    fn default() -> Self {
        CpuSheaves { spare: Cell::new(None), rcu: None, reserved: 0, seen: 0 }
    }
}

impl<P: Platform> Slub<P> {
    #[inline]
    pub(super) fn alloc_from_sheaf(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        if let Some(node) = node {
            return self.alloc_on_node(backing, gfp, node);
        }
        if let Some(object) = self.slots.pop(Event::AllocFastpath) {
            return Some(object);
        }
        if self.next_full_sheaf(backing, gfp)
            && let Some(object) = self.slots.pop(Event::AllocFastpath)
        {
            return Some(object);
        }
        self.alloc_from_slab(backing, gfp, None, Tally::ALLOC)
    }

    /// Serves a request for a node: from the sheaf only on that node's CPUs, and only if the next object is
    /// of that node.
    #[cold]
    fn alloc_on_node(&self, backing: &Backing<'_, P>, gfp: Gfp, node: NodeId) -> Option<P::Ptr> {
        if node == P::memory_node() {
            let next = match self.pop_of(node) {
                Next::None if self.next_full_sheaf(backing, gfp) => self.pop_of(node),
                next => next,
            };
            match next {
                Next::Taken(object) => return Some(object),
                Next::OfOtherNode => self.mismatch(),
                Next::None => {}
            }
        } else {
            self.mismatch();
        }
        self.alloc_from_slab(backing, gfp, Some(node), Tally::ALLOC)
    }

    /// A sheaf did not serve a request for a node. Where CPU slabs are, they count that.
    fn mismatch(&self) {
        if !self.policy.cpu_slab {
            self.slots.count(Event::AllocNodeMismatch, 1);
        }
    }

    /// Takes the main sheaf's next object, if it is of a node.
    fn pop_of(&self, node: NodeId) -> Next<P> {
        let Some(mut slot) = self.slots.local() else { return Next::None };
        let main = slot.array();
        let (Some(sheaf), Some(size)) = (main.storage, main.size.checked_sub(1)) else { return Next::None };
        let Some(object) = P::storage_load(sheaf, word(size)) else { return Next::None };
        if Self::node_of(object) != Some(node) {
            return Next::OfOtherNode;
        }
        slot.set_array(HotArray { size, ..main });
        slot.count(Event::AllocFastpath, 1);
        Next::Taken(object)
    }

    fn node_of(object: P::Ptr) -> Option<NodeId> {
        Slab::<P>::of(object).map(|(_, state)| state.node)
    }

    /// Makes the main sheaf hold objects: exchanges it for a full one, or fills one from slabs.
    #[cold]
    #[inline(never)]
    fn next_full_sheaf(&self, backing: &Backing<'_, P>, gfp: Gfp) -> bool {
        let Some(mut slot) = self.slot_with_main(backing) else { return false };
        if slot.asked() {
            self.flush_slot(backing, &mut slot);
            let taken = self.take_sheaves(&mut slot);
            drop(slot);
            self.flush_taken(backing, taken);
            return false;
        }
        if self.swap_in(&mut slot) {
            return true;
        }
        // Without a barn there is no refill either.
        let Some(barn) = self.barn_node(slot.cpu()) else { return false };
        if self.is_young(&slot.array()) {
            drop(slot);
            return self.refill_young(backing, gfp);
        }
        if self.policy.refill == Refill::MayBlock && !gfp.any(Gfp::DIRECT_RECLAIM) {
            return false;
        }
        let spare = slot.sheaves.spare.take().map(|spare| spare.sheaf);
        drop(slot);
        let kept = spare.or_else(|| self.get_empty(barn));
        let Some(sheaf) = kept.or_else(|| self.new_sheaf(backing, self.sheaf_capacity, gfp)) else {
            return false;
        };
        let size = self.fill(backing, gfp, Stock::empty(sheaf), self.refill_of(self.sheaf_capacity));
        self.install_filled(backing, Stock { sheaf, size })
    }

    /// Makes the main sheaf hold objects if the spare or the barn has some. True if it then holds some.
    #[inline]
    pub(super) fn next_kept_sheaf(&self) -> bool {
        self.slots.local().is_some_and(|mut slot| slot.array().storage.is_some() && self.swap_in(&mut slot))
    }

    /// Exchanges an empty main sheaf for the spare, or for a full one of the barn.
    fn swap_in(&self, slot: &mut Slot<'_, P>) -> bool {
        let main = slot.array();
        let Some(empty) = main.storage.filter(|_| main.size == 0) else { return true };
        if self.is_young(&main) {
            return false;
        }
        if let Some(spare) = slot.sheaves.spare.get().filter(|spare| spare.size > 0) {
            slot.sheaves.spare.set(Some(Stock::empty(empty)));
            slot.set_array(HotArray { storage: Some(spare.sheaf), size: spare.size, ..main });
            return true;
        }
        let Some(barn) = self.barn_node(slot.cpu()) else { return false };
        match self.replace_empty(barn, empty) {
            Some(full) => {
                slot.count(Event::BarnGet, 1);
                slot.set_array(HotArray { storage: Some(full), size: main.capacity, ..main });
                true
            }
            None => {
                slot.count(Event::BarnGetFail, 1);
                false
            }
        }
    }

    /// Fills a sheaf from slabs up to `most` objects, without the slot, and returns its size. Reserves stay
    /// untouched.
    fn fill(&self, backing: &Backing<'_, P>, gfp: Gfp, stock: Stock<P>, most: u32) -> u32 {
        if self.policy.elastic > 0 {
            self.note_rising();
        }
        let gfp = (gfp | Gfp::NOMEMALLOC | Gfp::NOWARN) & !(Gfp::ZERO | Gfp::MEMALLOC | Gfp::THISNODE);
        if self.has_map() {
            return self.fill_downwards(backing, gfp, stock, most);
        }
        self.fill_upwards(backing, gfp, stock, most)
    }

    /// [`Slub::fill`] from lists of links. A function of its own: a cache needs one of the two ways, and a
    /// process need not have the other's code resident.
    #[inline(never)]
    fn fill_upwards(&self, backing: &Backing<'_, P>, gfp: Gfp, stock: Stock<P>, most: u32) -> u32 {
        let mut size = stock.size;
        let mut put = |object| {
            P::storage_store(stock.sheaf, word(size), Some(object));
            size += 1;
        };
        if !self.policy.cpu_slab {
            let got = self.gather(backing, gfp, None, most - stock.size, Busy::Skip, &mut put);
            self.slots.count(Event::SheafRefill, got as u64);
            return size;
        }
        for _ in stock.size..most {
            match self.alloc_from_slab(backing, gfp, None, Tally::REFILL) {
                Some(object) => put(object),
                None => break,
            }
        }
        size
    }

    /// [`Slub::fill`] from the sheaf's end on. A sheaf hands out its last object first: so it hands them out
    /// in the order of the slabs and of their maps, which is that of their addresses while memory is new, and
    /// a program that walks over what it allocated together walks over memory in its order.
    fn fill_downwards(&self, backing: &Backing<'_, P>, gfp: Gfp, stock: Stock<P>, most: u32) -> u32 {
        let mut first = most;
        let mut put = |object| {
            first -= 1;
            P::storage_store(stock.sheaf, word(first), Some(object));
        };
        let got = self.gather(backing, gfp, None, most - stock.size, Busy::Skip, &mut put);
        self.slots.count(Event::SheafRefill, got as u64);
        if first > stock.size {
            Self::copy(stock.sheaf, first, stock.sheaf, stock.size, got);
        }
        stock.size + got
    }

    /// Makes a sheaf, filled while the slot was released, the main sheaf. If the main sheaf has objects
    /// again, the other one becomes the spare, goes to the barn, or is flushed.
    fn install_filled(&self, backing: &Backing<'_, P>, stock: Stock<P>) -> bool {
        let Some(mut slot) = self.slots.local() else {
            self.flush_taken(backing, [Some(stock), None]);
            return false;
        };
        let main = slot.array();
        let left = if stock.size == 0 {
            self.stow_empty(&mut slot, stock.sheaf).map(Stock::empty)
        } else if main.size == 0 {
            let array =
                HotArray { storage: Some(stock.sheaf), size: stock.size, capacity: self.sheaf_capacity };
            self.set_main(&mut slot, array);
            let young = self.is_young(&main).then_some(main.storage).flatten();
            if let Some(young) = young {
                drop(slot);
                self.retire(backing, young);
                return true;
            }
            main.storage.and_then(|empty| self.stow_empty(&mut slot, empty)).map(Stock::empty)
        } else if slot.sheaves.spare.get().is_none() && stock.size == self.sheaf_capacity {
            slot.sheaves.spare.set(Some(stock));
            None
        } else {
            let barn = self.barn_node(slot.cpu()).filter(|_| stock.size == self.sheaf_capacity);
            let put = barn.is_some_and(|barn| self.put_full(barn, stock.sheaf));
            (!put).then_some(stock)
        };
        let serves = slot.array().size > 0;
        drop(slot);
        self.flush_taken(backing, [left, None]);
        serves
    }

    #[inline]
    pub(super) fn free_to_sheaf(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<(), Misuse> {
        let Some((pfn, state)) = Pages::<P>::block_of(object) else {
            return Err(Misuse::NotInSlab);
        };
        if self.takes(state) {
            // An address in an array is handed out unchecked later, so it is checked now.
            self.check(object, pfn, state)?;
            if self.slots.push(object, Event::FreeFastpath)
                || (self.next_empty_sheaf(backing) && self.slots.push(object, Event::FreeFastpath))
            {
                return Ok(());
            }
        }
        self.free_to_slab(backing, object, Tally::FREE)
    }

    /// Makes room in the main sheaf: a spare with room, an empty one of the barn for the full one, a new one,
    /// or a flush.
    #[cold]
    #[inline(never)]
    fn next_empty_sheaf(&self, backing: &Backing<'_, P>) -> bool {
        if self.does_without_sheaf() {
            return false;
        }
        let Some(mut slot) = self.slot_with_main(backing) else { return false };
        let new = || self.new_sheaf(backing, self.sheaf_capacity, Gfp::NOWAIT);
        let empty = match self.swap_out(&mut slot) {
            Ok(()) => return true,
            Err(NoRoom::Young) => {
                drop(slot);
                return self.grow_young(backing) || self.flush_main(backing);
            }
            Err(NoRoom::NoBarn) => return false,
            Err(NoRoom::NoSpare(barn)) => {
                let kept = self.get_empty(barn);
                drop(slot);
                kept.or_else(new)
            }
            Err(NoRoom::NoEmpty) => {
                drop(slot);
                new()
            }
            Err(NoRoom::FullBarn(spare)) => {
                slot.sheaves.spare.set(None);
                drop(slot);
                self.flush(backing, spare);
                Some(spare.sheaf)
            }
        };
        empty.is_some_and(|empty| self.install_empty(backing, empty)) || self.flush_main(backing)
    }

    /// Exchanges a full main sheaf for a spare with room, or for an empty one of the barn.
    fn swap_out(&self, slot: &mut Slot<'_, P>) -> Result<(), NoRoom<P>> {
        let main = slot.array();
        let Some(full) = main.storage.filter(|_| main.size == main.capacity) else { return Ok(()) };
        if self.is_young(&main) {
            return Err(NoRoom::Young);
        }
        let barn = self.barn_node(slot.cpu()).ok_or(NoRoom::NoBarn)?;
        let spare = slot.sheaves.spare.get().ok_or(NoRoom::NoSpare(barn))?;
        if spare.size < main.capacity {
            let left = self.leave_full(full, main.size, spare);
            slot.sheaves.spare.set(Some(Stock { sheaf: full, size: left }));
            let size = spare.size + main.size - left;
            slot.set_array(HotArray { storage: Some(spare.sheaf), size, ..main });
            return Ok(());
        }
        match self.replace_full(barn, full) {
            Ok(empty) => {
                slot.count(Event::BarnPut, 1);
                slot.set_array(HotArray { storage: Some(empty), size: 0, ..main });
                Ok(())
            }
            Err(Refused::TooMany) => {
                slot.count(Event::BarnPutFail, 1);
                Err(NoRoom::FullBarn(spare))
            }
            Err(Refused::NoEmpty) => Err(NoRoom::NoEmpty),
        }
    }

    /// Makes an empty sheaf, got while the slot was released, the main sheaf, unless that has room again.
    fn install_empty(&self, backing: &Backing<'_, P>, empty: P::Ptr) -> bool {
        let Some(mut slot) = self.slots.local() else {
            self.retire(backing, empty);
            return false;
        };
        let main = slot.array();
        let full = main.storage.filter(|_| main.size == main.capacity && !self.is_young(&main));
        let mut left = Some(empty);
        if let Some(full) = full {
            let barn = self.barn_node(slot.cpu());
            let stored = match slot.sheaves.spare.get() {
                None => {
                    slot.sheaves.spare.set(Some(Stock { sheaf: full, size: main.size }));
                    true
                }
                Some(_) => {
                    let put = barn.is_some_and(|barn| self.put_full(barn, full));
                    slot.count(if put { Event::BarnPut } else { Event::BarnPutFail }, 1);
                    put
                }
            };
            if stored {
                slot.set_array(HotArray { storage: left.take(), size: 0, ..main });
            }
        }
        let left = left.and_then(|empty| self.stow_empty(&mut slot, empty));
        let room = slot.array().size < slot.array().capacity;
        drop(slot);
        left.into_iter().for_each(|empty| self.retire(backing, empty));
        room
    }

    /// Frees a batch of the main sheaf's objects to slabs, of a young sheaf's half: the last resort.
    fn flush_main(&self, backing: &Backing<'_, P>) -> bool {
        self.slots.local().is_some_and(|slot| self.flush_main_of(backing, slot))
    }

    /// As [`Slub::flush_main`], of a CPU's slot, which is released before.
    fn flush_main_of(&self, backing: &Backing<'_, P>, mut slot: Slot<'_, P>) -> bool {
        let main = slot.array();
        let Some(sheaf) = main.storage else { return false };
        let most = if self.is_young(&main) { main.size.div_ceil(2) } else { self.policy.sheaf_batch.into() };
        let keep = main.size.saturating_sub(most.min(self.policy.sheaf_batch.into()));
        let batch = Batch::<P, WINDOW>::read(self.id, sheaf, keep, main.size);
        slot.set_array(HotArray { size: keep, ..main });
        drop(slot);
        self.free_batch(backing, batch);
        true
    }
}
