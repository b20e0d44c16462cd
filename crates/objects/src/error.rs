//! What can go wrong, as values.

use std::fmt;

/// Why a cache cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// Objects of so many bytes: none, or more than [`crate::untyped::LARGEST`].
    Size(usize),
    /// An alignment that is no power of two, or more than [`crate::untyped::LARGEST_ALIGN`].
    Align(usize),
    /// An engine that there is not, or that cannot have object caches; what it says of it.
    Engine(String),
    /// There are as many caches as there can be.
    TooMany,
    /// There is no memory at all.
    NoMemory,
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::Size(bytes) => {
                write!(f, "objects of {bytes} bytes: expected 1 to {}", crate::untyped::LARGEST)
            }
            CreateError::Align(bytes) => {
                let most = crate::untyped::LARGEST_ALIGN;
                write!(f, "alignment to {bytes} bytes: expected a power of two up to {most}")
            }
            CreateError::Engine(why) => f.write_str(why),
            CreateError::TooMany => f.write_str("there are as many caches as there can be"),
            CreateError::NoMemory => f.write_str("no memory"),
        }
    }
}

impl std::error::Error for CreateError {}

/// Why there is no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is no memory.
    NoMemory,
    /// The cache's limit is reached.
    Limit,
    /// A signal handler asked in the middle of an allocation or a free, or somebody in the middle of a fork: nothing may be locked.
    Interrupted,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::NoMemory => "no memory",
            Why::Limit => "the cache's limit is reached",
            Why::Interrupted => "in a signal handler, in the middle of an allocation",
        })
    }
}

impl std::error::Error for Why {}

/// A value that found no object, and why.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused<T> {
    /// The value.
    pub value: T,
    /// Why.
    pub why: Why,
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T> std::error::Error for Refused<T> {}

/// A cache cannot go: so many objects were forgotten, not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    /// How many.
    pub objects: u64,
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "objects remaining: {}", self.objects)
    }
}

impl std::error::Error for InUse {}
