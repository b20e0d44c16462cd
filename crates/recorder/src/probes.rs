//! Probes on what has no event of its own: bulk calls, and the sheaves of `kfree_rcu`; as tracefs takes them
//! (fprobe), and as [`slablab_readers::kmem`] reads what they record.
//!
//! A bulk call's array is recorded in pieces, each by a probe of its own with a filter, as most calls are of
//! a few objects, and an event has at most a page.

use slablab_readers::kmem::{ALLOC_BULK, FREE_BULK, FREE_RCU};

/// Pieces of a bulk call: the number of their first object, and how many objects they have.
const PIECES: [(u32, u32); 4] = [(0, 16), (16, 48), (64, 192), (256, 256)];
/// The most that one argument of a probe has.
const ARRAY: u32 = 64;

/// A function and what its probe records.
pub struct Kind {
    /// For people.
    pub what: &'static str,
    /// Its names, of the newest release first.
    pub functions: &'static [&'static str],
    /// Whether releases that lack it do without it.
    pub is_new: bool,
    /// The probes on the function of that name.
    pub probes: fn(&str) -> Vec<Definition>,
}

/// How a probe is set.
pub struct Definition {
    /// The event's name.
    pub name: String,
    /// Which events count.
    pub filter: String,
    /// The place and the arguments: the first that the kernel takes. Names of caches need its types.
    pub texts: Vec<String>,
}

/// All of them.
pub const KINDS: [Kind; 3] = [
    Kind {
        what: "bulk allocation",
        functions: &["kmem_cache_alloc_bulk_noprof", "kmem_cache_alloc_bulk"],
        is_new: false,
        probes: alloc_bulk,
    },
    Kind { what: "bulk free", functions: &["kmem_cache_free_bulk"], is_new: false, probes: free_bulk },
    Kind { what: "kfree_rcu", functions: &["__kfree_rcu_sheaf"], is_new: true, probes: free_rcu },
];

fn alloc_bulk(function: &str) -> Vec<Definition> {
    let piece = |(from, count)| {
        let objects = objects(4, from, count);
        let sizes = "bytes_req=s->object_size:u32 bytes_alloc=s->size:u32 gfp_flags=$arg2:u32";
        let named = format!(
            "{function}%return got=$retval:u64 n=$arg3:u64 from=\\{from}:u32 name=s->name:string {sizes} {objects}"
        );
        let (name, filter) = (format!("{ALLOC_BULK}_{from}"), format!("got != 0 && n > {from}"));
        Definition { name, filter, texts: vec![named] }
    };
    PIECES.into_iter().map(piece).collect()
}

fn free_bulk(function: &str) -> Vec<Definition> {
    let piece = |(from, count)| {
        let text = |cache: &str| {
            let objects = objects(3, from, count);
            format!("{function} n=$arg2:u64 from=\\{from}:u32 {cache}call_site=$stack0:x64 {objects}")
        };
        let (name, filter) = (format!("{FREE_BULK}_{from}"), format!("n > {from}"));
        Definition { name, filter, texts: vec![text("name=s->name:string "), text("")] }
    };
    PIECES.into_iter().map(piece).collect()
}

fn free_rcu(function: &str) -> Vec<Definition> {
    let text = |cache: &str| format!("{function}%return taken=$retval:u8 {cache}ptr=$arg2:x64");
    let texts = vec![text("name=s->name:string "), text("")];
    vec![Definition { name: FREE_RCU.into(), filter: "taken == 1".into(), texts }]
}

/// The arguments that record `count` objects of the array in argument `number`, from object `from` on.
fn objects(number: u32, from: u32, count: u32) -> String {
    let arrays = (0..count.div_ceil(ARRAY)).map(|array| {
        let (at, len) = (from + array * ARRAY, ARRAY.min(count - array * ARRAY));
        let name = if array == 0 { String::from("ptr") } else { format!("ptr{array}") };
        format!("{name}=+{}($arg{number}):x64[{len}]", at * 8)
    });
    arrays.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_an_array() {
        #[track_caller]
        fn check(from: u32, count: u32, expected: &str) {
            assert_eq!(objects(3, from, count), expected);
        }
        check(0, 16, "ptr=+0($arg3):x64[16]");
        check(16, 48, "ptr=+128($arg3):x64[48]");
        check(64, 192, "ptr=+512($arg3):x64[64] ptr1=+1024($arg3):x64[64] ptr2=+1536($arg3):x64[64]");
        check(0, 70, "ptr=+0($arg3):x64[64] ptr1=+512($arg3):x64[6]");
        let ends = PIECES.map(|(from, count)| from + count);
        assert_eq!(ends[..3], PIECES.map(|(from, _)| from)[1..], "pieces follow each other");
    }
}
