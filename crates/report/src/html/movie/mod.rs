//! Movies: rows of cells whose states change with time.
//!
//! A page plays them: one time line, a picture for each movie. The events are in the page, as differences:
//! numbers of 7 bits to a byte, deflated, in base 64. [`frames`] draws one moment as SVG.
//!
//! Absent: what a row, a cell or a state means. [`Cast`] has the words.

mod frame;

use super::escape::{escape, json_in_script};
use flate2::{Compression, write::ZlibEncoder};
pub use frame::frames;
use serde_json::json;
use std::io::Write;

pub(super) const STYLE: &str = include_str!("movie.css");
pub(super) const SCRIPT: &str = include_str!("movie.js");

/// Rows above which a page has no still picture for readers without scripts: it would be larger than the
/// movie.
const STILL_ROWS_MAX: u32 = 400;

/// The words of movies.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// One row, and several.
    pub row: [&'static str; 2],
    /// States of a cell from 0, which is "there is no such cell", up to at most 7.
    pub states: &'static [&'static str],
    /// The state whose age a reader may want to see.
    pub live: u8,
    /// Bits of an event's kind, and their names.
    pub kinds: &'static [(u8, &'static str)],
    /// Kinds to jump to.
    pub jumps: &'static [(u8, &'static str)],
    /// The name of an event of no kind.
    pub other: &'static str,
}

/// Cells over time.
#[derive(Clone, Debug, Default)]
pub struct Movie {
    /// The title.
    pub name: String,
    /// Rows.
    pub rows: u32,
    /// Cells of a row.
    pub cells: u32,
    /// In the order of their times.
    pub events: Vec<Event>,
    /// What the events change; an event's changes end where the next event's begin.
    pub changes: Vec<Change>,
}

/// What happens at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time_ns: u64,
    /// The row of the trace, from 1; 0 is the start.
    pub row: u64,
    /// The CPU.
    pub cpu: u16,
    /// Bits of [`Cast::kinds`].
    pub kind: u8,
    /// The first of its changes.
    pub first: u32,
}

/// A cell gets a state, or all cells of a row do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The cell, or the first one of the row: row times cells, and the place in the row.
    pub cell: u32,
    /// The state.
    pub state: u8,
    /// The CPU of the state, plus 1; 0 for none.
    pub cpu: u16,
    /// Whether the whole row changes.
    pub is_row: bool,
}

impl Movie {
    /// The changes of an event.
    pub fn changes_of(&self, event: usize) -> &[Change] {
        let end = self.events.get(event + 1).map_or(self.changes.len(), |next| next.first as usize);
        &self.changes[self.events[event].first as usize..end]
    }

    /// The states of all cells after the events up to a time.
    pub fn at(&self, time_ns: u64) -> Vec<(u8, u16)> {
        let mut now = vec![(0, 0); self.rows as usize * self.cells as usize];
        for event in (0..self.events.len()).take_while(|event| self.events[*event].time_ns <= time_ns) {
            for change in self.changes_of(event) {
                let len = if change.is_row { self.cells as usize } else { 1 };
                now[change.cell as usize..][..len].fill((change.state, change.cpu));
            }
        }
        now
    }

    /// The stream that movie.js reads.
    fn stream(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.changes.len() * 4);
        let mut number = |mut value: u64| {
            while value > 127 {
                bytes.push(value as u8 | 128);
                value >>= 7;
            }
            bytes.push(value as u8);
        };
        number(self.events.len() as u64);
        number(self.changes.len() as u64);
        let (mut time, mut row, mut cell) = (0, 0, 0i64);
        for (index, event) in self.events.iter().enumerate() {
            number(event.time_ns - time);
            number(event.row - row);
            (time, row) = (event.time_ns, event.row);
            number(event.cpu.into());
            number(event.kind.into());
            let changes = self.changes_of(index);
            number(changes.len() as u64);
            for change in changes {
                let step = i64::from(change.cell) - cell;
                cell = i64::from(change.cell);
                number((((step << 1) ^ (step >> 63)) as u64) << 1 | u64::from(change.is_row));
                number(u64::from(change.cpu) << 3 | u64::from(change.state));
            }
        }
        bytes
    }

    fn data(&self) -> String {
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::best());
        deflated.write_all(&self.stream()).expect("memory");
        base64(&deflated.finish().expect("memory"))
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let word =
            part.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for digit in 0..4 {
            let is_there = digit <= part.len();
            text.push(if is_there { DIGITS[(word >> (18 - 6 * digit) & 63) as usize] as char } else { '=' });
        }
    }
    text
}

/// The markup of movies that are played together, from `zero_ns` on; `at_ns` is shown at first, or the end.
pub(super) fn markup(movies: &[Movie], cast: &Cast, (zero_ns, at_ns): (u64, Option<u64>)) -> String {
    let colours = ["--paper", "--grid", "--h1", "--c1", "--c4", "--c3", "--c0", "--muted"];
    let cpus = movies.iter().flat_map(|movie| &movie.changes).map(|change| change.cpu).max().unwrap_or(0);
    let list: Vec<_> = movies
        .iter()
        .map(|movie| json!({ "rows": movie.rows, "cells": movie.cells, "data": movie.data() }))
        .collect();
    let data = json!({
        "movies": list, "states": cast.states, "live": cast.live, "kinds": cast.kinds, "other": cast.other,
        "row": cast.row[0], "rows": cast.row[1], "colours": colours, "cpus": cpus, "zero": zero_ns, "at": at_ns,
    });
    let options = |list: &[(u8, &str)]| -> String {
        list.iter().map(|(bit, name)| format!("<option value=\"{bit}\">{}</option>", escape(name))).collect()
    };
    let mut out = format!(
        "<section class=\"movies\" tabindex=\"0\" aria-label=\"Movie. Space plays, arrows step, n and p jump, c \
         changes colours.\">\n<div class=\"movie-controls\">\
         <button class=\"movie-play\">Play</button>\
         <button class=\"movie-back\" aria-label=\"One event back\">◂</button>\
         <button class=\"movie-step\" aria-label=\"One event on\">▸</button>\
         <label>whole in <select class=\"movie-speed\"><option value=\"10\">10 s</option>\
         <option value=\"30\" selected=\"\">30 s</option><option value=\"120\">2 min</option>\
         <option value=\"600\">10 min</option></select></label>\
         <label>colour <select class=\"movie-colour\"><option value=\"state\">state</option>\
         <option value=\"cpu\">CPU</option><option value=\"age\">age</option></select></label>\
         <label>jump to <select class=\"movie-jump\">{}</select></label>\
         <button class=\"movie-previous\">previous</button><button class=\"movie-next\">next</button>\
         <label>second <input class=\"movie-goto\" inputmode=\"decimal\" size=\"8\"/></label>\
         <input class=\"movie-slider\" type=\"range\" min=\"0\" max=\"1000\" value=\"0\" aria-label=\"Time\"/>\
         <output class=\"movie-time\"></output></div>\n<ul class=\"keys movie-more\"></ul>\n\
         <div class=\"movie-panels\">\n",
        options(cast.jumps)
    );
    for movie in movies {
        out += &panel(movie, cast, at_ns);
    }
    out += "</div>\n<p class=\"note\">Keys: space plays and pauses, ← and → step one event, with shift 100, Home \
            and End, n and p go to the next and the previous event to jump to, c changes what colours mean.</p>\n";
    out + &format!("<script type=\"application/json\">{}</script>\n</section>\n", json_in_script(&data))
}

fn panel(movie: &Movie, cast: &Cast, at_ns: Option<u64>) -> String {
    let mut out = format!(
        "<div class=\"movie\"><h3>{}</h3>\n<p class=\"movie-slabs\"></p>\n<canvas></canvas>\n",
        escape(&movie.name)
    );
    if movie.rows <= STILL_ROWS_MAX {
        let still = frames(std::slice::from_ref(movie), cast, at_ns.unwrap_or(u64::MAX));
        // A drawing in a page is SVG without saying so.
        let still = still.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
        out += &format!("<div class=\"movie-still\">{still}</div>\n");
    } else {
        out += "<p class=\"movie-still\">The movie needs scripts: it has too many rows for a still picture.</p>\n";
    }
    out +=
        "<p class=\"movie-said\" aria-live=\"polite\"></p><p class=\"movie-tip\"></p>\n<ul class=\"keys\">";
    for (state, name) in cast.states.iter().enumerate().skip(1) {
        out += &format!("<li><i class=\"m{state}\"></i>{} <b data-state=\"{state}\"></b></li>", escape(name));
    }
    out + "</ul>\n</div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_base_64() {
        for (bytes, text) in
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes), text);
        }
    }
}
