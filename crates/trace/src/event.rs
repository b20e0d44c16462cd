//! What a row can be, and the values that mean "none".

/// No id: a row without object, cache, comm or call site.
pub const NONE: u32 = u32::MAX;

/// The requested node when any would do, or when the event has no such field.
pub const ANY_NODE: i16 = -1;

/// The context of a recording that does not say.
pub const NO_CONTEXT: u16 = u16::MAX;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        /// The event of a row. The numbers are the format: added to, never changed. A reader of version 1.x
        /// skips numbers it does not know ([`EventKind::from_u8`] is `None`), since a later minor version may
        /// add one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum EventKind { $($(#[$doc])* $name = $value,)* }

        impl EventKind {
            /// Every event, at its number.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$name,)*];

            /// The name in docs and tables: the kernel's where it has one.
            pub const fn name(self) -> &'static str {
                match self { $(EventKind::$name => $text,)* }
            }
        }
    };
}

events! {
    /// An object of the kmalloc family was allocated; `kmalloc_node` of older kernels too.
    Kmalloc = 0, "kmalloc";
    /// An object of a named cache was allocated; `kmem_cache_alloc_node` of older kernels too.
    CacheAlloc = 1, "kmem_cache_alloc";
    /// An object of any cache, or a page-backed one, was freed.
    Kfree = 2, "kfree";
    /// An object was freed to its named cache.
    CacheFree = 3, "kmem_cache_free";
    /// A block of pages was allocated.
    PageAlloc = 4, "mm_page_alloc";
    /// A block of pages was freed.
    PageFree = 5, "mm_page_free";
    /// A text the recorder wrote; the text is the call site, the cache it names (`SB x`, `SA x`) is the
    /// cache.
    Mark = 6, "mark";
    /// Synthetic: an object must have been freed here or earlier by a path that is not traced.
    ImpliedFree = 7, "implied_free";
    /// Synthetic: the recorder lost events before this row; `address` is how many, 0 when it does not say.
    Lost = 8, "lost";
    /// An object was given to `kfree_rcu`, and waits in a sheaf for readers to end.
    KfreeRcu = 9, "kfree_rcu";
}

impl EventKind {
    /// The event with number `value`.
    #[inline]
    pub const fn from_u8(value: u8) -> Option<EventKind> {
        if (value as usize) < Self::ALL.len() { Some(Self::ALL[value as usize]) } else { None }
    }

    /// An object comes to life.
    #[inline]
    pub const fn is_alloc(self) -> bool {
        matches!(self, EventKind::Kmalloc | EventKind::CacheAlloc)
    }

    /// An object dies, traced or not.
    #[inline]
    pub const fn is_free(self) -> bool {
        matches!(self, EventKind::Kfree | EventKind::CacheFree | EventKind::ImpliedFree | EventKind::KfreeRcu)
    }
}

/// The bits of column `flags`. Added to, never changed.
pub mod flags {
    /// A free of an object whose allocation is not in the recording.
    pub const UNSEEN: u8 = 1;
    /// The row was moved: its recorded place is impossible. Its time is that of the row it was moved in front
    /// of.
    pub const REPAIRED: u8 = 2;
    /// `kfree(NULL)`, or an allocation that failed: no object.
    pub const NULL: u8 = 4;
    /// The address is `ZERO_SIZE_PTR`, what `kmalloc(0)` returns: no object.
    pub const ZERO_SIZE: u8 = 8;
    /// With [`UNSEEN`]: the recording had seen this address freed before, so that the object was allocated
    /// during the recording by a path that is not traced (bulk) and is not one from before it.
    pub const FREED_BEFORE: u8 = 16;
    /// The row came too late for the merge by time: it stands where it arrived, behind rows of later times.
    pub const LATE: u8 = 32;

    /// Every bit with its name in docs and tables.
    pub const ALL: &[(u8, &str)] = &[
        (UNSEEN, "unseen"),
        (REPAIRED, "repaired"),
        (NULL, "null"),
        (ZERO_SIZE, "zero_size"),
        (FREED_BEFORE, "freed_before"),
        (LATE, "late"),
    ];
}

const _: () = {
    let mut index = 0;
    while index < EventKind::ALL.len() {
        assert!(EventKind::ALL[index] as usize == index, "events stand at their numbers");
        index += 1;
    }
};
