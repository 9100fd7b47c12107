//! Names of the native form.
//!
//! ```text
//! {time}/
//!   rank-{rank}/
//!     elements-{n}.safetensors
//!     {model}-{load}/step-{step}.parquet     a step that is whole
//!     {model}-{load}/step-{step}.rows        one that is not
//!     operators/step-{step}.parquet          operators that belong to no model
//! ```

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::acl::clean_name;
use crate::record::ModelId;

/// The directory of operators that belong to no model.
const SINGLE_OPERATORS_DIR: &str = "operators";
/// Maximum number of bytes in a directory's name that come from a model.
const MODEL_BYTES_MAX: usize = 100;

/// The directories of a dump by one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeTree {
    dump_path: PathBuf,
    root: PathBuf,
    rank: u32,
}

impl NativeTree {
    /// A dump below `dump_path` in a directory called `time`.
    pub fn new(dump_path: &Path, time: &str, rank: u32) -> NativeTree {
        NativeTree {
            dump_path: dump_path.to_owned(),
            root: dump_path.join(time),
            rank,
        }
    }

    /// The directory that the user named.
    pub fn dump_path(&self) -> &Path {
        &self.dump_path
    }

    /// The directory of the run; files are named in tables from here.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The directory of what one rank dumps.
    pub fn rank_dir(&self) -> PathBuf {
        self.root.join(format!("rank-{}", self.rank))
    }

    /// A file of elements.
    pub fn elements_file(&self, nth: u32) -> PathBuf {
        self.rank_dir().join(format!("elements-{nth}.safetensors"))
    }

    /// The directory of the tables of a model.
    pub fn model_dir(&self, model: &ModelId) -> PathBuf {
        let Some(load) = model.load else {
            return self.rank_dir().join(SINGLE_OPERATORS_DIR);
        };
        let name = clean_name(&model.file_stem);
        // File systems take 255 bytes, of which the load and encrypted names need some.
        let end = name.floor_char_boundary(MODEL_BYTES_MAX);
        self.rank_dir().join(format!("{}-{load}", &name[..end]))
    }

    /// The table of a step that is whole.
    pub fn table(&self, model: &ModelId, step: u64) -> PathBuf {
        self.model_dir(model).join(format!("step-{step}.parquet"))
    }

    /// The rows of a step that is not.
    pub fn journal(&self, model: &ModelId, step: u64) -> PathBuf {
        self.model_dir(model).join(format!("step-{step}.rows"))
    }
}

/// Which of the two files of a step one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepFile {
    /// Its table.
    Table,
    /// Its rows while it is not over.
    Journal,
}

impl StepFile {
    /// By the name of a file and of the directories above it; `None` of other files.
    pub fn parse(path: &Path) -> Option<(StepFile, u64)> {
        let name = path.file_name()?.to_str()?;
        // The name alone would also fit other tools' tables.
        let rank = path.parent()?.parent()?.file_name()?.to_str()?;
        number_of(rank, "rank-", "")?;
        let (file, stem) = match name.strip_suffix(".parquet") {
            Some(stem) => (StepFile::Table, stem),
            None => (StepFile::Journal, name.strip_suffix(".rows")?),
        };
        // A step that was dumped again has a number after it.
        let (stem, again) = stem
            .split_once('.')
            .map_or((stem, None), |(a, b)| (a, Some(b)));
        again.map_or(Some(0), |again| number_of(again, "", ""))?;
        Some((file, number_of(stem, "step-", "")?))
    }
}

/// Whether a file holds elements, by its name and that of its directory.
pub fn is_elements_file(path: &Path) -> bool {
    let dir = path
        .parent()
        .and_then(Path::file_name)
        .and_then(OsStr::to_str);
    let name = path.file_name().and_then(OsStr::to_str);
    dir.is_some_and(|dir| number_of(dir, "rank-", "").is_some())
        && name.is_some_and(|name| number_of(name, "elements-", ".safetensors").is_some())
}

/// The directory of the run that a file of a step belongs to.
pub fn run_dir_of(step_file: &Path) -> &Path {
    step_file.ancestors().nth(3).unwrap_or(Path::new(""))
}

/// The rank of a step's file, according to its directories.
pub fn rank_of(step_file: &Path) -> Option<u32> {
    let dir = step_file.parent()?.parent()?.file_name()?.to_str()?;
    u32::try_from(number_of(dir, "rank-", "")?).ok()
}

/// A file that a table names, below the directory of its run; `None` if it would lie elsewhere.
pub fn file_below(run_dir: &Path, name: &str) -> Option<PathBuf> {
    let name = Path::new(name);
    let mut components = name.components();
    let is_below = components.all(|component| matches!(component, Component::Normal(_)));
    (is_below && !name.as_os_str().is_empty()).then(|| run_dir.join(name))
}

fn number_of(name: &str, prefix: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let number: u64 = digits.parse().ok()?;
    // `parse` takes `+7` and `007` as well, which are names of other people's files.
    (number.to_string() == digits).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_others() {
        for (path, expected) in [
            ("t/rank-0/m-1/step-7.parquet", Some((StepFile::Table, 7))),
            (
                "t/rank-12/operators/step-0.rows",
                Some((StepFile::Journal, 0)),
            ),
            ("t/rank-0/m-1/step-7.1.parquet", Some((StepFile::Table, 7))),
            ("t/rank-0/m-1/step-7.x.parquet", None),
            ("rank-0/m-1/step-7.parquet", Some((StepFile::Table, 7))),
            ("t/rank-0/m-1/step-07.parquet", None),
            ("t/rank-x/m-1/step-7.parquet", None),
            ("t/rank-0/step-7.parquet", None),
            ("step-7.parquet", None),
            ("t/rank-0/m-1/step-7.csv", None),
        ] {
            assert_eq!(StepFile::parse(Path::new(path)), expected, "{path}");
        }
        assert!(is_elements_file(Path::new(
            "t/rank-0/elements-3.safetensors"
        )));
        assert!(!is_elements_file(Path::new("t/elements-3.safetensors")));
        assert_eq!(
            run_dir_of(Path::new("a/t/rank-0/m-1/step-7.rows")),
            Path::new("a/t")
        );
        let step = Path::new("a/t/rank-12/m-1/step-7.rows");
        assert_eq!(rank_of(step), Some(12));
        assert_eq!(rank_of(Path::new("rank-x/m-1/step-7.rows")), None);
        let dir = Path::new("run");
        assert_eq!(file_below(dir, "rank-0/e"), Some("run/rank-0/e".into()));
        for name in ["", "/etc/passwd", "../e", "rank-0/../../e"] {
            assert_eq!(file_below(dir, name), None, "{name}");
        }
    }

    #[test]
    fn models_have_directories_of_their_own() {
        let tree = NativeTree::new(Path::new("d"), "2020", 3);
        let model = |file_stem: &str, load| ModelId {
            file_stem: file_stem.to_owned(),
            load,
            ..ModelId::default()
        };
        for (id, expected) in [
            (model("net", Some(1)), "d/2020/rank-3/net-1".to_owned()),
            (model("a/b", Some(2)), "d/2020/rank-3/a_b-2".to_owned()),
            (model("x", None), "d/2020/rank-3/operators".to_owned()),
            (
                model(&"é".repeat(99), Some(1)),
                format!("d/2020/rank-3/{}-1", "é".repeat(50)),
            ),
        ] {
            assert_eq!(tree.model_dir(&id), Path::new(&expected));
        }
    }
}
