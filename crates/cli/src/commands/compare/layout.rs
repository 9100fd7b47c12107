//! Text that fits the width of a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Width of output that is not a terminal, and of terminals of unknown width.
pub(super) const WIDTH: usize = 80;

/// Blanks after each column of a table.
const PADDING: usize = 2;

/// Minimum width of a name that is cut.
const NAME_WIDTH_MIN: usize = 16;

/// Columns are dropped before names are cut below this width.
const NAME_WIDTH_WISHED: usize = 32;

/// A table with one column of names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NameTable {
    pub(super) titles: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl NameTable {
    /// Fits the table into a width: first drops the columns of `dispensable`, in their order, then
    /// cuts the middle of names.
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
            // The last column has no padding, but the column of names is never last.
            let room = width.saturating_sub(taken + PADDING);
            if room >= widest.min(NAME_WIDTH_WISHED) {
                return self.with_names(column, room);
            }
            // Each dropped column frees room, so the names are measured again.
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

/// Cuts the middle of a text longer than `width` columns, because names differ at their ends.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    // Names share their beginnings more often than their ends, so the end gets two thirds. A wide
    // character may leave a column of the head unused, which the end gets too.
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

/// Units of sizes.
const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];

/// Breaks lines at `width` columns, only at blanks: a longer word, such as a path, stays whole on
/// its own line so that it can be copied. All lines but the first are indented by
/// `indent` more blanks than the text.
pub(super) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let words = text.trim_start_matches(' ');
    let leading = &text[..text.len() - words.len()];
    let mut lines = vec![String::from(leading)];
    let mut is_empty = true;
    let mut words = words.split(' ').peekable();
    while let Some(word) = words.next() {
        // A number stays with its unit.
        let unit = words.next_if(|next| UNITS.contains(next));
        let joined = unit.map(|unit| format!("{word} {unit}"));
        let word = joined.as_deref().unwrap_or(word);
        let mut line = lines.last_mut().expect("there is a first line");
        // The first word of a line is never moved: it would leave an empty line, and not fit the
        // next one either.
        if !is_empty && line.width() + 1 + word.width() > width {
            lines.push(format!("{leading}{}", " ".repeat(indent)));
            line = lines.last_mut().expect("one was added");
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
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
    fn lines_are_broken_at_blanks_alone() {
        for (text, width, expected) in [
            ("a b", 3, "a b"),
            ("", 3, ""),
            ("  ab cd ef", 7, "  ab cd\n    ef"),
            ("ab abcdefghij", 6, "ab\n  abcdefghij"),
            ("界界 界", 4, "界界\n  界"),
            ("  abc de", 1, "  abc\n    de"),
            ("about 34.8 kB", 10, "about\n  34.8 kB"),
        ] {
            assert_eq!(wrapped(text, width, 2), expected, "{text:?} {width}");
        }
    }
}
