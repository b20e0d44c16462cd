//! Reads a perf.data, a trace.dat or a text recording to its end, five times, and says how fast: the reader
//! alone, without what import makes of it. `cargo run --release -p slablab-readers --example read -- FILE`;
//! not compressed as a whole.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Read};
use std::time::Instant;

use slablab_readers::ftrace::Ftrace;
use slablab_readers::perfdata::PerfData;
use slablab_readers::tracedat::{MAGIC, TraceDat};
use slablab_readers::{Source, Tally};

const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("expected a file")?;
    let mut seconds = Vec::new();
    let mut tally = Tally::default();
    for _ in 0..RUNS {
        let begin = Instant::now();
        tally = read(&path)?;
        seconds.push(begin.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[RUNS / 2];
    let millions = tally.events as f64 / median / 1e6;
    println!("{} events, {} lost: {median:.3} s, {millions:.1} million a second", tally.events, tally.lost);
    Ok(())
}

fn read(path: &str) -> Result<Tally, Box<dyn Error>> {
    let mut head = Vec::new();
    File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    let file = File::open(path)?;
    if head == MAGIC {
        return drain(TraceDat::new(file)?);
    }
    if head.starts_with(b"PERFILE2") {
        return drain(PerfData::seekable(BufReader::with_capacity(1 << 18, file))?);
    }
    drain(Ftrace::new(file))
}

fn drain<S: Source>(mut source: S) -> Result<Tally, Box<dyn Error>> {
    while source.next()?.is_some() {}
    Ok(source.tally().clone())
}
