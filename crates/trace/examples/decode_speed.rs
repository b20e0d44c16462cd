//! How fast a trace decodes: `cargo run --release -p slablab-trace --example decode_speed [TRACE]`.
//!
//! Without a file it makes one: 4 million events of a workload with 40 caches on 8 CPUs, written to memory.

use std::time::Instant;

use slablab_trace::{Batch, Columns, EventKind, Metadata, NONE, Reader, Row, Writer};

const ROUNDS: u32 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1) {
        Some(path) => {
            let reader = Reader::open(path.as_ref())?;
            report(&reader, std::fs::metadata(&path)?.len())
        }
        None => {
            let path = std::env::temp_dir().join(format!("decode_speed.{}.parquet", std::process::id()));
            let start = Instant::now();
            let rows = synthetic(&path)?;
            println!("wrote {rows} rows, {:.2} M rows/s", rows as f64 / start.elapsed().as_secs_f64() / 1e6);
            let reader = Reader::open(&path)?;
            let size = std::fs::metadata(&path)?.len();
            std::fs::remove_file(&path)?;
            report(&reader, size)
        }
    }
}

fn report(reader: &Reader, size: u64) -> Result<(), Box<dyn std::error::Error>> {
    println!("{} rows, {size} bytes, {:.2} bytes/row", reader.rows(), size as f64 / reader.rows() as f64);
    let sets = [
        ("replay", Columns::REPLAY),
        ("all", Columns::ALL),
        ("time_ns", Columns::TIME_NS),
        ("cpu", Columns::CPU),
        ("event", Columns::EVENT),
        ("object", Columns::OBJECT),
        ("cache", Columns::CACHE),
        ("bytes_req", Columns::BYTES_REQ),
        ("bytes_alloc", Columns::BYTES_ALLOC),
        ("gfp", Columns::GFP),
        ("node", Columns::NODE),
        ("flags", Columns::FLAGS),
        ("address", Columns::ADDRESS),
        ("call_site", Columns::CALL_SITE),
    ];
    for (name, columns) in sets {
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let (mut batches, mut batch, mut sum) = (reader.batches(columns), Batch::default(), 0u64);
            while batches.next(&mut batch)? {
                sum = sum.wrapping_add(batch.time_ns.iter().sum::<u64>());
            }
            std::hint::black_box(sum);
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!(
            "{name:12} {:8.1} M rows/s {:6.2} ns/row",
            reader.rows() as f64 / best / 1e6,
            best * 1e9 / reader.rows() as f64
        );
    }
    Ok(())
}

/// Sizes and orders of magnitude of a real recording; the content does not matter beyond how well it packs.
fn synthetic(path: &std::path::Path) -> Result<u64, Box<dyn std::error::Error>> {
    let mut writer = Writer::new(std::fs::File::create(path)?)?;
    let caches: Vec<u32> = (0..40).map(|cache| writer.texts().cache.id(&format!("cache-{cache}"))).collect();
    let sites: Vec<u32> =
        (0..400).map(|site| writer.texts().call_site.id(&format!("function_{site}+0x1c"))).collect();
    let (mut state, mut time_ns, mut live, mut free) = (1u64, 0u64, Vec::new(), Vec::new());
    for _ in 0..4_000_000u64 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let random = state >> 33;
        time_ns += 200 + random % 3000;
        let alloc = live.len() < 1000 || (random % 2 == 0 && live.len() < 200_000);
        let base =
            Row { time_ns, cpu: (random >> 8) as u16 % 8, pid: (random >> 12) as i32 % 60, ..Row::default() };
        let row = if alloc {
            let cache = (random >> 4) as usize % 40;
            let object = free.pop().unwrap_or(live.len() as u32);
            live.push((object, cache));
            let bytes_alloc = 32 + 16 * cache as u32;
            Row {
                event: if cache < 20 { EventKind::Kmalloc } else { EventKind::CacheAlloc } as u8,
                object,
                address: 0xffff_8880_0000_0000 + u64::from(object) * 256,
                cache: if cache < 20 { NONE } else { caches[cache] },
                bytes_req: bytes_alloc - (random >> 20) as u32 % 16,
                bytes_alloc,
                gfp: 0x0660 | (random as u32 & 0x100),
                call_site: sites[random as usize % 400],
                ..base
            }
        } else {
            let place = live.len() - 1 - (random as usize % live.len().min(500));
            let (object, cache) = live.swap_remove(place);
            free.push(object);
            let event = if cache < 20 { EventKind::Kfree } else { EventKind::CacheFree } as u8;
            let address = 0xffff_8880_0000_0000 + u64::from(object) * 256;
            let cache = if cache < 20 { NONE } else { caches[cache] };
            Row { event, object, address, cache, call_site: sites[random as usize % 400], ..base }
        };
        writer.push(&row)?;
    }
    let rows = writer.rows();
    writer.finish(Metadata::default())?;
    Ok(rows)
}
