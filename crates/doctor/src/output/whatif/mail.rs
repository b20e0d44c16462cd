//! A prediction in the layout of Jay Patel's mail of 2023 (RFC v3, "mm/slub: Optimize slub memory usage"), so
//! that both can be laid side by side.
//!
//! Bytes behind the last object of each slab are the mail's wastage, in Kb; bytes of all slabs are its
//! memory, in KiB without a unit. Percentages are rounded to whole ones. (The mail says ~9% of 544 to 500,
//! which are 8.09 %.) The layout is that of the mail's machine of 160 CPUs; in the tables of the other one
//! the bars are not below each other.

use crate::whatif::{Prediction, Total};
use std::fmt::Write;

/// Letters between the bars: what a line is about, and one moment.
const WIDTHS: (usize, usize) = (17, 16);

/// One of the mail's two tables.
struct MailTable {
    title: &'static str,
    /// Letters before it, as in the mail.
    indent: usize,
    /// The moments, with the blank that the mail has before each or lacks.
    moments: [&'static str; 2],
    of: fn(&Total) -> u64,
    unit: &'static str,
    reduced: &'static str,
}

const TABLES: [MailTable; 2] = [
    MailTable {
        title: "Total wastage in slub memory",
        indent: 10,
        moments: [" After Boot", "After Hackbench"],
        of: |total| total.waste,
        unit: " Kb",
        reduced: "Wastage reduce",
    },
    MailTable {
        title: "Total slub memory",
        indent: 12,
        moments: [" After Boot", " After Hackbench"],
        of: |total| total.bytes,
        unit: "",
        reduced: "Memory reduce",
    },
];

/// Both tables of a machine after boot and, if there is a second dump, after hackbench.
pub(super) fn whatif_mail(boot: &Prediction, hackbench: Option<&Prediction>) -> String {
    let predictions: Vec<&Prediction> = [boot].into_iter().chain(hackbench).collect();
    let (cpus, page_size) = (boot.rules.cpus.present, boot.rules.page_size);
    let mut text = format!("On {cpus} CPUs with {}K Page size\n", page_size / 1024);
    for figure in &TABLES {
        text += "\n";
        let numbers =
            |prediction: &&Prediction| ((figure.of)(&prediction.today), (figure.of)(&prediction.whatif));
        text += &figure.table(&predictions.iter().map(numbers).collect::<Vec<_>>());
    }
    writeln!(text, "\nWith Patch is predicted: {}", boot.change).expect("writing to memory");
    for (moment, prediction) in ["After Boot", "After Hackbench"].iter().zip(&predictions) {
        let changed = prediction.rows.iter().filter(|row| row.today.order != row.whatif.order).count();
        let all = prediction.rows.len();
        writeln!(text, "{moment}: another order for {changed} of {all} caches").expect("writing to memory");
    }
    text
}

impl MailTable {
    /// Bytes today and with the change, for each moment.
    fn table(&self, numbers: &[(u64, u64)]) -> String {
        let number = |bytes: u64| format!(" {}{}", (bytes + 512) / 1024, self.unit);
        let moments: Vec<String> =
            self.moments.iter().take(numbers.len()).map(|text| text.to_string()).collect();
        let rows = [
            ("Normal", numbers.iter().map(|(today, _)| number(*today)).collect::<Vec<_>>()),
            ("With Patch", numbers.iter().map(|(_, whatif)| number(*whatif)).collect()),
            (self.reduced, numbers.iter().map(|(today, whatif)| reduced(*today, *whatif)).collect()),
        ];
        let longest = rows.iter().flat_map(|(_, cells)| cells).map(|cell| cell.len() + 1).max().unwrap_or(0);
        let width = longest.max(WIDTHS.1);
        let whole = WIDTHS.0 + numbers.len() * (width + 1);
        let dashes = |width: usize| "-".repeat(width);
        let border =
            format!("+{}{}+\n", dashes(WIDTHS.0), format!("+{}", dashes(width)).repeat(numbers.len()));
        let indent = self.indent.min(whole.saturating_sub(self.title.len()) / 2);
        let title = format!("|{:whole$}|\n", format!("{}{}", " ".repeat(indent), self.title));
        let line = |name: &str, cells: &[String]| {
            let cells: String = cells.iter().map(|cell| format!("|{cell:width$}")).collect();
            format!("| {name:name_width$}{cells}|\n", name_width = WIDTHS.0 - 1)
        };
        let rows: String = rows.iter().map(|(name, cells)| line(name, cells)).collect();
        format!("{border}{title}{border}{}{rows}{border}", line("", &moments))
    }
}

/// ` ~22%`, negative where there is more with the change than without.
fn reduced(today: u64, whatif: u64) -> String {
    if today == 0 {
        return " -".into();
    }
    let percent = 100.0 * (today as f64 - whatif as f64) / today as f64;
    // Not -0.
    format!(" ~{}%", percent.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::TABLES;

    /// Numbers in KiB, today and with the change.
    fn check(figure: usize, numbers: &[(u64, u64)], expected: &str) {
        let bytes: Vec<_> = numbers.iter().map(|(today, whatif)| (today * 1024, whatif * 1024)).collect();
        assert_eq!(Some(TABLES[figure].table(&bytes).as_str()), expected.strip_prefix('\n'));
    }

    /// The mail's tables of 160 CPUs, letter by letter.
    #[test]
    fn as_in_the_mail() {
        check(
            0,
            &[(932, 729), (1812, 1636)],
            r"
+-----------------+----------------+----------------+
|          Total wastage in slub memory             |
+-----------------+----------------+----------------+
|                 | After Boot     |After Hackbench |
| Normal          | 932 Kb         | 1812 Kb        |
| With Patch      | 729 Kb         | 1636 Kb        |
| Wastage reduce  | ~22%           | ~10%           |
+-----------------+----------------+----------------+
",
        );
        check(
            1,
            &[(1855296, 1544576), (2944576, 2692032)],
            r"
+-----------------+----------------+----------------+
|            Total slub memory                      |
+-----------------+----------------+----------------+
|                 | After Boot     | After Hackbench|
| Normal          | 1855296        | 2944576        |
| With Patch      | 1544576        | 2692032        |
| Memory reduce   | ~17%           | ~9%            |
+-----------------+----------------+----------------+
",
        );
    }

    /// One moment, more memory than before, nothing wasted, and numbers that no mail had room for.
    #[test]
    fn as_the_mail_would_have() {
        check(
            0,
            &[(0, 8)],
            r"
+-----------------+----------------+
|   Total wastage in slub memory   |
+-----------------+----------------+
|                 | After Boot     |
| Normal          | 0 Kb           |
| With Patch      | 8 Kb           |
| Wastage reduce  | -              |
+-----------------+----------------+
",
        );
        check(
            1,
            &[(1000, 1001), (12345678901234567, 12345678901234567 * 5 / 4)],
            r"
+-----------------+-------------------+-------------------+
|            Total slub memory                            |
+-----------------+-------------------+-------------------+
|                 | After Boot        | After Hackbench   |
| Normal          | 1000              | 12345678901234567 |
| With Patch      | 1001              | 15432098626543208 |
| Memory reduce   | ~0%               | ~-25%             |
+-----------------+-------------------+-------------------+
",
        );
    }
}
