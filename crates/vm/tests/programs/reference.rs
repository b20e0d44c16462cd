//! What a program must see: contents of pages, without frames, swap or a cache.

use slablab_vm::mappings::Kind;
use slablab_vm::mm::OpenFile;
use slablab_vm::{RegionId, SpaceId};

/// A splitmix64 generator.
pub(crate) struct Random(pub u64);

impl Random {
    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % u64::from(n.max(1))) as u32
    }

    /// One of a list's places, if it has any.
    pub(crate) fn pick<T>(&mut self, list: &[T]) -> Option<usize> {
        (!list.is_empty()).then(|| self.below(list.len() as u32) as usize)
    }
}

/// A file and its contents.
pub(crate) struct File {
    pub(crate) open: OpenFile,
    pub(crate) kind: Kind,
    pub(crate) pages: Vec<u32>,
}

/// A region: anonymous contents, or a file's number and the pages that it maps.
#[derive(Clone)]
pub(crate) enum Pages {
    Anon(Vec<u32>),
    File(usize, u32),
}

/// A region of a space.
#[derive(Clone)]
pub(crate) struct Region {
    pub(crate) id: RegionId,
    pub(crate) pages: Pages,
}

/// A space.
pub(crate) struct Space {
    pub(crate) id: SpaceId,
    pub(crate) regions: Vec<Region>,
}

/// All that programs see.
#[derive(Default)]
pub(crate) struct Reference {
    pub(crate) spaces: Vec<Space>,
    pub(crate) files: Vec<Option<File>>,
}

impl Reference {
    /// The number of a file that exists.
    pub(crate) fn file(&self, random: &mut Random) -> Option<usize> {
        let there: Vec<usize> = (0..self.files.len()).filter(|at| self.files[*at].is_some()).collect();
        random.pick(&there).map(|at| there[at])
    }

    /// A space and one of its regions.
    pub(crate) fn region(&self, random: &mut Random) -> Option<(usize, usize)> {
        let space = random.pick(&self.spaces)?;
        Some((space, random.pick(&self.spaces[space].regions)?))
    }

    /// Pages of a region that a program may touch: not those beyond the end of its file.
    pub(crate) fn touchable(&self, region: &Region) -> u32 {
        match &region.pages {
            Pages::Anon(pages) => pages.len() as u32,
            Pages::File(file, pages) => {
                let file = self.files[*file].as_ref().expect("a mapped file exists");
                (*pages).min(file.pages.len() as u32)
            }
        }
    }

    /// The contents of a page of a region, to look at or to change.
    pub(crate) fn page(&mut self, space: usize, region: usize, page: u32) -> &mut u32 {
        match &mut self.spaces[space].regions[region].pages {
            Pages::Anon(pages) => &mut pages[page as usize],
            Pages::File(file, _) => {
                let file = self.files[*file].as_mut().expect("a mapped file exists");
                &mut file.pages[page as usize]
            }
        }
    }

    /// Whether a region maps a file.
    pub(crate) fn is_mapped(&self, file: usize) -> bool {
        let mut regions = self.spaces.iter().flat_map(|space| &space.regions);
        regions.any(|region| matches!(region.pages, Pages::File(other, _) if other == file))
    }
}
