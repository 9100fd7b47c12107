//! The table of comparisons.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion::datasource::{TableProvider, ViewTable};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, case, lit};
use datafusion::prelude::{SessionContext, col};
use futures::TryStreamExt;
use opscope_analysis::tables::{COMPARE_TABLE, has_comparisons};

use crate::SqlError;
use crate::source::{EXTENSION, TableSource, directory_url, file_url};

/// Registers the comparison in a file, or those in the indexes of the sources. Where there is none
/// there is no table.
pub(crate) async fn register(
    context: &SessionContext,
    sources: &[TableSource],
    file: Option<&Path>,
) -> Result<(), SqlError> {
    let table = table(context, sources, file).await;
    if let Some(table) = table.map_err(SqlError::Answer)? {
        let registered = context.register_table(COMPARE_TABLE, table);
        registered.map_err(SqlError::Answer)?;
    }
    Ok(())
}

async fn table(
    context: &SessionContext,
    sources: &[TableSource],
    file: Option<&Path>,
) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
    if let Some(file) = file {
        return Ok(Some(parts(context, file).await?));
    }
    let mut union: Option<LogicalPlanBuilder> = None;
    for source in sources {
        if !has_comparisons(&source.index, Some(&source.label)) {
            continue;
        }
        let provider = parts(context, &source.dir(COMPARE_TABLE)).await?;
        let mut part = context.read_table(provider)?;
        for column in ["run", "golden_run"] {
            part = part.with_column(column, shown_run(column, sources, &source.index)?)?;
        }
        let plan = part.into_unoptimized_plan();
        // Comparisons with a yardstick have more columns.
        union = Some(match union {
            Some(union) => union.union_by_name(plan)?,
            None => LogicalPlanBuilder::from(plan),
        });
    }
    union
        .map(|union| Ok(Arc::new(ViewTable::new(union.build()?, None)) as _))
        .transpose()
}

/// A column of runs with the names that these have in answers, where several indexes call theirs
/// alike.
fn shown_run(column: &str, sources: &[TableSource], index: &Path) -> Result<Expr, DataFusionError> {
    let of_index = sources.iter().filter(|source| source.index == index);
    let renamed = of_index.filter_map(|source| Some((&source.label, source.run.as_ref()?)));
    let renamed: Vec<_> = renamed.collect();
    // A table names runs as its index does. Without another name there is nothing to replace.
    let [(first, run), others @ ..] = &renamed[..] else {
        return Ok(col(column));
    };
    let mut names = case(col(column)).when(lit(first.as_str()), lit(run.as_str()));
    for (label, run) in others {
        names = names.when(lit(label.as_str()), lit(run.as_str()));
    }
    names.otherwise(col(column))
}

/// A file, or all files of a directory, as one table with all of their columns.
async fn parts(
    context: &SessionContext,
    path: &Path,
) -> Result<Arc<dyn TableProvider>, DataFusionError> {
    let url = if path.is_dir() {
        directory_url(path)?
    } else {
        file_url(path)?
    };
    let state = context.state();
    let store = state.runtime_env().object_store(&url)?;
    let files = url
        .list_all_files(&state, store.as_ref(), EXTENSION)
        .await?;
    let files: Vec<_> = files.try_collect().await?;
    let format = Arc::new(ParquetFormat::default());
    let schema: Arc<Schema> = format.infer_schema(&state, &store, &files).await?;
    let options = ListingOptions::new(format).with_file_extension(EXTENSION);
    let config = ListingTableConfig::new_with_multi_paths(vec![url])
        .with_listing_options(options)
        .with_schema(schema);
    Ok(Arc::new(ListingTable::try_new(config)?))
}
