//! What glibc's programs ask about the heap: `mallinfo`, `mallinfo2`, `malloc_info`, `malloc_stats`,
//! `mallopt`. Without these names here glibc's own functions would answer, about its heap, which such a
//! process does not use.
//!
//! | member of `struct mallinfo2` | here |
//! |---|---|
//! | `arena` | bytes of page frames in slabs and blocks, and of free ones that the system backs with memory |
//! | `ordblks` | free objects in slabs |
//! | `smblks`, `usmblks`, `fsmblks` | 0: there are no fast bins |
//! | `hblks`, `hblkhd` | blocks with a mapping of their own, and their bytes |
//! | `uordblks` | bytes of live objects, each as large as its class, and of blocks of page frames |
//! | `fordblks` | `arena` - `uordblks` |
//! | `keepcost` | bytes of free page frames, which `malloc_trim` gives back |

use crate::edge::{Stream, set_errno};
use libc::{EINVAL, c_int, mallinfo as MallInfo, mallinfo2 as MallInfo2, size_t};
use slablab_malloc::api;
use std::fmt::{self, Write};

/// Text for a stream, without allocating.
struct Text {
    bytes: [u8; 1024],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let place = self.bytes.get_mut(self.length..self.length + part.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(part.as_bytes());
        self.length += part.len();
        Ok(())
    }
}

exports! { "C":
    /// glibc's `mallinfo2`.
    fn mallinfo2() -> MallInfo2 {
        let totals = api::totals();
        let bytes = |bytes: u64| bytes as size_t;
        MallInfo2 {
            arena: bytes(totals.heap_bytes),
            ordblks: bytes(totals.free_objects),
            smblks: 0,
            hblks: bytes(totals.mappings),
            hblkhd: bytes(totals.mapping_bytes),
            usmblks: 0,
            fsmblks: 0,
            uordblks: bytes(totals.live_bytes),
            fordblks: bytes(totals.heap_bytes.saturating_sub(totals.live_bytes)),
            keepcost: bytes(totals.free_frame_bytes),
        }
    }

    /// glibc's `mallinfo`: as [`mallinfo2`], each number cut to 32 bits, as glibc does.
    fn mallinfo() -> MallInfo {
        let info = mallinfo2();
        MallInfo {
            arena: info.arena as c_int,
            ordblks: info.ordblks as c_int,
            smblks: 0,
            hblks: info.hblks as c_int,
            hblkhd: info.hblkhd as c_int,
            usmblks: 0,
            fsmblks: 0,
            uordblks: info.uordblks as c_int,
            fordblks: info.fordblks as c_int,
            keepcost: info.keepcost as c_int,
        }
    }

    /// glibc's `malloc_info`: the numbers of [`mallinfo2`] as XML, in glibc's elements. 0, or `EINVAL` if
    /// `options` is not 0, or -1 if the stream cannot be written.
    fn malloc_info(options: c_int, stream: Stream) -> c_int {
        if options != 0 {
            set_errno(EINVAL);
            return EINVAL;
        }
        let info = mallinfo2();
        let (count, free, arena) = (info.ordblks, info.fordblks, info.arena);
        let (mappings, mapped) = (info.hblks, info.hblkhd);
        let system = arena + mapped;
        let mut text = Text { bytes: [0; 1024], length: 0 };
        let written = write!(
            text,
            "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n\
             <total type=\"fast\" count=\"0\" size=\"0\"/>\n<total type=\"rest\" count=\"{count}\" size=\"{free}\"/>\n\
             <system type=\"current\" size=\"{arena}\"/>\n</heap>\n\
             <total type=\"fast\" count=\"0\" size=\"0\"/>\n<total type=\"rest\" count=\"{count}\" size=\"{free}\"/>\n\
             <total type=\"mmap\" count=\"{mappings}\" size=\"{mapped}\"/>\n\
             <system type=\"current\" size=\"{system}\"/>\n</malloc>\n"
        );
        let put = stream.write(&text.bytes[..text.length]);
        if written.is_ok() && put { 0 } else { -1 }
    }

    /// glibc's `malloc_stats`: prints every cache in slabinfo's columns on standard error, as
    /// `SLABLAB_STATS=1` does at the end.
    fn malloc_stats() {
        api::print_stats();
    }

    /// glibc's `mallopt`. Answers 1 for a parameter that only makes glibc's malloc faster or smaller; it
    /// changes nothing here. Programs give up where such a setting is refused. Answers 0, "not set", for
    /// `M_PERTURB`, which says what memory contains, and for a parameter that glibc does not have.
    /// `SLABLAB_ENGINE` has this heap's own settings.
    fn mallopt(parameter: c_int, _value: c_int) -> c_int {
        let is_accepted = matches!(
            parameter,
            libc::M_MXFAST
                | libc::M_NLBLKS
                | libc::M_GRAIN
                | libc::M_KEEP
                | libc::M_TRIM_THRESHOLD
                | libc::M_TOP_PAD
                | libc::M_MMAP_THRESHOLD
                | libc::M_MMAP_MAX
                | libc::M_CHECK_ACTION
                | libc::M_ARENA_TEST
                | libc::M_ARENA_MAX
        );
        c_int::from(is_accepted)
    }
}
