//! What the screen shows and what keys do to it. Nothing here draws or waits.

use super::theme::Theme;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use slablab_doctor::Owners;
use slablab_doctor::state::{Missing, State};
use slablab_doctor::watch::{SortKey, Source, Track, Watch};
use slablab_doctor::what::Known;
use slablab_report::Result;

/// Seconds between samples that `+` and `-` step through.
const DELAYS_S: [f64; 11] = [0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0];

/// The screen's state.
pub(super) struct App {
    pub(super) source: Source,
    pub(super) watch: Watch,
    pub(super) theme: Theme,
    /// What caches are for.
    pub(super) known: &'static Known,
    pub(super) delay_s: f64,
    pub(super) sort: SortKey,
    /// Smallest first.
    pub(super) inverted: bool,
    pub(super) filter: String,
    /// The filter before it was edited, while it is.
    pub(super) typing: Option<String>,
    /// Name and ordinal of the cache under the cursor, which stays there when the order changes; `None` for
    /// whatever is first.
    pub(super) selected: Option<(String, u32)>,
    /// The first row of the list that is seen.
    pub(super) top: usize,
    /// Rows of the list that were seen last time.
    pub(super) page: usize,
    /// Everything about the selected cache, if that is asked for.
    pub(super) detail: Option<State>,
    pub(super) open: bool,
    pub(super) help: bool,
    /// Memory cgroups now and when the view was opened, while they are shown in place of the caches.
    pub(super) cgroups: Option<(Owners, Owners)>,
    pub(super) paused: bool,
    /// A recording has no more samples.
    pub(super) over: bool,
}

/// What happens after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Stay,
    Suspend,
    Quit,
}

impl App {
    pub(super) fn new(source: Source, sort: SortKey, delay_s: f64, theme: Theme) -> App {
        App {
            source,
            watch: Watch::default(),
            theme,
            known: Known::builtin(),
            delay_s,
            sort,
            inverted: false,
            filter: String::new(),
            typing: None,
            selected: None,
            top: 0,
            page: 1,
            detail: None,
            open: false,
            help: false,
            cgroups: None,
            paused: false,
            over: false,
        }
    }

    /// Takes the next sample.
    pub(super) fn tick(&mut self) -> Result<()> {
        match self.source.sample()? {
            Some(sample) => self.watch.push(sample),
            None => self.over = true,
        }
        self.look()
    }

    /// Whether the caches could not be read.
    pub(super) fn blind(&self) -> bool {
        self.watch.last().rows.is_empty()
    }

    /// What a screen of all caches lacks; what only one cache's detail lacks is with that.
    pub(super) fn missing(&self) -> impl Iterator<Item = &Missing> {
        let ours = |missing: &&Missing| ["/proc/slabinfo", "/proc/meminfo"].contains(&missing.file.as_str());
        self.source.missing().iter().filter(ours)
    }

    /// Whether there will be another sample by itself.
    pub(super) fn runs(&self) -> bool {
        !self.paused && !self.over
    }

    pub(super) fn list(&self) -> Vec<&Track> {
        self.watch.list(self.sort, self.inverted, &self.filter)
    }

    /// Where the cursor is in the list.
    pub(super) fn cursor(&self, list: &[&Track]) -> usize {
        let selected = |track: &&Track| {
            self.selected.as_ref().is_some_and(|(name, ordinal)| {
                track.row.info.name == *name && track.row.info.ordinal == *ordinal
            })
        };
        list.iter().position(selected).unwrap_or(0)
    }

    /// Reads the cache under the cursor anew if it is shown.
    fn look(&mut self) -> Result<()> {
        self.detail = None;
        if let Some((now, _)) = &mut self.cgroups {
            *now = self.source.cgroups()?;
        }
        if self.open {
            let list = self.list();
            let row = list.get(self.cursor(&list)).map(|track| track.row.clone());
            self.detail = row.map(|row| self.source.cache(&row)).transpose()?.flatten();
        }
        Ok(())
    }

    /// Puts the cursor on a row.
    fn select(&mut self, at: usize) {
        let list = self.list();
        let key = list.get(at.min(list.len().saturating_sub(1))).map(|track| {
            let info = &track.row.info;
            (info.name.clone(), info.ordinal)
        });
        self.selected = key;
    }

    fn go(&mut self, by: isize) {
        let at = self.cursor(&self.list());
        self.select(at.saturating_add_signed(by));
    }

    fn change_delay(&mut self, longer: bool) {
        let next = if longer {
            DELAYS_S.into_iter().find(|delay| *delay > self.delay_s)
        } else {
            DELAYS_S.into_iter().rev().find(|delay| *delay < self.delay_s)
        };
        self.delay_s = next.unwrap_or(self.delay_s);
    }

    /// Does what a key says.
    pub(super) fn key(&mut self, key: KeyEvent) -> Result<After> {
        if key.kind == KeyEventKind::Release {
            return Ok(After::Stay);
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'C')) {
            return Ok(After::Quit);
        }
        // In raw mode the terminal sends no signal for it.
        if control && matches!(key.code, KeyCode::Char('z' | 'Z')) {
            return Ok(After::Suspend);
        }
        let page = self.page.max(1) as isize;
        if self.typing.is_some() {
            self.type_filter(key.code, control);
        } else if self.help {
            // Any key closes the help.
            self.help = false;
        } else {
            match key.code {
                KeyCode::Char('q' | 'Q') => return Ok(After::Quit),
                KeyCode::Esc if self.cgroups.is_some() => self.cgroups = None,
                KeyCode::Esc if self.open => self.open = false,
                KeyCode::Esc if !self.filter.is_empty() => self.filter.clear(),
                KeyCode::Esc => return Ok(After::Quit),
                KeyCode::Char('?' | 'h' | 'H') | KeyCode::F(1) => self.help = true,
                KeyCode::Char('m' | 'M') => self.toggle_cgroups()?,
                KeyCode::Char('/') => self.typing = Some(self.filter.clone()),
                KeyCode::Char(' ') => self.paused = !self.paused,
                KeyCode::Char('+' | '=') => self.change_delay(true),
                KeyCode::Char('-' | '_') => self.change_delay(false),
                KeyCode::Char('w' | 'W') => self.watch.set_window(self.watch.window().next()),
                KeyCode::Char('i' | 'I') => self.inverted = !self.inverted,
                KeyCode::Enter | KeyCode::Char('d' | 'D') => {
                    self.open = !self.open;
                    self.go(0);
                }
                KeyCode::Down | KeyCode::Char('j' | 'J') => self.go(1),
                KeyCode::Up | KeyCode::Char('k' | 'K') => self.go(-1),
                KeyCode::PageDown => self.go(page),
                KeyCode::PageUp => self.go(-page),
                KeyCode::Char('f') if control => self.go(page),
                KeyCode::Char('b') if control => self.go(-page),
                KeyCode::Home | KeyCode::Char('g') => self.selected = None,
                KeyCode::End | KeyCode::Char('G') => self.select(usize::MAX),
                KeyCode::Char(letter) if !control => {
                    if let Some(sort) = SortKey::of(letter) {
                        self.sort = sort;
                    }
                }
                _ => {}
            }
        }
        self.look()?;
        Ok(After::Stay)
    }

    /// Shows memory cgroups, or the caches again.
    fn toggle_cgroups(&mut self) -> Result<()> {
        self.cgroups = match self.cgroups {
            Some(_) => None,
            None => {
                let now = self.source.cgroups()?;
                Some((now.clone(), now))
            }
        };
        Ok(())
    }

    fn type_filter(&mut self, code: KeyCode, control: bool) {
        match code {
            KeyCode::Esc => self.filter = self.typing.take().unwrap_or_default(),
            KeyCode::Enter => self.typing = None,
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char('u' | 'U') if control => self.filter.clear(),
            KeyCode::Char(letter) if !control => self.filter.push(letter),
            _ => {}
        }
    }
}
