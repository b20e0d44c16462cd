//! Builds the allocator of a kernel tree: `cargo run -p slablab-linux --example build -- PATH`.

use slablab_linux::build::{Request, build};
use std::ops::ControlFlow;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tree = std::env::args().nth(1).ok_or("expected the path of a kernel tree")?;
    let built = build(&Request::of(Path::new(&tree)), &mut |_| ControlFlow::Continue(()))?;
    if let Some(built) = built {
        println!("{}: the {} of Linux {}", built.folder.display(), built.allocator.title(), built.release);
        built.parts.iter().for_each(|(part, seconds)| println!("{seconds:8.3} s {part}"));
    }
    Ok(())
}
