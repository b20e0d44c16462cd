//! A source tree of a kernel, and what a build reads and writes of it.
//!
//! | what | in 2.6.28 or 2.6.29 | source |
//! |---|---|---|
//! | files; directories; bytes; in whole pages | 26,700; 1,676; 315 MB; 361 MiB | counted |
//! | sizes: up to 4, 16, 48 KiB; larger | 48, 33, 15, 4 % | counted |
//! | compiled sources; their bytes; directories with a link | 1,450; 28.6 MB; 219 | read from makefiles, within 10 % |
//! | headers under include/; headers of an object | 12 MB; 214 to 420, about 300 | closure of includes |
//!
//! Sizes are drawn evenly within their class (assumed), the last class up to 77 KiB, so that the mean is the
//! counted one; then 354 MiB are in whole pages. A tree is a function of its seed: every build has the same.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// How large a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Files.
    pub files: u32,
    /// Directories.
    pub dirs: u32,
    /// Sources that are compiled.
    pub sources: u32,
    /// Directories whose objects are linked.
    pub linked: u32,
    /// Headers that objects include.
    pub headers: u32,
}

impl Size {
    /// 2.6.28. 12 MB of headers are 1,020 of the mean size.
    pub const LINUX: Size = Size { files: 26_700, dirs: 1_676, sources: 1_450, linked: 219, headers: 1_020 };

    /// The part `1 / n` of it.
    pub const fn part(self, n: u32) -> Size {
        Size {
            files: self.files / n,
            dirs: self.dirs / n,
            sources: self.sources / n,
            linked: self.linked / n,
            headers: self.headers / n,
        }
    }
}

/// What a build does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is compiled.
    Source,
    /// Objects include it.
    Header,
    /// Nothing reads it.
    Unused,
}

/// A file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// The place of its directory in [`Tree::dirs`].
    pub dir: u32,
    /// Its size.
    pub bytes: u32,
    /// What a build does with it.
    pub role: Role,
}

impl File {
    /// Its pages of 4 KiB.
    pub fn pages(self) -> u32 {
        self.bytes.div_ceil(4096)
    }
}

/// A source tree. Files are in the order of an archive: directory by directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The parent of each directory; the first is the top, and is its own.
    pub dirs: Vec<u32>,
    /// All files.
    pub files: Vec<File>,
    /// Places in `files` of the sources, in the order in which they are compiled.
    pub sources: Vec<u32>,
    /// Places in `files` of the headers.
    pub headers: Vec<u32>,
    /// Directories that are linked, each after the last of its sources.
    pub linked: Vec<u32>,
}

/// Upper ends of the classes of sizes, and the files of each, in percent.
const CLASSES: [(u32, u32); 4] = [(4 << 10, 48), (16 << 10, 33), (48 << 10, 15), (77 << 10, 4)];

impl Tree {
    /// The tree of a size and a seed.
    ///
    /// # Panics
    /// Fewer files than sources and headers, fewer directories than links.
    pub fn new(size: Size, seed: u64) -> Tree {
        assert!(size.sources + size.headers <= size.files && size.linked < size.dirs, "{size:?}");
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut draw = |bound: u32| (random.next_u64() % u64::from(bound)) as u32;
        // Twenty directories at the top; each other one is below one before it.
        let dirs: Vec<u32> =
            (0..size.dirs).map(|dir| if dir <= 20 { 0 } else { 1 + draw(dir - 1) }).collect();
        let mut dir_of: Vec<u32> = (0..size.files).map(|_| draw(size.dirs)).collect();
        dir_of.sort_unstable();
        let mut files: Vec<File> =
            dir_of.into_iter().map(|dir| File { dir, bytes: bytes(&mut draw), role: Role::Unused }).collect();
        // Every directory that is linked has sources; headers are in directories of their own.
        let is_linked = |dir: u32| spread(dir, size.dirs, size.linked);
        let sources = roles(&mut files, size.sources, Role::Source, &is_linked);
        let headers = roles(&mut files, size.headers, Role::Header, &|dir| !is_linked(dir));
        let mut linked: Vec<u32> = sources.iter().map(|source| files[*source as usize].dir).collect();
        linked.dedup();
        Tree { dirs, files, sources, headers, linked }
    }

    /// Pages of all files.
    pub fn pages(&self) -> u64 {
        self.files.iter().map(|file| u64::from(file.pages())).sum()
    }

    /// The places in [`Tree::files`] of the headers that an object includes: the first `common` of all, and
    /// others that are drawn for this object, `count` together.
    pub fn includes(&self, object: u32, count: u32, common: u32) -> Vec<u32> {
        let mut random = Pcg64Mcg::seed_from_u64(u64::from(object) + 1);
        let headers = self.headers.len() as u32;
        let drawn = (common.min(count)..count).map(|_| (random.next_u64() % u64::from(headers)) as u32);
        (0..common.min(count).min(headers)).chain(drawn).map(|at| self.headers[at as usize]).collect()
    }
}

/// Whether `one` of `all` is among `some` that are evenly spread.
fn spread(one: u32, all: u32, some: u32) -> bool {
    let at = |n: u32| u64::from(n) * u64::from(some) / u64::from(all);
    at(one + 1) > at(one)
}

fn bytes(draw: &mut impl FnMut(u32) -> u32) -> u32 {
    let percent = draw(100);
    let mut sum = 0;
    let mut least = 100;
    for (most, share) in CLASSES {
        sum += share;
        if percent < sum {
            return least + draw(most - least);
        }
        least = most + 1;
    }
    unreachable!("the shares of the classes sum up to 100")
}

/// Gives `count` files of these directories a role, evenly spread over them. Returns their places.
fn roles(files: &mut [File], count: u32, role: Role, of: &dyn Fn(u32) -> bool) -> Vec<u32> {
    let all: Vec<u32> = (0..files.len() as u32).filter(|at| of(files[*at as usize].dir)).collect();
    let len = all.len() as u32;
    let chosen = all.iter().enumerate().filter(|(at, _)| spread(*at as u32, len, count.min(len)));
    let chosen: Vec<u32> = chosen.map(|(_, file)| *file).collect();
    for file in &chosen {
        files[*file as usize].role = role;
    }
    chosen
}
