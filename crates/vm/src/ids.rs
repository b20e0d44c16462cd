//! Numbers of things: frames, mappings, spaces, regions.

/// The number of a page frame of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame(pub u32);

/// The number of a mapping: a file's pages (`struct address_space`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MappingId(pub u32);

/// The number of an address space (`struct mm_struct`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpaceId(pub u32);

/// The number of a region of an address space (`struct vm_area_struct`), over all spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegionId(pub u32);

/// A swap slot, counted over all areas.
pub type Slot = u32;
