//! Bare words for numbers that are not finite, made into texts of the same length, so that offsets
//! in errors stay those of the file.

/// The words that Python writes, and their replacements of the same length. The longer words come
/// first, as the others are their ends.
const WORDS: [(&[u8], &[u8]); 3] = [
    (b"-Infinity", b"\"-inf   \""),
    (b"Infinity", b"\"inf   \""),
    (b"NaN", b"\"N\""),
];
/// The replacement for NaN, because the word itself is too short for quotes.
const NAN_TEXT: &str = "N";

/// Puts quotes around `NaN`, `Infinity` and `-Infinity` outside of texts.
pub(super) fn quote_words(bytes: &mut [u8]) {
    let mut at = 0;
    let mut is_in_text = false;
    while let Some(&byte) = bytes.get(at) {
        let rest = bytes.get_mut(at..).unwrap_or_default();
        let word = WORDS.iter().find(|(word, _)| rest.starts_with(word));
        at += match (is_in_text, byte, word) {
            // An escaped quote does not end a text.
            (true, b'\\', _) => 2,
            (_, b'"', _) => {
                is_in_text = !is_in_text;
                1
            }
            (false, b'-' | b'I' | b'N', Some((word, text))) => {
                for (place, quoted) in rest.iter_mut().zip(*text) {
                    *place = *quoted;
                }
                word.len()
            }
            _ => 1,
        };
    }
}

/// The text of a statistic, with the words for what is not finite as other tables have them.
pub(super) fn number_text(text: &str) -> String {
    match text.trim() {
        NAN_TEXT => "nan".to_owned(),
        text => text.to_owned(),
    }
}
