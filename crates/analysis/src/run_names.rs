//! The names of dumps in the column `run`.

use std::collections::HashSet;
use std::path::Path;

use opscope_store::tree::acl::clean_name;

/// Names dumps by directory, with a number appended to duplicates.
pub fn run_names<P: AsRef<Path>>(dumps: &[P]) -> Vec<String> {
    let mut taken = HashSet::new();
    let names = dumps.iter().map(|dump| {
        let name = clean_name(&base_name(dump.as_ref()));
        let mut free = name.clone();
        let mut n = 1;
        while !taken.insert(free.clone()) {
            n += 1;
            free = format!("{name}-{n}");
        }
        free
    });
    names.collect()
}

fn base_name(dump: &Path) -> String {
    // Resolves `.` and `dump/..` to real names. A dump that no longer exists keeps the given name.
    let absolute = dump.canonicalize().unwrap_or_else(|_| dump.to_owned());
    let name = absolute.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    if name.is_empty() {
        "dump".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_have_names_of_their_own() {
        let check = |dumps: &[&str], expected: &[&str]| assert_eq!(run_names(dumps), expected);
        check(&["/no/a", "/no/b/"], &["a", "b"]);
        check(&["/no/a", "/nowhere/a", "/no/a-2"], &["a", "a-2", "a-2-2"]);
        check(&["/no/v1.0", "/"], &["v1_0", "dump"]);
    }
}
