//! Strings by id.

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::NONE;

/// The strings of one column; an id is an index.
#[derive(Clone, Debug, Default)]
pub struct Table {
    texts: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, u32>,
}

impl Table {
    /// The largest number of strings kept, so that a hostile file cannot take memory without end.
    pub const LIMIT: usize = 1 << 20;
    /// What every further string becomes.
    pub const OVERFLOW: &'static str = "(too many)";

    /// The id of `text`, new or known.
    pub fn id(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        if self.texts.len() >= Self::LIMIT && text != Self::OVERFLOW {
            return self.id(Self::OVERFLOW);
        }
        let text: Arc<str> = text.into();
        let id = self.texts.len() as u32;
        self.texts.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    /// The id of `text` if it has one.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    /// The string with this id; `None` for [`NONE`] and for an id of another table.
    pub fn get(&self, id: u32) -> Option<&str> {
        self.texts.get(id as usize).map(|text| &**text)
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The strings in order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}

/// The tables of the string columns.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// Names of tasks.
    pub comm: Table,
    /// Names of caches. In a reader, ids follow [`crate::Metadata::caches`].
    pub cache: Table,
    /// Callers.
    pub call_site: Table,
    /// Call chains.
    pub stack: Table,
}

impl Texts {
    /// The tables, at their [`Texts::position`].
    pub(crate) fn tables(&self) -> [&Table; 4] {
        [&self.comm, &self.cache, &self.call_site, &self.stack]
    }

    pub(crate) fn table_mut(&mut self, column: &str) -> &mut Table {
        match Self::position(column) {
            0 => &mut self.comm,
            1 => &mut self.cache,
            2 => &mut self.call_site,
            _ => &mut self.stack,
        }
    }

    /// Which table a column's strings are in.
    pub(crate) fn position(column: &str) -> usize {
        let columns = ["comm", "cache", "call_site", "stack"];
        columns.iter().position(|name| *name == column).expect("only these columns are strings")
    }
}

const _: () = assert!(Table::LIMIT < NONE as usize);
