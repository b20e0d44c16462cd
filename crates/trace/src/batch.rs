//! The columns: one table from which the row, the batch, the projection and the file's schema come.

use std::ops::{BitOr, BitOrAssign};

use parquet::data_type::DataType;

use crate::error::Error;
use crate::event::{ANY_NODE, NO_CONTEXT, NONE};
use crate::texts::{Table, Texts};

/// One column of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in the file.
    pub name: &'static str,
    /// Its type in the file.
    pub form: Form,
    /// How its values are packed; a matter of size and speed, not of the format.
    pub(crate) packing: Packing,
    position: Position,
}

impl Column {
    pub(crate) fn position(&self) -> usize {
        self.position as usize
    }

    /// The set of this column alone.
    pub const fn set(&self) -> Columns {
        Columns(1 << self.position as u32)
    }
}

/// A column's type in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A whole number of `bits` bits; never null, "none" is a value.
    Number {
        /// 8, 16, 32 or 64.
        bits: u8,
        /// Whether it can be negative.
        signed: bool,
    },
    /// A UTF-8 string, null when there is none. In a [`Batch`] it is an id in [`crate::Texts`].
    Text,
}

/// The values of one column, taken out of a [`Batch`] in the vector that they were decoded into.
#[derive(Debug)]
pub enum Values<'a> {
    /// Unsigned numbers of 8 bits.
    U8(Vec<u8>),
    /// Signed numbers of 8 bits.
    I8(Vec<i8>),
    /// Unsigned numbers of 16 bits.
    U16(Vec<u16>),
    /// Signed numbers of 16 bits.
    I16(Vec<i16>),
    /// Unsigned numbers of 32 bits.
    U32(Vec<u32>),
    /// Signed numbers of 32 bits.
    I32(Vec<i32>),
    /// Unsigned numbers of 64 bits.
    U64(Vec<u64>),
    /// Signed numbers of 64 bits.
    I64(Vec<i64>),
    /// Times in nanoseconds, of which none reaches the sign bit: in the file they are signed.
    Times(Vec<u64>),
    /// Ids of texts, [`NONE`] for none, and the column's table.
    Texts(Vec<u32>, &'a Table),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Few different values.
    Dictionary,
    /// Neighbours are close.
    Delta,
    /// Neither.
    Plain,
}

/// A value that a number column holds.
pub(crate) trait Number: Copy + TryFrom<i64> + Send + 'static {
    /// Parquet's type for it.
    type Parquet: DataType;
    const BITS: u8 = (size_of::<Self>() * 8) as u8;
    const SIGNED: bool;
    fn pack(self) -> <Self::Parquet as DataType>::T;
    /// The cell of a value in Parquet's type for it. A wider one is looked at with `TryFrom` first.
    fn unpack(value: i64) -> Self;
    /// The variant of [`Values`] for a vector of this type.
    fn values<'a>(values: Vec<Self>) -> Values<'a>;
}

macro_rules! numbers {
    ($($type:ty: $variant:ident, $signed:literal, $parquet:ident, $physical:ty;)*) => {$(
        impl Number for $type {
            type Parquet = parquet::data_type::$parquet;
            const SIGNED: bool = $signed;
            #[inline]
            fn pack(self) -> $physical { self as $physical }
            #[inline]
            fn unpack(value: i64) -> Self { value as $type }
            fn values<'a>(values: Vec<$type>) -> Values<'a> { Values::$variant(values) }
        }
    )*};
}

numbers! {
    u8: U8, false, Int32Type, i32;
    i8: I8, true, Int32Type, i32;
    u16: U16, false, Int32Type, i32;
    i16: I16, true, Int32Type, i32;
    u32: U32, false, Int32Type, i32;
    i32: I32, true, Int32Type, i32;
    u64: U64, false, Int64Type, i64;
    i64: I64, true, Int64Type, i64;
}

/// Does the same thing to every column.
pub(crate) trait Visit {
    fn number<T: Number>(
        &mut self,
        column: &'static Column,
        none: T,
        cells: &mut Vec<T>,
    ) -> Result<(), Error>;
    fn text(&mut self, column: &'static Column, none: u32, cells: &mut Vec<u32>) -> Result<(), Error>;
    /// A time. Signed in the file, so that others can subtract two of them; no kernel's clock reaches the
    /// sign bit.
    fn moment(&mut self, column: &'static Column, none: u64, cells: &mut Vec<u64>) -> Result<(), Error> {
        self.number(column, none, cells)
    }
}

macro_rules! columns {
    (@form number $type:ty) => { Form::Number { bits: <$type as Number>::BITS, signed: <$type as Number>::SIGNED } };
    (@form text $type:ty) => { Form::Text };
    (@form moment $type:ty) => { Form::Number { bits: 64, signed: true } };
    (@values number $values:expr, $table:expr) => { Number::values($values) };
    (@values text $values:expr, $table:expr) => { Values::Texts($values, $table) };
    (@values moment $values:expr, $table:expr) => { Values::Times($values) };
    ($($(#[$doc:meta])* $name:ident, $constant:ident: $form:ident $type:ty = $none:expr, $packing:ident;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Position { $($constant,)* }

        /// Every column, in the file's order.
        pub const COLUMNS: &[Column] = &[$(Column {
            name: stringify!($name),
            form: columns!(@form $form $type),
            packing: Packing::$packing,
            position: Position::$constant,
        },)*];

        /// A set of columns.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct Columns(u32);

        impl Columns {
            /// No column.
            pub const NONE: Columns = Columns(0);
            /// Every column.
            pub const ALL: Columns = Columns($(1 << Position::$constant as u32 |)* 0);
            $($(#[$doc])* pub const $constant: Columns = Columns(1 << Position::$constant as u32);)*
        }

        /// One event. `Row::default()` says "none" everywhere, so that a writer names only what it knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Row { $($(#[$doc])* pub $name: $type,)* }

        impl Default for Row {
            fn default() -> Row {
                Row { $($name: $none,)* }
            }
        }

        /// Some rows, one vector per column. A column that was not asked for is empty.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Batch {
            pub(crate) rows: usize,
            $($(#[$doc])* pub $name: Vec<$type>,)*
        }

        impl Batch {
            /// Appends a row.
            #[inline]
            pub fn push(&mut self, row: &Row) {
                self.rows += 1;
                $(self.$name.push(row.$name);)*
            }

            /// Row `index`, with "none" in the columns that are not there.
            pub fn row(&self, index: usize) -> Row {
                Row { $($name: self.$name.get(index).copied().unwrap_or($none),)* }
            }

            /// Removes the rows and keeps the memory.
            pub fn clear(&mut self) {
                self.rows = 0;
                $(self.$name.clear();)*
            }

            /// Takes the values of a column out, which has none in the batch then. `texts` are those of the
            /// reader.
            pub fn take<'a>(&mut self, column: &Column, texts: &'a Texts) -> Values<'a> {
                match column.position {
                    $(Position::$constant => {
                        columns!(@values $form std::mem::take(&mut self.$name), &texts.$name)
                    })*
                }
            }

            pub(crate) fn visit<V: Visit>(&mut self, visitor: &mut V) -> Result<(), Error> {
                $(visitor.$form(&COLUMNS[Position::$constant as usize], $none, &mut self.$name)?;)*
                Ok(())
            }
        }
    };
}

columns! {
    /// Nanoseconds on the recording's clock.
    time_ns, TIME_NS: moment u64 = 0, Delta;
    /// The CPU it happened on.
    cpu, CPU: number u16 = 0, Dictionary;
    /// The task, 0 for the idle task.
    pid, PID: number i32 = -1, Dictionary;
    /// The task's name.
    comm, COMM: text u32 = NONE, Dictionary;
    /// Low byte: the kernel's `TRACE_FLAG_*` bits; high byte: its preempt count. [`NO_CONTEXT`] when not
    /// known.
    context, CONTEXT: number u16 = NO_CONTEXT, Dictionary;
    /// An [`crate::EventKind`].
    event, EVENT: number u8 = 0, Dictionary;
    /// The object's address, 0 for none. In a lost row, how many events are missing.
    address, ADDRESS: number u64 = 0, Dictionary;
    /// The object's dense id: given at its allocation, reused after its free. [`NONE`] without an object.
    object, OBJECT: number u32 = NONE, Plain;
    /// The object's cache. A free has that of its allocation. [`NONE`] for a kmalloc whose cache was not
    /// recorded.
    cache, CACHE: text u32 = NONE, Dictionary;
    /// Bytes asked for. A free has those of its allocation, 0 when not known.
    bytes_req, BYTES_REQ: number u32 = 0, Dictionary;
    /// Bytes the cache gave. A free has those of its allocation, 0 when not known.
    bytes_alloc, BYTES_ALLOC: number u32 = 0, Dictionary;
    /// Page events: the block is `2^order` frames. -1 in others.
    order, ORDER: number i8 = -1, Dictionary;
    /// Page events: the number of the first frame. -1 in others, and for a failed allocation.
    pfn, PFN: number i64 = -1, Dictionary;
    /// `mm_page_alloc`: the migrate type by its number in that kernel. -1 in others.
    migrate_type, MIGRATE_TYPE: number i8 = -1, Dictionary;
    /// Allocation flags in the bits of the recording kernel, 0 when only names were recorded.
    gfp_raw, GFP_RAW: number u32 = 0, Dictionary;
    /// Allocation flags in the bits of this format.
    gfp, GFP: number u32 = 0, Dictionary;
    /// The node asked for, [`ANY_NODE`] for any.
    node, NODE: number i16 = ANY_NODE, Dictionary;
    /// Charged to a memory cgroup: 0 no, 1 yes, 2 not known.
    accounted, ACCOUNTED: number u8 = 0, Dictionary;
    /// Who asked: a symbol with offset, or an address as `0x..`; the text of a mark.
    call_site, CALL_SITE: text u32 = NONE, Dictionary;
    /// Bits of [`crate::flags`].
    flags, FLAGS: number u8 = 0, Dictionary;
    /// The kernel's call chain: frames as in `call_site`, the outermost first, joined by `;`.
    stack, STACK: text u32 = NONE, Dictionary;
}

impl Batch {
    /// How many rows it has.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether it has no rows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

impl Columns {
    /// What a replay needs and nothing else.
    pub const REPLAY: Columns = Columns(
        Columns::TIME_NS.0
            | Columns::CPU.0
            | Columns::EVENT.0
            | Columns::OBJECT.0
            | Columns::CACHE.0
            | Columns::BYTES_REQ.0
            | Columns::BYTES_ALLOC.0
            | Columns::GFP.0
            | Columns::NODE.0
            | Columns::FLAGS.0,
    );

    /// Columns without which rows mean nothing. Others may be missing in a file: it is of an older minor
    /// version.
    pub(crate) const REQUIRED: Columns =
        Columns(Columns::TIME_NS.0 | Columns::CPU.0 | Columns::EVENT.0 | Columns::OBJECT.0);

    /// The column with this name; `None` if the format has none.
    pub fn named(name: &str) -> Option<Columns> {
        COLUMNS.iter().find(|column| column.name == name).map(Column::set)
    }

    /// Whether every column of `other` is in it.
    #[inline]
    pub const fn has(self, other: Columns) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Columns {
    type Output = Columns;
    fn bitor(self, other: Columns) -> Columns {
        Columns(self.0 | other.0)
    }
}

impl BitOrAssign for Columns {
    fn bitor_assign(&mut self, other: Columns) {
        self.0 |= other.0;
    }
}
