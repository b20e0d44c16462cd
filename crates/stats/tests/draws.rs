//! Draws: sides, intervals, and how often the sequential rule is wrong.

use slablab_stats::draws::{Drawn, ERROR, LOOKS, Noise, Side};
use slablab_stats::slope::slope;

/// Numbers from a stream of splitmix64.
struct Stream(u64);

impl Stream {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The sum of 12 uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Draws until the rule stops, or the last look.
fn settled(band: f64, mut draw: impl FnMut() -> f64) -> Drawn {
    let mut logs = Vec::new();
    for look in LOOKS {
        logs.extend(std::iter::repeat_with(&mut draw).take(look - logs.len()));
        let drawn = Drawn::new(&logs, None).expect("finite draws");
        if drawn.is_settled(band) || look == LOOKS[LOOKS.len() - 1] {
            return drawn;
        }
    }
    unreachable!("the last look ends it")
}

#[test]
fn sides_of_a_band() {
    #[track_caller]
    fn check(logs: &[f64], band: f64, side: Option<Side>, parts: [f64; 3]) {
        let drawn = Drawn::new(logs, None).expect("finite draws");
        assert_eq!((drawn.side(band), drawn.parts(band)), (side, parts), "{logs:?}");
    }
    check(&[0.5; 8], 0.1, Some(Side::Above), [0.0, 0.0, 1.0]);
    check(&[-0.5; 8], 0.1, Some(Side::Below), [1.0, 0.0, 0.0]);
    check(&[0.0; 8], 0.0, Some(Side::Within), [0.0, 1.0, 0.0]);
    check(&[0.1; 8], 0.1, Some(Side::Within), [0.0, 1.0, 0.0]);
    check(&[-0.1; 8], 0.1, Some(Side::Within), [0.0, 1.0, 0.0]);
    // All are above, but so few and so far apart that the next one may not be.
    check(&[0.11, 1.0, 0.2, 2.0], 0.1, None, [0.0, 0.0, 1.0]);
    check(&[0.5, 0.51, 0.49, -0.5], 0.1, None, [0.25, 0.0, 0.75]);
    assert!(Drawn::new(&[1.0], None).is_err() && Drawn::new(&[1.0, f64::NAN], None).is_err());
}

/// The seed's variance is taken off as far as the published mean has not had it.
#[test]
fn the_seed_alone_is_less_of_a_mean() {
    let logs: Vec<f64> = (0..32).map(|at| if at % 2 == 0 { 0.3 } else { 0.1 }).collect();
    let sd = |noise: Option<Noise>| {
        let drawn = Drawn::new(&logs, noise).expect("finite draws");
        assert!((drawn.mean() - 0.2).abs() < 1e-12);
        drawn.values()[0] - drawn.mean()
    };
    let of = |variance: f64, runs: usize| Some(Noise { variance, freedom: 8.0, runs });
    let all = 0.01 * 32.0 / 31.0;
    let check = |noise, expected: f64| assert!((sd(noise) - 0.1 * expected.sqrt()).abs() < 1e-9, "{noise:?}");
    check(None, 1.0);
    check(of(all, 1), 1.0);
    check(of(all, 10), 0.1);
    check(of(all / 2.0, 10), 0.55);
    // More than all: a tenth is left.
    check(of(all * 3.0, 10), 0.1);
}

/// How often the rule stops early with a wrong answer, by the true part of the draws above 1; and how many
/// draws it takes.
#[test]
fn early_stops_are_rarely_wrong() {
    type Draw = fn(&mut Stream) -> f64;
    // A draw less its mean, over its standard deviation.
    let uniform: Draw = |stream| (stream.uniform() - 0.5) * 12f64.sqrt();
    let laplace: Draw = |stream| {
        let (size, half) = (-(1.0 - stream.uniform()).ln(), stream.uniform());
        if half < 0.5 { size / 2f64.sqrt() } else { -size / 2f64.sqrt() }
    };
    // How far the mean is above 0, so that this part is above 0.
    let places: [(&str, Draw, [f64; 3]); 3] = [
        ("normal", Stream::normal, [0.8416, 1.2816, 2.3263]),
        ("uniform", uniform, [0.6 * 3f64.sqrt(), 0.8 * 3f64.sqrt(), 0.98 * 3f64.sqrt()]),
        ("laplace", laplace, [0.6479, 1.1380, 2.7661]),
    ];
    let trials = 2000;
    for (name, draw, [of_80, of_90, of_99]) in places {
        let stops = |mean: f64, seed: u64| {
            let mut stream = Stream(seed);
            let (mut early, mut sides, mut draws) = (0, 0, 0);
            for _ in 0..trials {
                let drawn = settled(0.0, || mean + draw(&mut stream));
                draws += drawn.n();
                if drawn.n() < 64 {
                    early += 1;
                    sides += usize::from(drawn.side(0.0) == Some(Side::Above));
                }
            }
            let part = |count: usize| count as f64 / f64::from(trials);
            [part(sides), part(early - sides), draws as f64 / f64::from(trials)]
        };
        // Too few are above: "above" is the wrong answer.
        for mean in [of_80, of_90] {
            let [above, ..] = stops(mean, 1);
            assert!(above <= ERROR, "{name}, mean {mean}: {above}");
        }
        // Enough are above: "undetermined" is.
        let [_, not, _] = stops(of_99, 2);
        assert!(not <= ERROR, "{name}: {not}");
        // A clear answer takes few draws.
        let [clear, _, draws] = stops(8.0, 3);
        assert!(clear == 1.0 && draws < 12.0, "{name}: {clear} {draws}");
        let [_, none, draws] = stops(0.0, 4);
        assert!(none > 0.99 && draws < 12.0, "{name}: {none} {draws}");
    }
}

/// The interval holds the next mean of `runs` runs in 95 of 100 cases: the assumptions are drawn once more.
#[test]
fn the_interval_holds_the_next_ratio() {
    // The sd of the assumptions and of a run's seed, and the runs of the published mean.
    let check = |assumed: f64, seed: f64, runs: usize, draws: usize| {
        let mut stream = Stream(7);
        let trials = 4000;
        let held = (0..trials)
            .filter(|_| {
                let draw = |stream: &mut Stream, runs: usize| {
                    assumed * stream.normal() + seed / (runs as f64).sqrt() * stream.normal()
                };
                let logs: Vec<f64> = (0..draws).map(|_| draw(&mut stream, 1)).collect();
                let published = draw(&mut stream, runs);
                // As known from 10 runs of each side.
                let freedom = 18.0;
                let squares: f64 = (0..18).map(|_| (seed * stream.normal()).powi(2)).sum();
                let noise = Noise { variance: squares / freedom, freedom, runs };
                let ends = Drawn::new(&logs, Some(noise)).expect("finite draws").interval();
                (ends.low..=ends.high).contains(&published)
            })
            .count();
        let part = held as f64 / f64::from(trials);
        assert!((0.93..=0.97).contains(&part), "{assumed} {seed} {runs} {draws}: {part}");
    };
    for draws in LOOKS {
        check(0.1, 0.0, 1, draws);
        check(0.1, 0.1, 1, draws);
    }
    check(0.1, 0.05, 10, 16);
    check(0.1, 0.1, 10, 16);
    check(0.1, 0.05, 10, 64);
    check(0.1, 0.1, 10, 64);
    check(0.1, 0.2, 10, 64);
}

#[test]
fn a_line_explains_a_part() {
    let x: Vec<f64> = (0..10).map(f64::from).collect();
    let y: Vec<f64> = x.iter().map(|x| 3.0 - 2.0 * x).collect();
    let line = slope(&x, &y).expect("a line");
    assert!((line.slope + 2.0).abs() < 1e-12 && line.part > 0.999_999 && line.p < 1e-9, "{line:?}");
    // r = 0.7746, t = 2.1213 with 3 degrees of freedom: p 0.1240.
    let line = slope(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 5.0, 4.0, 5.0]).expect("a line");
    assert!((line.slope - 0.6).abs() < 1e-12 && (line.part - 0.6).abs() < 1e-12, "{line:?}");
    assert!((line.p - 0.1240).abs() < 1e-4, "{line:?}");
    assert_eq!(slope(&[1.0; 5], &[2.0, 4.0, 5.0, 4.0, 5.0]), None);
    assert_eq!(slope(&[1.0, 2.0], &[2.0, 4.0]), None);
}
