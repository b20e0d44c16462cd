//! SLUB's debugging lists: who allocated the objects of a cache, who freed them last, and how old they are.

use super::text::contents;
use slablab_readers::tracked::{self, Tracked};
use slablab_report::error::{At, Error, Result};
use std::path::{Path, PathBuf};

/// The files, and whether they tell of frees.
pub(super) const FILES: [(&str, bool); 4] =
    [("alloc_traces", false), ("free_traces", true), ("alloc_calls", false), ("free_calls", true)];

/// Lists of one cache or of several.
#[derive(Clone, Debug)]
pub struct TrackedSites {
    /// The file or folder.
    pub path: PathBuf,
    /// The lists that have entries, those with most memory first.
    pub lists: Vec<List>,
    /// Caches whose lists are empty.
    pub empty: usize,
    /// Jiffies in a second, if known.
    pub hz: Option<u64>,
}

/// A list of one cache.
#[derive(Clone, Debug)]
pub struct List {
    /// The cache; `None` if the file's path does not say.
    pub cache: Option<String>,
    /// Whether the list tells who freed objects last, and not who allocated those that live.
    pub of_frees: bool,
    /// Bytes of an object with its debugging, if /sys/kernel/slab is there.
    pub slab_size: Option<u64>,
    /// The entries, most objects first.
    pub sites: Vec<Tracked>,
}

impl List {
    /// Objects of all entries.
    pub fn objects(&self) -> u64 {
        self.sites.iter().map(|site| site.count).sum()
    }
}

impl TrackedSites {
    /// Reads a list, the folder of a cache, or a folder of caches. With `cache` only that one.
    ///
    /// # Errors
    /// What is none of these, or a line of another form.
    pub fn read(path: &Path, cache: Option<&str>, hz: Option<u64>) -> Result<TrackedSites> {
        let mut lists = Vec::new();
        if !path.is_dir() {
            lists.push(list(path)?);
        } else if FILES.iter().any(|(name, _)| path.join(name).is_file()) {
            of_cache(path, &mut lists)?;
        } else {
            for entry in std::fs::read_dir(path).at(path)? {
                let folder = entry.at(path)?.path();
                let wanted = cache.is_none_or(|name| folder.file_name().is_some_and(|found| found == name));
                if wanted && folder.is_dir() && !folder.is_symlink() {
                    of_cache(&folder, &mut lists)?;
                }
            }
        }
        if lists.is_empty() {
            let what = match cache {
                Some(name) => format!("no cache {name:?} with alloc_traces or free_traces"),
                None => "expected alloc_traces or free_traces, or folders of caches that have them".into(),
            };
            return Err(Error::new(path, what));
        }
        let all = lists.len();
        lists.retain(|list| !list.sites.is_empty());
        let empty = all - lists.len();
        if lists.is_empty() {
            let what = "no objects are tracked: boot with slab_debug=U (before 6.5 slub_debug=U), or for one cache \
                        slab_debug=U,CACHE";
            return Err(Error::new(path, what));
        }
        let weight = |list: &List| list.objects() * list.slab_size.unwrap_or(1);
        lists.sort_by(|left, right| {
            (left.of_frees, weight(right), &left.cache).cmp(&(right.of_frees, weight(left), &right.cache))
        });
        Ok(TrackedSites { path: path.to_path_buf(), lists, empty, hz })
    }

    /// Jiffies as seconds, if their length is known.
    pub fn seconds(&self, jiffies: u64) -> Option<f64> {
        self.hz.map(|hz| jiffies as f64 / hz as f64)
    }
}

fn of_cache(folder: &Path, lists: &mut Vec<List>) -> Result<()> {
    for (name, _) in FILES {
        let file = folder.join(name);
        if file.is_file() {
            lists.push(list(&file)?);
        }
    }
    Ok(())
}

fn list(path: &Path) -> Result<List> {
    let mut sites = tracked::parse(&contents(path)?).at(path)?;
    sites.sort_by(|left, right| right.count.cmp(&left.count).then_with(|| left.site.cmp(&right.site)));
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let known = FILES.iter().find(|(name, _)| file.starts_with(name));
    let cache =
        known.and_then(|_| path.parent()?.file_name()).map(|name| name.to_string_lossy().into_owned());
    let of_frees = known.map_or(file.contains("free"), |(_, of_frees)| *of_frees);
    let slab_size = known.and_then(|_| slab_size(path, cache.as_deref()?));
    Ok(List { cache, of_frees, slab_size, sites })
}

/// From /sys/kernel/slab beside /sys/kernel/debug/slab; of older kernels the list is in that folder itself.
fn slab_size(path: &Path, cache: &str) -> Option<u64> {
    let folder = path.parent()?;
    let kernel = folder.parent()?.parent().filter(|debug| debug.ends_with("debug"))?.parent();
    let beside = kernel.map(|kernel| kernel.join("slab").join(cache));
    let files =
        [Some(folder.to_path_buf()), beside].into_iter().flatten().map(|folder| folder.join("slab_size"));
    files.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_caches_is_ranked_by_memory() {
        let root = std::env::temp_dir().join(format!("slablab-tracked-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("kernel/debug/slab/dentry/alloc_traces", "3 d_alloc+0x1/0x2 age=1/2/3 pid=1 cpus=0\n");
        write("kernel/debug/slab/dentry/free_traces", "2 d_free+0x1/0x2 age=1 pid=1 cpus=0\n");
        write(
            "kernel/debug/slab/filp/alloc_traces",
            "1 a+0x1/0x2 age=1 pid=1 cpus=0\n2 b+0x1/0x2 age=1 pid=1 cpus=0\n",
        );
        write("kernel/debug/slab/idle/alloc_traces", "No data\n");
        write("kernel/slab/dentry/slab_size", "192\n");
        write("kernel/slab/filp/slab_size", "512\n");
        let caches = root.join("kernel/debug/slab");
        let found = TrackedSites::read(&caches, None, Some(250)).unwrap();
        let rows: Vec<_> = found
            .lists
            .iter()
            .map(|list| (list.cache.as_deref().unwrap(), list.of_frees, list.slab_size, list.sites[0].count))
            .collect();
        let expected =
            [("filp", false, Some(512), 2), ("dentry", false, Some(192), 3), ("dentry", true, Some(192), 2)];
        assert_eq!(rows, expected);
        assert_eq!((found.empty, found.seconds(500)), (1, Some(2.0)));
        let one = TrackedSites::read(&caches, Some("filp"), None).unwrap();
        assert_eq!((one.lists.len(), one.seconds(500)), (1, None));
        let missing = TrackedSites::read(&caches, Some("flip"), None).unwrap_err();
        assert!(missing.what.contains("no cache \"flip\""), "{missing}");
        let off = TrackedSites::read(&caches.join("idle"), None, None).unwrap_err();
        assert!(off.what.contains("slab_debug=U"), "{off}");
        std::fs::remove_dir_all(root).unwrap();
    }
}
