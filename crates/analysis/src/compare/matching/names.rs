//! Names of operators, as they are compared and shown.

/// Maximum number of names of a fused group in a reason.
const N_JOINED_MAX: usize = 64;

/// The names of a group's operators, as one.
pub(crate) fn joined<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut names = names;
    let mut first: Vec<&str> = names.by_ref().take(N_JOINED_MAX).collect();
    if names.next().is_some() {
        first.push("…");
    }
    first.join("+")
}

/// The name as file names have it, so that dumps with and without the full name agree.
pub(super) fn file_name(op_name: &str) -> String {
    let mut bytes = op_name.as_bytes().to_vec();
    for byte in &mut bytes {
        if matches!(byte, b'/' | b'.' | b' ' | b'\\') {
            *byte = b'_';
        }
    }
    // ASCII in place of ASCII leaves it text.
    String::from_utf8(bytes).unwrap_or_default()
}
