//! SLOB of a real 6.1 against the engine: equal requests must take equal numbers of pages.
//!
//! recorded/README.md describes the files and their source.

use super::policy;
use slablab_model::{Addr, Machine, MachineSpec, Model};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{Event, Frames, Gfp, Time};
use slablab_slabs::engines::slob::{Heap, Slob, SlobPolicy};
use slablab_slabs::{Backing, CacheFlags, CacheId, CacheSpec, Common, Engine};
use std::collections::HashMap;

/// A heap, and the caches that have been used so far.
struct Replay {
    pages: Pages<Model>,
    heap: Heap<Model>,
    caches: Vec<(CacheSpec, SlobPolicy, Slob<Model>)>,
}

impl Replay {
    fn cache(&mut self, spec: CacheSpec, policy: SlobPolicy) -> usize {
        let known = self.caches.iter().position(|cache| (cache.0, cache.1) == (spec, policy));
        known.unwrap_or_else(|| {
            let id = CacheId(self.caches.len() as u32);
            self.caches.push((spec, policy, Slob::create(id, &spec, &policy)));
            self.caches.len() - 1
        })
    }

    fn alloc(&self, cache: usize) -> Addr {
        let backing = Backing::new(&self.pages, &self.heap);
        self.caches[cache].2.alloc(&backing, Gfp::KERNEL, None).expect("memory is left")
    }

    fn free(&self, cache: usize, object: Addr) {
        let backing = Backing::new(&self.pages, &self.heap);
        self.caches[cache].2.free(&backing, object).expect("the object is live");
    }

    fn due(&self) {
        while let Some((cpu, work)) = Model::next_due() {
            let backing = Backing::new(&self.pages, &self.heap);
            self.caches[work.cache as usize].2.work(&backing, cpu, work);
        }
    }

    fn counted(&self, event: Event) -> u64 {
        self.caches.iter().map(|(.., cache)| cache.counted(event)).sum()
    }

    /// Creates the pages from before the recording, each with its free blocks, and lists them. Returns the
    /// objects that the recording frees later.
    fn start(&mut self, lines: &[&str]) -> Vec<(usize, Addr)> {
        let real = policy("slob@6.1");
        // All sizes use one list, so the page being divided is the only one with room.
        let one_list = SlobPolicy { small_below: 65536, ..real };
        let lists = [
            one_list,
            SlobPolicy { small_below: 0, medium_below: 65536, ..real },
            SlobPolicy { small_below: 0, medium_below: 0, ..real },
        ];
        let mut later: HashMap<(usize, u32), (usize, Addr)> = HashMap::new();
        let mut free = Vec::new();
        for (page, line) in lines.iter().enumerate() {
            let mut words = line.split(' ').filter(|word| !word.is_empty());
            let list: usize = words.next().expect("a list").parse().expect("a number");
            let mut end = 0;
            for word in words.chain(["e4096:0"]) {
                let (at, bytes) = word[1..].split_once(':').expect("a place and a size");
                let (at, bytes): (u32, u32) = (at.parse().expect("a place"), bytes.parse().expect("a size"));
                if at > end {
                    let kept = self.cache(CacheSpec::of_size(at - end), one_list);
                    self.alloc(kept);
                }
                end = at + bytes;
                if bytes > 0 {
                    let cut = self.cache(CacheSpec::of_size(bytes), one_list);
                    let object = self.alloc(cut);
                    assert_eq!(Model::locate(object).1, at, "{word} of page {page}");
                    if word.starts_with('f') {
                        free.push((self.cache(CacheSpec::of_size(bytes), lists[list]), object));
                    } else {
                        let cache = self.cache(CacheSpec::of_size(bytes), real);
                        later.insert((page, at), (cache, object));
                    }
                }
            }
        }
        // The page that is used first is listed last.
        free.reverse();
        free.into_iter().for_each(|(cache, object)| self.free(cache, object));
        let mut later: Vec<_> = later.into_iter().collect();
        later.sort_by_key(|(place, _)| *place);
        later.into_iter().map(|(_, object)| object).collect()
    }

    /// Runs the requests, one letter each. `-n` frees the object that was allocated n requests before, `xn`
    /// frees an object from before the recording, `+n` lets n milliseconds pass.
    fn requests(&mut self, kinds: &[usize], old: &[(usize, Addr)], text: &str) {
        let mut objects: Vec<(usize, Addr)> = Vec::new();
        let mut rest = text;
        while let Some(what) = rest.chars().next() {
            rest = &rest[1..];
            if what.is_ascii_alphabetic() && what != 'x' {
                let kind =
                    kinds[(what as u8 - if what.is_ascii_uppercase() { b'A' } else { b'a' - 26 }) as usize];
                objects.push((kind, self.alloc(kind)));
                continue;
            }
            let digits = rest.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(rest.len());
            let number: usize = rest[..digits].parse().expect("a number");
            rest = &rest[digits..];
            match what {
                '-' => {
                    let (cache, object) = objects[objects.len() - number];
                    self.free(cache, object);
                }
                'x' => self.free(old[number].0, old[number].1),
                _ => {
                    Model::advance_to(Model::now() + number as u64 * 1_000_000);
                    self.due();
                }
            }
        }
    }
}

/// Returns the pages taken and the pages returned, by the kernel and by the engine.
fn replay(recorded: &str, preset: &str) -> [[u64; 2]; 2] {
    let mut machine = Machine::new(MachineSpec::uniform(1, 1, 1 << 30)).expect("the spec is right");
    machine.enter(|| {
        let of = |what: &str| -> Vec<&str> {
            recorded.lines().filter_map(|line| line.strip_prefix(what)).collect()
        };
        let mut replay = Replay {
            pages: Pages::new(PagesPolicy::for_release(6, 1, 0)),
            heap: Heap::default(),
            caches: Vec::new(),
        };
        let kinds: Vec<usize> = of("kind ")
            .into_iter()
            .map(|kind| {
                let mut words = kind.split(' ');
                let flag = words.next().expect("a type");
                let mut number = || words.next().expect("a number").parse().expect("a number");
                let flags = CacheFlags::NONE
                    .with(CacheFlags::KMALLOC, flag == "k")
                    .with(CacheFlags::TYPESAFE_BY_RCU, flag == "r");
                let spec = CacheSpec::of_size(number());
                replay.cache(CacheSpec { flags, align: number(), ..spec }, policy(preset))
            })
            .collect();
        let old = replay.start(&of("page "));
        let zero = [Event::AllocSlab, Event::FreeSlab].map(|event| replay.counted(event));
        replay.requests(&kinds, &old, of("ops ")[0]);
        assert!(replay.heap.is_sound());
        let engine = [Event::AllocSlab, Event::FreeSlab].map(|event| replay.counted(event));
        let mut real = of("real ")[0].split(' ').map(|number| number.parse().expect("a number"));
        let real = [(); 2].map(|()| real.next().expect("two numbers"));
        [real, [engine[0] - zero[0], engine[1] - zero[1]]]
    })
}

#[test]
fn page_counts_match_the_recorded_kernel() {
    fn check(name: &str, recorded: &str) {
        let [real, engine] = replay(recorded, "slob@6.1");
        println!("{name}: {real:?} pages taken and given back by the kernel, {engine:?} by the engine");
        let off = (engine[0] as f64 / real[0] as f64 - 1.0) * 100.0;
        assert!(off.abs() < 10.0, "{name}: {off:.1} %");
    }
    check("sockets", include_str!("recorded/sockets.txt"));
    check("pipes", include_str!("recorded/pipes.txt"));
    check("fork and exec", include_str!("recorded/fork.txt"));
}
