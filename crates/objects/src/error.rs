//! Errors.

use std::fmt;

/// Why a cache cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// The size of an object in bytes: 0, or more than [`crate::untyped::LARGEST`].
    Size(usize),
    /// The alignment in bytes: no power of two, or more than [`crate::untyped::LARGEST_ALIGN`].
    Align(usize),
    /// The engine is unknown, or cannot have object caches; the text says why.
    Engine(String),
    /// There is a destructor, and no constructor: nothing could be destroyed.
    Destructor,
    /// The process has the largest number of caches.
    TooMany,
    /// There is no memory at all.
    NoMemory,
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::Size(bytes) => {
                write!(f, "objects of {bytes} bytes: expected 1 to {}", crate::spec::LARGEST)
            }
            CreateError::Align(bytes) => {
                let most = crate::spec::LARGEST_ALIGN;
                write!(f, "alignment to {bytes} bytes: expected a power of two up to {most}")
            }
            CreateError::Engine(why) => f.write_str(why),
            CreateError::Destructor => {
                f.write_str("a destructor without a constructor: expected both, or none")
            }
            CreateError::TooMany => f.write_str("the process has the largest number of caches"),
            CreateError::NoMemory => f.write_str("no memory"),
        }
    }
}

impl std::error::Error for CreateError {}

/// Why there is no object for an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocError {
    /// There is no memory.
    NoMemory,
    /// The cache's limit is reached.
    Limit,
    /// The caller is a signal handler that interrupted an allocation or a free, or this thread is in the
    /// middle of a fork: no lock may be taken.
    Interrupted,
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AllocError::NoMemory => "no memory",
            AllocError::Limit => "the cache's limit is reached",
            AllocError::Interrupted => "in a signal handler, in the middle of an allocation",
        })
    }
}

impl std::error::Error for AllocError {}

/// A value for which there is no object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InsertError<T> {
    /// The value that could not be inserted.
    pub value: T,
    /// Why there is no object.
    pub why: AllocError,
}

impl<T> fmt::Debug for InsertError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InsertError").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for InsertError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T> std::error::Error for InsertError<T> {}

/// A cache cannot be destroyed: objects were forgotten, not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    /// The number of those objects.
    pub objects: u64,
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "objects remaining: {}", self.objects)
    }
}

impl std::error::Error for InUse {}
