//! One line of a text as its program printed it: without terminal control, quote marks, time stamps and
//! markup that mails, logs and web pages put around it.

use super::prefix::Prefixes;
use std::borrow::Cow;
use std::ops::Range;

/// The lines of a text, each with its number from 1 and as its program printed it. A move of a terminal's
/// cursor to another row ends a line too; the number is that of the text's line.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, Cow<'_, str>)> {
    let counted = counted(text);
    let prefixes = Prefixes::learn(text, |line| cleaned(without_control(line)).into_owned());
    physical(text).flat_map(move |(index, line)| {
        let line = match line.contains("<br") {
            true => Cow::Owned(line.replace("<br />", "\r").replace("<br/>", "\r").replace("<br>", "\r")),
            false => line,
        };
        let plain = match &line {
            Cow::Borrowed(line) => without_control(line),
            Cow::Owned(line) => Cow::Owned(without_control(line.trim_end()).into_owned()),
        };
        let pieces: Vec<Cow<str>> = match plain {
            Cow::Borrowed(line) => vec![Cow::Borrowed(line)],
            Cow::Owned(line) => line.split('\n').map(|piece| Cow::Owned(piece.to_string())).collect(),
        };
        let at = counted.partition_point(|run| run.end <= index);
        let is_counted = counted.get(at).is_some_and(|run| run.contains(&index));
        let clean = |piece| {
            let line = cleaned(piece);
            let line = if is_counted { Cow::Owned(without_count(&line).to_string()) } else { line };
            let rest = prefixes.strip(&line);
            let line = if rest.len() < line.len() { Cow::Owned(stripped(rest).to_string()) } else { line };
            (index + 1, line)
        };
        pieces.into_iter().map(clean).collect::<Vec<_>>()
    })
}

/// The lines of a text by their index, those of a mail's quoted-printable form as they were before: an equals
/// sign at the end joins a line with the next one, and one before two hexadecimal digits is a byte.
fn physical(text: &str) -> impl Iterator<Item = (usize, Cow<'_, str>)> {
    let is_quoted = is_quoted_printable(text);
    let mut lines = text.lines().enumerate();
    std::iter::from_fn(move || {
        let (index, line) = lines.next()?;
        if !is_quoted || !line.contains('=') {
            return Some((index, Cow::Borrowed(line)));
        }
        let mut joined = line.to_string();
        while joined.len() < LONGEST && joined.trim_end().ends_with('=') {
            joined.truncate(joined.trim_end().len() - 1);
            let Some((_, next)) = lines.next() else { break };
            joined += next;
        }
        Some((index, Cow::Owned(unquoted(&joined))))
    })
}

/// Bytes of a line up to which lines of quoted-printable text are joined.
const LONGEST: usize = 1 << 16;

/// Whether the text is a mail as it is sent: its head says so, or two lines go on by its sign.
fn is_quoted_printable(text: &str) -> bool {
    let goes_on = |line: &&str| line.trim_end().strip_suffix('=').is_some_and(|rest| !rest.ends_with('='));
    let says = |line: &str| {
        const HEAD: &str = "Content-Transfer-Encoding:";
        let head = line.get(..HEAD.len()).filter(|head| head.eq_ignore_ascii_case(HEAD));
        head.is_some() && line[HEAD.len()..].to_ascii_lowercase().contains("quoted-printable")
    };
    text.contains('=') && (text.lines().any(says) || text.lines().filter(goes_on).nth(1).is_some())
}

/// A line with its bytes written out.
fn unquoted(line: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(line.len()), line.as_bytes());
    let digit = |byte: u8| char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_lowercase());
    while let Some((&first, after)) = rest.split_first() {
        let coded = match after {
            [high, low, ..] if first == b'=' => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match coded {
            Some((high, low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Lines that `cat -n` or `grep -n` numbered: three or more whose first words count up by one. Empty lines
/// may have none.
fn counted(text: &str) -> Vec<Range<usize>> {
    const LEAST: u64 = 3;
    let mut runs: Vec<Range<usize>> = Vec::new();
    let (mut begin, mut length, mut last) = (0, 0u64, 0u64);
    let mut end = |begin: usize, end: usize, length: u64| {
        if length >= LEAST {
            runs.push(begin..end);
        }
    };
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start_matches(['>', ' ', '\t']);
        if line.is_empty() {
            continue;
        }
        let number = count(line).map(|(number, _)| number);
        if length > 0 && number == last.checked_add(1) {
            length += 1;
        } else {
            end(begin, index, length);
            (begin, length) = (index, u64::from(number.is_some()));
        }
        last = number.unwrap_or(0);
    }
    end(begin, usize::MAX, length);
    runs
}

/// The number of a line, and the line. `grep -n` puts the name of the file before it, if it reads several.
fn count(line: &str) -> Option<(u64, &str)> {
    let of_file = || {
        let (name, rest) = line.split_once(':')?;
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || "./".contains(c));
        let is_one = is_name && !name.contains(char::is_whitespace);
        number(rest).filter(|(_, rest)| is_one && rest.starts_with(':'))
    };
    number(line).or_else(of_file)
}

/// The number at the start of a line, and what is behind it.
fn number(line: &str) -> Option<(u64, &str)> {
    let digits = line.find(|c: char| !c.is_ascii_digit())?;
    let rest = &line[digits..];
    let ends = rest.starts_with([' ', '\t', ':']);
    Some((line[..digits].parse().ok().filter(|_| ends)?, rest))
}

fn without_count(line: &str) -> &str {
    count(line).map_or(line, |(_, rest)| stripped(rest.strip_prefix(':').unwrap_or(rest)))
}

/// Takes out escape sequences of terminals and characters without a width. Sequences that move the cursor to
/// another row become line breaks, those that move it inside a row blanks.
fn without_control(line: &str) -> Cow<'_, str> {
    if line.chars().all(|c| !c.is_control() && !is_blank(c) && !is_nothing(c)) {
        return Cow::Borrowed(line);
    }
    let (mut out, mut chars) = (String::with_capacity(line.len()), line.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                // Control sequence: parameters, then one letter.
                Some('[') => match chars.find(|c| ('\u{40}'..='\u{7e}').contains(c)) {
                    Some('A' | 'B' | 'E' | 'F' | 'H' | 'J' | 'S' | 'd' | 'f') => out.push('\n'),
                    Some('C' | 'G' | 'X') => out.push(' '),
                    _ => {}
                },
                // A title, up to a bell or a string terminator.
                Some(']') => drop(chars.find(|&c| c == '\u{7}' || c == '\\')),
                // A character set has one more character.
                Some('(' | ')') => drop(chars.next()),
                _ => {}
            },
            // A carriage return inside of a line: the program wrote the line anew.
            '\r' if chars.peek().is_some() => out.push('\n'),
            '\t' => out.push(' '),
            c if is_blank(c) => out.push(' '),
            c if c.is_control() || is_nothing(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Blanks that web pages put between words.
fn is_blank(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2007}' | '\u{2009}' | '\u{202f}' | '\u{3000}')
}

/// A byte order mark, or a place where a browser may break a line.
fn is_nothing(c: char) -> bool {
    matches!(c, '\u{feff}' | '\u{200b}' | '\u{2060}' | '\u{ad}')
}

fn cleaned(line: Cow<'_, str>) -> Cow<'_, str> {
    let line = match line.contains('&') {
        true => Cow::Owned(without_entities(&line)),
        false => line,
    };
    match line {
        Cow::Borrowed(line) => Cow::Borrowed(stripped(line)),
        Cow::Owned(line) => Cow::Owned(stripped(&line).to_string()),
    }
}

/// The characters that HTML writes as names.
fn without_entities(line: &str) -> String {
    let mut line = line.to_string();
    for (entity, c) in [("&nbsp;", " "), ("&gt;", ">"), ("&lt;", "<"), ("&quot;", "\""), ("&amp;", "&")] {
        line = line.replace(entity, c);
    }
    line
}

/// Layers that a line may have around it: quotes of quotes, a log in a log. A line of nothing but such layers
/// would take a time that grows with the square of its length.
const LAYERS: usize = 32;

/// A line without what stands around it, from the outside to the inside, as often as there is something.
fn stripped(line: &str) -> &str {
    let mut line = line.trim();
    for _ in 0..LAYERS {
        let before = line.len();
        line = without_emphasis(unmarked(line).trim()).trim();
        line = without_stamp(line).trim_start();
        line = without_service(without_path(line));
        if line.len() == before {
            break;
        }
    }
    line
}

/// Without quote marks, the bars of a table, backticks and the tags that keep a text's columns.
fn unmarked(line: &str) -> &str {
    let mut line =
        line.trim_start_matches(['>', '|', '\u{2502}', '`']).trim_end_matches(['|', '\u{2502}', '`']);
    for tag in ["pre", "code"] {
        let open = line.strip_prefix('<').and_then(|rest| rest.strip_prefix(tag)?.strip_prefix('>'));
        line = open.unwrap_or(line);
        let close = line.strip_suffix('>').and_then(|rest| rest.strip_suffix(tag)?.strip_suffix("</"));
        line = close.unwrap_or(line);
    }
    line
}

/// Without the marks that a person puts around a line or before it to show it: bold, brackets, an arrow, a
/// list's dash.
fn without_emphasis(line: &str) -> &str {
    // Names in a stack begin with two underscores.
    let marked = line.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(inside) = marked.filter(|inside| inside.contains(' ')) {
        return inside;
    }
    let around = [("**", "**"), ("<b>", "</b>"), ("<strong>", "</strong>"), ("<mark>", "</mark>")];
    for (open, close) in around {
        if let Some(inside) = line.strip_prefix(open).map(|rest| rest.strip_suffix(close).unwrap_or(rest)) {
            return inside;
        }
        if let Some(inside) = line.strip_suffix(close).filter(|_| line.split_whitespace().nth(3).is_some()) {
            return inside;
        }
    }
    for arrow in ["-->", "==>", "->", "=>", "- ", "* ", "\u{2022}", "\u{2192}", "+ "] {
        if let Some(rest) = line.strip_prefix(arrow) {
            return rest;
        }
    }
    for arrow in ["<---", "<--", "<-", "\u{2190}"] {
        if let Some(rest) = line.strip_suffix(arrow) {
            return rest.trim_end_matches(['-', '<']);
        }
    }
    let row = |rest: &str| {
        let mut words = rest.split_whitespace();
        let named = words.next().is_some_and(|name| name.contains(char::is_alphabetic));
        named && words.by_ref().take(4).filter(|word| is_digits(word)).count() == 4
    };
    let bracketed = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    bracketed.or_else(|| line.strip_prefix("# ")).filter(|rest| row(rest)).unwrap_or(line)
}

/// Without the time stamp at the start of a log's line, and the names of machine and program after it.
fn without_stamp(line: &str) -> &str {
    let Some(rest) = after_stamp(line) else { return line };
    let rest = rest.trim_start();
    without_stream(rest).or_else(|| without_tag(rest)).unwrap_or(rest)
}

/// Without the stream and the mark that Kubernetes writes after the time: `stdout F`.
fn without_stream(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("stdout ").or_else(|| line.strip_prefix("stderr "))?;
    rest.strip_prefix("F ").or_else(|| rest.strip_prefix("P "))
}

/// Without the name of the service that docker compose puts before a line: `web-1  | `.
fn without_service(line: &str) -> &str {
    let Some((name, rest)) = line.split_once(" | ") else { return line };
    let name = name.trim_end();
    let is_service = name.rsplit_once(['-', '_']).is_some_and(|(_, number)| is_digits(number));
    // A row of a table has further bars, or a single number.
    let is_row = rest.contains(" | ") || rest.split_whitespace().nth(2).is_none();
    if !is_service || is_row || name.contains(char::is_whitespace) { line } else { rest.trim_start() }
}

/// What follows a time stamp: of the kernel's log, with or without the level (`<4>[  12.345678]`, `[Tue Nov
/// 24 01:33:42 2026]`, `kern  :warn  :`, `kernel:`), of syslog (`Nov 24 01:33:42`), or of ISO 8601.
fn after_stamp(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix("kernel:") {
        return Some(rest);
    }
    if let Some((level, rest)) = line.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        return is_digits(level).then_some(rest);
    }
    if let Some((inside, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        // `dmesg -H` has the seconds since the line before, and the minute in the first: `[  +0.000012]`,
        // `[Nov12 03:14]`.
        let plain = inside.trim().trim_start_matches('+');
        let seconds = plain.split_once('.').is_some_and(|(s, part)| is_digits(s) && is_digits(part));
        let date = inside.split_whitespace().any(is_clock) || is_minute(inside);
        // The kernel's own mark of the CPU or thread that printed: `[T1234]`, `[C3]`.
        let printer = inside.trim().strip_prefix(['T', 'C']).is_some_and(is_digits);
        return (seconds || date || printer).then_some(rest);
    }
    // The CPU and the task that Android's kernels print: `(0)[123:kworker/0:1]`.
    if let Some((cpu, rest)) = line.strip_prefix('(').and_then(|rest| rest.split_once(")[")) {
        let (task, rest) = rest.split_once(']')?;
        let is_task = task.split_once(':').is_some_and(|(pid, _)| is_digits(pid));
        return (is_digits(cpu) && is_task).then_some(rest);
    }
    if let Some(rest) = line.strip_prefix("kern") {
        let (level, rest) = rest.trim_start().strip_prefix(':')?.split_once(':')?;
        return level.trim().bytes().all(|byte| byte.is_ascii_lowercase()).then_some(rest);
    }
    // At most three words: a month, a day, and the time; or one that begins with a year.
    let mut end = 0;
    for _ in 0..3 {
        let word = line[end..].split_whitespace().next()?;
        end += line[end..].find(word)? + word.len();
        let iso = word.as_bytes().get(4) == Some(&b'-') && is_digits(&word[..4]) && word.contains('T');
        if iso || is_clock(word) {
            return Some(&line[end..]);
        }
        let is_part_of_a_date = is_digits(word) || is_month(word) || is_day(word);
        if !is_part_of_a_date {
            return None;
        }
    }
    None
}

/// What follows `host kernel:`, `host program[1234]:` or `program:`, after a time stamp.
fn without_tag(line: &str) -> Option<&str> {
    let mut end = 0;
    for _ in 0..2 {
        let word = line[end..].split_whitespace().next()?;
        end += line[end..].find(word)? + word.len();
        if let Some(tag) = word.strip_suffix(':') {
            // A message of the kernel's own may begin with a word and a colon: `SLUB: Unable to ...`.
            let program = tag == "kernel" || tag.ends_with(']');
            return program.then_some(&line[end..]);
        }
    }
    None
}

/// Without the path that grep puts before a line of the file.
fn without_path(line: &str) -> &str {
    let file = |(at, name): (usize, &str)| {
        let before = &line[..at];
        before.ends_with('/').then(|| line[at + name.len()..].trim_start())
    };
    // A path has no blanks.
    let word = &line[..line.find(char::is_whitespace).unwrap_or(line.len())];
    let of = |name: &str| word.find(name).and_then(|at| file((at, name)));
    let names = ["proc/slabinfo:", "proc/meminfo:", "memory.kmem.slabinfo:"];
    names.into_iter().find_map(of).unwrap_or(line)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `01:33:42`, perhaps with a fraction of the second.
fn is_clock(word: &str) -> bool {
    let mut parts = word.split(':');
    let two = |part: Option<&str>| part.is_some_and(|part| part.len() == 2 && is_digits(part));
    let (hours, minutes) = (two(parts.next()), two(parts.next()));
    let seconds = parts.next().is_some_and(|part| part.split(['.', ',']).next().is_some_and(is_digits));
    hours && minutes && seconds && parts.next().is_none()
}

fn is_month(word: &str) -> bool {
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"].contains(&word)
}

/// `Nov12 03:14`.
fn is_minute(text: &str) -> bool {
    let Some((day, time)) = text.split_once(' ') else { return false };
    let is_day = day.is_ascii() && day.len() > 3 && is_month(&day[..3]) && is_digits(&day[3..]);
    is_day && time.split_once(':').is_some_and(|(hours, minutes)| is_digits(hours) && is_digits(minutes))
}

/// A date without its time, as `2026-11-24` or `24.11.2026`.
fn is_day(word: &str) -> bool {
    let mut parts = word.split(['-', '.', '/']);
    let all = parts.by_ref().take(3).filter(|part| is_digits(part)).count();
    all == 3 && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_around_a_line_is_taken_away() {
        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            let found: Vec<String> = lines(text).map(|(_, line)| line.into_owned()).collect();
            assert_eq!(found, expected, "{text:?}");
        }
        check("  dentry 1 2\r\n", &["dentry 1 2"]);
        check("> > dentry 1 2", &["dentry 1 2"]);
        check(">> dentry\t1\t2", &["dentry 1 2"]);
        check("&gt; dentry 1 2", &["dentry 1 2"]);
        check("| dentry | 1 | 2 |", &["dentry | 1 | 2"]);
        check("<pre>dentry 1 2</pre>", &["dentry 1 2"]);
        check("`dentry 1 2`", &["dentry 1 2"]);
        check("dentry\u{a0}1\u{200b} 2", &["dentry 1 2"]);
        check("[21161.093507] kernel: SLUB: Unable", &["SLUB: Unable"]);
        // More layers than any line has stay: to take all away would take a time that grows with the square.
        check(&("[T1]".repeat(2 * LAYERS) + "x"), &[&("[T1]".repeat(LAYERS) + "x")]);
        check("<4>[  12.345678] SLUB: Unable", &["SLUB: Unable"]);
        check("[Tue Nov 24 01:33:42 2026] SLUB: Unable", &["SLUB: Unable"]);
        check("[ 12.345678][ T1234] SLUB: Unable", &["SLUB: Unable"]);
        check("[Nov24 01:33] SLUB: Unable", &["SLUB: Unable"]);
        check("[  +0.000012] SLUB: Unable", &["SLUB: Unable"]);
        check("kern  :warn  : [  12.345678] SLUB: Unable", &["SLUB: Unable"]);
        check("Nov 24 01:33:42 host kernel: SLUB: Unable", &["SLUB: Unable"]);
        check("Nov  4 01:33:42 host kernel: [12.345678] SLUB: Unable", &["SLUB: Unable"]);
        check("Nov 24 01:33:42 host slabtop[17]: 1 2 99% x", &["1 2 99% x"]);
        check("2026-11-24T01:33:42.123456+00:00 host kernel: SLUB: Unable", &["SLUB: Unable"]);
        check("2026-11-24 01:33:42.123 SLUB: Unable", &["SLUB: Unable"]);
        check("/proc/slabinfo:dentry 1 2", &["dentry 1 2"]);
        check("\u{1b}[1mdentry\u{1b}[m 1\u{1b}(B 2", &["dentry 1 2"]);
        check("\u{1b}]0;title\u{7}dentry 1 2", &["dentry 1 2"]);
        check("\u{1b}[8;1Hdentry 1 2\u{1b}[K\u{1b}[9;1Hinode 3 4", &["", "dentry 1 2", "inode 3 4"]);
        check("2026-11-24T01:33:42.123456789Z stdout F SLUB: Unable", &["SLUB: Unable"]);
        check("web-1  | dentry 1 2", &["dentry 1 2"]);
        check("<4>[ 12.3] (0)[123:kworker/0:1]SLUB: Unable", &["SLUB: Unable"]);
        check("dentry 1 2<br>", &["dentry 1 2"]);
        check("dentry 1 2<br />inode 3 4<br/>", &["dentry 1 2", "inode 3 4"]);
        check("     1\ta 7\n     2\tb 8\n\n     3\tc 9\nd", &["a 7", "b 8", "", "c 9", "d"]);
        check("1 2=\n 3\na=20b=3D=C3=\n=A4", &["1 2 3", "a b=\u{e4}"]);
        // What only looks like something around a line stays.
        check("kmalloc-192 | 12K", &["kmalloc-192 | 12K"]);
        check("a=20b=", &["a=20b="]);
        check("5 7\n6 8\n9 9", &["5 7", "6 8", "9 9"]);
        check("SLUB: Unable to allocate", &["SLUB: Unable to allocate"]);
        check("1015644 1015620  99% x", &["1015644 1015620  99% x"]);
        check("zs_handle-zram0: 5", &["zs_handle-zram0: 5"]);
        check("**dentry 1 2 3 4**", &["dentry 1 2 3 4"]);
        check("<b>dentry 1 2 3 4</b>", &["dentry 1 2 3 4"]);
        check("[dentry 1 2 3 4]", &["dentry 1 2 3 4"]);
        check("# dentry 1 2 3 4", &["dentry 1 2 3 4"]);
        check("--> dentry 1 2 3 4  <---", &["dentry 1 2 3 4"]);
        check("# name <active_objs>", &["# name <active_objs>"]);
        check("node 0: slabs: 1", &["node 0: slabs: 1"]);
    }
}
