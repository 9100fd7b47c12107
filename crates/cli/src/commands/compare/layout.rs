//! Text that fits the width of a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of a page that is no terminal, and of one whose width is not known.
pub(super) const WIDTH: usize = 80;

/// Blanks behind each column of a table.
const PADDING: usize = 2;

/// A name is not cut to less than this.
const NAME_WIDTH_MIN: usize = 16;

/// Columns are left out before names are cut to less than this.
const NAME_WIDTH_WISHED: usize = 32;

/// A table with one column of names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NameTable {
    pub(super) titles: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl NameTable {
    /// The table with a width: first the columns of `dispensable` are left out, in their order,
    /// then the names lose their middle.
    pub(super) fn fitting(mut self, names: &str, width: usize, dispensable: &[&str]) -> NameTable {
        let mut dispensable = dispensable.iter();
        loop {
            let column = self.titles.iter().position(|title| *title == names);
            let Some(column) = column else {
                return self;
            };
            let widest = self.width_of(column);
            let others = (0..self.titles.len()).filter(|&other| other != column);
            let taken: usize = others.map(|other| self.width_of(other) + PADDING).sum();
            // Nothing stands behind the last column, but names are not the last.
            let room = width.saturating_sub(taken + PADDING);
            if room >= widest.min(NAME_WIDTH_WISHED) {
                return self.with_names(column, room);
            }
            match dispensable.next() {
                Some(title) => self.leave_out(title),
                None => return self.with_names(column, room.max(NAME_WIDTH_MIN)),
            }
        }
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.width()).max();
        widest.unwrap_or(0).max(self.titles[column].width())
    }

    fn leave_out(&mut self, title: &str) {
        if let Some(column) = self.titles.iter().position(|known| *known == title) {
            self.titles.remove(column);
            for row in &mut self.rows {
                row.remove(column);
            }
        }
    }

    fn with_names(mut self, column: usize, room: usize) -> NameTable {
        for row in &mut self.rows {
            row[column] = shortened(&row[column], room);
        }
        self
    }
}

/// A text of at most `width` columns; of a longer one the middle is left out, as ends tell names
/// apart.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let head = fitting_part(text.chars(), room / 3);
    let head_width = head.iter().collect::<String>().width();
    let tail = fitting_part(text.chars().rev(), room - head_width);
    head.iter().chain(&['…']).chain(tail.iter().rev()).collect()
}

/// The first characters that fit.
fn fitting_part(chars: impl Iterator<Item = char>, width: usize) -> Vec<char> {
    let mut left = width;
    chars
        .map_while(|c| {
            left = left.checked_sub(c.width().unwrap_or(0))?;
            Some(c)
        })
        .collect()
}

/// Lines of at most `width` columns, broken at blanks where there are any. All but the first begin
/// with `indent` more blanks than the text.
pub(super) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let n_leading = text.len() - text.trim_start_matches(' ').len();
    let later = " ".repeat(n_leading + indent);
    let mut lines = vec![" ".repeat(n_leading)];
    let mut is_empty = true;
    for word in text.trim_start_matches(' ').split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        loop {
            let blank = usize::from(!is_empty);
            let line = lines.last_mut().expect("there is a first line");
            let word: String = rest.iter().collect();
            if line.width() + blank + word.width() <= width {
                line.push_str(&" ".repeat(blank));
                line.push_str(&word);
                is_empty = false;
                break;
            }
            if is_empty {
                // A name longer than a line goes on in the next, whole, and at least one character
                // at a time.
                let part = fitting_part(rest.iter().copied(), width.saturating_sub(line.width()));
                line.extend(rest.drain(..part.len().max(1).min(rest.len())));
                if rest.is_empty() {
                    is_empty = false;
                    break;
                }
            }
            lines.push(later.clone());
            is_empty = true;
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        for (text, width, expected) in [
            ("abc", 3, "abc"),
            ("abcdefgh", 7, "ab…efgh"),
            ("äöüß", 2, "…ß"),
            ("界界界界", 6, "…界界"),
            ("界界界界", 8, "界界界界"),
        ] {
            assert_eq!(shortened(text, width), expected);
        }
    }

    #[test]
    fn columns_go_before_names_do() {
        let table = |name: &str| NameTable {
            titles: vec!["a", "name", "b", "c"],
            rows: vec![
                ["1", name, "22222222", "333333333"]
                    .map(str::to_owned)
                    .to_vec(),
            ],
        };
        let check = |n_name: usize, width: usize, titles: &[&str], expected: usize| {
            let fitted = table(&"x".repeat(n_name)).fitting("name", width, &["c", "b"]);
            assert_eq!(fitted.titles, titles, "{n_name} {width}");
            assert_eq!(fitted.rows[0].len(), titles.len());
            assert_eq!(fitted.rows[0][1].width(), expected, "{n_name} {width}");
        };
        check(10, 80, &["a", "name", "b", "c"], 10);
        check(10, 36, &["a", "name", "b", "c"], 10);
        check(10, 35, &["a", "name", "b"], 10);
        check(100, 80, &["a", "name", "b", "c"], 54);
        check(100, 50, &["a", "name", "b"], 35);
        check(100, 40, &["a", "name"], 35);
        check(100, 10, &["a", "name"], 16);
    }

    #[test]
    fn lines_are_broken_at_blanks_and_long_words_anywhere() {
        for (text, width, expected) in [
            ("a b", 3, "a b"),
            ("", 3, ""),
            ("  ab cd ef", 7, "  ab cd\n    ef"),
            ("ab abcdefghij", 6, "ab\n  abcd\n  efgh\n  ij"),
            ("界界 界", 4, "界界\n  界"),
            ("  abc", 1, "  a\n    b\n    c"),
        ] {
            assert_eq!(wrapped(text, width, 2), expected, "{text:?} {width}");
        }
    }
}
