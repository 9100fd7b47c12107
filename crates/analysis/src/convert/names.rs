//! Names of converted files.

use opscope_store::file_format::mapping_csv;

use super::ConvertSource;
use crate::names::fitting;

/// An output file name, plus the full name where the two differ. `mapping.csv` in the same
/// directory records the full name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputName {
    pub(super) name: String,
    pub(super) full_name: Option<String>,
}

impl OutputName {
    /// Builds `{file}{tail}{suffix}` from the name of a dump file.
    ///
    /// If the dump file has a numeric name, so does the output. A name that is too long is replaced
    /// by its UUID. In both cases the full name is kept.
    pub(super) fn new(source: &ConvertSource, tail: &str, suffix: &str) -> OutputName {
        OutputName::from_stem(&source.file_name, source.real_name.as_deref(), tail, suffix)
    }

    /// Like [`OutputName::new`], with a stem other than the file's name.
    pub(super) fn from_stem(
        file_name: &str,
        real_name: Option<&str>,
        tail: &str,
        suffix: &str,
    ) -> OutputName {
        let stem = without_controls(&format!("{file_name}{tail}"));
        let full_name = real_name.map(|real| format!("{real}{tail}{suffix}"));
        let name = fitting(&stem, suffix);
        // A source with a numeric name has a full name even if its own name fits.
        let full_name = full_name.or_else(|| {
            let long = format!("{stem}{suffix}");
            (long != name).then_some(long)
        });
        OutputName { name, full_name }
    }

    /// The entry for `mapping.csv`, if the name was replaced.
    pub(super) fn mapping_line(&self) -> Option<String> {
        let full_name = self.full_name.as_ref()?;
        Some(mapping_csv::line(&self.name, &without_controls(full_name)))
    }
}

/// A line break would start another row of `mapping.csv`, and a `/` would name another directory.
pub(super) fn without_controls(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || c == '/' { '_' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file_name: &str, real_name: Option<&str>, name: &str, full_name: Option<&str>) {
        let found = OutputName::from_stem(file_name, real_name, ".input.0", ".npy");
        assert_eq!(found.name, name);
        assert_eq!(found.full_name.as_deref(), full_name);
    }

    #[test]
    fn only_long_names_change() {
        check("Add.a.1.0.5", None, "Add.a.1.0.5.input.0.npy", None);
        let real = "Add.x.1.0.5.input.0.npy";
        check("77", Some("Add.x.1.0.5"), "77.input.0.npy", Some(real));
        let found = OutputName::from_stem(&"x".repeat(250), None, ".output.12", ".npy");
        assert_eq!(found.name.len(), 36);
        assert!(found.full_name.unwrap().ends_with("x.output.12.npy"));
    }

    #[test]
    fn names_stay_in_their_directory_and_on_their_line() {
        check("../a\nb", None, ".._a_b.input.0.npy", None);
        let mapped = OutputName::from_stem("7", Some("a\nb"), "", ".npy");
        assert_eq!(mapped.mapping_line().unwrap(), "7.npy,a_b.npy\n");
    }
}
