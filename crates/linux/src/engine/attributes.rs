//! Attributes of single caches: what is written to `/sys/kernel/slab/CACHE/FILE`.

use slablab_slabs::knob::is_called;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is written to files of caches, in this order, and which caches there were.
#[derive(Debug, Default)]
pub struct Attributes {
    each: Vec<Attribute>,
    /// Whether a cache asked.
    asked: AtomicBool,
}

/// What is written to a file of a cache.
#[derive(Debug)]
pub struct Attribute {
    /// The name of the cache; with a `*` at its end, of all caches whose name begins so.
    cache: String,
    pub(super) file: String,
    pub(super) value: String,
    /// Whether there was such a cache.
    met: AtomicBool,
}

impl Attributes {
    /// Reads `CACHE/FILE=VALUE`, between commas.
    ///
    /// # Errors
    /// One of the three is missing.
    pub fn parse(text: &str) -> Result<Attributes, String> {
        let each = text.split(',').filter(|part| !part.is_empty()).map(Attribute::parse);
        Ok(Attributes { each: each.collect::<Result<_, _>>()?, asked: AtomicBool::new(false) })
    }

    /// Those of the cache of this name.
    pub(super) fn of(&self, name: &str) -> impl Iterator<Item = &Attribute> {
        self.asked.store(true, Ordering::Relaxed);
        let of_cache = self.each.iter().filter(move |attribute| is_called(name, &attribute.cache));
        of_cache.inspect(|attribute| attribute.met.store(true, Ordering::Relaxed))
    }

    /// The first that was of no cache, where caches asked.
    pub fn unmet(&self) -> Option<&Attribute> {
        let mut unmet = self.each.iter().filter(|attribute| !attribute.met.load(Ordering::Relaxed));
        self.asked.load(Ordering::Relaxed).then(|| unmet.next())?
    }
}

impl Attribute {
    fn parse(text: &str) -> Result<Attribute, String> {
        let parts = text.split_once('=').and_then(|(name, value)| Some((name.rsplit_once('/')?, value)));
        match parts {
            Some(((cache, file), value)) if !cache.is_empty() && !file.is_empty() && !value.is_empty() => {
                let [cache, file, value] = [cache, file, value].map(String::from);
                Ok(Attribute { cache, file, value, met: AtomicBool::new(false) })
            }
            _ => Err(format!("{text}: expected CACHE/FILE=VALUE, as in kmalloc-256/min_partial=10")),
        }
    }
}

/// As the grammar has it.
impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}={}", self.cache, self.file, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_of_caches_by_name() {
        #[track_caller]
        fn check(text: &str, name: &str, expected: &[&str]) {
            let attributes = Attributes::parse(text).unwrap();
            assert_eq!(attributes.of(name).map(Attribute::to_string).collect::<Vec<_>>(), expected, "{name}");
        }
        check(",kmalloc-256/min_partial=10", "kmalloc-256", &["kmalloc-256/min_partial=10"]);
        check(",kmalloc-256/min_partial=10", "kmalloc-2k", &[]);
        check(",kmalloc-2*/min_partial=10,*/cpu_partial=0", "kmalloc-512", &["*/cpu_partial=0"]);
        check(",kmalloc-2*/min_partial=10", "kmalloc-2k", &["kmalloc-2*/min_partial=10"]);
        check(",dm/io/cpu_partial=0", "dm/io", &["dm/io/cpu_partial=0"]);
        for wrong in ["/cpu_partial=0", "dentry/=0", "dentry/cpu_partial=", "dentry/cpu_partial"] {
            assert_eq!(
                Attributes::parse(wrong).unwrap_err(),
                format!("{wrong}: expected CACHE/FILE=VALUE, as in kmalloc-256/min_partial=10")
            );
        }
    }

    #[test]
    fn an_attribute_of_no_cache_is_found() {
        let attributes = Attributes::parse(",dentry/min_partial=1,inode/min_partial=1").unwrap();
        let unmet = || attributes.unmet().map(Attribute::to_string);
        assert_eq!(unmet(), None, "nothing ran");
        for (name, expected) in
            [("filp", Some("dentry/min_partial=1")), ("dentry", Some("inode/min_partial=1")), ("inode", None)]
        {
            assert_eq!(attributes.of(name).count(), usize::from(name != "filp"));
            assert_eq!(unmet().as_deref(), expected, "after {name}");
        }
    }
}
