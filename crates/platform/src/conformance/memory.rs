//! Frames, addresses, links, storage.

use super::{Slab, Testable, Verdict, ensure, ensure_eq, first_memory};
use crate::{Field, Frame, NodeId, Pfn, Word};

/// Object sizes that differ in what can go wrong: one word, two, no power of two, a page and more.
const SIZES: [u32; 10] = [8, 16, 24, 96, 192, 256, 704, 2048, 4096, 8192];

/// A few frames of every node: the first, its neighbour, the last.
fn sampled<P: Testable>() -> impl Iterator<Item = Pfn> {
    (0..P::nodes()).map(|node| P::node_frames(NodeId(node))).filter(|(_, count)| *count > 1).flat_map(
        |(first, count)| {
            let last = if count > 2 { count - 1 } else { 1 };
            [first, first.plus(1), first.plus(last)].into_iter().take(count.min(3) as usize)
        },
    )
}

/// Six values that differ between frames and between the words of one.
fn stamp(pfn: Pfn) -> [u64; 6] {
    [1, 2, 3, 4, 5, 6].map(|word| (pfn.0 as u64) << 8 | word)
}

fn words<P: Testable>(frame: &Frame<P>) -> [u64; 6] {
    [
        frame.state.load(),
        frame.slab.load(),
        frame.link.get(),
        frame.owner.get(),
        frame.extra.get(),
        frame.block.get(),
    ]
}

fn set_words<P: Testable>(frame: &Frame<P>, [state, slab, link, owner, extra, block]: [u64; 6]) {
    frame.state.store(state);
    frame.slab.store(slab);
    frame.link.set(link);
    frame.owner.set(owner);
    frame.extra.set(extra);
    frame.block.set(block);
}

pub(super) fn frames_distinct<P: Testable>() -> Verdict {
    for pfn in sampled::<P>() {
        ensure_eq!(P::with_frame(pfn, words::<P>), [0; 6], "a fresh {pfn:?}");
    }
    for pfn in sampled::<P>() {
        ensure!(P::commit_descriptors(pfn, 1), "no memory for the descriptor of {pfn:?}");
        P::with_frame(pfn, |frame| set_words::<P>(frame, stamp(pfn)));
    }
    for pfn in sampled::<P>() {
        ensure_eq!(P::with_frame(pfn, words::<P>), stamp(pfn), "{pfn:?}");
    }
    for pfn in sampled::<P>() {
        P::with_frame(pfn, |frame| set_words::<P>(frame, [0; 6]));
    }
    Ok(())
}

pub(super) fn maps<P: Testable>() -> Verdict {
    let words = (1u32 << P::page_shift()).div_ceil(crate::MAP_BYTES * u64::BITS);
    let each = || sampled::<P>().flat_map(|pfn| (0..words).map(move |word| (pfn, word)));
    let value = |pfn: Pfn, word: u32| (u64::from(pfn.0) << 32) + u64::from(word) + 1;
    for (pfn, word) in each() {
        ensure!(P::commit_descriptors(pfn, 1), "no memory for the map of {pfn:?}");
        P::with_map(pfn, word, |map| map.store(value(pfn, word)));
    }
    for (pfn, word) in each() {
        let found = P::with_map(pfn, word, |map| map.load());
        ensure_eq!(found, value(pfn, word), "word {word} of the map of {pfn:?}");
        P::with_map(pfn, word, |map| map.store(0));
    }
    Ok(())
}

pub(super) fn address_locate<P: Testable>() -> Verdict {
    let (first, count) = P::node_frames(first_memory::<P>()?);
    let page = 1u64 << P::page_shift();
    for frame in 0..count.min(4) {
        for offset in [0, 8, page / 2, page - 8] {
            let inside = frame as u64 * page + offset;
            let expected = (first.plus(frame), offset as u32);
            ensure_eq!(P::locate(P::address(first, inside)), expected, "{inside} bytes into {first:?}");
        }
    }
    Ok(())
}

pub(super) fn addresses_differ<P: Testable>() -> Verdict {
    let (first, count) = P::node_frames(first_memory::<P>()?);
    let page = 1u64 << P::page_shift();
    for offset in (8..page * count.min(2) as u64).step_by(8) {
        let (object, before) = (P::address(first, offset), P::address(first, offset - 8));
        ensure!(object != before, "{} and {offset} bytes into {first:?} are both {object:?}", offset - 8);
    }
    if count > 1 {
        let (from_head, from_frame) = (P::address(first, page), P::address(first.plus(1), 0));
        ensure_eq!(from_head, from_frame, "a page into {first:?} and the start of the next");
    }
    Ok(())
}

/// The object that object `index` is to be linked to.
fn partner<P: Testable>(slab: &Slab<P>, index: u32) -> P::Ptr {
    slab.object((index + 1) % slab.objects())
}

/// Links every object to its partner, at `offset`.
fn link_all<P: Testable>(slab: &Slab<P>, offset: u32) {
    for index in 0..slab.objects() {
        P::set_link(slab.object(index), offset, Some(partner(slab, index)));
    }
}

/// Looks that every link is as [`link_all`] left it, except every `cleared`th, which is none.
fn links_kept<P: Testable>(slab: &Slab<P>, offset: u32, cleared: Option<u32>) -> Verdict {
    for index in 0..slab.objects() {
        let none = cleared.is_some_and(|step| index.is_multiple_of(step));
        let expected = if none { None } else { Some(partner(slab, index)) };
        let found = P::link(slab.object(index), offset);
        ensure_eq!(found, expected, "link {index} of size {} at {offset}", slab.size);
    }
    Ok(())
}

pub(super) fn links<P: Testable>() -> Verdict {
    for size in SIZES {
        let slab = Slab::<P>::new(0, size)?;
        link_all(&slab, 0);
        links_kept(&slab, 0, None)?;
        for index in (0..slab.objects()).step_by(2) {
            P::set_link(slab.object(index), 0, None);
        }
        links_kept(&slab, 0, Some(2))?;
    }
    Ok(())
}

pub(super) fn halves<P: Testable>() -> Verdict {
    let slab = Slab::<P>::new(0, 8)?;
    let (pfn, _) = P::locate(slab.object(0));
    let at = |half: u32| P::address(pfn, half as u64 * 2);
    let count = 1 << (P::page_shift() - 1);
    (0..count).for_each(|half| P::set_half(at(half), !half as u16));
    (0..count).step_by(3).for_each(|half| P::set_half(at(half), half as u16));
    for half in 0..count {
        let expected = if half.is_multiple_of(3) { half as u16 } else { !half as u16 };
        ensure_eq!(P::half(at(half)), expected, "half {half}");
    }
    Ok(())
}

pub(super) fn link_offset<P: Testable>() -> Verdict {
    let slab = Slab::<P>::new(0, 192)?;
    for offset in [8, 96, 184] {
        link_all(&slab, offset);
        links_kept(&slab, offset, None)?;
    }
    Ok(())
}

pub(super) fn slabs_independent<P: Testable>() -> Verdict {
    let (small, large) = (Slab::<P>::new(0, 24)?, Slab::<P>::new(1, 256)?);
    link_all(&small, 0);
    link_all(&large, 0);
    links_kept(&small, 0, None)?;
    for index in (0..small.objects()).step_by(3) {
        P::set_link(small.object(index), 0, None);
    }
    links_kept(&large, 0, None)?;
    links_kept(&small, 0, Some(3))
}

pub(super) fn remap<P: Testable>() -> Verdict {
    for size in [256, 8, 704, 24] {
        let slab = Slab::<P>::new(0, size)?;
        link_all(&slab, 0);
        links_kept(&slab, 0, None)?;
    }
    Ok(())
}

pub(super) fn storage<P: Testable>() -> Verdict {
    const WORDS: u32 = 24;
    let slab = Slab::<P>::new(0, 192)?;
    let (object, other) = (slab.object(1), slab.object(2));
    P::storage_attach(other, WORDS);
    P::storage_store(other, 0, Some(object));
    for _ in 0..2 {
        P::storage_attach(object, WORDS);
        for index in 0..WORDS {
            ensure_eq!(P::storage_load(object, index), None, "word {index} of new storage");
        }
        for index in 0..WORDS {
            P::storage_store(object, index, Some(slab.object(index % slab.objects())));
        }
        P::storage_store(object, 5, None);
        for index in 0..WORDS {
            let expected = if index == 5 { None } else { Some(slab.object(index % slab.objects())) };
            ensure_eq!(P::storage_load(object, index), expected, "word {index} of storage");
        }
        P::storage_detach(object);
    }
    ensure_eq!(P::storage_load(other, 0), Some(object), "a word of other storage");
    P::storage_detach(other);
    P::set_link(object, 0, Some(other));
    ensure_eq!(P::link(object, 0), Some(other), "the link of an object that was storage");
    Ok(())
}

pub(super) fn storage_neighbours<P: Testable>() -> Verdict {
    let slab = Slab::<P>::new(0, 64)?;
    link_all(&slab, 0);
    let object = slab.object(1);
    P::storage_attach(object, 8);
    for index in 0..8 {
        P::storage_store(object, index, Some(object));
    }
    P::storage_detach(object);
    P::fill(object, 64, 0);
    P::set_link(object, 0, Some(partner(&slab, 1)));
    links_kept(&slab, 0, None)
}

/// Checks that all of `bytes` bytes are `value`, and that a search for another value finds the first byte.
fn holds<P: Testable>(at: P::Ptr, bytes: u32, value: u8) -> Verdict {
    ensure_eq!(P::differs(at, bytes, value), None, "{bytes} bytes of {value:#x}");
    ensure_eq!(
        P::differs(at, bytes, !value),
        Some((0, value)),
        "{bytes} bytes of {value:#x}, others asked for"
    );
    Ok(())
}

pub(super) fn bytes<P: Testable>() -> Verdict {
    for size in [24, 192, 704, 8192] {
        let slab = Slab::<P>::new(0, size)?;
        let byte = |index: u32| index as u8 | 1;
        (0..slab.objects()).for_each(|index| P::fill(slab.object(index), size, byte(index)));
        for index in 0..slab.objects() {
            holds::<P>(slab.object(index), size, byte(index))?;
        }
        // Parts of words, and a part that goes over them.
        let object = slab.object(1);
        let (pfn, offset) = P::locate(object);
        let inside = |from: u32| P::address(pfn, (offset + from) as u64);
        for (from, bytes) in [(3, 2), (5, 9), (size - 1, 1), (0, size - 1)] {
            P::fill(object, size, 0x6b);
            P::fill(inside(from), bytes, 0xbb);
            holds::<P>(inside(from), bytes, 0xbb)?;
            let first = if from == 0 { (0, 0xbb) } else { (from, 0xbb) };
            ensure_eq!(
                P::differs(object, size, 0x6b),
                Some(first),
                "{bytes} bytes of {size} changed at {from}"
            );
            P::fill(inside(from), bytes, 0x6b);
            holds::<P>(object, size, 0x6b)?;
        }
        P::fill(object, size, 0);
        holds::<P>(object, size, 0)?;
        holds::<P>(slab.object(0), size, byte(0))?;
    }
    Ok(())
}

pub(super) fn whole_words<P: Testable>() -> Verdict {
    let slab = Slab::<P>::new(0, 24)?;
    let stamp = |index: u32| (index as u64) << 40 | 0xcc;
    for index in 0..slab.objects() {
        P::fill(slab.object(index), 24, 0x6b);
        P::set_word(slab.object(index), stamp(index));
    }
    for index in 0..slab.objects() {
        ensure_eq!(P::word(slab.object(index)), stamp(index), "word of object {index}");
        ensure_eq!(P::differs(slab.object(index), 24, 0xcc), Some((1, 0)), "bytes of the word, lowest first");
    }
    P::fill(slab.object(0), 8, 0x5a);
    ensure_eq!(P::word(slab.object(0)), 0x5a5a_5a5a_5a5a_5a5a, "a word of bytes");
    Ok(())
}

pub(super) fn bytes_and_links<P: Testable>() -> Verdict {
    let slab = Slab::<P>::new(0, 192)?;
    link_all(&slab, 96);
    for index in 0..slab.objects() {
        let (pfn, offset) = P::locate(slab.object(index));
        P::fill(slab.object(index), 96, 0x6b);
        P::fill(P::address(pfn, offset as u64 + 104), 88, 0x5a);
    }
    links_kept(&slab, 96, None)?;
    link_all(&slab, 96);
    for index in 0..slab.objects() {
        holds::<P>(slab.object(index), 96, 0x6b)?;
    }
    Ok(())
}

pub(super) fn marks<P: Testable>() -> Verdict {
    for size in [8, 24, 4096] {
        let slab = Slab::<P>::new(0, size)?;
        let odd = |index: &u32| index % 2 == 1;
        for index in 0..slab.objects() {
            ensure!(!P::mark_live(slab.object(index), false), "object {index} of {size} is marked at first");
        }
        for index in (0..slab.objects()).filter(odd) {
            ensure!(!P::mark_live(slab.object(index), true), "object {index} of {size} is marked already");
        }
        P::fill(slab.object(0), size, 0x6b);
        for index in 0..slab.objects() {
            let marked = P::mark_live(slab.object(index), false);
            ensure_eq!(marked, odd(&index), "the mark of object {index} of {size}");
        }
    }
    Ok(())
}
