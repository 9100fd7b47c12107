//! One page that shows a result, without any other file and without a network.
//!
//! All names of dumps are in one JSON text, in which no character has a meaning for HTML; the
//! page's script puts them in place as text.

mod data;

use std::io::{self, Write};

use crate::compare::result::Comparison;

const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// Places in [`PAGE`] for the parts, in order.
const PLACES: [&str; 3] = ["{STYLE}", "{DATA}", "{SCRIPT}"];

pub(super) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut rest = PAGE;
    for place in PLACES {
        let (before, after) = rest.split_once(place).unwrap_or((rest, ""));
        out.write_all(before.as_bytes())?;
        match place {
            "{STYLE}" => out.write_all(STYLE.as_bytes())?,
            "{SCRIPT}" => out.write_all(SCRIPT.as_bytes())?,
            _ => serde_json::to_writer(InertJson(&mut *out), &data::page_content(comparison))?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// JSON on its way into a page: what HTML would see a tag or entity in is written as JSON's own
/// escape. Such characters are in strings only.
struct InertJson<'a>(&'a mut dyn Write);

impl Write for InertJson<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut start = 0;
        for (i, byte) in bytes.iter().enumerate() {
            if let b'<' | b'>' | b'&' = byte {
                self.0.write_all(&bytes[start..i])?;
                write!(self.0, "\\u{byte:04x}")?;
                start = i + 1;
            }
        }
        self.0.write_all(&bytes[start..])?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_each_part() {
        let places = PLACES.map(|place| {
            PAGE.match_indices(place)
                .map(|(i, _)| i)
                .collect::<Vec<_>>()
        });
        assert!(places.iter().all(|found| found.len() == 1), "{places:?}");
        assert!(places.is_sorted());
    }

    #[test]
    fn the_page_asks_nobody_for_anything() {
        for part in [PAGE, STYLE, SCRIPT] {
            for word in [
                "http:",
                "https:",
                "src=",
                "@import",
                "url(",
                "innerHTML",
                "eval(",
                "fetch(",
            ] {
                assert!(!part.contains(word), "{word}");
            }
        }
    }

    #[test]
    fn nothing_in_data_ends_the_script() {
        let mut out = Vec::new();
        serde_json::to_writer(InertJson(&mut out), "</script><!-- & é").unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains(['<', '>', '&']), "{text}");
        let back: String = serde_json::from_str(&text).unwrap();
        assert_eq!(back, "</script><!-- & é");
    }
}
