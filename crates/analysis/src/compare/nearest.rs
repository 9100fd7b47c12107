//! Suggests the word that the user may have meant.

/// Longer words do not count as misspelt names.
const N_CHARS_MAX: usize = 40;
/// More edits than this make another word.
const N_EDITS_MAX: usize = 3;

/// ` (did you mean …?)` with the known word that is fewest edits away, or nothing if none is near.
pub(super) fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let n_chars = word.chars().count();
    if n_chars > N_CHARS_MAX {
        return String::new();
    }
    let nearest = known.into_iter().map(|known| (n_edits(word, known), known));
    // Any two short words are a few edits apart, so half of the letters have to stay.
    match nearest.min() {
        Some((n, nearest)) if n <= N_EDITS_MAX.min(n_chars / 2) => {
            format!(" (did you mean `{nearest}`?)")
        }
        _ => String::new(),
    }
}

/// Letters to replace, insert or delete, letter case apart.
fn n_edits(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|text| text.to_lowercase().chars().collect::<Vec<char>>());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j + 1] + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_only() {
        let known = ["rel_l2", "cosine", "max_abs"];
        for (word, expected) in [
            ("cosin", " (did you mean `cosine`?)"),
            ("REL_L1", " (did you mean `rel_l2`?)"),
            ("something", ""),
            ("x", ""),
        ] {
            assert_eq!(hint(word, known), expected, "{word}");
        }
        assert_eq!(hint(&"x".repeat(100), known), "");
        assert_eq!(n_edits("kitten", "sitting"), 3);
    }
}
