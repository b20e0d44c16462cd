//! Addresses are aligned as asked: every preset and every wrapper that malloc takes is asked for every size
//! class with every alignment, until slabs of all colours were met. The test looks at addresses, and believes
//! no engine. `unsafe`: allocates and frees by hand.
#![allow(unsafe_code, reason = "allocates and frees by hand")]

use slablab_malloc::world::Native;
use slablab_malloc::{ChosenHeap, Slablab, classes};
use slablab_platform::NO_CACHE;
use slablab_slabs::Preset;
use std::alloc::{GlobalAlloc, Layout};
use std::collections::{HashMap, HashSet};
use std::process::Command;

#[global_allocator]
static HEAP: Slablab = Slablab;

/// What can be around an engine, but for the hardened profile.
const WRAPPERS: &[&str] = &[
    ",debug=F",
    ",debug=Z",
    ",debug=P",
    ",debug=U",
    ",debug=FZPU",
    ",debug=FZPUO",
    ",quarantine=8K",
    ",init=alloc+free",
    ",harden=random",
    ",harden=encode",
    ",harden=random+encode",
    ",debug=FZP,quarantine=8K,harden=random",
];

/// The presets that malloc takes.
fn presets() -> impl Iterator<Item = Preset> {
    Preset::all().filter(|preset| !matches!(preset, Preset::Slob(_)))
}

/// What a heap answered.
#[derive(Default)]
struct Answers {
    asked: u64,
    /// The addresses that are not aligned as asked, as text.
    wrong: Vec<String>,
}

impl Answers {
    fn note(&mut self, call: &str, at: *mut u8, layout: Layout) {
        assert!(!at.is_null(), "{call} {layout:?}: null");
        self.asked += 1;
        let off = at.addr() % layout.align();
        if off != 0 {
            let (bytes, align) = (layout.size(), layout.align());
            self.wrong.push(format!("{call} of {bytes} bytes aligned to {align}: {at:p}, off by {off}"));
        }
    }
}

/// Allocations until two slabs of each colour, and three slabs, were met. Colours that no alignment of the
/// class can tell apart count as one. Where page frames serve the request, three allocations.
fn allocate_until_all_colours(
    heap: &dyn GlobalAlloc,
    layout: Layout,
    held: &mut Vec<(*mut u8, Layout)>,
    to: &mut Answers,
) {
    // Bytes that a request of another alignment makes are those of a larger class, which has its own turn.
    let is_of_class = layout.size().is_multiple_of(layout.align());
    let natural = 1 << layout.size().trailing_zeros();
    let mut colours: HashMap<u32, HashSet<u32>> = HashMap::new();
    let (mut slabs, mut blocks) = (HashSet::new(), 0);
    while blocks < 3 {
        // SAFETY: the layout has a size.
        let at = unsafe { heap.alloc(layout) };
        to.note("alloc", at, layout);
        held.push((at, layout));
        match Native::location(at).filter(|location| location.cache < NO_CACHE) {
            Some(location) if is_of_class => {
                colours.entry(location.offset % natural).or_default().insert(location.slab.0);
                slabs.insert(location.slab.0);
                if slabs.len() > 2 && colours.values().all(|slabs| slabs.len() > 1) {
                    return;
                }
            }
            Some(_) => return,
            None => blocks += 1,
        }
        assert!(held.len() < 1 << 20, "{layout:?}: {} colours have no end", colours.len());
    }
}

/// Zeroed and resized memory is aligned as well; a resize keeps the contents.
fn resize(heap: &dyn GlobalAlloc, layout: Layout, to: &mut Answers) {
    let (bytes, align) = (layout.size(), layout.align());
    // SAFETY: the layouts have sizes, and are those of the last allocation or resize; each address is written
    // and read within its size.
    unsafe {
        let mut at = heap.alloc_zeroed(layout);
        to.note("alloc_zeroed", at, layout);
        at.write(0xa5);
        let mut is = layout;
        for wanted in [bytes + 1, bytes * 2 + 1, 40_000, bytes / 2 + 1] {
            at = heap.realloc(at, is, wanted);
            is = Layout::from_size_align(wanted, align).expect("a layout");
            to.note("realloc", at, is);
            assert_eq!(at.read(), 0xa5, "{is:?}");
        }
        heap.dealloc(at, is);
    }
}

/// Asks a heap for every class with every alignment.
fn answers(heap: &dyn GlobalAlloc) -> Answers {
    let mut to = Answers::default();
    for class in 0..classes::COUNT {
        let mut held = Vec::new();
        for align in (4..=16).map(|shift| 1 << shift) {
            let layout = Layout::from_size_align(classes::size(class) as usize, align).expect("a layout");
            allocate_until_all_colours(heap, layout, &mut held, &mut to);
            resize(heap, layout, &mut to);
        }
        // SAFETY: allocated above, and not used any more.
        held.iter().for_each(|(at, layout)| unsafe { heap.dealloc(*at, *layout) });
    }
    to
}

const ALONE: &str = "HEAP_ALONE";

/// Asks the own heap of a process for each choice: it has paths that further heaps do not have.
fn check(slots: &str, choices: impl Iterator<Item = String>) {
    let this = std::env::current_exe().expect("this test is a program");
    let mut wrong = Vec::new();
    for choice in choices {
        let mut process = Command::new(&this);
        process.args(["--exact", "the_heap_of_this_process", "--nocapture"]).env(ALONE, "1");
        let done = process.env("SLABLAB_ENGINE", &choice).env("SLABLAB_SLOTS", slots).output();
        let done = done.expect("it runs");
        if !done.status.success() || !done.stderr.is_empty() {
            let texts = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
            wrong.push(format!("{choice}, {slots}: {}", texts.concat()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// In a process that [`check`] began.
#[test]
fn the_heap_of_this_process() {
    if std::env::var_os(ALONE).is_some() {
        let Answers { asked, wrong } = answers(&HEAP);
        assert!(asked > 0 && wrong.is_empty(), "{} of {asked}\n{}", wrong.len(), wrong[0]);
    }
}

#[test]
fn every_preset() {
    check("thread", presets().map(|preset| preset.to_string()));
}

#[test]
fn every_preset_with_slots_per_cpu() {
    check("cpu", presets().map(|preset| preset.to_string()));
}

/// The newest preset of each engine.
#[test]
fn every_wrapper() {
    let wrapped = |engine: &'static str| WRAPPERS.iter().map(move |wrapper| format!("{engine}{wrapper}"));
    let engines = ["slub", "slqb", "slab"].into_iter().flat_map(wrapped);
    check("thread", engines.chain(["slub,harden=on".to_owned()]));
}

#[test]
#[ignore = "minutes"]
fn every_preset_with_every_wrapper() {
    let wrapped = |preset: Preset| WRAPPERS.iter().map(move |wrapper| format!("{preset}{wrapper}"));
    check("thread", presets().flat_map(wrapped));
}

/// Heaps beside the process's own.
#[test]
fn further_heaps() {
    let mut wrong = Vec::new();
    for preset in presets() {
        let heap = ChosenHeap::open(&preset.to_string()).unwrap_or_else(|why| panic!("{preset}: {why}"));
        let answers = answers(&heap);
        println!("{preset}: {} of {} misaligned", answers.wrong.len(), answers.asked);
        wrong.extend(answers.wrong.first().map(|first| format!("{preset}: {first}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
