//! The page allocator: buddy, zones, watermarks, per-CPU page lists, zonelists
