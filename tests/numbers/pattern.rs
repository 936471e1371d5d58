//! Finding figures in a text: a pattern is the text around them, with `{}` in their place, `{+}` where a plus is written
//! too, and `{?}` for one that is not meant. White space stands for any white space, so that a paragraph may be wrapped
//! anew.

use std::ops::Range;

use crate::figure;

/// A figure that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundFigure {
    /// Where it stands in the text.
    pub(crate) range: Range<usize>,
    /// Whether a plus is written.
    pub(crate) is_signed: bool,
}

/// The figures that a pattern points at. It must fit exactly one place of the text.
pub(crate) fn find(text: &str, pattern: &str) -> Result<Vec<FoundFigure>, String> {
    let pieces = pieces(pattern);
    let first = pieces.first().map_or("", |piece| piece.0);
    let Some(start) = first.trim_start().chars().next() else {
        return Err(format!("`{pattern}` must begin with text: a figure alone is found everywhere"));
    };
    let found: Vec<Vec<FoundFigure>> =
        text.match_indices(start).filter_map(|(at, _)| fit(text, at, &pieces)).collect();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(format!("`{pattern}` is nowhere in it")),
        several => {
            let lines: Vec<_> = several
                .iter()
                .map(|places| places.first().map_or(0, |place| line_of(text, place.range.start)).to_string())
                .collect();
            Err(format!("`{pattern}` fits the lines {}: say more of it", lines.join(", ")))
        }
    }
}

/// The line of a position, from 1 on.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// What stands in the place of a figure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Plain,
    Signed,
    NotMeant,
}

const MARKS: [(&str, Mark); 3] = [("{}", Mark::Plain), ("{+}", Mark::Signed), ("{?}", Mark::NotMeant)];

/// The text before each figure, and its mark; the last piece is what follows the last figure.
fn pieces(pattern: &str) -> Vec<(&str, Option<Mark>)> {
    let (mut pieces, mut rest) = (Vec::new(), pattern);
    loop {
        let next =
            MARKS.into_iter().filter_map(|(written, mark)| Some((rest.find(written)?, written, mark))).min();
        let Some((at, written, mark)) = next else {
            pieces.push((rest, None));
            return pieces;
        };
        pieces.push((&rest[..at], Some(mark)));
        rest = &rest[at + written.len()..];
    }
}

fn fit(text: &str, start: usize, pieces: &[(&str, Option<Mark>)]) -> Option<Vec<FoundFigure>> {
    let (mut at, mut places) = (start, Vec::new());
    for (index, (words, figure)) in pieces.iter().enumerate() {
        at = after(text, at, if index == 0 { words.trim_start() } else { words })?;
        if let Some(mark) = figure {
            let written = figure::prefix(&text[at..])?;
            if *mark != Mark::NotMeant {
                places.push(FoundFigure { range: at..at + written.len(), is_signed: *mark == Mark::Signed });
            }
            at += written.len();
        }
    }
    Some(places)
}

/// Where `words` end if the text has them at `at`.
fn after(text: &str, mut at: usize, words: &str) -> Option<usize> {
    let mut letters = words.chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_whitespace() {
            at += text[at..].strip_prefix(letter).map(|_| letter.len_utf8())?;
            continue;
        }
        while letters.next_if(|next| next.is_whitespace()).is_some() {}
        let rest = text[at..].trim_start();
        let n_blanks = text.len() - at - rest.len();
        at += (n_blanks > 0).then_some(n_blanks)?;
    }
    Some(at)
}

#[test]
fn figures_are_found_over_the_end_of_a_line() {
    let text = "first\ntail (p99 of\n182 h instead of 204 h)\n";
    let places = find(text, "(p99 of {} h instead of {} h)").unwrap();
    assert_eq!(places.iter().map(|p| &text[p.range.clone()]).collect::<Vec<_>>(), ["182", "204"]);
    assert_eq!(line_of(text, places[0].range.start), 3);
}

#[test]
fn a_pattern_fits_one_place_or_is_refused() {
    let text = "| a | 1 |\n| b | 2 |\n| a | 3 |\n";
    assert_eq!(find(text, "| a | {} |").unwrap_err(), "`| a | {} |` fits the lines 1, 3: say more of it");
    assert_eq!(find(text, "| c | {} |").unwrap_err(), "`| c | {} |` is nowhere in it");
    assert!(find(text, "{} |").is_err());
    assert_eq!(find(text, "| b | {} |").unwrap().len(), 1);
}

#[test]
fn what_is_not_meant_is_passed_over() {
    let text = "| a | 1 | 2.5 s | 3 |";
    let places = find(text, "| a | {} | {?} s | {} |").unwrap();
    assert_eq!(places.iter().map(|p| &text[p.range.clone()]).collect::<Vec<_>>(), ["1", "3"]);
}

#[test]
fn a_pattern_says_whether_a_figure_has_a_sign() {
    let places = find("x (−0.3 %) y (+7.4 %)", "x ({+} %) y ({+} %)").unwrap();
    assert!(places.iter().all(|place| place.is_signed));
}
