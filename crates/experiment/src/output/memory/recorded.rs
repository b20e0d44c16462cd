//! What a run with page replacement recorded, as figures.

use crate::run::observe::Sampled;
use slablab_report::Answer;
use slablab_report::html::chart::{Axis, Lines, Scale, Series, Shape};
use slablab_report::html::{Cell, Head, Table};

/// A figure for each group of tracks of a run; `run` is its name.
pub(in crate::output) fn group_figures(mut answer: Answer, run: &str, tracks: &[Sampled]) -> Answer {
    let mut groups: Vec<&str> = Vec::new();
    for track in tracks {
        if !groups.contains(&track.group.as_str()) {
            groups.push(&track.group);
        }
    }
    for group in groups {
        let tracks: Vec<&Sampled> = tracks.iter().filter(|track| track.group == group).collect();
        let bytes = tracks.iter().all(|track| track.bytes);
        let cell = |value: u64| if bytes { Cell::Bytes(value) } else { Cell::Count(value) };
        let heads = ["at the begin", "highest", "at the end"].map(Head::number);
        let mut table = Table::new([Head::text("what")].into_iter().chain(heads));
        for track in &tracks {
            let values = || track.points.iter().map(|point| point.1);
            let ends = [values().next(), values().max(), values().next_back()];
            let ends = ends.map(|value| cell(value.unwrap_or(0)));
            table.row([Cell::Name(track.name.clone())].into_iter().chain(ends));
        }
        let series = tracks.iter().map(|track| Series {
            name: track.name.clone(),
            points: track.points.iter().map(|(at, value)| (*at as f64 * 1e-12, *value as f64)).collect(),
            band: Vec::new(),
        });
        let lines = Lines {
            x: Axis::new("time", Scale::Seconds),
            y: Axis::new(group, if bytes { Scale::Bytes } else { Scale::Number }),
            shape: Shape::Steps,
            series: series.collect(),
        };
        let caption = format!("{group}, {run}, first repeat: the highest of each step of time.");
        answer = answer.figure(&caption, lines, table);
    }
    answer
}
