//! Questions about recordings.

use crate::answered::{Answered, Result, words};
use crate::progress::progress;
use serde::Deserialize;
use slablab_engines::{parse, parse_choice};
use slablab_replay::explain::{self, explain};
use slablab_replay::import;
use slablab_replay::map::slab_map;
use slablab_replay::output::{Weight, cache_answer, explain_answer, map_page, replay_answer, sites_answer};
use slablab_replay::replay::before::Before;
use slablab_replay::replay::{Evidence, Options, replay};
use slablab_replay::sites;
use slablab_trace::Reader;
use std::path::{Path, PathBuf};

/// Caches and call sites that a text or a page lists, as the program does.
const CACHES: usize = 15;
const SITES: usize = 20;
/// The name of a map's page in the command that makes it.
const MAP: &str = "map.html";

/// A recording and the states before it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Recorded {
    input: String,
    #[serde(default)]
    before: Vec<String>,
    #[serde(default)]
    cache: Option<String>,
}

/// Words of a command line: inputs, and options with their values.
pub(crate) type Words = (Vec<String>, Vec<(&'static str, String)>);

impl Recorded {
    fn path(&self) -> &Path {
        Path::new(&self.input)
    }

    fn cache(&self) -> Option<&str> {
        self.cache.as_deref().filter(|name| !name.is_empty())
    }

    fn reader(&self) -> Result<Reader> {
        import::open(import::Input { path: self.path(), recording: None, formats: None }, &mut |_| ())
            .map_err(words)
    }

    fn options(&self) -> Result<Options> {
        let before: Vec<PathBuf> = self.before.iter().map(PathBuf::from).collect();
        let before = Before::read_for(self.path(), &before).map_err(words)?;
        Ok(Options { before, evidence: Evidence::Pages, ..Options::default() })
    }

    /// The words that ask the same, with these after the recording and these options.
    pub(crate) fn command(&self, inputs: &[&str], options: &[(&'static str, String)]) -> Words {
        let inputs = std::iter::once(self.input.as_str()).chain(inputs.iter().copied());
        let before = self.before.iter().map(|path| ("--before", path.clone()));
        let cache = ("--cache", self.cache.clone().unwrap_or_default());
        (inputs.map(str::to_string).collect(), options.iter().cloned().chain(before).chain([cache]).collect())
    }
}

/// The options of a replay by these engines.
pub(crate) fn engine_options(engines: &[String], map: bool) -> Vec<(&'static str, String)> {
    let map = map.then(|| ("--map", MAP.to_string()));
    engines.iter().map(|engine| ("--engine", engine.clone())).chain(map).collect()
}

/// Replays a recording. With `map` the page is the slab map of a cache.
pub(crate) fn replayed(of: &Recorded, engines: &[String], map: bool, command: &str) -> Result<Answered> {
    let engine = |text: &String| parse_choice(text).map_err(|bad| format!("--engine {text}: {bad}"));
    let engines = engines.iter().map(engine).collect::<Result<Vec<_>>>()?;
    let options = Options { engines, ..of.options()? };
    let (reader, path) = (of.reader()?, of.path());
    let replay = replay(&reader, path, &options, &progress).map_err(words)?;
    let answer = match of.cache() {
        None => replay_answer(&replay, CACHES),
        Some(name) => cache_answer(&replay, name, CACHES)
            .ok_or_else(|| format!("{}: no cache is called {name}", of.input))?,
    };
    if !map {
        return Ok(answer.into());
    }
    let map = slab_map((&reader, path), &options, &replay, of.cache(), &progress).map_err(words)?;
    Ok(Answered { answer, page: Some(map_page(&map, &replay, command, None)) })
}

/// The part of each policy in what differs between two engines.
pub(crate) fn explained(of: &Recorded, from: &str, to: &str) -> Result<Answered> {
    let preset = |what: &str, text: &str| parse(text).map_err(|bad| format!("{what} {text}: {bad}"));
    let question = explain::Question {
        cache: of.cache().map(str::to_string),
        ..explain::Question::new(preset("A", from)?, preset("B", to)?)
    };
    let explained = explain(&of.reader()?, of.path(), &of.options()?, &question, &progress).map_err(words)?;
    Ok(explain_answer(&explained).into())
}

/// Which code allocates.
pub(crate) fn sited(of: &Recorded) -> Result<Answered> {
    let options = sites::Options { cache: of.cache().map(str::to_string), ..sites::Options::default() };
    let sites = sites::read(Some(of.path()), &options, &mut |_| (), &progress).map_err(words)?;
    Ok(sites_answer(&sites, SITES, Weight::Live).into())
}
