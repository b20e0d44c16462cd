//! Every slab of the kernel that runs, with its free objects: a snapshot, taken by programs that read the
//! kernel's memory ([`Slabs`]).
//!
//! ```text
//! Slabs::open        what is needed, once
//!   btf, layout        where the fields are, by the kernel's own types
//!   bpf                two programs; memory: words, pages, the parts of CPUs
//!   first_cache        the cache of a socket's protocol: by the running task, its files, the socket
//! Slabs::snapshot    one moment
//!   caches             all of the list that the first one is in
//!   slab_pages         the descriptions of all pages: which are slabs, also full ones, which no list has
//!   caches::read       each cache: lists, slabs, sheaves
//!     slab               the free objects of a slab
//! ```
//! Nothing is attached, and nothing of it is written: the kernel goes on while it is read. So a snapshot is
//! of a moment for each slab, and nearly one for each cache; slabs that never held still are counted.
//!
//! Deliberately absent: names of functions and data of the kernel. Only `_text` is looked up, to know a
//! list's head, which lies in the kernel's image, from the caches.

#[expect(unsafe_code, reason = "bpf(2), and memory that the kernel writes")]
mod bpf;
mod btf;
mod caches;
mod layout;
mod memory;
mod slab;
mod words;

use bpf::{PIECE, Peek};
use btf::Btf;
use caches::{Cache, Machine};
use layout::Layout;
use memory::{Memory, Pages};
use rustc_hash::FxHashMap;
use rustix::time::{ClockId, clock_gettime};
use slablab_readers::procfs::parse_zoneinfo;
pub use slablab_readers::slabs::{CacheSlabs, Snapshot};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use words::word_at;

/// The kernel's image is not larger: a list's head is in it, and no cache is.
const IMAGE_BYTES: u64 = 1 << 30;

/// Caches that are believed.
const CACHES_MAX: usize = 1 << 15;

/// What reads the slabs of the kernel that runs.
pub struct Slabs {
    peek: Peek,
    machine: Machine,
    first: u64,
    /// Where the kernel's image begins.
    image: u64,
}

impl Slabs {
    /// Loads the programs, and finds what they need.
    ///
    /// # Errors
    /// Why this kernel cannot be looked at, in a sentence: no right, no BPF, a type that it lacks.
    pub fn open() -> Result<Slabs, String> {
        let types = "/sys/kernel/btf/vmlinux";
        let types = std::fs::read(types).map_err(|error| format!("{types}: {error}"))?;
        let layout = Layout::of(&Btf::parse(types)?)?;
        let mut peek = Peek::new().map_err(|error| {
            format!("no BPF program can read the kernel's memory ({error}): expected root, and Linux 5.19 or later")
        })?;
        let image = image().ok_or("/proc/kallsyms: expected an address of `_text`, which root may see")?;
        let text = std::fs::read("/proc/zoneinfo").map_err(|error| format!("/proc/zoneinfo: {error}"))?;
        let zones = parse_zoneinfo(&text).map_err(|error| format!("/proc/zoneinfo: {error}"))?;
        let spans = zones.iter().filter(|zone| zone.spanned > 0).filter_map(|zone| {
            Some((zone.node as u16, zone.start_pfn?..zone.start_pfn?.checked_add(zone.spanned)?))
        });
        let nodes: Vec<_> = spans.collect();
        let parts = memory::cpu_parts(&mut peek, &possible_cpus()?, layout.entry.percpu)
            .ok_or("the parts of the CPUs were not found: expected Linux 5.19 or later")?;
        let first =
            first_cache(&mut peek, &layout).ok_or("no cache was found behind a socket of this process")?;
        let page_bytes = rustix::param::page_size() as u64;
        let unset = Pages { page_bytes, struct_bytes: layout.slab.bytes, linear_map: 0, descriptions: 0 };
        let machine = Machine { layout, pages: unset, parts, nodes };
        let mut slabs = Slabs { peek, machine, first, image };
        slabs.machine.pages = slabs.pages().ok_or("the kernel's map of its memory was not found")?;
        Ok(slabs)
    }

    /// All slabs now.
    ///
    /// # Errors
    /// A list of caches that has no end.
    pub fn snapshot(&mut self) -> Result<Snapshot, String> {
        let began_ns = now_ns();
        let caches = self.caches()?;
        let mut seen = self.slab_pages(&caches);
        let mut snapshot = Snapshot {
            page_bytes: self.machine.pages.page_bytes,
            linear_map: self.machine.pages.linear_map,
            began_ns,
            ..Snapshot::default()
        };
        for cache in &caches {
            let pages = seen.remove(&cache.address).unwrap_or_default();
            let at_ns = now_ns();
            let slabs = self.machine.read(&mut self.peek, cache, &pages);
            snapshot.caches.push(CacheSlabs { at_ns, ..slabs });
        }
        snapshot.ended_ns = now_ns();
        Ok(snapshot)
    }

    /// The caches of the list that the first one is in, from its head on.
    fn caches(&mut self) -> Result<Vec<Cache>, String> {
        let Slabs { peek, machine, first, image } = self;
        let (nodes, list) =
            (machine.nodes.iter().map(|(node, _)| usize::from(*node) + 1).max(), machine.layout.cache.list);
        let mut caches = Vec::new();
        let mut at = *first + list;
        for _ in 0..CACHES_MAX {
            if !(*image..*image + IMAGE_BYTES).contains(&at)
                && let Some(cache) = Cache::at(peek, at - list, &machine.layout, nodes.unwrap_or(1))
            {
                caches.push(cache);
            }
            at = peek.word(at).ok_or("the list of caches ends: one was destroyed just now; run it again")?;
            if at == *first + list {
                return Ok(caches);
            }
        }
        Err(format!("more than {CACHES_MAX} caches: expected a list that ends"))
    }

    /// The descriptions of slabs by the address of their cache.
    fn slab_pages(&mut self, caches: &[Cache]) -> FxHashMap<u64, Vec<u64>> {
        let mut seen: FxHashMap<u64, Vec<u64>> =
            caches.iter().map(|cache| (cache.address, Vec::new())).collect();
        let Machine { layout, pages, nodes, .. } = &self.machine;
        let each = layout.slab.bytes;
        let many = PIECE as u64 / each;
        for (_, frames) in nodes {
            for first in (frames.start / many..frames.end.div_ceil(many)).map(|piece| piece * many) {
                let start = pages.page(first);
                let Some(piece) = self.peek.bytes(start, (many * each) as usize) else { continue };
                for (index, page) in (0..).zip(piece.chunks_exact(each as usize)) {
                    let is_slab = layout.slab.kind.is_none_or(|(at, kind)| page[at as usize] == kind);
                    let is_here = frames.contains(&(first + index));
                    if is_slab
                        && is_here
                        && let Some(found) = seen.get_mut(&word_at(page, layout.slab.cache))
                    {
                        found.push(start + index * each);
                    }
                }
            }
        }
        seen
    }

    /// Where pages and their descriptions are: by slabs of CPUs, of which an object's address is known, and a
    /// page of this process, of which the frame is.
    fn pages(&mut self) -> Option<Pages> {
        let unset = self.machine.pages;
        let mut votes: FxHashMap<u64, (u32, u64, u64)> = FxHashMap::default();
        for cache in self.caches().ok()? {
            let machine = (&self.machine.layout, &self.machine.parts[..]);
            let Some((slab, object)) = cache.slab_and_object(&mut self.peek, machine) else { continue };
            // Which page of a slab has the object is not known: the slabs of one page agree.
            let page = object & !(unset.page_bytes - 1);
            let apart = page.wrapping_sub(slab.wrapping_mul(unset.page_bytes / unset.struct_bytes));
            votes.entry(apart).or_insert((0, slab, page)).0 += 1;
        }
        let (_, (_, slab, page)) = votes.into_iter().max_by_key(|(apart, (count, ..))| (*count, *apart))?;
        let own = OwnPage::new(unset.page_bytes)?;
        let frames = self.machine.nodes.iter().map(|(_, frames)| frames.end).max()?;
        let told = (own.frame, own.content());
        let linear_map = memory::linear_map(&mut self.peek, page, told, (frames, unset.page_bytes))?;
        let descriptions = slab - (page - linear_map) / unset.page_bytes * unset.struct_bytes;
        Some(Pages { linear_map, descriptions, ..unset })
    }
}

/// The cache of a socket's protocol, by the running task's files.
fn first_cache(peek: &mut Peek, layout: &Layout) -> Option<u64> {
    let (socket, _other) = UnixStream::pair().ok()?;
    let task = peek.here(0)?.task;
    let files = peek.follow(task, &layout.entry.to_files)?;
    let file = peek.word(files + 8 * socket.as_raw_fd() as u64)?;
    let cache = peek.follow(file, &layout.entry.to_cache)?;
    let entry = cache + layout.cache.list;
    let next = peek.word(entry)?;
    (peek.word(next + 8)? == entry).then_some(cache)
}

/// A page of this process that no other one equals.
struct OwnPage {
    memory: Vec<u8>,
    start: usize,
    frame: u64,
}

impl OwnPage {
    /// Bytes of it that tell it.
    const CONTENT: usize = 64;

    fn new(page_bytes: u64) -> Option<OwnPage> {
        let mut memory = vec![0u8; 2 * page_bytes as usize];
        let address = (memory.as_ptr() as u64).next_multiple_of(page_bytes);
        let start = (address - memory.as_ptr() as u64) as usize;
        let seed = now_ns() ^ u64::from(std::process::id()) << 32;
        for (index, word) in (1..).zip(memory[start..start + Self::CONTENT].chunks_exact_mut(8)) {
            word.copy_from_slice(&(seed ^ 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(index)).to_ne_bytes());
        }
        let mut map = File::open("/proc/self/pagemap").ok()?;
        map.seek(SeekFrom::Start(address / page_bytes * 8)).ok()?;
        let mut entry = [0; 8];
        map.read_exact(&mut entry).ok()?;
        let entry = u64::from_ne_bytes(entry);
        // Bit 63: the page is there. The lower 55 are its frame, which root alone may see.
        let frame = entry & ((1 << 55) - 1);
        (entry >> 63 == 1 && frame != 0).then_some(OwnPage { memory, start, frame })
    }

    fn content(&self) -> &[u8] {
        &self.memory[self.start..self.start + Self::CONTENT]
    }
}

/// Where the kernel's image begins.
fn image() -> Option<u64> {
    let lines = BufReader::new(File::open("/proc/kallsyms").ok()?).lines().map_while(Result::ok);
    let line = lines.into_iter().find(|line| line.ends_with(" _text") || line.ends_with(" _stext"))?;
    u64::from_str_radix(line.split(' ').next()?, 16).ok().filter(|address| *address != 0)
}

fn possible_cpus() -> Result<Vec<u32>, String> {
    let path = "/sys/devices/system/cpu/possible";
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    slablab_readers::text::id_list(&text)
        .ok_or_else(|| format!("{path}: expected CPUs such as 0-3, found `{text}`"))
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a kernel that lets it: its own slabs, which its own counts must confirm.
    #[test]
    fn the_kernel_that_runs_is_read() {
        let mut slabs = match Slabs::open() {
            Ok(slabs) => slabs,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let snapshot = slabs.snapshot().expect("caches are listed");
        let filp = snapshot.only("filp").expect("every kernel has open files");
        assert!(!filp.slabs.is_empty());
        for slab in &filp.slabs {
            assert!(slab.free.len() <= usize::from(slab.objects) && slab.objects > 0, "{slab:?}");
        }
        let text = snapshot.text();
        assert_eq!(Snapshot::parse(text.as_bytes()), Ok(snapshot));
    }
}
