//! CPU lists as sysfs has them: `0-3,32-35`.

/// The CPUs of a list, in its order. `None` if it is no list, has a CPU twice, or a range that falls.
pub(crate) fn parse(text: &str) -> Option<Vec<u16>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u16>().ok().filter(|cpu| *cpu < u16::MAX);
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        cpus.extend(first..=last);
    }
    let mut sorted = cpus.clone();
    sorted.sort_unstable();
    sorted.dedup();
    (sorted.len() == cpus.len()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    #[test]
    fn lists() {
        let check = |text: &str, expected: Option<&[u16]>| {
            assert_eq!(super::parse(text).as_deref(), expected, "{text}");
        };
        check("0", Some(&[0]));
        check("0-3,32-33", Some(&[0, 1, 2, 3, 32, 33]));
        check(" 4 , 2-3", Some(&[4, 2, 3]));
        for wrong in ["", "3-1", "0,", "0-3,2", "-1", "65535", "65536", "a", "1-2-3", "0x1"] {
            check(wrong, None);
        }
    }
}
