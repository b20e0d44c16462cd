//! `delegate!`: a world around a world states only what differs.

/// Forwards functions of the contract to another world, by name.
///
/// A whole trait, in item position:
/// ```text
/// delegate! { impl[P: Platform] Topology for Around<P> => P }
/// ```
/// A trait with exceptions, in item position: the names that are forwarded, then the functions that differ. A
/// function that is in neither list is a compile error.
/// ```text
/// delegate! { impl[P: Platform] Hooks for Around<P> => P: reclaim permit count random secret;
///     fn broken(cache: Option<u32>, what: fmt::Arguments<'_>) -> ! { .. }
/// }
/// ```
/// Functions alone, in an impl or as a trait's default methods: `delegate! { P: now context }` forwards to
/// the world `P`, `delegate! { P => T: now context }` to the type `T`, which has functions of these names
/// over `P`'s types.
#[macro_export]
macro_rules! delegate {
    (impl[$($generics:tt)*] Topology for $world:ty => $p:ty) => {
        $crate::delegate! { impl[$($generics)*] Topology for $world => $p:
            cpus nodes page_shift cpu cpu_node cpu_memory_node memory_node distance node_frames cpu_online; }
    };
    (impl[$($generics:tt)*] Frames for $world:ty => $p:ty) => {
        $crate::delegate! { impl[$($generics)*] Frames for $world => $p:
            with_frame with_map address locate commit_descriptors commit_frames has_memory map_slab
            unmap_slab; }
    };
    (impl[$($generics:tt)*] Memory for $world:ty => $p:ty) => {
        $crate::delegate! { impl[$($generics)*] Memory for $world => $p: link set_link half set_half storage_attach
            storage_load storage_store storage_detach fill differs word set_word mark_live; }
    };
    (impl[$($generics:tt)*] Time for $world:ty => $p:ty) => {
        $crate::delegate! { impl[$($generics)*] Time for $world => $p: now context defer after_grace_period; }
    };
    (impl[$($generics:tt)*] Hooks for $world:ty => $p:ty) => {
        $crate::delegate! { impl[$($generics)*] Hooks for $world => $p:
            reclaim is_reclaimer clean_frames keeps_freed permit count random secret charges touched ran made_at
            aside walk visits broken; }
    };
    (impl[$($generics:tt)*] Testable for $world:ty => $p:ty) => {
        $crate::delegate! { impl[$($generics)*] Testable for $world => $p:
            COUNTS SERVES STANDS_STILL SYMMETRIC claims_live on_cpu set_online still advance end_grace_period due
            counted race; }
    };
    (impl[$($generics:tt)*] Memory for $world:ty => $p:ty: $($name:ident)*; $($own:item)*) => {
        $crate::safe_memory! { impl[$($generics)*] $world;
            $($own)*
            $crate::delegate! { $p: $($name)* }
        }
    };
    (impl[$($generics:tt)*] Frames for $world:ty => $p:ty: $($name:ident)*; $($own:item)*) => {
        impl<$($generics)*> $crate::Frames for $world {
            type Ptr = <$p as $crate::Frames>::Ptr;
            type Word = <$p as $crate::Frames>::Word;
            type Field = <$p as $crate::Frames>::Field;
            $($own)*
            $crate::delegate! { $p: $($name)* }
        }
    };
    (impl[$($generics:tt)*] Testable for $world:ty => $p:ty: $($name:ident)*; $($own:item)*) => {
        impl<$($generics)*> $crate::conformance::Testable for $world {
            $($own)*
            $crate::delegate! { $p: $($name)* }
        }
    };
    (impl[$($generics:tt)*] $part:ident for $world:ty => $p:ty: $($name:ident)*; $($own:item)*) => {
        impl<$($generics)*> $crate::$part for $world {
            $($own)*
            $crate::delegate! { $p: $($name)* }
        }
    };
    ($p:ty: $($name:ident)*) => { $($crate::delegated! { $name $p, $p })* };
    ($p:ty => $to:ty: $($name:ident)*) => { $($crate::delegated! { $name $p, $to })* };
}

/// One function of the contract over the types of `$p`, forwarded to `$to`.
#[doc(hidden)]
#[macro_export]
macro_rules! delegated {
    (@ $to:ty, $name:ident($($arg:ident: $type:ty),*) $(-> $answer:ty)?) => {
        #[inline]
        #[allow(missing_docs, reason = "the contract's trait documents the function")]
        fn $name($($arg: $type),*) $(-> $answer)? { <$to>::$name($($arg),*) }
    };
    // Topology.
    (cpus $p:ty, $to:ty) => { $crate::delegated! { @ $to, cpus() -> u16 } };
    (nodes $p:ty, $to:ty) => { $crate::delegated! { @ $to, nodes() -> u16 } };
    (page_shift $p:ty, $to:ty) => { $crate::delegated! { @ $to, page_shift() -> u32 } };
    (cpu $p:ty, $to:ty) => { $crate::delegated! { @ $to, cpu() -> $crate::CpuId } };
    (cpu_node $p:ty, $to:ty) => { $crate::delegated! { @ $to, cpu_node(cpu: $crate::CpuId) -> $crate::NodeId } };
    (cpu_memory_node $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, cpu_memory_node(cpu: $crate::CpuId) -> $crate::NodeId }
    };
    (memory_node $p:ty, $to:ty) => { $crate::delegated! { @ $to, memory_node() -> $crate::NodeId } };
    (distance $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, distance(from: $crate::NodeId, to: $crate::NodeId) -> u32 }
    };
    (node_frames $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, node_frames(node: $crate::NodeId) -> ($crate::Pfn, u32) }
    };
    (cpu_online $p:ty, $to:ty) => { $crate::delegated! { @ $to, cpu_online(cpu: $crate::CpuId) -> bool } };
    // Frames.
    (with_frame $p:ty, $to:ty) => {
        #[inline]
        fn with_frame<R>(pfn: $crate::Pfn, f: impl FnOnce(&$crate::Frame<Self>) -> R) -> R {
            <$to>::with_frame(pfn, f)
        }
    };
    (with_map $p:ty, $to:ty) => {
        #[inline]
        fn with_map<R>(pfn: $crate::Pfn, index: u32, f: impl FnOnce(&<$p as $crate::Frames>::Word) -> R) -> R {
            <$to>::with_map(pfn, index, f)
        }
    };
    (address $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, address(pfn: $crate::Pfn, offset: u64) -> <$p as $crate::Frames>::Ptr }
    };
    (locate $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, locate(object: <$p as $crate::Frames>::Ptr) -> ($crate::Pfn, u32) }
    };
    (commit_descriptors $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, commit_descriptors(first: $crate::Pfn, frames: u32) -> bool }
    };
    (commit_frames $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, commit_frames(first: $crate::Pfn, frames: u32) -> bool }
    };
    (has_memory $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, has_memory(first: $crate::Pfn, frames: u32) -> bool }
    };
    (map_slab $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, map_slab(pfn: $crate::Pfn, order: u8, size: u32, cache: u32) }
    };
    (unmap_slab $p:ty, $to:ty) => { $crate::delegated! { @ $to, unmap_slab(pfn: $crate::Pfn, order: u8) } };
    // Memory.
    (link $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, link(object: <$p as $crate::Frames>::Ptr, offset: u32)
            -> Option<<$p as $crate::Frames>::Ptr> }
    };
    (set_link $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, set_link(object: <$p as $crate::Frames>::Ptr, offset: u32,
            next: Option<<$p as $crate::Frames>::Ptr>) }
    };
    (half $p:ty, $to:ty) => { $crate::delegated! { @ $to, half(at: <$p as $crate::Frames>::Ptr) -> u16 } };
    (set_half $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, set_half(at: <$p as $crate::Frames>::Ptr, value: u16) }
    };
    (storage_attach $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, storage_attach(object: <$p as $crate::Frames>::Ptr, words: u32) }
    };
    (storage_load $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, storage_load(object: <$p as $crate::Frames>::Ptr, index: u32)
            -> Option<<$p as $crate::Frames>::Ptr> }
    };
    (storage_store $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, storage_store(object: <$p as $crate::Frames>::Ptr, index: u32,
            value: Option<<$p as $crate::Frames>::Ptr>) }
    };
    (storage_detach $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, storage_detach(object: <$p as $crate::Frames>::Ptr) }
    };
    (fill $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, fill(at: <$p as $crate::Frames>::Ptr, bytes: u32, value: u8) }
    };
    (differs $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, differs(at: <$p as $crate::Frames>::Ptr, bytes: u32, value: u8)
            -> Option<(u32, u8)> }
    };
    (word $p:ty, $to:ty) => { $crate::delegated! { @ $to, word(at: <$p as $crate::Frames>::Ptr) -> u64 } };
    (set_word $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, set_word(at: <$p as $crate::Frames>::Ptr, value: u64) }
    };
    (mark_live $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, mark_live(object: <$p as $crate::Frames>::Ptr, live: bool) -> bool }
    };
    // Time.
    (now $p:ty, $to:ty) => { $crate::delegated! { @ $to, now() -> u64 } };
    (context $p:ty, $to:ty) => { $crate::delegated! { @ $to, context() -> $crate::Context } };
    (defer $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, defer(cpu: $crate::CpuId, delay_ns: u64, work: $crate::Work) }
    };
    (after_grace_period $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, after_grace_period(work: $crate::Work) }
    };
    // Hooks.
    (reclaim $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, reclaim(ask: $crate::Reclaim) -> $crate::Reclaimed }
    };
    (clean_frames $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, clean_frames(node: $crate::NodeId, zone: u8) -> u64 }
    };
    (keeps_freed $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, keeps_freed(pfn: $crate::Pfn, order: u8) -> bool }
    };
    (is_reclaimer $p:ty, $to:ty) => { $crate::delegated! { @ $to, is_reclaimer() -> bool } };
    (permit $p:ty, $to:ty) => { $crate::delegated! { @ $to, permit(order: u8, gfp: $crate::Gfp) -> bool } };
    (count $p:ty, $to:ty) => { $crate::delegated! { @ $to, count(event: $crate::Event, n: u64) } };
    (random $p:ty, $to:ty) => { $crate::delegated! { @ $to, random() -> u32 } };
    (charges $p:ty, $to:ty) => { $crate::delegated! { @ $to, charges() -> bool } };
    (touched $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, touched(site: $crate::Site, bytes: u32, touch: $crate::Touch) -> $crate::Charged }
    };
    (ran $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, ran(step: $crate::Step, times: u64) -> $crate::Charged }
    };
    (made_at $p:ty, $to:ty) => {
        #[inline]
        fn made_at<R>(site: $crate::Site, make: impl FnOnce() -> R) -> R {
            <$to>::made_at(site, make)
        }
    };
    (aside $p:ty, $to:ty) => {
        #[inline]
        fn aside<R>(f: impl FnOnce() -> R) -> R {
            <$to>::aside(f)
        }
    };
    (walk $p:ty, $to:ty) => {
        #[inline]
        fn walk<R>(f: impl FnOnce() -> R) -> R {
            <$to>::walk(f)
        }
    };
    (visits $p:ty, $to:ty) => { $crate::delegated! { @ $to, visits() } };
    (secret $p:ty, $to:ty) => { $crate::delegated! { @ $to, secret() -> u64 } };
    (broken $p:ty, $to:ty) => {
        $crate::delegated! { @ $to, broken(cache: Option<u32>, what: ::core::fmt::Arguments<'_>) -> ! }
    };
    // Testable.
    (COUNTS $p:ty, $to:ty) => { const COUNTS: bool = <$to>::COUNTS; };
    (SERVES $p:ty, $to:ty) => { const SERVES: bool = <$to>::SERVES; };
    (STANDS_STILL $p:ty, $to:ty) => { const STANDS_STILL: bool = <$to>::STANDS_STILL; };
    (SYMMETRIC $p:ty, $to:ty) => { const SYMMETRIC: bool = <$to>::SYMMETRIC; };
    (claims_live $p:ty, $to:ty) => { $crate::delegated! { @ $to, claims_live() -> bool } };
    (on_cpu $p:ty, $to:ty) => {
        fn on_cpu<R>(cpu: $crate::CpuId, f: impl FnOnce() -> R) -> R {
            <$to>::on_cpu(cpu, f)
        }
    };
    (set_online $p:ty, $to:ty) => { $crate::delegated! { @ $to, set_online(cpu: $crate::CpuId, online: bool) } };
    (still $p:ty, $to:ty) => {
        fn still<R>(f: impl FnOnce() -> R) -> R {
            <$to>::still(f)
        }
    };
    (advance $p:ty, $to:ty) => { $crate::delegated! { @ $to, advance(ns: u64) } };
    (end_grace_period $p:ty, $to:ty) => { $crate::delegated! { @ $to, end_grace_period() } };
    (due $p:ty, $to:ty) => { $crate::delegated! { @ $to, due() -> Option<($crate::CpuId, $crate::Work)> } };
    (counted $p:ty, $to:ty) => { $crate::delegated! { @ $to, counted(event: $crate::Event) -> u64 } };
    (race $p:ty, $to:ty) => {
        fn race<S: 'static>(
            shared: S,
            first: $crate::conformance::Racer<S>,
            second: $crate::conformance::Racer<S>,
            last: fn(&S) -> $crate::conformance::Verdict,
        ) -> $crate::conformance::Verdict {
            <$to>::race(shared, first, second, last)
        }
    };
}
