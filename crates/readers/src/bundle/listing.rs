//! Lines of `ls -l`, which tell the aliases of caches where their files are not in the dump.

/// Name and target of a symbolic link in a line of `ls -l`, with numeric owners or names, short, long or full
/// dates.
pub(super) fn link(line: &str) -> Option<(&str, &str)> {
    let (rest, target) = line.rsplit_once(" -> ")?;
    if !rest.starts_with('l') {
        return None;
    }
    // Mode, links, owner, group, size; then a date of one to three words; then the name, which may have
    // spaces.
    let (_, rest) = words(rest, 5)?;
    let (first, after_first) = words(rest, 1)?;
    let iso = first.len() == 10 && first.as_bytes()[4] == b'-';
    let name = match iso {
        false => words(after_first, 2)?.1,
        true => {
            let (_, after_time) = words(after_first, 1)?;
            match words(after_time, 1) {
                Some((zone, name)) if is_zone(zone) => name,
                _ => after_time,
            }
        }
    };
    (!name.is_empty() && !name.contains('/')).then_some((name, target.trim_end()))
}

/// `+0200`, which only full dates have.
fn is_zone(word: &str) -> bool {
    word.len() == 5 && word.starts_with(['+', '-']) && word[1..].bytes().all(|byte| byte.is_ascii_digit())
}

/// The last of the next `count` words, and what is behind them and one space.
fn words(text: &str, count: usize) -> Option<(&str, &str)> {
    let (mut rest, mut last) = (text, "");
    for _ in 0..count {
        (last, rest) = rest.trim_start_matches(' ').split_once(' ')?;
    }
    Some((last, rest.trim_start_matches(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links() {
        #[track_caller]
        fn check(line: &str, expected: Option<(&str, &str)>) {
            assert_eq!(link(line), expected, "{line}");
        }
        check("lrwxrwxrwx.   1 0 0 0 Nov 21 06:42 TCP -> :0002304", Some(("TCP", ":0002304")));
        check(
            "lrwxrwxrwx 1 root root 0 Nov  1  2026 UDP Lite -> ./:0001152",
            Some(("UDP Lite", "./:0001152")),
        );
        check("lrwxrwxrwx 1 root root 0 2026-11-21 06:42 a -> :b", Some(("a", ":b")));
        check("lrwxrwxrwx 1 0 0 0 2026-11-21 06:42:04.000000000 +0200 a -> :b", Some(("a", ":b")));
        check("drwxr-xr-x 2 0 0 0 Nov 21 06:42 :0002304", None);
        check("lrwxrwxrwx 1 0 0 -> :b", None);
        check("l -> x", None);
        check("", None);
    }
}
