//! What the tree's files in sysfs say of a cache: `/sys/kernel/slab/<cache>/<name>`, read by name.

use super::shared::Booted;
use crate::image::{Booting, address, with_end};
use slablab_engines::ended;

/// A file's number: all of it, and its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) total: u64,
    /// The letter, C for CPUs and N for nodes, the number, and the part.
    parts: Vec<(char, u16, u64)>,
}

impl Said {
    pub(super) fn of_cpu(&self, cpu: u16) -> u64 {
        self.part('C', cpu)
    }

    pub(super) fn of_node(&self, node: u16) -> u64 {
        self.part('N', node)
    }

    fn part(&self, letter: char, number: u16) -> u64 {
        let found = self.parts.iter().find(|part| (part.0, part.1) == (letter, number));
        found.map_or(0, |part| part.2)
    }

    /// Reads `12`, `12 N0=5 N1=7`, `12 C0=3`. Of `12(4)`, what is in brackets.
    pub(super) fn read(text: &str) -> Option<Said> {
        let number = |word: &str| {
            let word = word.split_once('(').map_or(word, |(_, inner)| inner.trim_end_matches(')'));
            word.parse::<u64>().ok()
        };
        let mut words = text.split_ascii_whitespace();
        let total = number(words.next()?)?;
        let parts = words.filter_map(|word| {
            let (of, value) = word.split_once('=')?;
            let letter = of.chars().next()?;
            Some((letter, of.get(1..)?.parse().ok()?, number(value)?))
        });
        Some(Said { total, parts: parts.collect() })
    }
}

impl Booted {
    /// What a cache's file says; `None` if the tree has no such file.
    pub(super) fn file(&self, cache: u64, name: &str) -> Option<Said> {
        let mut text = self.text.borrow_mut();
        let room = text.len();
        let name = with_end(name);
        let arguments = [cache, address(&name), text.as_mut_ptr().addr() as u64, room as u64, 0];
        let length = self.image.run(0, self.image.functions.show, arguments, &Booting(&self.image));
        let length = length.unwrap_or_else(|finding| ended(finding.to_string()));
        let length = usize::try_from(length as i64).ok()?;
        Said::read(std::str::from_utf8(text.get(..length)?).ok()?)
    }

    /// Writes a cache's file.
    ///
    /// # Errors
    /// The tree has no such file, or refuses the value.
    pub(super) fn write_file(&self, cache: u64, name: &str, value: &str) -> Result<(), String> {
        let (with_name, with_value) = (with_end(name), with_end(value));
        let arguments = [cache, address(&with_name), address(&with_value), 0, 0];
        let written = self.image.run(0, self.image.functions.store, arguments, &Booting(&self.image));
        match written.unwrap_or_else(|finding| ended(finding.to_string())) as i64 {
            -1 => Err(format!("the tree's caches have no file `{name}`")),
            -5 => Err(format!("the tree's file `{name}` cannot be written")),
            refused @ ..0 => Err(format!("the tree refuses `{value}` for `{name}` (error {refused})")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_a_number_and_parts() {
        #[track_caller]
        fn check(text: &str, total: u64, parts: &[(char, u16, u64)]) {
            assert_eq!(Said::read(text), Some(Said { total, parts: parts.to_vec() }), "{text}");
        }
        check("256\n", 256, &[]);
        check("12 N0=5 N1=7\n", 12, &[('N', 0, 5), ('N', 1, 7)]);
        check("0", 0, &[]);
        check("40(4) C0=20(2) C3=20(2)\n", 4, &[('C', 0, 2), ('C', 3, 2)]);
        assert_eq!(Said::read("yes\n"), None);
        assert_eq!(Said::read(""), None);
    }
}
