//! Reclaim near an allocation, by what the administrator set.

use slablab_vm::instant::Instant;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile};
use slablab_vm::{Ask, Flags, Frame, Preset, State, near};

const ASK: Ask = Ask { node: 0, class: 0, order: 0, io: true, fs: true, space: None, group: false };

/// A machine of 1,024 frames, of which 600 hold pages of a file that was read once. Whether reclaim near an
/// allocation frees any of them. `change` changes the file's pages first.
fn frees(preset: &str, change: fn(&mut State, Frame)) -> bool {
    let (vm, host, rules) = Instant::machine(preset, 1024, 0);
    let settings = Preset::parse(preset).expect("a preset").settings;
    let mut file = OpenFile::new(vm.with(|state| state.mappings.create(Kind::File, 600)));
    for page in 0..600 {
        mm::read(&vm, &host, &rules, &mut file, page).expect("memory");
    }
    host.settle(&vm);
    vm.with(|state| {
        state.settings = settings;
        let frames: Vec<Frame> =
            (0..600).filter_map(|page| state.mappings.get(file.mapping).entry(page).frame()).collect();
        frames.into_iter().for_each(|frame| change(state, frame));
    });
    let freed = near::reclaim(&vm, &host, 0, &ASK);
    assert_eq!(freed.progress, freed.pages > 0, "{preset}");
    vm.with(|state| state.check()).expect("every page is in one place");
    freed.pages > 0
}

#[test]
fn the_mode_and_the_ratios_say_what_is_freed() {
    let clean = |_: &mut State, _: Frame| {};
    let dirty = |state: &mut State, frame: Frame| _ = state.set_dirty(frame);
    let locked = |state: &mut State, frame: Frame| state.frames.set(frame, Flags::LOCKED);
    for (knobs, change, expected) in [
        // Clean pages, by default; none in mode 0.
        ("", clean as fn(&mut State, Frame), true),
        (",zone_reclaim_mode=0", clean, false),
        (",zone_reclaim_mode=1", clean, true),
        (",zone_reclaim_mode=1", locked, false),
        // Since 3.2 no allocation writes pages of files.
        (",zone_reclaim_mode=1", dirty, false),
        (",zone_reclaim_mode=3", dirty, false),
        // 600 of 1,024 pages are 58.6 percent.
        (",min_unmapped_ratio=58", clean, true),
        (",min_unmapped_ratio=59", clean, false),
    ] {
        assert_eq!(frees(&format!("vm@6.1{knobs}"), change), expected, "vm@6.1{knobs}");
    }
    // In 2.6.29 reclaim itself writes.
    assert!(frees("vm@2.6.29,zone_reclaim_mode=3", dirty));
    assert!(!frees("vm@2.6.29,zone_reclaim_mode=1", dirty));
}

/// What the machine around the memory asks of a preset.
#[test]
fn a_preset_has_the_administrators_settings() {
    let of = |knob: &str| Preset::parse(&format!("vm@6.1,{knob}")).expect("a preset").settings;
    assert_eq!(of("vfs_cache_pressure=50").vfs_cache_pressure, 50);
    assert_eq!(of("zone_reclaim_mode=auto").zone_reclaim_mode, None);
    assert_eq!(of("zone_reclaim_mode=7").zone_reclaim_mode, Some(7));
    assert_eq!(of("min_slab_ratio=9").min_slab_ratio, 9);
    assert_eq!(of("page_cluster=0").page_cluster, 0);
}
