//! One moment of a movie as a drawing for slides.

use super::{Cast, Movie};
use crate::html::escape::escape;
use std::fmt::Write;

/// Pixels of a cell, of the gap between columns, and of the text above and below.
const CELL: u32 = 10;
const GAP: u32 = 12;
const HEAD: u32 = 24;
const KEY: u32 = 22;
/// Width to height of the rows' part, about that of a slide.
const ASPECT: f64 = 1.6;

/// Light colours; a style sheet of a page takes their place.
const COLOURS: [&str; 7] = ["none", "#e6e6e2", "#b9d3ea", "#d08b00", "#4aa3d8", "#b0548a", "#0b66a8"];

/// One moment of movies as SVG that stands alone, one below the other: the cells after the events up to
/// `time_ns`. Each state has its colour and a mark.
pub fn frames(movies: &[Movie], cast: &Cast, time_ns: u64) -> String {
    let drawn: Vec<Drawn> = movies.iter().map(|movie| movie.draw(cast, time_ns)).collect();
    let width = drawn.iter().map(|drawn| drawn.width).max().unwrap_or(0);
    let height: u32 = drawn.iter().map(|drawn| drawn.height).sum();
    let title = movies.iter().map(|movie| escape(&movie.name)).collect::<Vec<_>>().join("; ");
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>{title}</title>\n"
    );
    let mut top = 0;
    for Drawn { markup, height, .. } in &drawn {
        writeln!(out, "<g transform=\"translate(0 {top})\">\n{markup}</g>").expect("a string");
        top += height;
    }
    out + "</svg>\n"
}

/// A drawing without its frame.
struct Drawn {
    markup: String,
    width: u32,
    height: u32,
}

impl Movie {
    fn draw(&self, cast: &Cast, time_ns: u64) -> Drawn {
        let now = self.at(time_ns);
        let used = now.chunks(self.cells.max(1) as usize).rposition(|row| row.iter().any(|cell| cell.0 > 0));
        let rows = used.map_or(1, |last| last as u32 + 1);
        let strip = self.cells * CELL + GAP;
        let columns = columns(rows, strip);
        let column_rows = rows.div_ceil(columns);
        let keys: Vec<(usize, &str)> = cast.states.iter().copied().enumerate().skip(1).collect();
        let width = (columns * strip - GAP).max(420);
        let key_rows = (keys.len() as u32).div_ceil((width / 210).max(1));
        let height = HEAD + column_rows * CELL + 8 + key_rows * KEY;
        let mut out = format!("<text x=\"0\" y=\"14\" fill=\"#666\">{}</text>\n", escape(&self.name));
        for (row, cells) in now.chunks(self.cells.max(1) as usize).take(rows as usize).enumerate() {
            let (column, line) = (row as u32 / column_rows, row as u32 % column_rows);
            let (x, y) = (column * strip, HEAD + line * CELL);
            let mut from = 0;
            for run in cells.chunk_by(|one, other| one.0 == other.0) {
                if run[0].0 > 0 {
                    mark(&mut out, run[0].0, (x + from * CELL, y), run.len() as u32);
                }
                from += run.len() as u32;
            }
        }
        let foot = HEAD + column_rows * CELL + 8;
        for (at, (state, name)) in keys.iter().enumerate() {
            let per_row = (width / 210).max(1) as usize;
            let (x, y) = ((at % per_row) as u32 * 210, foot + (at / per_row) as u32 * KEY);
            mark(&mut out, *state as u8, (x, y), 1);
            let count = now.iter().filter(|cell| usize::from(cell.0) == *state).count();
            writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" fill=\"#666\">{} ({count})</text>",
                x + 16,
                y + 9,
                escape(name)
            )
            .expect("a string");
        }
        Drawn { markup: out, width, height }
    }
}

/// Columns that give the picture about the aspect of a slide.
fn columns(rows: u32, strip: u32) -> u32 {
    let area = f64::from(rows) * f64::from(strip) * f64::from(CELL);
    ((area * ASPECT).sqrt() / f64::from(strip)).round().clamp(1.0, f64::from(rows)) as u32
}

/// Cells of one state in a row.
fn mark(out: &mut String, state: u8, (x, y): (u32, u32), cells: u32) {
    let colour = COLOURS.get(usize::from(state)).unwrap_or(&"#666");
    let side = CELL - 1;
    for cell in 0..cells {
        let x = x + cell * CELL;
        write!(
            out,
            "<rect class=\"m{state}\" x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"{colour}\"/>"
        )
        .expect("a string");
        let inner = match state {
            2 => Some((3, 3, 3, 3)),
            3 => Some((4, 1, 2, 7)),
            4 => Some((1, 4, 7, 2)),
            5 => Some((1, 1, 3, 3)),
            _ => None,
        };
        if let Some((left, top, width, height)) = inner {
            write!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>",
                x + left,
                y + top
            )
            .expect("a string");
        }
    }
    out.push('\n');
}
