//! The page as one self-contained file, with script, style and answers inside and no network
//! access.
//!
//! The answers are the server's, computed by the same functions. They are compressed JSON in
//! base64, so names from a dump cannot be interpreted as HTML.

mod contents;
mod graphs;
mod questions;
mod tensors;

use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::page::{REPORT, SCRIPT, STYLE};
use crate::viewed::{ViewError, ViewedRuns};

/// The document's placeholders, in order.
const PLACES: [&str; 3] = ["{STYLE}", "{DATA}", "{SCRIPT}"];
/// Size in bytes of a file of 1,000 operators with all details; more operators add to it.
const N_FILE_BYTES: usize = 2_900_000;
/// Maximum number of letters of a dump's name in a file name.
const N_NAME_LETTERS: usize = 40;

/// The page with the answers about dumps inside. It contains:
/// - the rows of 20,000 operators, faulty ones first, then the worst;
/// - details of 1,000 of these;
/// - layouts of the graph, for the groups around operators;
/// - tensors with one slice each, of faulty operators and then the worst, as many as fit in 3 MB
///   with everything else.
///
/// # Errors
///
/// [`ViewError::Report`] if an answer cannot be computed, for example from a damaged dump.
pub fn write(runs: &ViewedRuns) -> Result<String, ViewError> {
    let contents = contents::contents(runs)
        .map_err(|error| ViewError::Report(io::Error::other(error.to_string())))?
        .to_string();
    let data = STANDARD.encode(compressed(contents.as_bytes()).map_err(ViewError::Report)?);
    let mut report = String::with_capacity(REPORT.len() + STYLE.len() + data.len() + SCRIPT.len());
    let mut rest = REPORT;
    // Each placeholder is searched after the previous one, and never inside inserted content.
    for (place, part) in PLACES.into_iter().zip([STYLE, &data, SCRIPT]) {
        let (before, after) = rest.split_once(place).ok_or_else(|| {
            ViewError::Report(io::Error::other(format!(
                "the page has no placeholder `{place}`"
            )))
        })?;
        report += before;
        report += part;
        rest = after;
    }
    Ok(report + rest)
}

/// Whether a file has a page's suffix.
pub fn is_page_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| {
        ["html", "htm"]
            .iter()
            .any(|known| ending.eq_ignore_ascii_case(known))
    })
}

/// A name for the file, of letters, digits, points and dashes.
pub fn file_name(runs: &ViewedRuns) -> String {
    let dumps = [Some(&runs.target), runs.golden.as_ref()];
    let names = dumps
        .into_iter()
        .flatten()
        .map(|dump| safe_name(&dump.name()));
    let names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
    // A dump whose name has no safe letter leaves nothing between the dash and the suffix.
    format!("opscope-{}.html", names.join("-")).replace("-.html", ".html")
}

fn safe_name(name: &str) -> String {
    // No point at the start, which would hide the file.
    let name: String = name
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || "._-".contains(*letter))
        .take(N_NAME_LETTERS)
        .collect();
    name.trim_matches(['.', '-']).to_owned()
}

fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_each_part() {
        let places = PLACES.map(|place| REPORT.find(place));
        assert!(places.iter().all(Option::is_some), "{places:?}");
        assert!(places.is_sorted());
        for place in PLACES {
            assert_eq!(REPORT.matches(place).count(), 1, "{place}");
        }
    }

    #[test]
    fn nothing_in_a_part_ends_it() {
        let script = SCRIPT.to_ascii_lowercase();
        assert!(!script.contains("</script") && !script.contains("<!--"));
        assert!(!STYLE.to_ascii_lowercase().contains("</style"));
    }

    #[test]
    fn names_of_files_are_plain() {
        for (name, expected) in [
            ("d_resnet18.2", "d_resnet18.2"),
            ("../..\"; x=\r\n\u{202e}é", "x"),
            (".hidden-", "hidden"),
            ("", ""),
        ] {
            assert_eq!(safe_name(name), expected);
        }
    }
}
