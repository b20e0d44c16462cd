//! Builds an allocator of a kernel tree:
//! `cargo run -p slablab-linux --example build -- PATH [ALLOCATOR [NAME]]`.

use slablab_linux::build::{Allocator, Request, build};
use std::ops::ControlFlow;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut request = Request::of(Path::new(words.first().ok_or("expected the path of a kernel tree")?));
    if let Some(word) = words.get(1) {
        request.allocator = Some(Allocator::of(word).ok_or("expected slub, slab or slob")?);
    }
    request.name = words.get(2).cloned();
    let built = build(&request, &mut |_| ControlFlow::Continue(()))?;
    if let Some(built) = built {
        println!("{}: the {} of Linux {}", built.folder.display(), built.allocator.title(), built.release);
        println!("{} bytes, {:.1} s", built.bytes, built.seconds);
        built.parts.iter().for_each(|(part, seconds)| println!("{seconds:8.3} s {part}"));
        println!("functions without a meaning: {}", built.functions.join(" "));
        println!("data without a meaning: {}", built.data.join(" "));
    }
    Ok(())
}
