//! Which pages the live blocks of a program are in, and how much of these is free: what a block pins.

/// A live block: where it is, and its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) at: u64,
    pub(super) bytes: u64,
}

/// Pages that hold live blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of all pages with a part of a live block.
    pub bytes: u64,
    /// Bytes of live blocks in them. The rest is free, or the allocator's own.
    pub live_bytes: u64,
}

impl Pages {
    /// Bytes that are in pages with live blocks, and in none.
    pub fn free_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.live_bytes)
    }
}

/// The pages of `blocks`, and what each block pins: of the free bytes in its pages the part that its bytes
/// are of the live ones.
pub(super) fn pinned(blocks: &[Block], page_bytes: u64) -> (Pages, Vec<f64>) {
    let mut order: Vec<usize> = (0..blocks.len()).filter(|&index| blocks[index].bytes > 0).collect();
    order.sort_unstable_by_key(|&index| blocks[index].at);
    let mut pages = Pages { page_bytes, ..Pages::default() };
    let mut pinned = vec![0.0; blocks.len()];
    // The page that is being filled: its number, and the blocks in it with their bytes there.
    let mut here: (u64, Vec<(usize, u64)>) = (0, Vec::new());
    let mut close = |(_, parts): &(u64, Vec<(usize, u64)>)| {
        let live: u64 = parts.iter().map(|(_, bytes)| bytes).sum::<u64>().min(page_bytes);
        if live == 0 {
            return;
        }
        pages.bytes += page_bytes;
        pages.live_bytes += live;
        let free = (page_bytes - live) as f64;
        for (index, bytes) in parts {
            pinned[*index] += free * *bytes as f64 / live as f64;
        }
    };
    // Whole pages inside of large blocks.
    let mut whole = 0;
    for index in order {
        let Block { at, bytes } = blocks[index];
        let end = at.saturating_add(bytes);
        let (first, last) = (at / page_bytes, (end - 1) / page_bytes);
        for page in [first, last] {
            if page != here.0 {
                close(&here);
                here = (page, Vec::new());
            }
            let part = end.min((page + 1).saturating_mul(page_bytes)) - at.max(page * page_bytes);
            let again =
                page == last && first == last && here.1.last().is_some_and(|(last, _)| *last == index);
            if !again {
                here.1.push((index, part));
            }
        }
        whole += last.saturating_sub(first + 1) * page_bytes;
    }
    close(&here);
    pages.bytes += whole;
    pages.live_bytes += whole;
    (pages, pinned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(blocks: &[(u64, u64)], expected: [u64; 2], shares: &[f64]) {
        let blocks: Vec<Block> = blocks.iter().map(|&(at, bytes)| Block { at, bytes }).collect();
        let (pages, pinned) = pinned(&blocks, 4096);
        assert_eq!([pages.bytes, pages.live_bytes], expected);
        let pinned: Vec<f64> = pinned.iter().map(|bytes| bytes.round()).collect();
        assert_eq!(pinned, shares);
    }

    #[test]
    fn a_block_pins_the_rest_of_its_pages() {
        check(&[], [0, 0], &[]);
        check(&[(4096, 96)], [4096, 96], &[4000.0]);
        // Two share a page: by their bytes.
        check(&[(8192, 96), (9000, 32)], [4096, 128], &[2976.0, 992.0]);
        // A full page pins nothing.
        check(&[(0, 4096)], [4096, 4096], &[0.0]);
        // Over a border, and with whole pages inside.
        check(&[(4000, 192)], [8192, 192], &[8000.0]);
        check(&[(100, 3 * 4096)], [4 * 4096, 3 * 4096], &[4096.0]);
        check(&[(100, 4096), (8192 + 50, 10)], [3 * 4096, 4106], &[4096.0, 4086.0]);
        check(&[(5, 0)], [0, 0], &[0.0]);
    }
}
