//! A build from its request to its folder.

use super::blocks::blocks;
use super::built::{Built, Entry, FORMAT, Origin};
use super::child::Ending;
use super::command::{Made, file_of};
use super::kbuild::{FULL, Kbuild, is_full};
use super::link::link;
use super::objects::{Objects, Ready};
use super::recipe::recipe;
use super::request::{Asked, Request};
use super::shim::{self, For, Kind};
use super::sources::hex;
use super::step::{Listener, Part, Step};
use super::store::{Draft, SOURCES, Store};
use super::tools::Tools;
use super::tree::{Tree, expect_path};
use super::{name, stubs::Stubs};
use sha2::{Digest, Sha256};
use slablab_report::error::At;
use slablab_report::{Error, Result};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Builds the allocator of a kernel tree, in the user's cache. If a build is there and the tree has not
/// changed, that is returned: some milliseconds. `said` hears of each step, at least twenty times a second
/// while a command runs. If it answers to stop, all processes are ended, nothing is kept and `None` returned.
///
/// # Errors
/// What is no kernel tree; missing programs; a configuration without something that an image needs; errors of
/// compiler and linker as they are; what the system refuses.
pub fn build(request: &Request, said: &mut dyn FnMut(Step) -> ControlFlow<()>) -> Result<Option<Built>> {
    Store::usual()?.build(request, said)
}

/// [`Store::find`] in the user's cache.
///
/// # Errors
/// Those of [`Store::find`].
pub fn find(text: &str) -> Result<Built> {
    Store::usual()?.find(text)
}

/// [`Store::list`] of the user's cache.
///
/// # Errors
/// Those of [`Store::usual`].
pub fn list() -> Result<Vec<Entry>> {
    Ok(Store::usual()?.list())
}

/// [`Store::remove`] in the user's cache.
///
/// # Errors
/// Those of [`Store::remove`].
pub fn remove(names: &[String]) -> Result<u64> {
    Store::usual()?.remove(names)
}

impl Store {
    /// As [`build`], in this folder of builds.
    ///
    /// # Errors
    /// Those of [`build`].
    pub fn build(
        &self,
        request: &Request,
        said: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Result<Option<Built>> {
        match self.build_or_end(request, &mut Listener::new(said)) {
            Ok(built) => Ok(Some(built)),
            Err(Ending::Stopped) => Ok(None),
            Err(Ending::Bad(error)) => Err(error),
        }
    }

    fn build_or_end(&self, request: &Request, said: &mut Listener) -> std::result::Result<Built, Ending> {
        if let Some(name) = &request.name {
            name::check(name).at(Path::new("--name"))?;
        }
        let tree = Tree::open(&request.tree)?;
        let asked = Asked::of(request, &tree)?;
        let key = asked.key(&tree);
        if let Some(built) = self.current(&tree, request, &asked) {
            return Ok(self.named(built, request, &key)?);
        }
        let folder = self.kbuild(&key);
        expect_path(&folder, "set XDG_CACHE_HOME to another folder")?;
        let _lock = self.lock(&key, said)?;
        // Another process may have built it meanwhile.
        if let Some(built) = self.current(&tree, request, &asked) {
            return Ok(self.named(built, request, &key)?);
        }
        let tools = Tools::find(&request.tree, &mut || said.at(Part::Configuration, 0, 1))?;
        let jobs = request.jobs.or_else(|| std::thread::available_parallelism().ok().map(usize::from));
        let kbuild = Kbuild { tree: &tree, folder: &folder, cc: &tools.cc, jobs: jobs.unwrap_or(1) };
        let (origin, begun) = (request.origin.as_ref(), Instant::now());
        let run = Run { store: self, asked: &asked, kbuild, tools: &tools, key: &key, origin, begun };
        run.build(request, said).inspect_err(|ending| {
            // A disk that is full stays so unless what was made on it goes.
            if matches!(ending, Ending::Bad(error) if error.what.contains(FULL) || is_full(&folder)) {
                let _ = fs::remove_dir_all(&folder);
            }
        })
    }

    /// The build under the name that was asked for.
    fn named(&self, built: Built, request: &Request, key: &str) -> Result<Built> {
        match &request.name {
            Some(name) if *name != built.name => {
                self.alias(&Built { origin: request.origin.clone(), ..built }, name, key)
            }
            _ => Ok(built),
        }
    }
}

/// A build under way, which holds the lock of its folder.
struct Run<'a> {
    store: &'a Store,
    asked: &'a Asked,
    kbuild: Kbuild<'a>,
    tools: &'a Tools,
    key: &'a str,
    origin: Option<&'a Origin>,
    begun: Instant,
}

impl Run<'_> {
    fn build(&self, request: &Request, said: &mut Listener) -> std::result::Result<Built, Ending> {
        let begun = SystemTime::now();
        let objects = Objects { kbuild: &self.kbuild, asked: self.asked, tools: self.tools };
        let mut ready = objects.make(said)?;
        let draft = self.store.draft(self.key)?;
        let work = draft.folder.join("work");
        fs::create_dir(&work).at(&work)?;
        let stubs = self.link(&ready, &work, &draft, said)?;
        // Of the tree the shim reads headers.
        ready.sources.add(self.kbuild.tree, self.kbuild.folder, &shim::read_files(&work), begun)?;
        fs::remove_dir_all(&work).at(&work)?;
        let path = draft.folder.join(SOURCES);
        fs::write(&path, serde_json::to_string(&ready.sources).expect("a list of files is JSON"))
            .at(&path)?;
        fs::copy(self.kbuild.folder.join(".config"), draft.folder.join("config")).at(&draft.folder)?;
        said.at(Part::Link, 1, 1);
        let built = self.built(stubs, ready, &draft, said)?;
        Ok(self.store.keep(draft, built, request.name.as_deref())?)
    }

    /// Compiles the shim and links both images.
    fn link(
        &self,
        ready: &Ready,
        work: &Path,
        draft: &Draft,
        said: &mut Listener,
    ) -> std::result::Result<Stubs, Ending> {
        shim::write_into(work)?;
        let object = self.asked.allocator.object();
        let path = self.kbuild.folder.join(file_of(&object));
        let text = fs::read_to_string(&path).at(&path)?;
        let made = Made::parse(&text, &object)
            .ok_or_else(|| Error::new(&path, "expected kbuild's command of an object, found none"))?;
        let shim = For { kbuild: &self.kbuild, made: &made, allocator: self.asked.allocator };
        let compiled = shim.compile(work, said)?;
        let mut all = Stubs::default();
        let image = |kind: Kind| draft.folder.join(format!("{}.elf", kind.word()));
        for (at, (kind, mut objects)) in (0..).zip(Kind::ALL.into_iter().zip(compiled)) {
            objects.extend(ready.own(kind).iter().chain(&ready.library).cloned());
            let image = image(kind);
            all.add(link(&objects, work, &image, &mut || said.at(Part::Link, at, 2))?);
        }
        let instrumented = image(Kind::Instrumented);
        let text = blocks(&image(Kind::Plain), &instrumented, &mut || said.at(Part::Link, 2, 2))?;
        let path = instrumented.with_extension("blocks");
        fs::write(&path, text).at(&path)?;
        Ok(all)
    }

    fn built(&self, stubs: Stubs, ready: Ready, draft: &Draft, said: &Listener) -> Result<Built> {
        let tree = self.kbuild.tree;
        let release = self.kbuild.folder.join("include/config/kernel.release");
        let release = fs::read_to_string(&release).at(&release)?.trim().to_string();
        let mut hash = Sha256::new();
        ready.sources.feed(&mut hash);
        ready.options.iter().for_each(|(name, value)| hash.update(format!("{name}={value}\n")));
        hash.update([&self.tools.compiler, &self.tools.linker, &recipe()].map(String::as_str).join("\n"));
        let mut bytes = 0;
        for kind in Kind::ALL {
            let path = draft.folder.join(format!("{}.elf", kind.word()));
            bytes += path.metadata().at(&path)?.len();
        }
        Ok(Built {
            format: FORMAT,
            folder: PathBuf::new(),
            name: String::new(),
            tree: tree.path.clone(),
            release,
            version: tree.version,
            allocator: self.asked.allocator,
            config: self.asked.config.clone(),
            changes: ready.changes,
            digest: hex(hash.finalize().as_slice()),
            functions: stubs.functions,
            data: stubs.data,
            parts: said.parts().map(|(part, seconds)| (part.words().to_string(), seconds)).collect(),
            seconds: self.begun.elapsed().as_secs_f64(),
            bytes,
            sources: ready.sources.count(),
            time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            is_new: true,
            kbuild: self.key.into(),
            origin: self.origin.cloned(),
            recipe: recipe(),
            tools: self.tools.clone(),
        })
    }
}
