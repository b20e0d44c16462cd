//! Files of this process alone. A page has none: they are in its memory.

use slablab_report::error::{At, Result};
use slablab_trace::Positioned;
use std::path::Path;

#[cfg(unix)]
mod place {
    use super::{At, Path, Positioned, Result};
    use std::fs::{File, OpenOptions};

    /// A file without a name, to write and to read.
    pub(in super::super) type Spool = File;

    pub(in super::super) fn unnamed() -> Result<Spool> {
        let folder = std::env::temp_dir();
        let make = || {
            let path = folder.join(format!("slablab-{}-{:p}.trace", std::process::id(), &folder));
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok::<_, std::io::Error>(file)
        };
        make().at(&folder)
    }

    pub(in super::super) fn positioned(spool: Spool) -> Result<Positioned> {
        Positioned::new(spool).at(&std::env::temp_dir())
    }

    pub(in super::super) fn named(path: &Path) -> Result<Positioned> {
        File::open(path).and_then(Positioned::new).at(path)
    }
}

#[cfg(not(unix))]
mod place {
    use super::{At, Path, Positioned, Result};
    use slablab_report::files;
    use std::io::{Cursor, Read};

    pub(in super::super) type Spool = Cursor<Vec<u8>>;

    pub(in super::super) fn unnamed() -> Result<Spool> {
        Ok(Cursor::default())
    }

    pub(in super::super) fn positioned(spool: Spool) -> Result<Positioned> {
        Ok(Positioned::from(spool.into_inner()))
    }

    pub(in super::super) fn named(path: &Path) -> Result<Positioned> {
        let mut bytes = Vec::new();
        files::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).at(path)?;
        Ok(Positioned::from(bytes))
    }
}

pub(super) use place::{Spool, named, positioned, unnamed};
