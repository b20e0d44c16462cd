//! Tables of other tools: the heading says which column is which.
//!
//! Debuggers, scripts and the kernel's own tool slabinfo print caches in columns of their own order. Where
//! a heading has the name, objects and their size by words that such tools use, its rows are read by it.

use super::row::{Row, Size, is_name, number, size};

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Name,
    Active,
    Total,
    Size,
    PerSlab,
    Pages,
    Order,
    Slabs,
    Bytes,
    /// `100/0/28`: slabs in lists, partial ones of these, and those of CPUs.
    SlabsAndCpus,
    Other,
}

/// Words of headings, without case.
const WORDS: [(Column, &[&str]); 10] = [
    (Column::Name, &["name", "cache", "cache_name", "cachename"]),
    (Column::Active, &["active", "inuse", "in_use", "active_objs", "active_objects", "objects", "used"]),
    (Column::Total, &["total", "objs", "num_objs", "num", "total_objs", "total_objects", "num_objects"]),
    (Column::Size, &["size", "objsize", "obj_size", "object_size", "osize"]),
    (Column::PerSlab, &["objperslab", "objs_per_slab", "obj/slab", "o/s", "objects_per_slab", "objs/slab"]),
    (Column::Pages, &["pagesperslab", "pages_per_slab", "pages/slab"]),
    (Column::Order, &["o", "order"]),
    (Column::Slabs, &["slabs", "num_slabs", "nr_slabs", "total_slabs"]),
    (Column::Bytes, &["space", "bytes", "cache_size", "memory"]),
    (Column::SlabsAndCpus, &["slabs/part/cpu"]),
];

/// A heading.
#[derive(Clone, Debug)]
pub(super) struct Headed {
    columns: Vec<Column>,
}

impl Headed {
    /// A heading that has a name, objects, and their size; `None` for other lines.
    pub(super) fn of(words: &[&str]) -> Option<Headed> {
        const MOST: usize = 32;
        if !(4..MOST).contains(&words.len())
            || words.iter().any(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        {
            return None;
        }
        let column = |word: &&str| {
            let word = word.trim_matches(['<', '>', '#']).to_ascii_lowercase();
            let known = WORDS.iter().find(|(_, words)| words.contains(&word.as_str()));
            known.map_or(Column::Other, |(column, _)| *column)
        };
        let mut columns: Vec<Column> = words.iter().map(column).collect();
        // Of two columns of one kind the first counts: `size` is what an object takes, `obj_size` what it
        // has.
        for at in 1..columns.len() {
            if columns[..at].contains(&columns[at]) {
                columns[at] = Column::Other;
            }
        }
        let has = |column| columns.contains(&column);
        let counts = has(Column::Active) || has(Column::Total);
        (has(Column::Name) && counts && has(Column::Size)).then_some(Headed { columns })
    }

    /// A row under it; `None` for a line of another form. The last column may be empty.
    pub(super) fn row(&self, words: &[&str]) -> Option<Row> {
        if words.len() > self.columns.len() || words.len() + 1 < self.columns.len() {
            return None;
        }
        let mut row = Row::default();
        let mut order = None;
        for (column, word) in self.columns.iter().zip(words) {
            match column {
                Column::Name if is_name(word) => row.name = (*word).into(),
                Column::Name => return None,
                Column::Active => row.active = Some(number(word)?),
                Column::Total => row.total = Some(number(word)?),
                Column::Size => row.size = Some(number(word).map(Size::exact).or_else(|| size(word))?),
                Column::PerSlab => row.per_slab = Some(number(word)?),
                Column::Pages => row.pages = Some(number(word)?),
                Column::Order => order = number::<u32>(word),
                Column::Slabs => row.slabs = Some(number(word)?),
                Column::SlabsAndCpus => row.slabs = Some(slabs(word)?),
                Column::Bytes => {
                    row.bytes = number(word).or_else(|| size(word).map(|size| size.low.midpoint(size.high)))
                }
                Column::Other => {}
            }
        }
        row.pages = row.pages.or_else(|| 1u64.checked_shl(order?).filter(|pages| *pages <= 1 << 20));
        // Rounded sizes of a cache are worth less than what slabs times pages give.
        if row.slabs.is_some() && row.pages.is_some() {
            row.bytes = None;
        }
        let total = row.slabs.zip(row.per_slab).and_then(|(slabs, each)| slabs.checked_mul(each));
        row.total = row.total.or(total).or(row.active);
        row.active = row.active.or(row.total);
        // Without the objects of a slab, the bytes of all objects are what is known.
        if row.per_slab.is_none() {
            let objects = row.total.zip(row.size).and_then(|(total, size)| total.checked_mul(size.low));
            row.bytes = row.bytes.or(objects);
        }
        // An object is 4 MiB at most: more is of another table.
        let fits = row.size.is_some_and(|size| (1..=1 << 22).contains(&size.low));
        let counted = row.active.zip(row.total).is_some_and(|(active, total)| active <= total);
        (fits && counted && !row.name.is_empty()).then_some(row)
    }
}

/// `100/0/28`: slabs in lists and slabs that CPUs have.
fn slabs(word: &str) -> Option<u64> {
    let mut parts = word.split('/').map(number::<u64>);
    let (listed, _, of_cpus) = (parts.next()??, parts.next()??, parts.next()??);
    listed.checked_add(of_cpus)
}
