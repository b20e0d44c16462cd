//! What the tests share: the samples in `testdata`, decompressed by the crate's own reader.

pub(crate) mod recording;

use std::io::Read;
use std::path::PathBuf;

use slablab_readers::compressed::Decompressed;
use slablab_readers::event::{Alloc, Free, Gfp, Header, Names};
use slablab_readers::{Event, Item, Kind, Lost, Name, Source};

/// The path of a sample.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A sample's content, decompressed.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut content = Vec::new();
    Decompressed::new(file)
        .unwrap()
        .read_to_end(&mut content)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    content
}

/// Everything a source delivers.
pub(crate) fn drain<S: Source>(source: &mut S) -> Result<(Vec<Event>, Vec<Lost>), S::Error> {
    let (mut events, mut losses) = (Vec::new(), Vec::new());
    while let Some(item) = source.next()? {
        match item {
            Item::Event(event) => events.push(event),
            Item::Lost(lost) => losses.push(lost),
        }
    }
    Ok((events, losses))
}

/// What two recordings of the same events must agree in.
#[derive(Debug, PartialEq)]
pub(crate) struct Words {
    pub(crate) time: u64,
    pub(crate) cpu: u32,
    pub(crate) pid: i32,
    pub(crate) comm: String,
    pub(crate) event: &'static str,
    pub(crate) address: Option<u64>,
    pub(crate) cache: String,
    pub(crate) bytes: Option<(u64, u64)>,
    pub(crate) order: Option<u32>,
    pub(crate) gfp: String,
    pub(crate) node: Option<i32>,
    pub(crate) call_site: String,
}

/// The event in words: what one recording has as numbers, another has as text.
pub(crate) fn words(event: &Event, names: &Names, header: &Header) -> Words {
    let text = |name: Option<Name>| name.map_or("", |name| names.text(name)).to_string();
    let flags = |gfp: Gfp| gfp.raw.map_or_else(|| text(gfp.names), |raw| header.gfp.print(raw));
    let comm = match &*text(event.comm) {
        // How trace-cmd writes a task that it has no name for.
        "<...>" => String::new(),
        comm => comm.to_string(),
    };
    let words = Words {
        time: event.time_ns,
        cpu: event.cpu,
        pid: event.pid,
        comm,
        event: "",
        address: None,
        cache: String::new(),
        bytes: None,
        order: None,
        gfp: String::new(),
        node: None,
        call_site: String::new(),
    };
    let alloc = |event, alloc: &Alloc, words| Words {
        event,
        address: alloc.ptr,
        cache: text(alloc.cache),
        bytes: Some((alloc.bytes_req, alloc.bytes_alloc)),
        gfp: flags(alloc.gfp),
        node: alloc.node,
        call_site: text(alloc.call_site.symbol),
        ..words
    };
    let free = |event, free: &Free, words| Words {
        event,
        address: free.ptr,
        cache: text(free.cache),
        call_site: text(free.call_site.symbol),
        ..words
    };
    match &event.kind {
        Kind::Kmalloc(event) => alloc("kmalloc", event, words),
        Kind::CacheAlloc(event) => alloc("kmem_cache_alloc", event, words),
        Kind::Kfree(event) => free("kfree", event, words),
        Kind::CacheFree(event) => free("kmem_cache_free", event, words),
        Kind::KfreeRcu(event) => free("kfree_rcu", event, words),
        Kind::PageAlloc(page) => Words {
            event: "mm_page_alloc",
            address: page.pfn,
            order: Some(page.order),
            gfp: flags(page.gfp),
            ..words
        },
        Kind::PageFree(page) => {
            Words { event: "mm_page_free", address: Some(page.pfn), order: Some(page.order), ..words }
        }
        Kind::Mark(name) => Words { event: "mark", cache: text(Some(*name)), ..words },
    }
}
