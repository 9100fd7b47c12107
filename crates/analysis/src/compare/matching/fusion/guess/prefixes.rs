//! The longest of many words that a text begins with.

/// Words, sorted.
pub(super) struct SortedPrefixes<'n> {
    words: Vec<&'n str>,
    /// Of each word the longest other one that it begins with.
    shorter: Vec<Option<usize>>,
}

impl<'n> SortedPrefixes<'n> {
    /// Sorts words. The empty word, which begins every text, is skipped.
    pub(super) fn from_words(words: impl Iterator<Item = &'n str>) -> SortedPrefixes<'n> {
        let mut words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        words.sort_unstable();
        words.dedup();
        let mut shorter = Vec::with_capacity(words.len());
        // The words that the one before begins with, and itself.
        let mut open: Vec<usize> = Vec::new();
        for (i, word) in words.iter().enumerate() {
            while open
                .pop_if(|last| !word.starts_with(words[*last]))
                .is_some()
            {}
            shorter.push(open.last().copied());
            open.push(i);
        }
        SortedPrefixes { words, shorter }
    }

    /// The longest word that a text begins with; never an empty one.
    pub(super) fn longest(&self, text: &str) -> Option<&'n str> {
        // All that is sorted between a beginning of the text and the text itself has that beginning
        // too.
        let end = self.words.partition_point(|word| *word <= text);
        let mut at = end.checked_sub(1)?;
        let shared = self.words[at].bytes().zip(text.bytes());
        let n_shared = shared.take_while(|(a, b)| a == b).count();
        while self.words[at].len() > n_shared {
            at = self.shorter[at]?;
        }
        Some(self.words[at])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_longest(words in prop::collection::vec("[abä]{0,4}", 0..20), text in "[abä]{0,8}") {
            let known = SortedPrefixes::from_words(words.iter().map(String::as_str));
            let fits = words.iter().filter(|word| !word.is_empty() && text.starts_with(word.as_str()));
            let expected = fits.max_by_key(|word| word.len());
            prop_assert_eq!(known.longest(&text), expected.map(String::as_str));
        }
    }
}
