//! Values that a preset leaves open, chosen for a program.

use slablab_native::system;
use slablab_slabs::engines::slub::{FreeList, LARGE_OVER, NewLinks, RefillReads, SlubPolicy};
use slablab_slabs::order::{COSTLY_ORDER, OrderRule};

/// Bytes of the objects of the largest sheaf: a program's bursts are longer than a kernel's.
const SHEAF_BYTES: u32 = 64 << 10;
/// The same of large objects ([`LARGE_OVER`]), of which programs have few of each size. An exchange of
/// sheaves, some 230 instructions, then serves fewer objects, but programs write to large ones for longer.
/// With half of it, 64 blocks of 4 KiB in a row took 1.25 times as long; with twice as much, a program of
/// many sizes held a twentieth more.
const LARGE_SHEAF_BYTES: u32 = 32 << 10;
/// The order of the largest slabs, 64 KiB on pages of 4 KiB, if the choice names none.
const MAX_ORDER: u8 = COSTLY_ORDER + 1;
/// Addresses in the first sheaf: 12 and the header fill a class of 128 bytes.
const ELASTIC: u16 = 12;

/// Addresses in the largest sheaf of a cache with objects of `object_size` bytes. 252 and the header fill a
/// class.
pub fn sheaf_capacity(object_size: u32) -> u32 {
    match object_size {
        ..=LARGE_OVER => (SHEAF_BYTES / object_size).min(252),
        _ => (LARGE_SHEAF_BYTES / object_size).max(2),
    }
}

/// SLUB's policies for a heap or an object cache: values that a preset leaves open are chosen for a program.
/// `encodes`: links are to be encoded (`harden=encode`), so there must be some.
pub fn slub_here(mut policy: SlubPolicy, encodes: bool) -> SlubPolicy {
    if policy.elastic == 0 {
        policy.elastic = ELASTIC;
    }
    // No page of a slab is touched before an object of it is used. A CPU slab's list has links.
    if policy.freelist == FreeList::Auto && !policy.cpu_slab && !encodes {
        policy.freelist = FreeList::Map;
    }
    if policy.max_order == COSTLY_ORDER {
        // In smaller slabs, of a few objects of 16 to 32 KiB each, a third would be unused.
        policy.max_order = MAX_ORDER;
        // Links touch every page of a new slab.
        let has_links = policy.freelist != FreeList::Map;
        if has_links && policy.order == OrderRule::of(policy.release) && policy.min_objects == 0 {
            policy.order = OrderRule::Lean;
        }
    }
    // Under the lock the objects of a map are a word, and the slab keeps its place.
    (policy.refill_reads, policy.new_links) = (RefillReads::Locked, NewLinks::All);
    policy.order_cpus = u16::try_from(system::cpus_usable()).unwrap_or(u16::MAX);
    // The link is the first word, so that the second can hold the key by which a double free is found.
    policy.link = slablab_slabs::cache::LinkPlace::Start;
    policy
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_slabs::Preset;
    use slablab_slabs::preset::Choice;

    /// The order rule and the largest order of a program's heap.
    fn chosen(text: &str) -> (OrderRule, u8) {
        let Preset::Slub(policy) = Choice::parse(text).expect("a choice").preset else { panic!("{text}") };
        let policy = slub_here(policy, false);
        (policy.order, policy.max_order)
    }

    #[test]
    fn slabs_have_maps_unless_the_choice_says_links() {
        fn check(text: &str, encodes: bool, has_map: bool) {
            let Preset::Slub(policy) = Choice::parse(text).expect("a choice").preset else {
                panic!("{text}")
            };
            assert_eq!(slub_here(policy, encodes).freelist == FreeList::Map, has_map, "{text}");
        }
        check("slub@7.1", false, true);
        check("slub@7.1,freelist=map", false, true);
        check("slub@7.1,freelist=links", false, false);
        check("slub@7.1", true, false);
        check("slub@6.1", false, false);
    }

    #[test]
    fn slabs_with_links_are_lean_unless_the_choice_says_how_large() {
        assert_eq!(chosen("slub@7.1"), (OrderRule::Single, MAX_ORDER));
        assert_eq!(chosen("slub@6.8"), (OrderRule::Lean, MAX_ORDER));
        assert_eq!(chosen("slub@2.6.29"), (OrderRule::Lean, MAX_ORDER));
        assert_eq!(chosen("slub@6.8,min_objects=8"), (OrderRule::Single, MAX_ORDER));
        assert_eq!(chosen("slub@6.8,order=clamped"), (OrderRule::Clamped, MAX_ORDER));
        assert_eq!(chosen("slub@6.8,max_order=2"), (OrderRule::Single, 2));
    }
}
