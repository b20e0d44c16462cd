//! Compaction: which pages move where, when it stops, and that contents and entries go along.

use slablab_vm::compact::{self, Effort, Wanted};
use slablab_vm::frames::Flags;
use slablab_vm::instant::Instant;
use slablab_vm::spaces::Backing;
use slablab_vm::swap::SlotRule;
use slablab_vm::{
    Ask, Block, Counter, Enter, Frame, Freed, Host, ListId, Pte, Replacement, Settings, Sizes, State, Swap,
    Vm, Zone,
};

/// One list; reclaims nothing.
struct Fifo;

impl Replacement for Fifo {
    fn name(&self) -> String {
        "fifo".into()
    }
    fn lists(&self, _zones: u16, _nodes: u16) -> u16 {
        1
    }
    fn enter(&self, state: &mut State, frame: Frame, _how: Enter, _shadow: Option<u32>) {
        state.push_head(ListId(0), frame);
    }
    fn access(&self, _state: &mut State, _frame: Frame) {}
    fn leave(&self, state: &mut State, frame: Frame) {
        state.unlist(frame);
    }
    fn evict(&self, _state: &mut State, _frame: Frame) -> Option<u32> {
        None
    }
    fn written(&self, _state: &mut State, _frame: Frame) {}
    fn direct(&self, _vm: &Vm, _host: &dyn Host, _ask: &Ask) -> Freed {
        Freed::default()
    }
    fn kswapd(&self, _vm: &Vm, _host: &dyn Host, _node: u16, _order: u8, _class: u8) {}
    fn isolate(&self, state: &mut State, frame: Frame) -> bool {
        state.isolate(frame);
        true
    }
    fn put_back(&self, state: &mut State, frame: Frame) {
        assert!(!state.let_go(frame));
        state.push_head(ListId(0), frame);
    }
    fn sizes(&self, _state: &State) -> Sizes {
        Sizes::default()
    }
}

const FRAMES: u32 = 512;

/// What a compaction of order 3 did.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    success: bool,
    moved: u64,
}

/// A zone of eight pageblocks; anonymous pages are in the frames that `used` says, and `busy` says which of
/// them are under writeback. Compacts for a block of order 3.
#[track_caller]
fn check(used: fn(u32) -> bool, busy: fn(u32) -> bool, effort: Effort, expected: Outcome) {
    let zone = Zone { name: "DMA32", node: 0, class: 0, frames: 0..FRAMES, managed: FRAMES.into() };
    let state = State::new(vec![zone], Swap::new(64, SlotRule::Next), 1, Settings::default());
    let vm = Vm::new(state, Box::new(Fifo));
    let host = Instant::new(FRAMES, [4, 8, 12], 4);
    let region = vm.with(|state| {
        let (space, family) = (state.spaces.create(), state.spaces.family());
        let region = state.spaces.add(space, Backing::Anon(family), FRAMES);
        for frame in (0..FRAMES).filter(|frame| used(*frame)).map(Frame) {
            state.frames.begin(frame, family, frame.0, Flags::ANON | Flags::SWAPBACKED | Flags::UPTODATE);
            state.frames.set_content(frame, frame.0 + 7);
            state.map(region, frame.0, Pte::map(frame, true).dirty(true));
            vm.policy.enter(state, frame, Enter::Anon, None);
            if busy(frame.0) {
                state.begin_write(frame);
            }
        }
        region
    });
    for frame in (0..FRAMES).filter(|frame| used(*frame)) {
        assert_eq!(host.take_free(Frame(frame), 1), [Frame(frame)]);
    }
    let free = host.free_frames();
    let wanted = Wanted { order: 3, block: Block::Movable, class: 0, effort, direct: true };
    let success = compact::direct(&vm, &host, 0, wanted);
    let moved = vm.with(|state| state.counters.get(Counter::PgMigrateSuccess));
    assert_eq!(Outcome { success, moved }, expected);
    assert_eq!(success, host.has_block(0, 3, Block::Movable));
    assert_eq!(host.free_frames(), free, "frames are lost");
    vm.with(|state| {
        state.check().unwrap();
        for page in (0..FRAMES).filter(|page| used(*page)) {
            let pte = state.spaces.region(region).pte(page);
            let frame = pte.frame().expect("the page is mapped");
            assert_eq!(state.frames.content(frame), page + 7, "page {page}");
            assert!(pte.is_dirty() && pte.is_writable());
        }
    });
}

#[test]
fn pages_move_until_there_is_a_block() {
    let never = |_| false;
    // Every second frame: the first 32 pages of the first pageblock move away, and leave blocks behind.
    check(|frame| frame % 2 == 0, never, Effort::Light, Outcome { success: true, moved: 32 });
    // A block is there.
    check(|frame| frame % 2 == 0 && frame > 8, never, Effort::Light, Outcome { success: true, moved: 0 });
    // The pages below are written: only who waits for the ends of writes moves them.
    let low = |frame: u32| frame < 64;
    check(|frame| frame % 2 == 0, low, Effort::Async, Outcome { success: true, moved: 32 });
    // No frame can be moved to: fewer pages are free than the mark and twice the block.
    check(|frame| frame % 26 != 0, never, Effort::Light, Outcome { success: false, moved: 0 });
}

#[test]
fn a_zone_in_which_compaction_fails_is_left_alone() {
    let mut scanners = slablab_vm::scanners::Scanners::default();
    assert!(!scanners.is_deferred(3));
    let mut left_alone = Vec::new();
    for _ in 0..8 {
        scanners.defer(3);
        left_alone.push((0..).take_while(|_| scanners.is_deferred(3)).count());
        assert!(!scanners.is_deferred(2), "lower orders are tried");
    }
    assert_eq!(left_alone, [1, 3, 7, 15, 31, 63, 63, 63]);
    scanners.reset(3);
    assert!(!scanners.is_deferred(3));
}
