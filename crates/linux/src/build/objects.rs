//! The tree's objects: configured, compiled and kept, so that what has not changed is not made again.
//!
//! ```text
//! kbuild/KEY/.slablab/plain, instrumented, library   the objects
//!                    /configured                     of what the configuration was made
//!                    /state.json                     of what the objects were made; the last file written
//! ```

use super::child::Ending;
use super::command::{COVERAGE, file_of};
use super::config::{self, Change, Options, TEXTS, Wanted};
use super::kbuild::Kbuild;
use super::link::weaken;
use super::request::{Asked, CONFIG};
use super::shim::{self, EARLY, Kind};
use super::sources::{Found, Sources, hex};
use super::step::{Listener, Part};
use super::tools::Tools;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use slablab_report::error::At;
use slablab_report::{Limit, read_text_at_most};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Objects of the tree that an allocator calls, where a tree has their sources. That of hweight is the
/// architecture's: its callers rely on registers that the one in C does not keep.
pub(super) const LIBRARY: [&str; 14] = [
    "lib/math/reciprocal_div.o",
    "lib/find_bit.o",
    "lib/bitmap.o",
    "lib/sort.o",
    "lib/list_sort.o",
    "lib/ctype.o",
    "arch/x86/lib/hweight.o",
    "lib/string.o",
    "lib/vsprintf.o",
    "lib/kstrtox.o",
    "lib/cmdline.o",
    "lib/hexdump.o",
    "lib/rbtree.o",
    "lib/llist.o",
];

/// Lines that kbuild says before the first object of a folder that it has not prepared: 6.1 says 110.
const PREPARED: u64 = 130;

/// Lines that kbuild says for a configuration.
const CONFIGURED: u64 = 12;

/// The largest file about objects that is read.
const ABOUT: Limit = Limit::mib("a file about objects", 64);

/// The folder of this file's doc.
const KEPT: &str = ".slablab";

/// Of what the objects were made.
#[derive(Serialize, Deserialize)]
struct State {
    stamp: String,
    sources: Sources,
}

/// What objects are made of: a tree in a folder of kbuild, which the caller has locked.
pub(super) struct Objects<'a> {
    pub(super) kbuild: &'a Kbuild<'a>,
    pub(super) asked: &'a Asked,
    pub(super) tools: &'a Tools,
}

/// Objects that are made.
pub(super) struct Ready {
    pub(super) options: Options,
    pub(super) changes: Vec<Change>,
    pub(super) sources: Sources,
    pub(super) library: Vec<PathBuf>,
    own: [Vec<PathBuf>; 2],
}

impl Ready {
    /// The allocator's objects for an image.
    pub(super) fn own(&self, kind: Kind) -> &[PathBuf] {
        &self.own[kind as usize]
    }
}

impl Objects<'_> {
    /// Makes what has changed.
    ///
    /// # Errors
    /// Those of kbuild; a configuration without what an image needs; [`Ending::Stopped`].
    pub(super) fn make(&self, said: &mut Listener) -> Result<Ready, Ending> {
        let (kept, begun) = (self.kept(), SystemTime::now());
        let (path, stamp) = (kept.join("state.json"), self.stamp());
        let state =
            read_text_at_most(&path, ABOUT).ok().and_then(|text| serde_json::from_str::<State>(&text).ok());
        let state = state.filter(|state| state.stamp == stamp);
        let tree = self.kbuild.tree;
        let library = tree.with_source(&LIBRARY);
        let now = state.as_ref().map(|state| state.sources.look(&tree.path));
        let sources = match (now, state) {
            (Some(Found::Same), Some(state)) => state.sources,
            (Some(Found::Touched(sources)), _) => sources,
            (_, state) => {
                let _ = fs::remove_file(&path);
                fs::create_dir_all(&kept).at(&kept)?;
                self.configure(&stamp, state.map(|state| state.sources), said)?;
                self.compile(&library, said)?;
                let own = self.own();
                let objects: Vec<&str> =
                    own.iter().map(String::as_str).chain(library.iter().copied()).collect();
                let config = self.asked.config.as_slice();
                let sources = Sources::of(tree, self.kbuild.folder, &objects, config, begun)?;
                let state = State { stamp, sources };
                fs::write(&path, serde_json::to_string(&state).expect("a list of files is JSON"))
                    .at(&path)?;
                state.sources
            }
        };
        let options = config::parse(&read_text_at_most(&self.kbuild.folder.join(".config"), CONFIG)?);
        let user = self.asked.user.as_deref().map(config::parse);
        let changes = user.map(|user| self.wanted().changes(&user, &options)).unwrap_or_default();
        let library = library.iter().map(|object| self.copy_of("library", object)).collect();
        let own =
            Kind::ALL.map(|kind| self.own().iter().map(|path| self.copy_of(kind.word(), path)).collect());
        Ok(Ready { options, changes, sources, library, own })
    }

    /// Names all that decides what kbuild makes of unchanged sources.
    fn stamp(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(format!("{}\n{}\n", LIBRARY.join("\n"), TEXTS.join("\n")));
        shim::FILES.iter().filter(|(name, _)| *name == EARLY).for_each(|(_, text)| hash.update(text));
        hash.update(self.asked.user.as_deref().unwrap_or_default());
        hash.update(serde_json::to_string(self.tools).expect("names of tools are JSON"));
        hex(hash.finalize().as_slice())
    }

    fn wanted(&self) -> Wanted {
        Wanted::of(self.asked.allocator, self.asked.user.is_none())
    }

    fn kept(&self) -> PathBuf {
        self.kbuild.folder.join(KEPT)
    }

    /// Where the copy of an object is kept.
    fn copy_of(&self, kind: &str, object: &str) -> PathBuf {
        self.kept().join(kind).join(object.replace('/', "-"))
    }

    /// The allocator's own objects.
    fn own(&self) -> [String; 2] {
        [self.asked.allocator.object(), "mm/slab_common.o".into()]
    }

    /// Configures the folder of kbuild. `before` are the sources of the objects that are there.
    fn configure(&self, stamp: &str, before: Option<Sources>, said: &mut Listener) -> Result<(), Ending> {
        let wanted = self.wanted();
        let (path, configured) = (self.kbuild.folder.join(".config"), self.kept().join("configured"));
        let tree = &self.kbuild.tree.path;
        let is_configured = path.exists() && fs::read_to_string(&configured).is_ok_and(|text| text == stamp);
        if is_configured && before.is_some_and(|sources| !sources.have_other_options(tree)) {
            return Ok(());
        }
        let mut make = |target| self.kbuild.make(Part::Configuration, &[target], &[], CONFIGURED, said);
        if !is_configured {
            let start = match &self.asked.user {
                Some(text) => text.clone(),
                None => {
                    make("tinyconfig")?;
                    fs::read_to_string(&path).at(&path)?
                }
            };
            fs::write(&path, wanted.put_into(&start)).at(&path)?;
        }
        make("olddefconfig")?;
        let options = config::parse(&read_text_at_most(&path, CONFIG)?);
        wanted.check(&options).at(self.asked.config.as_deref().unwrap_or(tree))?;
        fs::write(&configured, stamp).at(&configured)?;
        Ok(())
    }

    /// Compiles all objects, and copies them.
    fn compile(&self, library: &[&str], said: &mut Listener) -> Result<(), Ending> {
        let own = self.own();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let early = self.kbuild.folder.join(EARLY);
        let text = shim::FILES.iter().find(|(name, _)| *name == EARLY).map_or("", |(_, text)| *text);
        // An unchanged file stays as old as it is: kbuild compiles all that includes a newer one.
        if fs::read_to_string(&early).ok().as_deref() != Some(text) {
            fs::write(&early, text).at(&early)?;
        }
        let is_prepared = self.kbuild.folder.join(file_of(own[0])).exists();
        for kind in Kind::ALL {
            let is_plain = kind == Kind::Plain;
            let answer = if is_plain { "n" } else { "y" };
            let mut variables: Vec<String> =
                vec!["KCSAN_SANITIZE=n".into(), format!("KCFLAGS=-include {}", early.display())];
            if !is_plain {
                variables
                    .extend(own.iter().map(|path| format!("CFLAGS_{}={COVERAGE}", &path["mm/".len()..])));
            }
            variables
                .extend(own.iter().map(|path| format!("KCSAN_SANITIZE_{}={answer}", &path["mm/".len()..])));
            // Accesses of the library are none of the allocator's.
            let targets: Vec<&str> = own.iter().chain(library.iter().filter(|_| is_plain)).copied().collect();
            let whole = targets.len() as u64 + if is_plain && !is_prepared { PREPARED } else { 0 };
            let part = if is_plain { Part::Objects } else { Part::Instrumented };
            // Kbuild makes an object of the architecture's library by two ways: at once they disturb each
            // other.
            let (alone, others): (Vec<&str>, Vec<&str>) =
                targets.iter().partition(|path| path.starts_with("arch/"));
            self.kbuild.make(part, &others, &variables, whole, said)?;
            let one = Kbuild { jobs: 1, ..*self.kbuild };
            for target in alone {
                one.make(part, &[target], &variables, whole, said)?;
            }
            for path in &own {
                let to = self.copy_of(kind.word(), path);
                create_parent(&to)?;
                fs::copy(self.kbuild.folder.join(path), &to).at(&to)?;
            }
        }
        for object in library {
            let to = self.copy_of("library", object);
            create_parent(&to)?;
            weaken(&self.kbuild.folder.join(object), &to, &mut || said.at(Part::Instrumented, 1, 1))?;
        }
        Ok(())
    }
}

fn create_parent(path: &Path) -> slablab_report::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).at(folder)
}
