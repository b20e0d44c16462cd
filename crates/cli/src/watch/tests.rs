//! Frames of a recorded machine, and what keys do. `SLABLAB_UPDATE=1` writes the frames anew instead of
//! comparing them.

use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Style};
use slablab_doctor::state::{self, Missing, State};
use slablab_doctor::what::Known;
use std::path::Path;
use std::sync::LazyLock;

const PLAIN: Theme = Theme { colour: false, ascii: false };

/// A machine of 8 CPUs on 4 nodes before and after a load (crates/cli/testdata/watch/README.md).
static STATES: LazyLock<Vec<State>> = LazyLock::new(|| {
    let read = |name: &str| {
        let path = testdata("amd64_smp8_numa4").join(name);
        let state = state::read(&Input { path: Some(path), ..Input::default() }).expect("the dump is whole");
        State { taken_s: None, ..state }
    };
    ["1-before.tar.xz", "2-after.tar.xz"].map(read).to_vec()
});

/// What is known of caches, whatever the program's own file says.
static KNOWN: LazyLock<Known> =
    LazyLock::new(|| Known::read(&testdata("caches.toml")).expect("a right file"));

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/watch").join(name)
}

/// The machine at its first tick.
fn app(theme: Theme) -> App {
    let source = Source::states(STATES.clone(), 30.0);
    let mut app = App::new(source, SortKey::CacheSize, 3.0, theme);
    app.known = &KNOWN;
    app.tick().expect("there is a state");
    app
}

/// Plays words: `tick`, names of keys, `^x` for Ctrl-x, or a letter.
fn play(app: &mut App, words: &str) -> After {
    let mut after = After::Stay;
    for word in words.split_whitespace() {
        let mut letters = word.chars();
        let (code, modifiers) = match (word, letters.next(), letters.next()) {
            ("tick", ..) => {
                app.tick().expect("the states are whole");
                continue;
            }
            ("Enter", ..) => (KeyCode::Enter, KeyModifiers::NONE),
            ("Esc", ..) => (KeyCode::Esc, KeyModifiers::NONE),
            ("Space", ..) => (KeyCode::Char(' '), KeyModifiers::NONE),
            ("Backspace", ..) => (KeyCode::Backspace, KeyModifiers::NONE),
            ("Down", ..) => (KeyCode::Down, KeyModifiers::NONE),
            ("Up", ..) => (KeyCode::Up, KeyModifiers::NONE),
            ("PgDn", ..) => (KeyCode::PageDown, KeyModifiers::NONE),
            ("PgUp", ..) => (KeyCode::PageUp, KeyModifiers::NONE),
            ("Home", ..) => (KeyCode::Home, KeyModifiers::NONE),
            ("End", ..) => (KeyCode::End, KeyModifiers::NONE),
            (_, Some('^'), Some(letter)) => (KeyCode::Char(letter), KeyModifiers::CONTROL),
            (_, Some(letter), None) => (KeyCode::Char(letter), KeyModifiers::NONE),
            _ => panic!("{word} is no key"),
        };
        after = app.key(KeyEvent::new(code, modifiers)).expect("the states are whole");
    }
    after
}

fn drawn(app: &mut App, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test terminal");
    terminal.draw(|frame| draw::draw(app, frame)).expect("a test terminal");
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[ratatui::buffer::Cell]| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_string() + "\n"
    };
    buffer.content.chunks(width).map(line).collect()
}

/// Compares a text with the file of that name.
#[track_caller]
fn compare(name: &str, found: &str) {
    let path = testdata(&format!("{name}.txt"));
    if std::env::var_os("SLABLAB_UPDATE").is_some() {
        std::fs::write(&path, found).expect("testdata can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{}: expected\n{expected}\nfound\n{found}", path.display());
}

#[test]
fn frames() {
    #[track_caller]
    fn check(name: &str, width: u16, height: u16, keys: &str) {
        let mut app = app(PLAIN);
        play(&mut app, keys);
        compare(name, &lines(&drawn(&mut app, width, height)));
    }
    check("list-80x24-first", 80, 24, "");
    check("list-80x24", 80, 24, "tick");
    check("list-200x50", 200, 50, "tick");
    check("list-40x10", 40, 10, "tick");
    check("list-300x100", 300, 100, "tick");
    check("pages-40x10", 40, 10, "tick p");
    check("growth-80x24", 80, 24, "tick t j j");
    check("filter-80x24", 80, 24, "tick / k m a l l o c");
    check("nothing-80x24", 80, 24, "tick / n o n e Enter");
    check("detail-80x24", 80, 24, "tick j Enter");
    check("detail-200x50", 200, 50, "tick j j Enter");
    check("ways-150x44", 150, 44, "tick Enter");
    check("help-80x24", 80, 24, "tick ?");
}

/// Colour repeats what is there without it.
#[test]
fn colour_says_nothing_alone() {
    for keys in ["", "tick", "tick Enter", "tick ?", "tick / k", "tick Space"] {
        let draw = |theme| {
            let mut app = app(theme);
            play(&mut app, keys);
            drawn(&mut app, 160, 50)
        };
        let (plain, coloured) = (draw(PLAIN), draw(Theme { colour: true, ascii: false }));
        assert_eq!(lines(&plain), lines(&coloured), "{keys}");
        let colours = |buffer: &Buffer| {
            buffer.content.iter().filter(|cell| (cell.fg, cell.bg) != (Color::Reset, Color::Reset)).count()
        };
        assert_eq!(colours(&plain), 0, "{keys}");
        assert!(colours(&coloured) > 0, "{keys}");
    }
}

#[test]
fn ascii_where_there_is_no_more() {
    for keys in ["tick", "tick Enter", "tick ?"] {
        let mut app = app(Theme { colour: false, ascii: true });
        play(&mut app, keys);
        for (width, height) in [(160, 50), (40, 24)] {
            let text = lines(&drawn(&mut app, width, height));
            assert!(text.is_ascii(), "{keys}: {text}");
        }
    }
}

/// No size is too small or odd for any view.
#[test]
fn every_size() {
    for keys in ["tick", "tick Enter", "tick ?", "tick / k", "tick / n o n e"] {
        let mut app = app(PLAIN);
        play(&mut app, keys);
        for width in [1, 2, 9, 10, 11, 27, 40, 59, 79, 81, 109, 110, 139, 140, 141, 300] {
            for height in [1, 2, 3, 4, 7, 8, 9, 10, 17, 18, 19, 100] {
                drawn(&mut app, width, height);
            }
        }
    }
}

#[test]
fn what_could_not_be_read_is_said() {
    let mut states = STATES.clone();
    states[0].dump.slabinfo = None;
    states[0].caches.clear();
    states[0].missing.push(Missing {
        file: "/proc/slabinfo".into(),
        why: "permission denied".into(),
        costs: "which caches the memory is in".into(),
        command: Some("sudo slablab doctor --watch".into()),
    });
    let mut app = App::new(Source::states(states, 1.0), SortKey::CacheSize, 3.0, PLAIN);
    app.tick().expect("there is a state");
    compare("blind-80x24", &lines(&drawn(&mut app, 80, 24)));
    for (width, height) in [(1, 1), (9, 3), (40, 10), (300, 100)] {
        drawn(&mut app, width, height);
    }
    let frame = super::text(&app);
    assert_eq!(frame.lines().count(), 2, "nothing is said of caches: {frame}");
    assert!(frame.contains(" Slab 20.3M, "), "{frame}");
    // What only the detail of a cache lacks is said there.
    let mut states = STATES.clone();
    let of_detail = |file: &str| Missing {
        file: file.into(),
        why: "permission denied".into(),
        costs: "the split".into(),
        command: None,
    };
    states[0].missing.push(of_detail("/sys/kernel/slab"));
    let mut app = App::new(Source::states(states, 1.0), SortKey::CacheSize, 3.0, PLAIN);
    app.tick().expect("there is a state");
    assert!(!lines(&drawn(&mut app, 80, 24)).contains("denied"));
    play(&mut app, "Enter");
    assert!(lines(&drawn(&mut app, 80, 24)).contains(" /sys/kernel/slab: permission denied"));
}

#[test]
fn keys() {
    /// Sort, what is under the cursor, rows before it on the screen, how many rows there are.
    #[track_caller]
    fn check(keys: &str, expected: &str) {
        let mut app = app(PLAIN);
        drawn(&mut app, 80, 24);
        for word in keys.split_whitespace() {
            play(&mut app, word);
            drawn(&mut app, 80, 24);
        }
        let list = app.list();
        let cursor = app.cursor(&list);
        let name = list.get(cursor).map_or("", |track| &track.row.info.name);
        let found =
            format!("{} {name} {}+{} of {}", app.sort.letter(), app.top, cursor - app.top, list.len());
        assert_eq!(found, expected, "after {keys:?}");
    }
    check("", "c inode_cache 0+0 of 145");
    // Without a choice the cursor is on what is first; with one it stays on its cache.
    check("tick", "c shmem_inode_cache 0+0 of 145");
    check("j", "c dentry 0+1 of 145");
    check("j tick", "c dentry 0+2 of 145");
    check("j tick k", "c inode_cache 0+1 of 145");
    check("j g tick", "c shmem_inode_cache 0+0 of 145");
    check("k", "c inode_cache 0+0 of 145");
    check("Down Down Up", "c dentry 0+1 of 145");
    check("G", "c xfrm_state 130+14 of 145");
    check("G PgUp PgUp", "c kioctx 114+0 of 145");
    check("PgDn", "c mm_struct 1+14 of 145");
    check("End Home", "c inode_cache 0+0 of 145");
    // Sorting, in either case, and least first.
    check("n", "n Acpi-Operand 0+0 of 145");
    check("N i", "n xfrm_state 0+0 of 145");
    check("j n", "n dentry 8+14 of 145");
    check("x", "c inode_cache 0+0 of 145");
    // Search by name: Enter keeps the filter, Esc drops it. A later Esc drops a kept filter.
    check("/ D E N T", "c dentry 0+0 of 1");
    check("/ d e n t Enter", "c dentry 0+0 of 1");
    check("/ d e n t Esc", "c inode_cache 0+0 of 145");
    check("/ d e n t Enter / x Esc", "c dentry 0+0 of 1");
    check("/ d e n t Enter Esc", "c inode_cache 0+0 of 145");
    check("/ d x Backspace e n t", "c dentry 0+0 of 1");
    check("/ d x ^u d e n t", "c dentry 0+0 of 1");
    check("/ n o n e Enter j", "c  0+0 of 0");
    // Letters that are keys are letters while a name is typed; any key closes the help and does nothing else.
    check("/ q", "c mqueue_inode_cache 0+0 of 10");
    check("? n", "c inode_cache 0+0 of 145");
    check("? n n", "n Acpi-Operand 0+0 of 145");
}

#[test]
fn a_taller_screen_is_filled() {
    let mut app = app(PLAIN);
    play(&mut app, "G");
    drawn(&mut app, 80, 24);
    let text = lines(&drawn(&mut app, 80, 60));
    assert_eq!(text.lines().filter(|line| line.is_empty()).count(), 0, "{text}");
}

#[test]
fn long_lists_are_cut_with_their_number() {
    #[track_caller]
    fn check(items: u32, width: usize, expected: &str) {
        let items: Vec<String> = (0..items).map(|cpu| format!("C{cpu} 1")).collect();
        assert_eq!(detail::listed(PLAIN, "cpu".into(), &items, width), expected);
    }
    check(0, 80, "cpu");
    check(3, 21, "cpu  C0 1  C1 1  C2 1");
    check(4, 21, "cpu  C0 1  and 3 more");
    check(160, 32, "cpu  C0 1  C1 1  and 158 more");
    check(160, 10, "cpu  and …");
}

#[test]
fn views() {
    /// Delay, window, and the words for what is on.
    #[track_caller]
    fn check(keys: &str, expected: &str, after: After) {
        let mut app = app(PLAIN);
        let found = play(&mut app, keys);
        let mut words = format!("{} {:?}", app.delay_s, app.watch.window());
        for (on, word) in [
            (app.paused, " paused"),
            (app.help, " help"),
            (app.open, " open"),
            (app.detail.is_some(), " detail"),
            (app.over, " over"),
            (app.runs(), " runs"),
        ] {
            words += if on { word } else { "" };
        }
        assert_eq!((words.as_str(), found), (expected, after), "after {keys:?}");
    }
    check("", "3 Last runs", After::Stay);
    check("+", "5 Last runs", After::Stay);
    check("- - -", "0.5 Last runs", After::Stay);
    check("+ + + + + + + +", "60 Last runs", After::Stay);
    check("w", "3 Minute runs", After::Stay);
    check("w w w", "3 Last runs", After::Stay);
    check("Space", "3 Last paused", After::Stay);
    check("Space Space", "3 Last runs", After::Stay);
    check("Enter", "3 Last open detail runs", After::Stay);
    check("d", "3 Last open detail runs", After::Stay);
    check("Enter Enter", "3 Last runs", After::Stay);
    check("Enter Esc", "3 Last runs", After::Stay);
    check("?", "3 Last help runs", After::Stay);
    check("? Esc", "3 Last runs", After::Stay);
    check("/ n o n e Enter Enter", "3 Last open runs", After::Stay);
    check("tick", "3 Last runs", After::Stay);
    check("tick tick", "3 Last over", After::Stay);
    check("q", "3 Last runs", After::Quit);
    check("Q", "3 Last runs", After::Quit);
    check("Esc", "3 Last runs", After::Quit);
    check("^c", "3 Last runs", After::Quit);
    check("/ ^c", "3 Last runs", After::Quit);
    check("? ^c", "3 Last help runs", After::Quit);
    check("^z", "3 Last runs", After::Suspend);
}

#[test]
fn delays() {
    #[track_caller]
    fn check(text: &str, seconds: Option<f64>) {
        assert_eq!(delay(text).ok(), seconds, "{text}");
    }
    check("1", Some(1.0));
    check("0.1", Some(0.1));
    check("0.09", None);
    check("0", None);
    check("3601", None);
    check("nan", None);
    check("1e9", None);
    check("", None);
}

#[test]
fn numbers() {
    #[track_caller]
    fn check(bytes: i64, plain: &str, signed: &str) {
        assert_eq!(theme::bytes(bytes.unsigned_abs()), plain);
        assert_eq!(theme::signed(Some(bytes)), signed);
    }
    check(0, "0", "0");
    check(1, "1B", "+1B");
    check(-1023, "1023B", "-1023B");
    check(1024, "1K", "+1K");
    check(1536, "1.5K", "+1.5K");
    check(-10_240, "10K", "-10K");
    check(1_047_552, "1023K", "+1023K");
    check(1_048_576, "1.0M", "+1.0M");
    check(-1_073_741_823, "1024.0M", "-1024.0M");
    check(1_073_741_824, "1.00G", "+1.00G");
    check(i64::MAX, "8589934592.00G", "+8589934592.00G");
    assert_eq!(theme::signed(None), "-");
}

#[test]
fn charts() {
    #[track_caller]
    fn check(values: &[u64], width: usize, height: usize, expected: &[&str]) {
        let values = values.iter().copied().collect();
        assert_eq!(PLAIN.chart_lines(&values, width, height), expected);
    }
    check(&[], 4, 1, &[""]);
    check(&[0, 0], 4, 1, &["  "]);
    // Nothing moved, or by less than can be seen.
    check(&[100, 100], 4, 1, &["▁▁"]);
    check(&[1000, 1003], 4, 1, &["▁▁"]);
    check(&[100, 105], 4, 1, &["▁█"]);
    check(&[100, 200, 150], 4, 1, &["▁█▅"]);
    check(&[100, 200, 100, 100, 100, 100], 3, 1, &["█▁▁"]);
    check(&[100, 200], 2, 2, &[" █", "▁█"]);
    assert_eq!(Style::new(), PLAIN.chart(), "a chart without colours has no style");
}

/// Whatever a cache is called, no cell of the screen holds a control character.
#[test]
fn no_control_character_reaches_the_screen() {
    let mut states = STATES.clone();
    for state in &mut states {
        let rows = &mut state.dump.slabinfo.as_mut().expect("a slabinfo").rows;
        for (row, cache) in rows.iter_mut().zip(&mut state.caches) {
            row.name = format!("\x1b[2J\u{202e}{}", row.name);
            cache.name.clone_from(&row.name);
        }
    }
    let mut app = App::new(Source::states(states, 30.0), SortKey::CacheSize, 3.0, PLAIN);
    app.known = &KNOWN;
    app.tick().expect("there is a state");
    let mut terminal = Terminal::new(TestBackend::new(150, 40)).expect("a terminal");
    for keys in ["", "Enter"] {
        play(&mut app, keys);
        terminal.draw(|frame| draw::draw(&mut app, frame)).expect("a frame");
        let cells = &terminal.backend().buffer().content;
        let steers =
            |cell: &&ratatui::buffer::Cell| cell.symbol().contains(slablab_report::visible::is_control);
        let found: Vec<&str> = cells.iter().filter(steers).map(|cell| cell.symbol()).collect();
        assert!(found.is_empty(), "after {keys:?}: {found:?}");
    }
}
