//! Which kernel module made a cache: by its constructor, by the data about caches, or by its name.

use super::line::Line;
use crate::state::State;
use slablab_readers::modules::Module;

/// A module that made a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made<'a> {
    /// The module.
    pub module: &'a str,
    /// What tells it.
    pub by: By,
    /// Whether it is not of the kernel's own tree, as /proc/modules says.
    pub out_of_tree: bool,
}

/// What tells the module of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The cache's constructor is in it.
    Constructor,
    /// The data about caches, and the module is loaded.
    Data,
    /// The cache's name begins with that of a loaded module.
    Name,
}

/// The module that made the cache of a line; `None` if nothing tells, or if the kernel itself made it.
pub(super) fn made<'a>(state: &'a State, line: &Line<'a>) -> Option<Made<'a>> {
    let loaded = |name: &str| state.dump.modules.iter().find(|module| is_same(&module.name, name));
    let of =
        |module: &'a Module, by| Made { module: &module.name, by, out_of_tree: module.taints.contains('O') };
    let constructor = line.cache.attrs.as_ref().and_then(|attrs| attrs.ctor.as_deref());
    if let Some((_, name)) = constructor.and_then(|ctor| ctor.split_once('[')) {
        let name = name.trim_end_matches(']');
        let found = loaded(name).map(|module| of(module, By::Constructor));
        return found.or(Some(Made { module: name, by: By::Constructor, out_of_tree: false }));
    }
    // A constructor of the kernel itself.
    if constructor.is_some() {
        return None;
    }
    // A merged cache is of several, and its name says one of them.
    if !line.cache.aliases.is_empty() {
        return None;
    }
    let known = line.what.and_then(|entry| entry.module.as_deref()).and_then(loaded);
    if let Some(module) = known {
        return Some(of(module, By::Data));
    }
    let begins = |module: &&Module| {
        let rest = line.cache.name.get(module.name.len()..).unwrap_or("");
        let starts =
            line.cache.name.get(..module.name.len()).is_some_and(|start| is_same(start, &module.name));
        starts && (rest.is_empty() || rest.starts_with(['_', '-', '.', ':']))
    };
    let longest = state.dump.modules.iter().filter(begins).max_by_key(|module| module.name.len())?;
    Some(of(longest, By::Name))
}

/// Names of modules have underscores where those of files and caches may have hyphens.
fn is_same(one: &str, other: &str) -> bool {
    let plain = |byte: u8| if byte == b'-' { b'_' } else { byte };
    one.len() == other.len() && one.bytes().map(plain).eq(other.bytes().map(plain))
}
