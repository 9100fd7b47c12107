//! The scopes in the names of operators.

/// Deeper scopes are cut off, because the layout of groups is recursive.
const DEPTH_MAX: usize = 32;

/// Returns the groups around an operator, outermost first.
///
/// A module path is split at `.` and `/`. Without one, the name is split at `/`, and its last part
/// is the operator itself: `/layer2/layer2.1/conv1/Conv` is in `layer2`, `layer2.1`, `conv1`. Empty
/// parts are ignored. Returns at most 32 scopes.
pub fn scopes(name: &str, module: Option<&str>) -> Vec<String> {
    // The program's own structure is more useful than a name made by an exporter.
    match module.filter(|module| !module.is_empty()) {
        Some(module) => parts(module, &['.', '/']),
        None => name
            .rsplit_once('/')
            .map_or_else(Vec::new, |(around, _)| parts(around, &['/'])),
    }
}

fn parts(text: &str, separators: &[char]) -> Vec<String> {
    let parts = text.split(separators).filter(|part| !part.is_empty());
    parts.map(str::to_owned).take(DEPTH_MAX).collect()
}
