//! The slab allocators of Linux as named policies: SLUB and SLQB
