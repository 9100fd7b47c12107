//! Where the tables of a dump are.

use std::path::{Path, PathBuf};

use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::DataFusionError;
use url::Url;

/// Extension of the files of tables.
pub(crate) const EXTENSION: &str = ".parquet";

/// The tables of one dump in an index.
#[derive(Clone, Debug)]
pub struct TableSource {
    /// The directory of the index.
    pub index: PathBuf,
    /// The dump's directory in each table, which its rows name.
    pub label: String,
    /// The name that the dump has in answers, if not that: several may be called alike.
    pub run: Option<String>,
}

impl TableSource {
    pub(crate) fn dir(&self, table: &str) -> PathBuf {
        self.index.join(table).join(&self.label)
    }
}

/// A directory's URL. As text the engine would take special characters of the path for a pattern.
pub(crate) fn directory_url(dir: &Path) -> Result<ListingTableUrl, DataFusionError> {
    url(dir, |dir| Url::from_directory_path(dir))
}

/// A file's URL, likewise.
pub(crate) fn file_url(file: &Path) -> Result<ListingTableUrl, DataFusionError> {
    url(file, |file| Url::from_file_path(file))
}

fn url(
    path: &Path,
    make: impl Fn(&Path) -> Result<Url, ()>,
) -> Result<ListingTableUrl, DataFusionError> {
    let path = path.canonicalize()?;
    let url = make(&path).map_err(|()| {
        let message = format!("`{}` cannot be written as a URL", path.display());
        DataFusionError::Plan(message)
    })?;
    ListingTableUrl::try_new(url, None)
}
