//! Buffer heads: what the kernel keeps of the blocks of a page of a file.
//!
//! A page has one here, as with blocks of a page's size: slab memory that is in use as long as the page is
//! in memory or until reclaim takes it from the page ([`Host::buffers_freed`]). Pages in swap have none
//! (assumed: those of 2.4 have, for as long as they are in the swap cache).

use crate::frames::Flags;
use crate::ids::{Frame, MappingId};
use crate::mappings::Kind;
use crate::state::State;
use crate::vm::{Host, Vm};

/// Gives a page that the caller has locked a buffer head, if there is memory for it (docs/theory/vm.md 2.10).
pub(super) fn add(vm: &Vm, host: &dyn Host, frame: Frame) {
    if host.buffers_created(vm, frame) {
        vm.with(|state| state.frames.set(frame, Flags::BUFFERS));
    }
}

/// Locks a page that will be written to and has no buffer head: [`add_locked`] follows. Returns whether that
/// was done.
pub(super) fn lock(state: &mut State, frame: Frame) -> bool {
    let kind = state.mappings.get(MappingId(state.frames.owner(frame))).kind;
    let lacks = matches!(kind, Kind::File | Kind::Device) && !state.frames.has(frame, Flags::BUFFERS);
    if lacks {
        state.frames.set(frame, Flags::LOCKED);
    }
    lacks
}

/// Gives a page that [`lock`] has locked a buffer head, and unlocks it.
pub(super) fn add_locked(vm: &Vm, host: &dyn Host, frame: Frame) {
    add(vm, host, frame);
    vm.with(|state| state.frames.clear(frame, Flags::LOCKED));
    host.wake(frame);
}
