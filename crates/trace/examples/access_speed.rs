//! How fast accesses are generated: `cargo run --release -p slablab-trace --example access_speed`.
//!
//! For each distribution 20 million pages of an object of 160 MiB, in the best of five rounds; then groups of
//! four and two pages in turn.

use slablab_trace::script::{Batches, Command, Process, Script};
use std::time::Instant;

const ROUNDS: u32 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let each = ["seq", "rev", "stride:17", "part:10:3", "uni", "zipf:50", "zipf:100", "zipf:150"];
    let mut lines: Vec<String> = each.iter().map(|word| format!("acc 20000000 a {word} m r")).collect();
    lines.push("inter 3000000 4 b seq s r 2 a uni m w".to_string());
    for line in lines {
        let text = format!("anon a 160\nfile b 160\n{line}");
        let script = Script::parse("speed.t", &text, &mut |_| Err("no children".into()))?;
        let Some(Command::Access { rounds, groups }) = script.commands.last().map(|line| &line.command)
        else {
            return Err("the last command accesses pages".into());
        };
        let mut process = Process::new(&script);
        let (mut best, mut count) = (f64::MAX, 0);
        for _ in 0..ROUNDS {
            let (start, mut sum) = (Instant::now(), 0u64);
            let mut batches = Batches::new(*rounds, groups);
            count = 0;
            while let Some(batch) = batches.next(&mut process) {
                sum = batch.pages.iter().fold(sum, |sum, page| sum.wrapping_add(u64::from(*page)));
                count += batch.pages.len();
            }
            std::hint::black_box(sum);
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("{line:40} {:6.1} M accesses/s", count as f64 / best / 1e6);
    }
    Ok(())
}
