//! The seek curve, the geometry and single commands of a disk with round numbers.

use super::*;

const MS: Ps = 1_000_000_000;

/// 15,000 turns a minute, 80 to 40 MB/s, 36 GB.
fn disk() -> Rotating {
    Rotating {
        turn: 4 * MS,
        heads: 4,
        seek_track: MS / 2,
        seek_average: 4 * MS,
        seek_full: 8 * MS,
        seek_write: MS / 4,
        outer: 80_000_000,
        inner: 40_000_000,
        interface: 160_000_000,
        overhead: 0,
        ahead: 0,
        write_cache: 0,
    }
}

fn arm(disk: &Rotating) -> Arm {
    Arm::new(disk, 70_000_000)
}

fn read(sector: u64, sectors: u32) -> Command {
    Command { direction: Direction::Read, sector, sectors }
}

#[test]
fn the_seek_curve_meets_its_three_points_and_rises() {
    let arm = arm(&disk());
    let all = arm.cylinders - 1;
    assert_eq!([1, all / 3, all].map(|distance| arm.seek(distance)), [MS / 2, 4 * MS, 8 * MS]);
    assert_eq!(arm.seek(0), 0);
    let curve: Vec<Ps> = (0..=all).step_by(97).map(|distance| arm.seek(distance)).collect();
    assert!(curve.is_sorted(), "a longer way takes longer");
    // A square root: a quarter of the way to the third takes half of the time above a track's.
    let quarter = arm.seek(all / 12) - MS / 2;
    assert!(quarter.abs_diff(7 * MS / 4) < MS / 50, "{quarter}");
}

/// The mean seek between random places is near the average of the data sheet, which says so.
#[test]
fn the_mean_random_seek_is_near_the_average() {
    let arm = arm(&disk());
    let (mut state, mut sum) = (1_u64, 0);
    let mut next = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for _ in 0..10_000 {
        sum += arm.seek(next(arm.cylinders).abs_diff(next(arm.cylinders)));
    }
    let mean = sum / 10_000;
    assert!((3_600 * MS / 1_000..4_200 * MS / 1_000).contains(&mean), "{mean}");
}

#[test]
fn zones_cover_the_disk_and_their_tracks_take_a_turn() {
    let arm = arm(&disk());
    let last = arm.zones[ZONES as usize - 1];
    assert!(arm.cylinder(69_999_999) < arm.cylinders && last.first_sector < 70_000_000);
    for zone in &arm.zones {
        let (first, track) = (zone.first_sector, zone.track_sectors);
        assert_eq!(arm.transfer(first, first + track), 4 * MS);
        assert_eq!((arm.angle(first), arm.angle(first + track)), (0, 0));
        assert_eq!(arm.cylinder(first + 4 * track), arm.cylinder(first) + 1, "four heads");
    }
    // 78.75 and 41.25 MB/s in the first and last of 16 zones.
    assert_eq!((arm.zones[0].track_sectors, last.track_sectors), (615, 322));
}

/// Commands one after the other, each given when the one before was done: microseconds of each.
#[track_caller]
fn check(disk: &Rotating, pause: Ps, commands: &[Command], expected: &[Ps]) {
    let mut arm = arm(disk);
    let mut now = 0;
    let mut took = Vec::new();
    for command in commands {
        let end = arm.serve(command, now, now);
        took.push((end - now) / 1_000_000);
        now = end + pause;
    }
    assert_eq!(took, expected, "{commands:?}");
}

#[test]
fn commands_wait_for_the_arm_and_the_platter() {
    // A track has 615 sectors: 8 of them pass in 52 us, half a turn is 307.5 of them.
    check(&disk(), 0, &[read(0, 8), read(8, 8)], &[52, 52]);
    check(&disk(), 0, &[read(0, 8), read(0, 8)], &[52, 4_000]);
    check(&disk(), 0, &[read(0, 1_230)], &[8_000]);
    // A pause of 1 us without a buffer loses a turn; with one it does not, and data come at the interface's
    // speed. A buffer that is full after 16 sectors (104 us) makes the disk wait.
    check(&disk(), 1_000_000, &[read(0, 8), read(8, 8)], &[52, 4_051]);
    let ahead = Rotating { ahead: 8192, ..disk() };
    check(&ahead, 1_000_000, &[read(0, 8), read(8, 8)], &[52, 51]);
    check(&ahead, MS, &[read(0, 8), read(8, 16), read(24, 16)], &[52, 51, 51]);
    check(&ahead, MS, &[read(0, 8), read(8, 40)], &[52, 156]);
    // The next cylinder: half a millisecond of seek, then 7.5 % of a turn is left to the start of the track.
    let next = read(4 * 615, 8);
    check(&disk(), 0, &[read(0, 8), next], &[52, 4_000]);
    check(&disk(), 0, &[read(0, 8), read(4 * 615 + 100, 8)], &[52, 650]);
    // A write waits longer for the arm, and misses its place by that.
    let write = |sector| Command { direction: Direction::Write, ..read(sector, 8) };
    check(&disk(), 0, &[read(0, 8), write(4 * 615 + 100)], &[52, 4_650]);
    check(&disk(), 0, &[read(0, 8), write(4 * 615 + 150)], &[52, 975]);
    let slow = Rotating { overhead: MS / 5, ..disk() };
    check(&slow, 0, &[read(0, 8)], &[4_052]);
}

#[test]
fn a_write_cache_acknowledges_early_and_writes_back() {
    let cached = Rotating { write_cache: 32 << 10, ..disk() };
    let write = |sector| Command { direction: Direction::Write, sector, sectors: 32 };
    let mut arm = arm(&cached);
    // Two writes of 16 KiB fit; at 160 MB/s each takes 102 us.
    assert_eq!(arm.cache(&write(1_000_000), 0), Some(102_400_000));
    assert_eq!(arm.cache(&write(1_000_032), 0), Some(102_400_000));
    assert_eq!(arm.cache(&write(9_000_000), 0), None, "the buffer is full");
    // What the buffer holds is read from it.
    assert_eq!(arm.serve(&read(1_000_016, 32), 0, 0), 102_400_000);
    // A write that waits for room waits for the arm; both writes are one range.
    let served = arm.serve(&write(9_000_000), 0, 0);
    assert!((MS..12 * MS).contains(&served), "{served}");
    assert!(!arm.cache.has(1_000_000, 1_000_032) && arm.cache.has(9_000_000, 9_000_032));
    // The disk writes back while no command comes.
    arm.write_back_until(served + 20 * MS);
    assert!(arm.cache.is_empty());
    assert_eq!(arm.head, 9_000_032);
}
