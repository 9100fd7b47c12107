//! `mapping.csv`: the real names of files whose names were too long for the file system.
//!
//! One line for each file, `short_name,real_name`, no header. A real name may hold commas; the
//! first comma ends the short name. The same line may occur more than once.

use super::byte_order_mark;

/// The file's name in every directory that needs it.
pub const FILE_NAME: &str = "mapping.csv";

/// One line, with its line end.
///
/// Line breaks inside `real_name` would add lines; the caller's names hold none.
pub fn line(short_name: &str, real_name: &str) -> String {
    format!("{short_name},{real_name}\n")
}

/// The pairs of a file's text, in order. Lines without a comma are skipped, and carriage returns at
/// the end of a line are removed.
pub fn parse(text: &str) -> impl Iterator<Item = (&str, &str)> {
    byte_order_mark::behind(text)
        .split('\n')
        .filter_map(|line| line.trim_end_matches('\r').split_once(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        let text = "\u{feff}".to_owned() + &line("12", "Conv.a,b.1.0.9") + "\nnonsense\n13,\r\n";
        let pairs: Vec<_> = parse(&text).collect();
        assert_eq!(pairs, [("12", "Conv.a,b.1.0.9"), ("13", "")]);
    }
}
