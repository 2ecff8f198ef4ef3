//! Diagnostics as text for people. The only door to annotate-snippets.
//!
//! ```text
//! error[E0301]: there is no variable `lenght`
//!  --> prog.atl:2:7
//!   |
//! 2 | print(lenght);
//!   |       ^^^^^^ not declared
//!   |
//! help: a variable with a similar name exists
//!   |
//! 2 - print(lenght);
//! 2 + print(length);
//!   |
//! ```
//!
//! The position line is ours, by the language's rules for lines and columns; annotate-snippets draws what stands below it.
//! It is given only the lines that it shows, so that a message about a huge file costs no more than one about a small one,
//! and of a very long line only the part around the place.
//!
//! Cost: linear in the lines shown.

use crate::support::diagnostics::{Diagnostic, Help, Label, Severity};
use crate::support::span::{Source, Span};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet};
use std::ops::Range;

/// A line longer than this is shown in part.
const LONG_LINE: usize = 300;
/// How much of a long line is shown on either side of the place.
const AROUND: usize = 60;
/// Labels further apart than this, in lines, are shown in separate excerpts.
const NEAR_LINES: u32 = 40;

/// The diagnostics as text, each followed by an empty line.
pub fn render(diagnostics: &[Diagnostic], source: &Source, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(140);
    let mut text = String::new();
    for diagnostic in diagnostics {
        let groups = groups(diagnostic, source);
        for line in renderer.render(&groups).lines() {
            // An excerpt without a path of its own leaves the sign of one.
            if without_colour(line).trim() != ":::" {
                text.push_str(line);
                text.push('\n');
            }
        }
        text.push('\n');
    }
    text
}

fn groups<'a>(diagnostic: &'a Diagnostic, source: &'a Source) -> Vec<Group<'a>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(&diagnostic.message);
    let title = match diagnostic.severity {
        Severity::Error | Severity::Warning => title.id(diagnostic.code.to_string()),
        Severity::Note => title,
    };
    let mut main = title.elements(Vec::<Origin>::new());
    let mut outside = Vec::new();
    if !diagnostic.primary.span.is_none() {
        main = main.element(origin(source, diagnostic.primary.span));
        let labels = std::iter::once((&diagnostic.primary, AnnotationKind::Primary))
            .chain(diagnostic.secondary.iter().map(|label| (label, AnnotationKind::Context)))
            .filter(|(label, _)| !label.span.is_none());
        for cluster in clusters(labels.collect(), source) {
            let has_primary = cluster.iter().any(|(_, kind)| matches!(kind, AnnotationKind::Primary));
            if !has_primary {
                main = main.element(origin(source, cluster[0].0.span));
            }
            let anchor =
                cluster.iter().find(|(_, kind)| matches!(kind, AnnotationKind::Primary)).unwrap_or(&cluster[0]);
            let excerpt = Excerpt::around(source, anchor.0.span, cluster.iter().map(|(label, _)| label.span));
            let mut annotations: Vec<Annotation> = Vec::new();
            for (label, kind) in &cluster {
                match excerpt.range(label.span) {
                    Some(range) => annotations.push(kind.span(range).label(&label.text)),
                    None => outside.push(*label),
                }
            }
            main = main.element(
                Snippet::source(excerpt.text)
                    .line_start(excerpt.first_line as usize)
                    .path(None::<&str>)
                    .annotations(annotations),
            );
        }
    }
    for label in outside {
        let position = source.position(label.span.start);
        main = main.element(Level::NOTE.message(format!("{}: {}:{position}", label.text, source.name)));
    }
    for note in &diagnostic.notes {
        main = main.element(Level::NOTE.message(note));
    }
    let mut groups = vec![main];
    for help in &diagnostic.help {
        groups.push(help_group(help, source));
    }
    groups
}

/// The line that names a place.
fn origin(source: &Source, span: Span) -> Origin<'_> {
    let position = source.position(span.start);
    Origin::path(&source.name).line(position.line as usize).char_column(position.column as usize)
}

/// The text without its escape sequences for colour.
fn without_colour(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, sequence)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = sequence.split_once('m').map_or("", |(_, behind)| behind);
    }
    plain + rest
}

fn help_group<'a>(help: &'a Help, source: &'a Source) -> Group<'a> {
    let Some((span, replacement)) = &help.replacement else {
        return Group::with_title(Level::HELP.secondary_title(&help.text));
    };
    let excerpt = Excerpt::around(source, *span, std::iter::once(*span));
    match excerpt.range(*span) {
        Some(range) if !excerpt.cut => Level::HELP.secondary_title(&help.text).element(
            Snippet::source(excerpt.text)
                .line_start(excerpt.first_line as usize)
                .path(None::<&str>)
                .patch(Patch::new(range, replacement)),
        ),
        Some(_) | None => {
            let text =
                if replacement.is_empty() { help.text.clone() } else { format!("{}: `{replacement}`", help.text) };
            Group::with_title(Level::HELP.secondary_title(text))
        }
    }
}

type Kinded<'a> = (&'a Label, AnnotationKind);

/// The labels in groups of near ones, the group of the primary label first.
fn clusters<'a>(mut labels: Vec<Kinded<'a>>, source: &Source) -> Vec<Vec<Kinded<'a>>> {
    labels.sort_by_key(|(label, _)| label.span.start);
    let mut clusters: Vec<Vec<Kinded>> = Vec::new();
    let mut last_line = 0;
    for labelled in labels {
        let line = source.line_of(labelled.0.span.start.min(source.text.len() as u32));
        match clusters.last_mut() {
            Some(cluster) if line - last_line <= NEAR_LINES => cluster.push(labelled),
            Some(_) | None => clusters.push(vec![labelled]),
        }
        last_line = line;
    }
    if let Some(first) =
        clusters.iter().position(|cluster| cluster.iter().any(|(_, kind)| matches!(kind, AnnotationKind::Primary)))
    {
        clusters[..=first].rotate_right(1);
    }
    clusters
}

/// The part of the source that is shown.
struct Excerpt {
    text: String,
    /// The line (from 1) that it begins in.
    first_line: u32,
    /// Where it begins and ends in the source.
    range: Range<usize>,
    /// How many bytes stand before the source's part, to say that the line goes on to the left.
    lead: usize,
    /// Is a long line shown in part?
    cut: bool,
}

impl Excerpt {
    /// The lines of all spans, or, if one of the lines is long, the part of a line around `anchor`.
    fn around(source: &Source, anchor: Span, spans: impl Iterator<Item = Span>) -> Excerpt {
        let end_of_text = source.text.len() as u32;
        let (mut first, mut last) = (u32::MAX, 0);
        for span in spans {
            first = first.min(source.line_of(span.start.min(end_of_text)));
            last = last.max(source.line_of(span.end.min(end_of_text)));
        }
        let lines = line_range(source, first).start..line_range(source, last).end;
        if (first..=last).all(|line| line_range(source, line).len() <= LONG_LINE) {
            return Excerpt {
                text: source.text[lines.clone()].to_string(),
                first_line: first,
                range: lines,
                lead: 0,
                cut: false,
            };
        }
        let line = source.line_of(anchor.start.min(end_of_text));
        let whole = line_range(source, line);
        let place = (anchor.start as usize).clamp(whole.start, whole.end);
        let start = source.text.floor_char_boundary(place.saturating_sub(AROUND).max(whole.start));
        let behind = (anchor.end as usize).clamp(place, (place + AROUND).min(whole.end));
        let end = source.text.ceil_char_boundary((behind + AROUND).min(whole.end));
        let lead = if start > whole.start { "… " } else { "" };
        let trail = if end < whole.end { " …" } else { "" };
        Excerpt {
            text: format!("{lead}{}{trail}", &source.text[start..end]),
            first_line: line,
            range: start..end,
            lead: lead.len(),
            cut: true,
        }
    }

    /// Where a span stands in the excerpt, if it begins in it.
    fn range(&self, span: Span) -> Option<Range<usize>> {
        let (start, end) = (span.start as usize, span.end as usize);
        if start < self.range.start || start > self.range.end {
            return None;
        }
        let place = |offset: usize| offset.min(self.range.end) - self.range.start + self.lead;
        Some(place(start)..place(end))
    }
}

/// Where a line stands in the source, without its end and without the byte-order mark.
fn line_range(source: &Source, line: u32) -> Range<usize> {
    let text = source.line(line);
    let start = text.as_ptr() as usize - source.text.as_ptr() as usize;
    start..start + text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::diagnostics::Code;

    fn example(source: &Source, start: usize, end: usize) -> String {
        let diagnostic = Diagnostic::error(Code(103), Span::new(start, end), "wrong").label("here");
        render(&[diagnostic], source, false)
    }

    /// The position that the message shows, and the line with its underline.
    fn shown(text: &str, start: usize, end: usize) -> (String, Vec<String>) {
        let rendered = example(&Source::new("dir/t.atl", text), start, end);
        let mut lines = rendered.lines();
        assert_eq!(lines.next(), Some("error[E0103]: wrong"));
        let position = lines.next().expect("a position line").trim_start().strip_prefix("--> dir/t.atl:");
        (position.expect("the position follows the title").to_string(), lines.map(str::to_string).collect())
    }

    #[test]
    fn positions_count_characters() {
        for (text, start, expected) in [
            ("x", 0, "1:1"),
            ("\u{feff}x", 3, "1:1"),
            ("\tx", 1, "1:2"),
            ("a\r\nbc\r\n", 4, "2:2"),
            ("\"é→😀\" x", 12, "1:7"),
            ("x\n", 2, "2:1"),
            ("", 0, "1:1"),
            ("x", 1, "1:2"),
        ] {
            assert_eq!(shown(text, start, (start + 1).min(text.len())).0, expected, "{text:?}");
        }
    }

    #[test]
    fn the_place_is_underlined() {
        let (position, lines) = shown("let a = 1;\n  let b = aa;\n", 21, 23);
        assert_eq!(position, "2:11");
        assert_eq!(lines[1..3], ["2 |   let b = aa;", "  |           ^^ here"]);
    }

    #[test]
    fn long_lines_are_shown_in_part() {
        let text = format!("{}BAD{}", "é ".repeat(50_000), "x ".repeat(50_000));
        let start = text.find("BAD").expect("it is there");
        let (position, lines) = shown(&text, start, start + 3);
        assert_eq!(position, "1:100001");
        assert!(lines.iter().all(|line| line.chars().count() < 200), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("BAD")));
    }

    #[test]
    fn far_labels_and_suggestions() {
        let text = format!("first\n{}last\n", "\n".repeat(1000));
        let source = Source::new("t.atl", text);
        let diagnostic = Diagnostic::error(Code(103), Span::new(1006, 1010), "wrong")
            .label("here")
            .also(Span::new(0, 5), "because of this")
            .note("a note")
            .suggest("write", Span::new(1006, 1010), "better")
            .help("or not");
        let plain = render(std::slice::from_ref(&diagnostic), &source, false);
        assert!(plain.starts_with("error[E0103]: wrong\n    --> t.atl:1002:1\n"), "{plain}");
        assert!(plain.lines().count() < 30, "{plain}");
        for part in ["because of this", "::: t.atl:1:1", "note: a note", "help: write", "+ better", "help: or not"] {
            assert!(plain.contains(part), "{part}: {plain}");
        }
        let coloured = render(&[diagnostic], &source, true);
        assert!(coloured.contains("\u{1b}["));
        assert_eq!(without_colour(&coloured), plain);
    }
}
