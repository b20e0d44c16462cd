//! Elevators as scripts: what comes in which order, what is dispatched in which order.

use super::MS;
use slablab_model::Ps;
use slablab_sim::block::disk::bio::{Bio, RequestId};
use slablab_sim::block::disk::elevator::{ElevatorSpec, LinusSpec, Take};
use slablab_sim::block::disk::queue::{Added, Queue, QueueSpec};
use std::collections::VecDeque;

/// A queue, and what it has dispatched.
struct Run {
    queue: Queue,
    now: Ps,
    keys: u64,
    in_disk: VecDeque<RequestId>,
    /// Text of what was dispatched.
    text: Vec<String>,
}

impl Run {
    /// One word of a script: `r8`, `w8`: a read or write of the sectors 8 to 15, `w8x32` of 32 sectors, by
    /// task 1; `r8/2`: by task 2; `mr8`: metadata; `!w8`: marked sync; `+20`: 20 ms pass; `(1` and `)1`: task
    /// 1 begins and ends to plug; `u`: a task waits; `e1`: task 1 ends; `>`: dispatch a request, and complete
    /// it a millisecond later; `>>`: dispatch until the queue says wait, `<`: complete the request that was
    /// dispatched first.
    fn word(&mut self, word: &str) {
        match word.as_bytes()[0] {
            b'+' => self.now += word[1..].parse::<u64>().expect(word) * MS,
            b'u' => self.queue.unplug(),
            b'e' => self.queue.task_ends(word[1..].parse().expect(word)),
            b'(' => self.queue.start_plug(word[1..].parse().expect(word)),
            b')' => self.queue.finish_plug(word[1..].parse().expect(word), self.now),
            b'>' if word == ">" => {
                if self.dispatch() {
                    self.now += MS;
                    self.complete();
                }
            }
            b'>' => while self.dispatch() {},
            b'<' => self.complete(),
            _ => self.add(word),
        }
    }

    fn add(&mut self, word: &str) {
        let marks = word.trim_start_matches(['m', '!']);
        let metadata = word[..word.len() - marks.len()].contains('m');
        let sync = word[..word.len() - marks.len()].contains('!');
        let (place, owner) = marks[1..].split_once('/').unwrap_or((&marks[1..], "1"));
        let (sector, sectors) = place.split_once('x').unwrap_or((place, "8"));
        let [sector, sectors, owner] = [sector, sectors, owner].map(|text| text.parse::<u64>().expect(word));
        let make = if marks.starts_with('r') { Bio::read } else { Bio::write };
        let bio = Bio { metadata, sync, ..make(sector, sectors as u32, owner as u32) };
        self.keys += 1;
        let added = self.queue.add(&bio, self.keys, false, self.now);
        assert!(added != Added::NoRequest, "{word}: no request is free");
    }

    fn dispatch(&mut self) -> bool {
        match self.queue.dispatch(self.now) {
            Take::Request(id) => {
                let request = self.queue.request(id);
                let kind = if request.direction as usize == 0 { 'r' } else { 'w' };
                let size = if request.sectors == 8 { String::new() } else { format!("x{}", request.sectors) };
                self.text.push(format!("{kind}{}{size}", request.sector));
                self.in_disk.push_back(id);
                true
            }
            Take::Wait(until) => {
                let ms = |until: Ps| format!("-{}", (until - self.now) / MS);
                self.text.push(if until == Ps::MAX { "-".into() } else { ms(until) });
                false
            }
        }
    }

    fn complete(&mut self) {
        let id = self.in_disk.pop_front().expect("a request is in the disk");
        let (request, _) = self.queue.complete(id, self.now);
        assert!(!request.keys.is_empty());
    }
}

/// Runs a script on a queue; `expected` is what is dispatched, with `-` where the queue has nothing for the
/// disk, and `-8` where it says to try again in 8 ms.
#[track_caller]
fn check(name: &str, script: &str, expected: &str) {
    check_queue(QueueSpec::named(name).unwrap_or_else(|| panic!("no queue {name}")), script, expected);
}

#[track_caller]
fn check_queue(spec: QueueSpec, script: &str, expected: &str) {
    let mut run =
        Run { queue: Queue::new(spec), now: 0, keys: 0, in_disk: VecDeque::new(), text: Vec::new() };
    script.split_whitespace().for_each(|word| run.word(word));
    assert_eq!(run.text.join(" "), expected, "{:?}: {script}", spec.elevator);
}

#[test]
fn linus_elevator() {
    let check = |script: &str, expected: &str| check("linus@2.4.10", script, expected);
    // Nothing starts before a task waits; a request that came later is behind the plug no more.
    check("w100 > u > >", "- w100 -");
    // Ascending, one list for both directions; what is below the first request waits for the next sweep.
    check("w500 w300 r400 w100 u >> ", "w500 w100 w300 r400 -");
    check("w100 w500 r300 w50 r700 u >>", "w100 r300 w500 r700 w50 -");
    check("w100 w500 w200 r300 w400 u >>", "w100 w200 r300 w400 w500 -");
    // Behind a wrap: above the last request of the sweep, or below the first one of the next.
    check("w100 w500 w40 w600 w20 u >>", "w100 w500 w600 w20 w40 -");
    // Back and front merges, and two requests that become one.
    check("w100 w108 w116 u >>", "w100x24 -");
    check("w116 w108 w100 u >>", "w100x24 -");
    check("w100 w116 w108 u >>", "w100x24 -");
    // A read does not merge with a write; 255 sectors are the most.
    check("w100 r108 u >>", "w100 r108 -");
    check("w0x248 w248 w256 u >>", "w0x248 w248x16 -");
}

/// A request without patience is passed no more. A block that merges before a request costs it 1 for the walk
/// and 8 for its sectors; one that becomes a request of its own 1.
#[test]
fn patience_ends() {
    let spec = QueueSpec::named("linus@2.4.10").expect("it exists");
    let elevator = ElevatorSpec::Linus(LinusSpec { read: 20, write: 40 });
    let check = |script: &str, expected: &str| check_queue(QueueSpec { elevator, ..spec }, script, expected);
    // 20, 11, 2, 0: the fourth block goes behind the read.
    check("w1000 r5000 w1008 w1016 w1024 w1032 u >>", "w1000x32 r5000 w1032 -");
    check("w1000 w5000 w1008 w1016 w1024 w1032 u >>", "w1000x40 w5000 -");
    // A read with 2 left does not take a block of 8 sectors, and nothing passes it then.
    check("w1000 r5000 w1008 w1016 r5008 u >>", "w1000x24 r5000 r5008 -");
    // A block in front costs the request itself 8.
    check("r5000 r4992 r4984 r4976 u >>", "r4984x24 r4976 -");
    let scattered: String = (0..22).map(|at| format!("w{} ", 100 + 10 * at)).collect();
    let first: String = (0..20).map(|at| format!("w{} ", 100 + 10 * at)).collect();
    check(&format!("w90 r5000 {scattered} u >>"), &format!("w90 {first}r5000 w300 w310 -"));
}

#[test]
fn deadline() {
    let check = |script: &str, expected: &str| check("deadline@2.6.29", script, expected);
    // Reads before writes; a sweep begins with the oldest request and goes upward.
    check("w500 w300 r400 r100 u >> ", "r400 r100 w500 w300 -");
    check("r400 u > r500 r100 r450 u >>", "r400 r500 r100 r450 -");
    // Two sweeps of reads pass a write; then it goes.
    check("w900 r100 r50 r20 r10 u >>", "r100 r50 w900 r20 r10 -");
    // Merging, at both ends.
    check("w100 w116 w108 r124 u >>", "r124 w100x24 -");
    // Plugged: 4 requests, 3 ms, or a bio that is marked.
    check("r100 r200 r300 >", "-3");
    check("r100 r200 r300 r400 >>", "r100 r200 r300 r400 -");
    check("r100 +3 >>", "r100 -");
    check("r100 !w200 >>", "r100 w200 -");
}

/// A sweep of 16 requests goes on over a read whose time has passed; the next sweep begins with it.
#[test]
fn a_sweep_ends_after_its_batch() {
    let order: Vec<String> = (0..20).map(|at| format!("r{}", 1000 + 100 * at)).collect();
    let script = |wait| format!("{} r10 {} {wait} u >>", order[0], order[1..].join(" "));
    let late = format!("{} r10 {} -", order[..16].join(" "), order[16..].join(" "));
    check("deadline@2.6.29", &script("+600"), &late);
    check("deadline@2.6.29", &script("+400"), &format!("{} r10 -", order.join(" ")));
}

#[test]
fn none() {
    check("noop@2.6.29", "w500 r300 w100 w508 w516 u >>", "w500x24 r300 w100 -");
    // Today bios merge in the task's plug only, and each task has its own.
    check("none@6.1", "w500 w508 >>", "w500 w508 -");
    check("none@6.1", "(1 w500 w508 w516 w300 >> )1 >>", "- w500x24 w300 -");
    check("none@6.1", "(1 (2 w500 w508/2 >> )1 >> )2 >>", "- w500 - w508 -");
    check("mq-deadline@6.1", "(1 w500 w508 r8 >> )1 >>", "- r8 w500x16 -");
}

/// A plug holds 32 requests.
#[test]
fn a_plug_is_flushed_when_it_is_full() {
    let writes: String = (0..33).map(|at| format!("w{} ", 100 * at)).collect();
    let first: Vec<String> = (0..32).map(|at| format!("w{}", 100 * at)).collect();
    check("none@6.1", &format!("(1 {writes} >>"), &format!("{} -", first.join(" ")));
}

#[test]
fn cfq() {
    let check = |script: &str, expected: &str| check("cfq@2.6.29", script, expected);
    // A task's reads are served together, the nearest first, also a little behind the head.
    check("r1000/1 r9000/2 r1200/1 r9100/2 u > > > > +8 > >", "r1000 r1200 -8 -8 r9000 r9100");
    check("r1000 u > r800 r2000 u > >", "r1000 r800 r2000");
    check("r1000 u > r800 r1300 u > >", "r1000 r1300 r800");
    // More than 16 MiB back is no way: upward first, then the first one.
    check("r100000 u > r8 r900000 u > >", "r100000 r900000 r8");
    // Async writes of all tasks are one queue, and merge across tasks.
    check("w100/1 w108/2 u >>", "w100x16 -");
    // The disk is kept 8 ms for the next read of a task; then another task's turn comes.
    check("r1000/1 u > r9000/2 u > r1100/1 u > +8 >", "r1000 -8 r1100 r9000");
    check("r1000/1 u > r9000/2 u > +8 > r1100/1 u > +8 >", "r1000 -8 r9000 -8 r1100");
    // No async request while a sync one is in the disk.
    check("r1000/1 u >> w100/9 u >> +1 < +1 >> +8 >>", "r1000 - - -7 w100 -");
    check("r1000/1 u >> e1 w100/9 u >> < >>", "r1000 - - w100 -");
    // A read ends an async slice; metadata ends another task's slice.
    check("w100/9 w300/9 w500/9 w700/9 u > r9000/1 u >", "w100 r9000");
    check("r1000/1 r1100/1 u > mr9000/2 u > > +8 >", "r1000 r9000 -8 r1100");
    // No queue has more than 4 requests in the disk while another one waits.
    check("r0 r100 r200 r300 r400 u >> r500 r900/2 u >>", "r0 r100 r200 r300 r400 - -");
    check("r0 r100 r200 r300 r400 r900/2 u >>", "r0 r100 r200 r300 -");
    check("r0 r100 r200 r300 r400 r500 u >>", "r0 r100 r200 r300 r400 r500 -");
}

/// An async slice ends after 16 requests where another queue waits: here that of another priority.
#[test]
fn an_async_slice_has_16_requests() {
    let spec = QueueSpec::named("cfq@2.6.29").expect("it exists");
    let mut queue = Queue::new(spec);
    for at in 0..20 {
        queue.add(&Bio::write(100 * at, 8, 1), at, false, 0);
        queue.add(&Bio { priority: 3, ..Bio::write(90_000 + 100 * at, 8, 1) }, at, false, 0);
    }
    queue.unplug();
    let mut runs: Vec<(bool, u32)> = Vec::new();
    let mut now = 0;
    while let Take::Request(id) = queue.dispatch(now) {
        let is_second = queue.request(id).sector >= 90_000;
        match runs.last_mut() {
            Some((which, count)) if *which == is_second => *count += 1,
            _ => runs.push((is_second, 1)),
        }
        now += MS / 10;
        queue.complete(id, now);
    }
    // Priority 3 could have 2 * (2 + 2 * 4) = 20 requests.
    assert_eq!(runs, [(false, 16), (true, 20), (false, 4)]);
}
