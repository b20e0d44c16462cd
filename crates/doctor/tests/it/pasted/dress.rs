//! Tables and messages in the dress of mails, logs, pages and terminals: what is read stays what it was.

use super::{answer, sample_text, says, state_of};
use slablab_doctor::state::State;

/// The slabinfo of the samples, in a dress. The same ten caches with the same bytes come out.
#[track_caller]
fn check_dress(name: &str, text: &str) {
    let plain = state_of(sample_text("sorted.txt").as_bytes()).unwrap();
    let dressed = state_of(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(dressed.caches, plain.caches, "{name}");
    let pasted = dressed.dump.pasted.as_ref().unwrap();
    assert_eq!(pasted.cut, [], "{name}");
}

#[test]
fn slabinfo_in_every_dress() {
    let plain = sample_text("sorted.txt");
    let each = |dress: &dyn Fn(&str) -> String| plain.lines().map(dress).collect::<String>();
    check_dress(
        "mail",
        &format!("Hello,\n\nwhat is this?\n\n{}\nThanks", each(&|line| format!("> > {line}\n"))),
    );
    check_dress("deep", &each(&|line| format!(">>> {line}\n")));
    check_dress("indented", &each(&|line| format!("\t    {line}\n")));
    check_dress("fence", &format!("```console\n{plain}```\n"));
    check_dress("jira", &format!("{{noformat}}\n{plain}{{noformat}}\n"));
    check_dress("crlf", &plain.replace('\n', "\r\n"));
    check_dress("tabs", &each(&|line| line.split_whitespace().collect::<Vec<_>>().join("\t") + "\n"));
    check_dress("blanks", &each(&|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n"));
    check_dress("web", &plain.replace("  ", "&nbsp; "));
    check_dress("wide", &plain.replace("  ", "\u{a0}\u{a0}"));
    check_dress(
        "table",
        &each(&|line| format!("| {} |\n", line.split_whitespace().collect::<Vec<_>>().join(" | "))),
    );
    check_dress("journal", &each(&|line| format!("Nov 24 01:33:42 host collect[17]: {line}\n")));
    check_dress("dmesg", &each(&|line| format!("[12345.678901] {line}\n")));
    check_dress(
        "iso",
        &each(&|line| {
            format!("2026-11-24T01:33:42.123456+00:00 host slab: {line}\n").replace(" slab:", " slab[1]:")
        }),
    );
    check_dress(
        "numbered",
        &plain.lines().enumerate().map(|(at, line)| format!("{:6}\t{line}\n", at + 1)).collect::<String>(),
    );
    check_dress(
        "grep -n of a file",
        &plain
            .lines()
            .enumerate()
            .map(|(at, line)| format!("kern.log.1:{}:{line}\n", at + 1))
            .collect::<String>(),
    );
    check_dress("docker", &each(&|line| format!("{{\"log\":\"{line}\\n\",\"stream\":\"stdout\"}}\n")));
    check_dress("journal as JSON", &each(&|line| format!("{{\"PRIORITY\":\"6\",\"MESSAGE\":\"{line}\"}}\n")));
    check_dress("kubernetes", &each(&|line| format!("2026-11-24T01:33:42.123456789Z stdout F {line}\n")));
    check_dress("compose", &each(&|line| format!("web-1  | {line}\n")));
    check_dress("android", &each(&|line| format!("<4>[ 12.345678] (0)[123:kworker/0:1]{line}\n")));
    check_dress("breaks", &each(&|line| format!("{line}<br>\n")));
    check_dress("grep", &each(&|line| format!("/proc/slabinfo:{line}\n")));
    check_dress("ansi", &each(&|line| format!("\u{1b}[1;31m{line}\u{1b}[0m\n")));
    check_dress(
        "screen",
        &plain
            .lines()
            .enumerate()
            .map(|(at, line)| format!("\u{1b}[{};1H{line}\u{1b}[K", at + 8))
            .collect::<String>(),
    );
    check_dress("a line", &plain.replace('\n', " "));
    check_dress("bytes that are no UTF-8", &format!("{plain}\nGr\u{fffd}\u{fffd}e\n"));
    check_dress("utf-16", &plain);
    // Wrapped by a mail program, at several widths, quoted before and after.
    for width in [72, 76, 60] {
        let wrapped = |mark: &str| {
            each(&|line| {
                let (mut out, mut column) = (String::from(mark), 0);
                for word in line.split_whitespace() {
                    if column + word.len() + 1 > width {
                        out += &format!("\n{mark}");
                        column = 0;
                    }
                    out += &format!("{word} ");
                    column += word.len() + 1;
                }
                out + "\n"
            })
        };
        check_dress(&format!("wrapped at {width}"), &wrapped(""));
        check_dress(&format!("wrapped at {width}, quoted"), &wrapped("> "));
    }
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(plain.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(state_of(&utf16).unwrap().caches.len(), 10);
    let utf16: Vec<u8> =
        [0xfe, 0xff].into_iter().chain(plain.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    assert_eq!(state_of(&utf16).unwrap().caches.len(), 10);
}

/// A list of slabtop, as a mail has it that was saved as it was sent, with its names broken at their hyphens,
/// and with commas of thousands.
#[test]
fn slabtop_in_a_mail() {
    let plain = state_of(sample_text("rocm.txt").as_bytes()).unwrap();
    let text = sample_text("rocm.txt");
    // Lines of 76 bytes at most, the last of each an equals sign.
    let quoted = |line: &str| {
        let line = line.replace('=', "=3D");
        let parts: Vec<&str> =
            (0..line.len()).step_by(40).map(|at| &line[at..line.len().min(at + 40)]).collect();
        let end = if line.ends_with(' ') { "=20" } else { "" };
        parts.join("=\n") + end + "\n"
    };
    let mail: String = text.lines().map(quoted).collect();
    let grouped = |word: &str| match word.strip_suffix('K').unwrap_or(word).parse::<u64>() {
        Ok(number) if number >= 1000 => {
            format!("{}{}", slablab_report::text::grouped(number), if word.ends_with('K') { "K" } else { "" })
        }
        _ => word.to_string(),
    };
    let commas = |line: &str| line.split(' ').map(grouped).collect::<Vec<_>>().join(" ") + "\n";
    for (name, text) in [
        ("quoted", mail.clone()),
        ("quoted, with its head", format!("Content-Transfer-Encoding: quoted-printable\n\n{mail}")),
        ("hyphens", text.replace("kmalloc-", "kmalloc-\n")),
        ("hyphens, cut before", text.replace(" kmalloc-", "\nkmalloc-\n")),
        ("commas", text.lines().map(commas).collect()),
    ] {
        let state = state_of(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(state.caches, plain.caches, "{name}");
    }
}

#[test]
fn columns_of_awk_and_vmstat() {
    let plain = state_of(sample_text("sorted.txt").as_bytes()).unwrap();
    let columns = |count: usize| -> String {
        let row = |line: &str| line.split_whitespace().take(count).collect::<Vec<_>>().join(" ") + "\n";
        sample_text("sorted.txt").lines().map(row).collect()
    };
    // Slabs and pages follow from the numbers of objects, as long as no slab fell back to a smaller order.
    for (name, text) in [
        ("six columns", columns(6)),
        ("five columns", columns(5)),
        ("vmstat", format!("Cache                       Num  Total   Size  Pages\n{}", columns(5))),
    ] {
        let state = state_of(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let of = |state: &State| {
            state.caches.iter().map(|cache| (cache.name.clone(), cache.bytes(4096))).collect::<Vec<_>>()
        };
        assert_eq!(of(&state), of(&plain), "{name}");
        says(
            &answer(&state),
            &["vmstat -m or columns of /proc/slabinfo", "Slabs are objects over objects in a slab"],
        );
    }
}

#[test]
fn cut_texts() {
    let plain = sample_text("sorted.txt");
    let text = plain.trim_end();
    // Cut in the last row: nine caches are whole, and of the tenth what is there counts.
    let row = text.rfind("ftrace_event_field").unwrap();
    for (at, caches) in [(row + 10, 9), (row + 40, 9), (row + 62, 10), (text.len() - 10, 10)] {
        let state = state_of(&text.as_bytes()[..at]).unwrap();
        assert_eq!(state.caches.len(), caches, "{}", &text[row..at]);
        let said = answer(&state);
        says(&said, &["line 10"]);
    }
}

#[test]
fn messages_in_logs() {
    let text = sample_text("unable.txt");
    let dressed: Vec<String> = vec![
        text.replace("\n", "\n> "),
        text.lines().map(|line| format!("Nov 24 01:33:42 host kernel: {line}\n")).collect(),
        text.lines().map(|line| format!("<4>{line}\n")).collect(),
        text.replace(", default", ",\ndefault"),
        text.replace(" (gfp", "\n(gfp"),
        // As mail programs break lines at 72 columns: before a long word, and at a hyphen.
        text.replace("cache: ", "cache:\n").replace("), object", "),\nobject"),
        text.replace("cache: ", "cache:\n")
            .replace("kmalloc-", "kmalloc-\n")
            .replace("min order: ", "min order:\n"),
        text.lines().map(|line| format!("2026-11-24T01:33:42.123456789Z stdout F {line}\n")).collect(),
        text.lines().map(|line| format!("web-1  | {line}\n")).collect(),
        text.lines().enumerate().map(|(at, line)| format!("{:6}\t{line}\n", at + 1)).collect(),
    ];
    for text in dressed {
        let state = state_of(text.as_bytes()).unwrap();
        says(
            &answer(&state),
            &["kmalloc-1024 of memory cgroup 1793", "GFP_ATOMIC", "First order 3", "20,996 objects"],
        );
    }
    // Whoever makes a container names its cgroup: in a command the name is quoted.
    let id = "c8edefa90517e21bc691deef20c17220af0f0ac69962cc51007d372e7dd40256";
    let state = state_of(text.replace(id, "a;id|sh #").as_bytes()).unwrap();
    says(&answer(&state), &["/sys/fs/cgroup/memory/*/'a;id|sh #'*/memory.kmem."]);
}
