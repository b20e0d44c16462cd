//! Payloads of the kmem tracepoints, and of the probes that `slablab record` sets beside them, decoded by the
//! recording's own format texts.
//!
//! A probe's event has the names of [`FREE_BULK`], [`ALLOC_BULK`] or [`FREE_RCU`]. Those of bulk calls have a
//! piece of the call's array: `n` objects in all, of which `ptr` and the arrays behind it have those from
//! number `from` on.

use crate::bytes::{text_lossy, uint_at};
use crate::event::{Alloc, Context, Free, Gfp, Kind, Name, Names, PageAlloc, PageFree, Site};
use crate::tracepoint::{Field, Format, FormatError};

/// What the name of a probe begins with that sees `kmem_cache_free_bulk`.
pub const FREE_BULK: &str = "slablab_free_bulk";
/// What the name of a probe begins with that sees `kmem_cache_alloc_bulk`.
pub const ALLOC_BULK: &str = "slablab_alloc_bulk";
/// The name of a probe that sees an object go into a sheaf of `kfree_rcu`.
pub const FREE_RCU: &str = "slablab_free_rcu";

/// Bytes of a pointer in a probe's array.
const POINTER: usize = 8;

/// Whether the vocabulary has a word for the event called `name`, whatever its system is called.
pub fn is_known(name: &str) -> bool {
    shape_of(name).is_some()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Kmalloc,
    CacheAlloc,
    Kfree,
    CacheFree,
    PageAlloc,
    PageFree,
    AllocBulk,
    FreeBulk,
    FreeRcu,
}

fn shape_of(name: &str) -> Option<Shape> {
    Some(match name {
        "kmalloc" | "kmalloc_node" => Shape::Kmalloc,
        "kmem_cache_alloc" | "kmem_cache_alloc_node" => Shape::CacheAlloc,
        "kfree" => Shape::Kfree,
        "kmem_cache_free" => Shape::CacheFree,
        "mm_page_alloc" => Shape::PageAlloc,
        "mm_page_free" | "mm_page_free_direct" => Shape::PageFree,
        FREE_RCU => Shape::FreeRcu,
        name if name.starts_with(FREE_BULK) => Shape::FreeBulk,
        name if name.starts_with(ALLOC_BULK) => Shape::AllocBulk,
        _ => return None,
    })
}

/// What a payload says, before the recorder's own fields (time, CPU, task name) are added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decoded {
    /// `common_pid`, where the format has it.
    pub pid: Option<i32>,
    /// `common_flags` and `common_preempt_count`, where the format has them.
    pub context: Option<Context>,
    /// The event.
    pub kind: Kind,
}

/// A format text compiled to offsets, for one event of the vocabulary.
#[derive(Clone, Debug)]
pub struct Decoder {
    shape: Shape,
    big_endian: bool,
    account_mask: Option<u64>,
    pid: Option<Int>,
    flags: Option<Int>,
    preempt: Option<Int>,
    call_site: Option<Int>,
    /// `ptr`, or `pfn` for pages; of a bulk call the first of the array.
    address: Int,
    /// Of a bulk call: how many objects the payload has room for.
    room: u64,
    /// Of a bulk call: the objects of the whole call, and the number of the first one here.
    count: Option<Int>,
    from: Option<Int>,
    name: Option<Loc>,
    bytes_req: Option<Int>,
    bytes_alloc: Option<Int>,
    gfp: Option<Int>,
    node: Option<Int>,
    accounted: Option<Int>,
    order: Option<Int>,
    migratetype: Option<Int>,
}

#[derive(Clone, Copy, Debug)]
struct Int {
    offset: usize,
    size: usize,
    signed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Loc {
    offset: usize,
    relative: bool,
}

impl Decoder {
    /// Compiles `format`; `None` when it is not an event of the vocabulary ([`is_known`]).
    ///
    /// # Errors
    /// The first field that is missing, or is no number of 1, 2, 4 or 8 bytes.
    pub fn new(format: &Format, big_endian: bool) -> Result<Option<Decoder>, FormatError> {
        let Some(shape) = shape_of(&format.name) else { return Ok(None) };
        let int = |name: &str| format.field(name).and_then(Int::of);
        let need = |field: &'static str, wanted: bool| match int(field) {
            Some(found) => Ok(Some(found)),
            None if wanted => Err(FormatError::Missing { event: format.name.clone(), field }),
            None => Ok(None),
        };
        let alloc = matches!(shape, Shape::Kmalloc | Shape::CacheAlloc | Shape::AllocBulk);
        let page = matches!(shape, Shape::PageAlloc | Shape::PageFree);
        let bulk = matches!(shape, Shape::AllocBulk | Shape::FreeBulk);
        let field = if page { "pfn" } else { "ptr" };
        let missing = || FormatError::Missing { event: format.name.clone(), field };
        let (address, room) =
            if bulk { array(format) } else { int(field).map(|int| (int, 1)) }.ok_or_else(missing)?;
        Ok(Some(Decoder {
            shape,
            big_endian,
            account_mask: format.flags("gfp_flags").value("__GFP_ACCOUNT"),
            pid: int("common_pid"),
            flags: int("common_flags"),
            preempt: int("common_preempt_count"),
            // A probe at a function's end knows where it returns to.
            call_site: int("call_site").or_else(|| int("__probe_ret_ip")),
            address,
            room,
            count: need("n", bulk)?,
            from: need("from", bulk)?,
            name: format.field("name").and_then(Loc::of),
            bytes_req: need("bytes_req", alloc)?,
            bytes_alloc: need("bytes_alloc", alloc)?,
            gfp: need("gfp_flags", alloc)?,
            node: int("node"),
            accounted: int("accounted"),
            order: need("order", page)?,
            migratetype: int("migratetype"),
        }))
    }

    /// How many events a payload is: one, or of a bulk call one for each object that it has, which may be
    /// none. `None` when it is shorter than its own format says.
    #[inline]
    pub fn events(&self, payload: &[u8]) -> Option<u64> {
        if !matches!(self.shape, Shape::AllocBulk | Shape::FreeBulk) {
            return Some(1);
        }
        let get = |field: Option<Int>| field?.get(self, payload);
        let count = get(self.count)?.saturating_sub(get(self.from)?);
        let all = self.address.offset + self.room as usize * POINTER;
        (payload.len() >= all).then_some(count.min(self.room))
    }

    /// Decodes the event `index` of one payload ([`Decoder::events`]); `None` when it is shorter than its own
    /// format says.
    #[inline]
    pub fn decode(&self, payload: &[u8], index: u64, names: &mut Names) -> Option<Decoded> {
        let kind = match self.shape {
            Shape::Kmalloc => Kind::Kmalloc(self.alloc(payload, index, names)?),
            Shape::CacheAlloc | Shape::AllocBulk => Kind::CacheAlloc(self.alloc(payload, index, names)?),
            // A bulk free may be of objects of many caches.
            Shape::Kfree | Shape::FreeBulk => Kind::Kfree(self.free(payload, index, names)?),
            Shape::CacheFree => Kind::CacheFree(self.free(payload, index, names)?),
            Shape::FreeRcu => Kind::KfreeRcu(self.free(payload, index, names)?),
            Shape::PageAlloc => Kind::PageAlloc(PageAlloc {
                pfn: self.frame(payload)?,
                order: self.order?.get(self, payload)? as u32,
                gfp: self.gfp(payload),
                migratetype: self
                    .migratetype
                    .and_then(|field| field.get(self, payload))
                    .map(|value| value as i32),
            }),
            Shape::PageFree => Kind::PageFree(PageFree {
                pfn: self.frame(payload)?.unwrap_or(u64::MAX),
                order: self.order?.get(self, payload)? as u32,
            }),
        };
        let byte =
            |field: Option<Int>| field.and_then(|field| field.get(self, payload)).map(|value| value as u8);
        let context =
            byte(self.flags).map(|flags| Context { flags, preempt: byte(self.preempt).unwrap_or(0) });
        let pid = self.pid.and_then(|field| field.get(self, payload)).map(|pid| pid as i32);
        Some(Decoded { pid, context, kind })
    }

    #[inline]
    fn alloc(&self, payload: &[u8], index: u64, names: &mut Names) -> Option<Alloc> {
        let get = |field: Option<Int>| field.and_then(|field| field.get(self, payload));
        let gfp = self.gfp(payload);
        let accounted = match self.accounted {
            Some(field) => Some(field.get(self, payload)? != 0),
            None => {
                let asked = self.account_mask.zip(gfp.raw).map(|(mask, raw)| raw & mask != 0);
                // A cache may be accounted as a whole, which its flags do not show.
                asked.filter(|&asked| asked || self.shape == Shape::Kmalloc)
            }
        };
        Some(Alloc {
            call_site: self.site(payload),
            ptr: Some(self.pointer(payload, index)?).filter(|&ptr| ptr != 0),
            cache: self.name(payload, names),
            dir: None,
            bytes_req: get(self.bytes_req)?,
            bytes_alloc: get(self.bytes_alloc)?,
            gfp,
            node: get(self.node).map(|node| node as i32),
            accounted,
        })
    }

    #[inline]
    fn free(&self, payload: &[u8], index: u64, names: &mut Names) -> Option<Free> {
        Some(Free {
            call_site: self.site(payload),
            ptr: Some(self.pointer(payload, index)?).filter(|&ptr| ptr != 0),
            cache: self.name(payload, names),
            dir: None,
        })
    }

    #[inline]
    fn pointer(&self, payload: &[u8], index: u64) -> Option<u64> {
        let offset = self.address.offset + index as usize * POINTER;
        Int { offset, ..self.address }.get(self, payload)
    }

    fn site(&self, payload: &[u8]) -> Site {
        Site { addr: self.call_site.and_then(|field| field.get(self, payload)), symbol: None }
    }

    fn gfp(&self, payload: &[u8]) -> Gfp {
        Gfp { raw: self.gfp.and_then(|field| field.get(self, payload)), names: None }
    }

    /// The frame number; the kernel records -1 for "no page".
    fn frame(&self, payload: &[u8]) -> Option<Option<u64>> {
        let none = if self.address.size == 8 { u64::MAX } else { (1 << (8 * self.address.size)) - 1 };
        Some(Some(self.address.get(self, payload)?).filter(|&pfn| pfn != none))
    }

    fn name(&self, payload: &[u8], names: &mut Names) -> Option<Name> {
        let loc = self.name?;
        let word = uint_at(payload, loc.offset, 4, self.big_endian)? as usize;
        let (offset, len) = (word & 0xffff, word >> 16);
        let start = if loc.relative { loc.offset + 4 + offset } else { offset };
        let text = text_lossy(payload.get(start..start + len)?);
        // A probe's word for a name that it could not read, as that of no cache.
        (text != "(fault)").then(|| names.intern(&text))
    }
}

/// The first pointer of a bulk call's arrays, and how many there are: `ptr` and the arrays that follow it.
fn array(format: &Format) -> Option<(Int, u64)> {
    let mut arrays = format.fields.iter().skip_while(|field| field.name != "ptr");
    let is_whole = |field: &&Field| field.size > 0 && field.size.is_multiple_of(POINTER);
    let first = arrays.next().filter(is_whole)?;
    let mut end = first.offset.checked_add(first.size)?;
    for next in arrays.take_while(|field| field.name.starts_with("ptr")) {
        end = Some(next).filter(is_whole).filter(|next| next.offset == end)?.size.checked_add(end)?;
    }
    let int = Int { offset: first.offset, size: POINTER, signed: false };
    Some((int, ((end - first.offset) / POINTER) as u64))
}

impl Int {
    fn of(field: &Field) -> Option<Int> {
        let number = matches!(field.size, 1 | 2 | 4 | 8) && !field.is_data_loc() && !field.is_rel_loc();
        number.then_some(Int { offset: field.offset, size: field.size, signed: field.signed })
    }

    /// The value, sign-extended if the field is signed.
    #[inline]
    fn get(self, decoder: &Decoder, payload: &[u8]) -> Option<u64> {
        let value = uint_at(payload, self.offset, self.size, decoder.big_endian)?;
        let unused = 64 - 8 * self.size as u32;
        Some(if self.signed { ((value << unused) as i64 >> unused) as u64 } else { value })
    }
}

impl Loc {
    fn of(field: &Field) -> Option<Loc> {
        let relative = field.is_rel_loc();
        (field.size == 4 && (relative || field.is_data_loc()))
            .then_some(Loc { offset: field.offset, relative })
    }
}
