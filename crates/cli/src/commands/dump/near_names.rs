//! Suggestions for misspelt names.

/// Maximum number of suggestions.
const N_MAX: usize = 3;
/// Maximum length of names compared by edit distance.
const N_CHARS_MAX: usize = 200;
/// Maximum number of operators compared.
const N_NAMES_MAX: usize = 100_000;

/// Names that contain `name` or are contained in it, ignoring case; otherwise names whose last
/// component or whole differs in few letters. The nearest come first.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = name.to_lowercase();
    let mut found: Vec<((usize, usize), usize, &str)> = known
        .take(N_NAMES_MAX)
        .enumerate()
        // The position settles ties, so that the suggestions follow the model's order and are
        // deterministic.
        .filter_map(|(i, known)| Some((distance(&lower, &known.to_lowercase())?, i, known)))
        .collect();
    found.sort_unstable();
    if found.first().is_some_and(|((n, _), ..)| *n == 0) {
        found.retain(|((n, _), ..)| *n == 0);
    }
    let mut names = Vec::new();
    for (_, _, known) in found {
        // A model may use a name several times, not only in a row.
        if names.len() < N_MAX && !names.contains(&known) {
            names.push(known);
        }
    }
    names
}

/// Distances of two similar names: of their nearer part, and of the whole.
fn distance(wanted: &str, known: &str) -> Option<(usize, usize)> {
    let (wanted, known) = (wanted.trim_matches('/'), known.trim_matches('/'));
    if !wanted.is_empty() && !known.is_empty() && (known.contains(wanted) || wanted.contains(known))
    {
        return Some((0, 0));
    }
    let whole = edits(wanted, known);
    let ends = edits(last_component(wanted), last_component(known));
    let nearer = whole.into_iter().chain(ends).min()?;
    Some((nearer, whole.unwrap_or(usize::MAX)))
}

fn last_component(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// The edit distance, if it is small for the length of the word.
fn edits(wanted: &str, known: &str) -> Option<usize> {
    let (n_wanted, n_known) = (wanted.chars().count(), known.chars().count());
    // A few edits turn any short word into any other, so the limit grows with the length.
    let n_max = (n_wanted / 3).min(4);
    // The length difference alone rules out most names cheaply.
    if n_wanted.max(n_known) > N_CHARS_MAX || n_wanted.abs_diff(n_known) > n_max {
        return None;
    }
    Some(strsim::levenshtein(wanted, known)).filter(|n| *n <= n_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let known = ["/conv1/Conv", "/conv2/Conv", "/relu/Relu", "/fc/Gemm", "y"];
        for (name, expected) in [
            ("/conv1", &["/conv1/Conv"][..]),
            ("/CONV", &["/conv1/Conv", "/conv2/Conv"]),
            ("/conv3/Conv", &["/conv1/Conv", "/conv2/Conv"]),
            ("/conv9/Konv", &["/conv1/Conv", "/conv2/Conv"]),
            ("Default/fc/Gem", &["/fc/Gemm"]),
            ("nothing", &[]),
            ("", &[]),
        ] {
            assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        }
        let twice = ["conv1", "conv2", "conv1", "conv4"];
        assert_eq!(
            nearest("conv3", twice.into_iter()),
            ["conv1", "conv2", "conv4"]
        );
    }
}
