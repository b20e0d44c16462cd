//! The columns: of what grew, and of call sites.

use crate::leak::sentence::rate;
use crate::leak::suspect::of_line;
use crate::leak::{Course, Leak, Suspect};
use crate::sites::Site;
use slablab_report::column::Columns;
use slablab_report::html::Cell;
use slablab_report::text;

/// Characters of a holder's name.
const HOLDER: usize = 15;
/// Characters of a cache's name.
const CACHE: usize = 24;

/// What grew, in its answer.
pub(super) struct Row<'a> {
    pub(super) leak: &'a Leak<'a>,
    pub(super) suspect: &'a Suspect<'a>,
}

/// A call site.
pub(super) struct SiteRow<'a> {
    pub(super) site: &'a Site,
}

fn course(course: Course) -> Cell {
    match course {
        Course::EachPart => Cell::Text("steadily".into()),
        Course::SomeParts => Cell::Text("in parts".into()),
        Course::Unknown => Cell::Empty,
    }
}

impl Row<'_> {
    fn rate(&self) -> Cell {
        rate(self.leak, self.suspect.bytes).map_or(Cell::Empty, |rate| Cell::Bytes(rate as u64))
    }

    fn holder(&self) -> Cell {
        self.suspect.who.as_ref().map_or(Cell::Empty, |who| {
            let pid = if who.pid == 0 { String::new() } else { format!(" {}", who.pid) };
            Cell::Name(format!("{}{pid}", text::cut(&who.comm, HOLDER)))
        })
    }
}

/// What grew.
pub(super) fn columns<'a>() -> Columns<Row<'a>> {
    Columns::<Row>::default()
        .key("caches", |row| Cell::Name(row.suspect.names.join(" ")))
        .add("objects", "objects", "objects", |row| match row.suspect.objects {
            0 => Cell::Empty,
            objects => Cell::Count(objects.unsigned_abs()),
        })
        .add("bytes", "grown", "memory", |row| Cell::Bytes(row.suspect.bytes))
        .bytes()
        .add("bytes_per_hour", "an hour", "an hour", Row::rate)
        .bytes()
        .add("course", "grew", "grew", |row| course(row.suspect.course))
        .words()
        .add("freed", "freed", "freed by", |row| {
            Cell::Text(if row.suspect.reclaimable { "by the kernel" } else { "by its holder" }.into())
        })
        .words()
        .add("holder", "holder", "holder", Row::holder)
        .words()
}

/// Call sites.
pub(super) fn site_columns<'a>() -> Columns<SiteRow<'a>> {
    Columns::<SiteRow>::default()
        .add("cache", "cache", "cache", |row| Cell::Name(text::cut(&row.site.cache, CACHE)))
        .words()
        .add("live_objects", "live", "live objects", |row| Cell::Count(row.site.live))
        .add("live_bytes", "live", "live", |row| Cell::Bytes(row.site.live_bytes))
        .bytes()
        .add("course", "grew", "grew", |row| course(of_line(&row.site.line)))
        .words()
        .add("task", "task", "task", |row| {
            row.site.tasks.first().map_or(Cell::Empty, |(name, _)| Cell::Name(name.clone()))
        })
        .words()
}
