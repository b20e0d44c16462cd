//! Random scripts: the accesses of the language beside a second implementation, written from its description
//! (docs/pressure.md), which goes page by page over plain vectors and knows nothing of the first one.

use crate::script::{accesses, parse};
use slablab_trace::script::{Mode, Rw};
use std::collections::BTreeMap;

fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// An object as the language describes it.
#[derive(Default)]
struct Plain {
    pages: u64,
    cursor: u64,
    /// Of the exponent that was named last: the weights, and the page of each rank.
    weights: Vec<u128>,
    order: Vec<u64>,
}

impl Plain {
    fn weigh(&mut self, name: &str, exponent: &str) {
        let root = |k: u128| {
            (0..64).rev().fold(0, |r: u128, b| if (r + (1 << b)).pow(2) <= k { r + (1 << b) } else { r })
        };
        let weight = |k: u64| {
            let (k, h) = (u128::from(k) + 1, root((u128::from(k) + 1) << 32));
            match exponent {
                "50" => (1 << 56) / h,
                "100" => (1 << 40) / k,
                _ => (1 << 56) / h / k,
            }
        };
        self.weights = (0..self.pages).map(weight).collect();
        let mut state = 0xcbf2_9ce4_8422_2325;
        for byte in name.bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        self.order = (0..self.pages).collect();
        for i in (1..self.pages).rev() {
            let j = mix(&mut state) % (i + 1);
            self.order.swap(i as usize, j as usize);
        }
    }

    fn next(&mut self, distribution: &str, draw: &mut u64) -> u64 {
        let (page, pages) = (self.cursor, self.pages);
        let numbers: Vec<u64> = distribution.split(':').skip(1).map(|n| n.parse().unwrap()).collect();
        match &distribution[..3] {
            "seq" | "rev" => {
                self.cursor = (page + 1) % pages;
                if &distribution[..3] == "rev" { (pages - 1).wrapping_sub(page) as u32 as u64 } else { page }
            }
            "str" => {
                self.cursor = page + numbers[0];
                if self.cursor >= pages {
                    self.cursor = (page % numbers[0] + 1) % numbers[0];
                }
                page
            }
            "par" => {
                self.cursor = (page + 1) % pages;
                while self.cursor % numbers[0] >= numbers[1] {
                    self.cursor = (self.cursor + 1) % pages;
                }
                page
            }
            "uni" => mix(draw) % pages,
            _ => {
                let mut left = u128::from(mix(draw)) % self.weights.iter().sum::<u128>();
                let rank = self.weights.iter().position(|weight| match left.checked_sub(*weight) {
                    Some(rest) => {
                        left = rest;
                        false
                    }
                    None => true,
                });
                self.order[rank.unwrap()]
            }
        }
    }
}

/// The accesses of a text: object (by first access), page, mode, what.
fn plainly(text: &str) -> Vec<(usize, u64, String)> {
    let (mut objects, mut draw, mut all) = (BTreeMap::<String, Plain>::new(), 1, Vec::new());
    let mut seen: Vec<String> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        match words.first().copied() {
            Some("seed") => draw = number(1),
            Some("anon" | "file" | "shm") => {
                let pages = (words[2].parse::<f64>().unwrap() * 256.0) as u64;
                objects.insert(words[1].into(), Plain { pages, ..Plain::default() });
            }
            Some("rewind") => objects.get_mut(words[1]).unwrap().cursor = 0,
            Some("statuni") => (0..number(4)).for_each(|_| _ = mix(&mut draw)),
            Some(verb @ ("acc" | "inter")) => {
                let rounds = if verb == "acc" { 1 } else { number(1) };
                let groups: Vec<&[&str]> =
                    if verb == "acc" { vec![&words[1..]] } else { words[2..].chunks(5).collect() };
                for group in &groups {
                    if let Some(exponent) = group[2].strip_prefix("zipf:") {
                        objects.get_mut(group[1]).unwrap().weigh(group[1], exponent);
                    }
                }
                for group in (0..rounds).flat_map(|_| &groups) {
                    let object = objects.get_mut(group[1]).unwrap();
                    let count = match group[0].strip_prefix('x') {
                        Some(times) => times.parse::<u64>().unwrap() * object.pages,
                        None => group[0].parse().unwrap(),
                    };
                    for _ in 0..count {
                        let place = seen.iter().position(|name| name == group[1]).unwrap_or_else(|| {
                            seen.push(group[1].into());
                            seen.len() - 1
                        });
                        all.push((
                            place,
                            object.next(group[2], &mut draw),
                            format!("{}{}", group[3], group[4]),
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    all
}

/// A script of every kind of command that decides accesses, with sizes and numbers at their edges.
fn random_text(seed: u64) -> String {
    let mut state = seed;
    let mut below = |n: u64| mix(&mut state) % n;
    let mut text = String::new();
    const NAMES: [&str; 3] = ["a", "hotel", "x_9"];
    const KINDS: [&str; 3] = ["anon", "file", "shm"];
    const SIZES: [&str; 7] = ["0.00390625", "0.0078125", ".05", "0.3", "1.", "1.1", "3.7"];
    for name in NAMES {
        text += &format!("{} {name} {}\n", KINDS[below(3) as usize], SIZES[below(7) as usize]);
    }
    text += "inter 5 7 hotel zipf:50 m r 3 hotel zipf:150 m w 1 a zipf:100 m r\n";
    let group = |below: &mut dyn FnMut(u64) -> u64| {
        let name = NAMES[below(3) as usize];
        let distribution = match below(7) {
            0 => "seq".into(),
            1 => "rev".into(),
            2 => "uni".into(),
            3 => format!("stride:{}", [1, 2, 7, 256, 947, 5000][below(6) as usize]),
            4 => format!("part:{}:{}", 1 + below(12), 1 + below(14)),
            5 => format!("part:{}:{}", [255, 256, 20000][below(3) as usize], 1 + below(300)),
            _ => format!("zipf:{}", [50, 100, 150][below(3) as usize]),
        };
        format!("{name} {distribution} {} {}", ["m", "s"][below(2) as usize], ["r", "w"][below(2) as usize])
    };
    for _ in 0..12 {
        text += &match below(8) {
            0 => format!("seed {}\n", below(u64::MAX)),
            1 => format!("rewind {}\n", NAMES[below(3) as usize]),
            2 => format!("statuni /d 3 {} {} # comment\n", 1 + below(9), below(20)),
            3 => format!("acc x{} {}\n", below(3), group(&mut below)),
            4 | 5 => {
                let groups = (0..1 + below(5)).map(|_| format!(" {} {}", below(40), group(&mut below)));
                let groups: String = groups.collect();
                format!("inter {}{groups}\n", below(9))
            }
            _ => format!("acc {} {}\n", below(900), group(&mut below)),
        };
    }
    text
}

#[test]
fn random_scripts_mean_what_their_description_says() {
    let mut count = 0;
    for seed in 0..60 {
        let text = random_text(seed);
        let script = parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let (mut ours, mut seen) = (Vec::new(), Vec::new());
        accesses(&script, |access| {
            let place = seen.iter().position(|object| *object == access.object).unwrap_or_else(|| {
                seen.push(access.object);
                seen.len() - 1
            });
            let mode = if access.mode == Mode::Mapped { "m" } else { "s" };
            let what = if access.rw == Rw::Read { "r" } else { "w" };
            ours.push((place, u64::from(access.page), format!("{mode}{what}")));
        });
        let plain = plainly(&text);
        let at = ours.iter().zip(&plain).position(|(ours, plain)| ours != plain);
        assert!(
            at.is_none(),
            "seed {seed}, access {at:?}: {:?} {:?}\n{text}",
            ours[at.unwrap()],
            plain[at.unwrap()]
        );
        assert_eq!(ours.len(), plain.len(), "seed {seed}\n{text}");
        count += ours.len();
    }
    assert!(count > 50_000, "{count} accesses");
}
