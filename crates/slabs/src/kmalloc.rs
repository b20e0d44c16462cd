//! kmalloc: size classes, types and page-backed sizes, by era.
