//! The columns of the list: which fit, how wide they are, what is in them. The screen and the plain text
//! share them.

use super::theme::{Theme, bytes, signed};
use slablab_doctor::watch::{SortKey, Track, Watch, Window, percent};

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Objects,
    Active,
    Use,
    ObjectSize,
    Slabs,
    ActiveSlabs,
    ObjectsPerSlab,
    Pages,
    Size,
    Share,
    Growth,
    GrowthSinceStart,
    Name,
    History,
}

use Column::*;

/// In the order they stand, slabtop's first.
const ORDER: [Column; 14] = [
    Objects,
    Active,
    Use,
    ObjectSize,
    Slabs,
    ActiveSlabs,
    ObjectsPerSlab,
    Pages,
    Size,
    Share,
    Growth,
    GrowthSinceStart,
    Name,
    History,
];

/// The ones to keep when there is little room, most wanted first.
const WANTED: [Column; 8] = [Size, Growth, Use, Objects, GrowthSinceStart, Active, Slabs, ObjectSize];

/// The ones to add when names have all the room they want.
const EXTRA: [Column; 4] = [ObjectsPerSlab, Share, Pages, ActiveSlabs];

/// Characters of a name that are enough to know most caches by.
const NAME_MIN: usize = 10;
/// Characters of a name after which other columns matter more.
const NAME_WANT: usize = 28;
/// Columns of a history that is worth a look.
const HISTORY_MIN: usize = 12;

/// Columns with their widths.
pub(super) struct Table<'a> {
    watch: &'a Watch,
    /// Bytes of all caches.
    whole: u64,
    columns: Vec<(Column, usize)>,
}

impl<'a> Table<'a> {
    /// The columns that fit in `width` for these rows; all but the history if there is no width to keep to.
    /// What the list is sorted by is always among them.
    pub(super) fn new(watch: &'a Watch, rows: &[&Track], width: Option<usize>, sort: SortKey) -> Table<'a> {
        let whole = watch.last().totals().bytes;
        let table = Table { watch, whole, columns: Vec::new() };
        let content = |column| {
            let cells = rows.iter().map(|track| table.cell(column, track).chars().count()).max();
            cells.unwrap_or(0).max(table.title(column).chars().count())
        };
        let name = content(Name);
        let mut left = width.unwrap_or(usize::MAX);
        let mut chosen = vec![(Name, name)];
        let mut add = |column: Column, keep: usize| {
            let needs = content(column) + 1;
            let fits =
                left >= needs.saturating_add(keep) && !chosen.iter().any(|(known, _)| *known == column);
            if fits {
                left -= needs;
                chosen.push((column, needs - 1));
            }
        };
        add(column_of(sort), NAME_MIN);
        // A screen keeps its columns; a text of one sample has no growth to tell.
        let grows = width.is_some() || watch.ticks() > 1;
        let wanted = WANTED.iter().filter(|column| grows || !matches!(column, Growth | GrowthSinceStart));
        wanted.for_each(|column| add(*column, NAME_MIN));
        let differs = rows.iter().any(|track| track.row.info.active_slabs != track.row.info.num_slabs);
        for column in EXTRA.into_iter().filter(|column| *column != ActiveSlabs || differs) {
            add(column, name.min(NAME_WANT));
        }
        if width.is_some() {
            let name = name.min(left);
            chosen[0].1 = name;
            let room = (left - name).saturating_sub(1);
            if room >= HISTORY_MIN {
                chosen.push((History, room));
            }
        }
        let place = |column: &Column| ORDER.iter().position(|other| other == column);
        chosen.sort_by_key(|(column, _)| place(column));
        Table { columns: chosen, ..table }
    }

    /// The columns, left to right, and their widths.
    pub(super) fn columns(&self) -> &[(Column, usize)] {
        &self.columns
    }

    /// The head of a column.
    pub(super) fn title(&self, column: Column) -> &'static str {
        match column {
            Objects => "OBJS",
            Active => "ACTIVE",
            Use => "USE",
            ObjectSize => "OBJSIZE",
            Slabs => "SLABS",
            ActiveSlabs => "ACTSLABS",
            ObjectsPerSlab => "OBJ/SLAB",
            Pages => "PAGES",
            Size => "SIZE",
            Share => "SHARE",
            Growth => match self.watch.window() {
                Window::Last => "LAST/MIN",
                Window::Minute => "60S/MIN",
                Window::TenMinutes => "600S/MIN",
            },
            GrowthSinceStart => "START/MIN",
            Name => "NAME",
            History => "HISTORY",
        }
    }

    /// The text of a cache in a column. The caller draws the history, because it has the theme.
    pub(super) fn cell(&self, column: Column, track: &Track) -> String {
        let info = &track.row.info;
        match column {
            Objects => info.num_objs.to_string(),
            Active => info.active_objs.to_string(),
            // Rounded down, as slabtop does: 100 means all.
            Use => track.row.use_percent().map_or("-".into(), |percent| format!("{}%", percent as u64)),
            ObjectSize => info.objsize.to_string(),
            Slabs => info.num_slabs.to_string(),
            ActiveSlabs => info.active_slabs.to_string(),
            ObjectsPerSlab => info.objperslab.to_string(),
            Pages => info.pagesperslab.to_string(),
            Size => bytes(track.row.bytes),
            Share => {
                percent(track.row.bytes, self.whole).map_or("-".into(), |percent| format!("{percent:.1}%"))
            }
            Growth => signed(self.growth(column, track)),
            GrowthSinceStart => signed(self.growth(column, track)),
            Name => info.name.clone(),
            History => String::new(),
        }
    }

    /// The growth that a column shows, if it shows one.
    pub(super) fn growth(&self, column: Column, track: &Track) -> Option<i64> {
        match column {
            Growth => self.watch.growth_per_minute(track),
            GrowthSinceStart => self.watch.growth_per_minute_since_start(track),
            _ => None,
        }
    }

    /// A cell as wide as its column: numbers to the right, names to the left.
    pub(super) fn fitted(&self, theme: Theme, column: Column, width: usize, track: &Track) -> String {
        match column {
            Name => format!("{:width$}", theme.cut(&track.row.info.name, width)),
            History => format!("{:width$}", theme.chart_lines(track.history(), width, 1).remove(0)),
            _ => format!("{:>width$}", self.cell(column, track)),
        }
    }

    /// The line of heads.
    pub(super) fn head(&self, column: Column, width: usize) -> String {
        let title = self.title(column);
        if matches!(column, Name | History) { format!("{title:width$}") } else { format!("{title:>width$}") }
    }
}

/// The column that shows what a key sorts by.
pub(super) fn column_of(sort: SortKey) -> Column {
    match sort {
        SortKey::Active => Active,
        SortKey::ObjectsPerSlab => ObjectsPerSlab,
        SortKey::CacheSize => Size,
        SortKey::Slabs => Slabs,
        SortKey::ActiveSlabs => ActiveSlabs,
        SortKey::Name => Name,
        SortKey::Objects => Objects,
        SortKey::Pages => Pages,
        SortKey::ObjectSize => ObjectSize,
        SortKey::Use => Use,
        SortKey::Growth => Growth,
        SortKey::GrowthSinceStart => GrowthSinceStart,
    }
}
