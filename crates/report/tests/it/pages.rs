//! Pages of any numbers and names, and the check that every page goes through.

use crate::page_check::check_page;
use slablab_report::html::chart::{
    Axis, Bar, Bars, Chart, Group, Heat, Intervals, LIVE_ABOVE, Lines, Pair, Pairs, Point, Scale, Series,
    Shape, Share, Shares, Wholes, Width,
};
use slablab_report::html::{Cell, Head, Page, Table};

const COMMAND: &str = "slablab replay 'a & b' --html page.html";

/// What others may call a cache, a file or a kernel.
const HOSTILE: [&str; 5] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "]]></svg></script><!--",
    "a\u{0}\u{1b}[2J\u{202e}b&amp;&c;",
    "",
];

/// A page with all kinds of charts and cells, of whatever numbers.
fn page_of(values: &[f64], points: usize, name: &str) -> String {
    let axis = |scale| Axis::new(name, scale);
    let mut page = Page::new(name, COMMAND);
    let mut table =
        Table::new([Head::text(name), Head::number(name).unit(name), Head::number("c"), Head::number("d")]);
    table.row([Cell::Name(name.into())]);
    for value in values {
        table.row([
            Cell::Text(name.into()),
            Cell::Bytes(*value as u64),
            Cell::Change(*value as i64),
            Cell::Percent(Some(*value)),
        ]);
    }
    page.lede(name)
        .facts([(name, Cell::ByteChange(i64::MIN))])
        .section(name)
        .entry(name)
        .text(name)
        .note(name)
        .command(name);
    for scale in [
        Scale::Number,
        Scale::Bytes,
        Scale::Seconds,
        Scale::Percent,
        Scale::Doublings,
        Scale::ByteDoublings,
        Scale::Tens,
        Scale::SecondTens,
    ] {
        let bar = |value: &f64| Bar { label: name.into(), values: vec![*value, 1.0, value / 2.0] };
        let bars = values.iter().map(bar).collect();
        page.figure(
            name,
            &Bars {
                parts: vec![name.into(); 3],
                first_colour: 4,
                bars,
                axis: axis(Scale::Bytes),
                remainder: true,
            },
            &table,
        );
        let wholes = Wholes {
            parts: vec![name.into(); 9],
            remainder: Some(name.into()),
            wholes: values.iter().map(|value| Bar { label: name.into(), values: vec![*value; 10] }).collect(),
            axis: axis(scale),
        };
        page.figure(name, &wholes.chart(), &wholes.table(name));
        let heat = Heat {
            what: name.into(),
            scale,
            rows: vec![name.into(); 3],
            thing: name.into(),
            across: vec![name.into(); values.len()],
            numbers: vec![values.to_vec(); 2],
        };
        page.figure(name, &heat, &heat.table());
        let point = |value: &f64| Some(Point { value: *value, low: value - 1.0, high: value * 2.0 });
        let intervals = Intervals {
            series: vec![name.into(); 8],
            groups: vec![Group { label: name.into(), points: values.iter().map(point).collect() }; 2],
            axis: axis(scale),
        };
        page.figure(name, &intervals, &intervals.table(name, name));
        let pair = |value: &f64| Pair { label: name.into(), values: [*value, -value] };
        page.figure(
            name,
            &Pairs {
                names: [name.into(), name.into()],
                rows: values.iter().map(pair).collect(),
                axis: axis(scale),
            },
            &table,
        );
        let share =
            |value: &f64| Share { label: name.into(), value: *value, give_or_take: Some(value / 2.0) };
        let whole = Share { give_or_take: None, ..share(&1.0) };
        let parts = values.iter().map(share).collect();
        page.figure(name, &Shares { parts, whole, axis: axis(scale) }, &table);
        let line = |shift: f64| Series {
            name: name.into(),
            points: (0..points)
                .map(|n| (n as f64, values.get(n % values.len().max(1)).copied().unwrap_or(0.0) + shift))
                .collect(),
            band: (0..points).map(|n| (n as f64 - shift, n as f64 + shift)).collect(),
        };
        for shape in [Shape::Straight, Shape::Steps] {
            let chart = Lines {
                x: axis(scale),
                y: axis(Scale::Bytes),
                shape,
                series: vec![line(0.0), line(1.0), line(7.0)],
            };
            page.figure(name, &chart, &table);
        }
    }
    page.table(name, &table).evidence(&[name.into()]);
    page.finish()
}

#[test]
fn any_numbers_and_names_make_a_page() {
    let numbers: [&[f64]; 6] = [
        &[],
        &[0.0],
        &[1e300, -1e300],
        &[f64::NAN, 1.0],
        &[f64::INFINITY, f64::NEG_INFINITY],
        &[0.1, 1e-12, 4096.0],
    ];
    for values in numbers {
        for name in HOSTILE {
            check_page(&page_of(values, values.len(), name), COMMAND);
        }
    }
}

#[test]
fn what_is_wrong_with_a_page_is_seen() {
    let page = page_of(&[1.0, 2.0], 2, "name");
    check_page(&page, COMMAND);
    let wrong = [
        ("default-src 'none'", "default-src *"),
        ("<header>", "<header><img src=\"x.png\"/>"),
        ("<header>", "<header><a href=\"x\" onclick=\"y()\"></a>"),
        ("<header>", "<header><b>"),
        ("</header>", "</footer>"),
        ("<h1>", "<h1>R&D "),
        ("<h1>", "<h1>NaN "),
        ("<figcaption>", "<p>"),
        ("id=\"figure-2\"", "id=\"figure-1\""),
        ("<table>", "<p>"),
        ("<style>", "<style>@import url(x);"),
        ("<pre class=\"command\">slablab", "<pre class=\"command\">lab"),
    ];
    for (right, wrong) in wrong {
        assert!(page.contains(right), "no {right}");
        let page = page.replace(right, wrong);
        let seen = std::panic::catch_unwind(|| check_page(&page, COMMAND)).is_err();
        assert!(seen, "{wrong} instead of {right} is not seen");
    }
}

#[test]
fn a_long_line_can_be_zoomed_and_stays_small() {
    let series = |name: &str, points: usize| Series {
        name: name.into(),
        points: (0..points).map(|n| (n as f64 * 1e-3, (n * n % 1_000_003) as f64)).collect(),
        band: Vec::new(),
    };
    let chart = |points: usize, lines: usize| Lines {
        x: Axis::new("time", Scale::Seconds),
        y: Axis::new("memory", Scale::Bytes),
        shape: Shape::Steps,
        series: (0..lines).map(|n| series(&n.to_string(), points)).collect(),
    };
    assert!(chart(LIVE_ABOVE, 2).live().is_none());
    assert!(chart(LIVE_ABOVE + 1, 2).live().is_some());
    let mut page = Page::new("Long", COMMAND);
    page.figure("Eight engines.", &chart(2048, 8), &Table::new([Head::text("a")]));
    let html = page.finish();
    check_page(&html, COMMAND);
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
    assert!(chart(1 << 20, 1).draw(Width::Wide).bytes() < 100_000, "a drawing is as long as it is wide");
}
