//! What holds of every page, checked without a browser.

use std::collections::HashSet;

/// A page over this many bytes is a defect.
const BYTES_MAX: usize = 2 << 20;

/// An element's start, as the page has it.
struct Tag<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Tag<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|attribute| attribute.0 == name).map(|attribute| attribute.1)
    }
}

/// Checks a page: its markup is well-formed XML but for the doctype, it loads nothing, it is not large, its
/// identifiers are unique and lead somewhere, and every figure has its drawings with title and description,
/// its table and the command.
///
/// # Panics
/// With what is wrong.
pub(crate) fn check_page(html: &str, command: &str) {
    assert!(html.len() <= BYTES_MAX, "{} bytes", html.len());
    assert!(html.contains("default-src 'none'"), "the page does not forbid itself to load");
    let tags = parse(html);
    check_loads(html, &tags);
    let ids: Vec<&str> = tags.iter().filter_map(|tag| tag.get("id")).collect();
    let unique: HashSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "identifiers are unique: {ids:?}");
    for tag in tags.iter().filter(|tag| tag.get("role") == Some("img")) {
        let names = tag.get("aria-labelledby").expect("a drawing has a name");
        assert!(names.split(' ').all(|name| unique.contains(name)), "{names} name nothing");
    }
    let escaped = command.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&#39;");
    assert!(html.contains(&format!("<pre class=\"command\">{escaped}")), "no command that made the page");
    for figure in html.split("<figure").skip(1) {
        let figure = figure.split("</figure>").next().unwrap_or_default();
        for part in ["<figcaption>", "<svg role=\"img\"", "<title ", "<desc ", "<table>"] {
            assert!(figure.contains(part), "a figure without {part}: {}", &figure[..figure.len().min(300)]);
        }
    }
    assert_eq!(tags.iter().filter(|tag| tag.name == "h1").count(), 1, "one title");
    assert!(
        !html.contains("NaN") && !html.contains("Infinity") && !html.contains("inf\""),
        "a number is none"
    );
}

/// Nothing is loaded: no source, no style sheet, no address but that of a link in the text.
fn check_loads(html: &str, tags: &[Tag<'_>]) {
    for tag in tags {
        assert!(!["link", "iframe", "object", "embed", "base", "img"].contains(&tag.name), "<{}>", tag.name);
        for (name, value) in &tag.attributes {
            let load = ["src", "srcset", "data", "action", "xlink:href", "style"].contains(name)
                || name.starts_with("on");
            assert!(!load, "<{} {name}={value}>", tag.name);
            assert!(*name != "href" || tag.name == "a", "<{} {name}={value}>", tag.name);
            let plain = !value.contains("://") || tag.name == "a";
            assert!(plain, "<{} {name}={value}>", tag.name);
        }
    }
    for style in html.split("<style>").skip(1) {
        let style = style.split("</style>").next().unwrap_or_default();
        assert!(!style.contains("@import") && !style.contains("url("), "a style loads something");
    }
}

/// The elements of a page whose markup is well-formed; the content of scripts and styles is not looked into.
///
/// # Panics
/// With the place of what is not well-formed.
fn parse(html: &str) -> Vec<Tag<'_>> {
    let mut rest = html.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    let (mut open, mut tags): (Vec<&str>, Vec<Tag>) = (Vec::new(), Vec::new());
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at]);
        rest = &rest[at + 1..];
        let end = tag_end(rest);
        let (inside, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if let Some(name) = inside.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "</{name}> closes another element");
            continue;
        }
        let empty = inside.ends_with('/');
        let tag = tag(inside.trim_end_matches('/'));
        let name = tag.name;
        tags.push(tag);
        if empty {
            continue;
        }
        if ["script", "style"].contains(&name) {
            let close = format!("</{name}>");
            let at = rest.find(&close).unwrap_or_else(|| panic!("<{name}> is not closed"));
            rest = &rest[at + close.len()..];
            continue;
        }
        open.push(name);
    }
    assert_eq!(open, Vec::<&str>::new(), "elements are not closed");
    tags
}

/// Where a tag ends: a `>` outside of quotes.
fn tag_end(rest: &str) -> usize {
    let mut quoted = false;
    let end = rest.bytes().position(|byte| {
        quoted ^= byte == b'"';
        byte == b'>' && !quoted
    });
    end.unwrap_or_else(|| panic!("a tag does not end: {}", &rest[..rest.len().min(80)]))
}

fn tag(inside: &str) -> Tag<'_> {
    let (name, mut rest) = inside.split_once(' ').unwrap_or((inside, ""));
    let plain = |text: &str| {
        !text.is_empty() && text.chars().all(|char| char.is_ascii_alphanumeric() || "-:_".contains(char))
    };
    assert!(plain(name), "<{inside}>");
    let mut attributes = Vec::new();
    while !rest.trim_start().is_empty() {
        let (key, after) =
            rest.trim_start().split_once("=\"").unwrap_or_else(|| panic!("<{inside}>: {rest}"));
        let (value, after) = after.split_once('"').unwrap_or_else(|| panic!("<{inside}>: {rest}"));
        assert!(plain(key) && !value.contains('<'), "<{inside}>: {key}={value}");
        check_text(value);
        assert!(!attributes.iter().any(|(known, _)| *known == key), "<{inside}>: {key} twice");
        attributes.push((key, value));
        rest = after;
    }
    Tag { name, attributes }
}

/// Text has no character that means something, no control character, and references to characters that end.
fn check_text(text: &str) {
    assert!(
        !text.contains(|char: char| char.is_control() && !"\n\t".contains(char)),
        "a control character: {text:?}"
    );
    for reference in text.split('&').skip(1) {
        let name = reference.split(';').next().unwrap_or_default();
        assert!(
            ["amp", "lt", "gt", "quot", "#39"].contains(&name) && reference.contains(';'),
            "&{reference}"
        );
    }
}
