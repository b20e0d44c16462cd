//! Cursors of read-ahead. The rules are in [`crate::mm`].

/// Where an open file, or a region of a mapping, reads ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileAhead {
    /// First page of the current window.
    pub start: u32,
    /// Pages of it; 0: there is none.
    pub size: u32,
    /// The window after it is read when so many pages of it are left (`async_size`).
    pub trigger: u32,
    /// The page that was read last, plus one; 0: none was.
    pub previous: u32,
    /// Faults that missed the page cache, less those that hit it.
    pub misses: u32,
    /// Most pages of a window, as set when the file was opened; `None`: as the release does.
    pub most: Option<u32>,
}

impl FileAhead {
    /// Of a file that is opened where windows have at most so many pages. A later setting does not change it
    /// (`file_ra_state_init`).
    pub fn opened(most: Option<u32>) -> FileAhead {
        FileAhead { most, ..FileAhead::default() }
    }
}

/// Where swap is read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapAhead {
    /// Where the last read was: a slot, or a page of the region.
    pub previous: u32,
    /// Pages of the last window.
    pub window: u32,
    /// Pages that read-ahead brought and that were asked for since.
    pub hits: u32,
}

impl Default for SwapAhead {
    fn default() -> Self {
        // From memory: the first window counts four hits, and follows no other one.
        SwapAhead { previous: u32::MAX / 2, window: 0, hits: 4 }
    }
}
