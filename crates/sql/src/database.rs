//! The tables that questions are asked of.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::datasource::{TableProvider, ViewTable};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::functions::expr_fn::{concat, substr};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext, col};
use futures::StreamExt;
use opscope_analysis::tables::{TABLES, VIEWS};
use tokio::runtime::Runtime;

use crate::answer::SqlAnswer;
use crate::ranged::RangedTable;
use crate::source::{EXTENSION, TableSource, directory_url};
use crate::{SqlError, compared, functions};

/// The table that has nothing but what statistics tell.
const EVENTS: &str = "events";
/// Columns that are empty without statistics. Digests are not among them: tools write those alone.
const STATISTICS: &[&str] = &[
    "n_nan",
    "n_pos_inf",
    "n_neg_inf",
    "n_zero",
    "n_neg_zero",
    "n_negative",
    "n_subnormal",
    "n_saturated",
    "min",
    "max",
    "sum",
    "mean",
    "std",
    "l1",
    "l2",
    "input_nan",
    "input_inf",
    "output_nan",
    "output_inf",
];

/// Bounds of the engine.
#[derive(Clone, Copy, Debug)]
pub struct SqlOptions {
    /// Threads to work on.
    pub n_threads: usize,
    /// Memory for sorting, grouping and joining. What needs more goes to temporary files.
    pub n_bytes: usize,
}

/// Tables of dumps, with views and functions over them.
pub struct SqlDatabase {
    context: SessionContext,
    runtime: Runtime,
}

impl SqlDatabase {
    /// Opens the tables of dumps, and that of a comparison, `compared`. Without that file the
    /// comparisons in the indexes of the sources are asked, if there are any. `sources` must not be
    /// empty.
    ///
    /// # Errors
    /// [`SqlError::Answer`] if a table is not there or damaged.
    pub fn open(
        sources: &[TableSource],
        compared: Option<&Path>,
        options: SqlOptions,
    ) -> Result<SqlDatabase, SqlError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.n_threads)
            .build()?;
        let mut config = SessionConfig::new()
            .with_target_partitions(options.n_threads)
            .with_information_schema(true)
            // An index has thousands of files. Those that a condition leaves out show it when they
            // are opened, and to open all of them before takes a third longer.
            .with_collect_statistics(false);
        let parquet = &mut config.options_mut().execution.parquet;
        // Rows that a condition leaves out are the most: few tensors have a NaN.
        parquet.pushdown_filters = true;
        parquet.reorder_filters = true;
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(options.n_bytes)))
            .build_arc()
            .map_err(SqlError::Answer)?;
        let context = SessionContext::new_with_config_rt(config, environment);
        runtime.block_on(register(&context, sources))?;
        runtime.block_on(compared::register(&context, sources, compared))?;
        Ok(SqlDatabase { context, runtime })
    }

    /// Begins to answer a question, which may only read.
    ///
    /// # Errors
    /// [`SqlError::Question`] if it cannot be understood.
    pub fn ask(&self, question: &str) -> Result<SqlAnswer<'_>, SqlError> {
        // Whoever asks about a dump shall not be able to write files by it.
        let options = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let asked = self.context.sql_with_options(question, options);
        let frame = self.runtime.block_on(asked).map_err(SqlError::Question)?;
        // What is a mistake of the question is found here at the latest.
        let plan = frame.clone().into_optimized_plan();
        let needs_statistics = reads_statistics(&plan.map_err(SqlError::Question)?);
        let stream = self.runtime.block_on(frame.execute_stream());
        let stream = stream.map_err(SqlError::Answer)?;
        Ok(SqlAnswer::new(stream, needs_statistics, &self.runtime))
    }

    /// Number of tensors whose statistics nobody computed, although their elements are in the dump.
    /// Questions about them have no answer, or an empty one.
    ///
    /// # Errors
    /// [`SqlError::Answer`] if a table is damaged.
    pub fn n_without_statistics(&self) -> Result<u64, SqlError> {
        let question = "select count(*) from tensors where n_nan is null and file is not null";
        let count = async {
            let batches = self.context.sql(question).await?.collect().await?;
            let counts = batches.iter().filter(|batch| batch.num_rows() > 0);
            let counts = counts.map(|batch| batch.column(0).as_primitive::<Int64Type>().value(0));
            Ok(counts.sum::<i64>())
        };
        let count = self.runtime.block_on(count).map_err(SqlError::Answer)?;
        Ok(count.unsigned_abs())
    }
}

/// Whether a plan reads what is only there with statistics.
fn reads_statistics(plan: &LogicalPlan) -> bool {
    let mut is_found = false;
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let fields = scan.projected_schema.fields();
            let mut names = fields.iter().map(|field| field.name().as_str());
            is_found |=
                scan.table_name.table() == EVENTS || names.any(|name| STATISTICS.contains(&name));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    // The closure never fails.
    visited.is_ok() && is_found
}

async fn register(context: &SessionContext, sources: &[TableSource]) -> Result<(), SqlError> {
    for table in TABLES {
        let provider = provider(context, table, sources).await;
        let provider = provider.map_err(SqlError::Answer)?;
        context
            .register_table(table, provider)
            .map_err(SqlError::Answer)?;
    }
    // These come from the project's own text, and not from the user.
    for view in VIEWS {
        let statement = format!("create view {} as {}", view.name, view.query);
        context.sql(&statement).await.map_err(SqlError::Answer)?;
    }
    let registered = functions::register(context, sources).await;
    registered.map_err(SqlError::Answer)
}

/// One table of all dumps.
async fn provider(
    context: &SessionContext,
    table: &str,
    sources: &[TableSource],
) -> Result<Arc<dyn TableProvider>, DataFusionError> {
    let (renamed, plain): (Vec<_>, Vec<_>) =
        sources.iter().partition(|source| source.run.is_some());
    let mut parts = Vec::new();
    // One list of files serves all dumps that keep their names, and conditions on them.
    if !plain.is_empty() {
        parts.push((listing(context, table, &plain).await?, None));
    }
    for source in renamed {
        parts.push((listing(context, table, &[source]).await?, Some(source)));
    }
    if let [(_, None)] = &parts[..] {
        return Ok(parts.remove(0).0);
    }
    let mut union: Option<LogicalPlanBuilder> = None;
    for (provider, source) in parts {
        let mut part = context.read_table(provider)?;
        if let Some(run) = source.and_then(|source| source.run.as_ref().map(|run| (source, run))) {
            let (source, run) = run;
            // A run's time may be behind the name.
            let behind = i64::try_from(source.label.chars().count() + 1).unwrap_or(i64::MAX);
            let renamed = concat(vec![lit(run.as_str()), substr(col("run"), lit(behind))]);
            part = part.with_column("run", renamed)?;
        }
        let plan = part.into_unoptimized_plan();
        union = Some(match union {
            Some(union) => union.union(plan)?,
            None => LogicalPlanBuilder::from(plan),
        });
    }
    let Some(union) = union else {
        return Err(DataFusionError::Plan("there are no tables".to_owned()));
    };
    Ok(Arc::new(ViewTable::new(union.build()?, None)))
}

/// The Parquet files of a table of some dumps as one.
async fn listing(
    context: &SessionContext,
    table: &str,
    sources: &[&TableSource],
) -> Result<Arc<dyn TableProvider>, DataFusionError> {
    let dirs: Vec<PathBuf> = sources.iter().map(|source| source.dir(table)).collect();
    let urls = dirs.iter().map(|dir| directory_url(dir));
    let urls: Vec<ListingTableUrl> = urls.collect::<Result<_, _>>()?;
    let state = context.state();
    let format = Arc::new(ParquetFormat::default());
    let options = ListingOptions::new(Arc::clone(&format) as _).with_file_extension(EXTENSION);
    let mut schema = None;
    for url in &urls {
        let store = state.runtime_env().object_store(url)?;
        let files = url
            .list_all_files(&state, store.as_ref(), EXTENSION)
            .await?;
        let first = files.boxed().next().await;
        // All parts have the same columns, so that one of thousands is enough.
        if let Some(first) = first.transpose()? {
            schema = Some(format.infer_schema(&state, &store, &[first]).await?);
            break;
        }
    }
    let Some(schema) = schema else {
        let dirs: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
        let message = format!("there is no Parquet file in `{}`", dirs.join("`, `"));
        return Err(DataFusionError::Plan(message));
    };
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(schema);
    let listing = ListingTable::try_new(config)?;
    Ok(Arc::new(RangedTable::new(listing, table, sources)?))
}
