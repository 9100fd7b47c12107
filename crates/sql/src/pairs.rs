//! The pairs of two runs, joined part by part.
//!
//! Tensors go together only if they have the same rank and step, and a part of an index has one of
//! each. To join the parts of the same rank and step takes the memory of a few parts; to join all
//! rows of two runs at once takes that of all of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::project_schema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::datasource::{TableProvider, TableType, provider_as_source};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown,
};
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::parquet::file::statistics::Statistics;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::prelude::{DataFrame, SessionContext, col};
use futures::{StreamExt, TryStreamExt, stream};
use opscope_analysis::job;
use opscope_analysis::tables::TABLES;
use opscope_store::regular_file;

use crate::source::{EXTENSION, TableSource, file_url};

/// The view of all pairs.
pub(crate) const PAIRS: &str = "ordered_pairs";
/// The two sides of the join in that view.
const SIDES: [&str; 2] = ["a", "b"];
/// Rows of a side that are joined at once: planning takes some milliseconds each time.
const N_ROWS_AT_ONCE: u64 = 1 << 18;

/// The rank and the step of all rows of a part.
type RankAndStep = (Option<i64>, Option<i64>);

/// The parts of some indexes.
#[derive(Debug, Default)]
pub(crate) struct IndexParts(Vec<IndexPart>);

#[derive(Clone, Debug)]
struct IndexPart {
    file: ListingTableUrl,
    run: String,
    place: RankAndStep,
    n_rows: u64,
}

/// Parts that are joined at once, of each side.
type PartGroup = [Vec<ListingTableUrl>; 2];

impl IndexParts {
    /// Looks at the descriptions of all parts; none if the rows of one are of several runs, ranks or
    /// steps, or are called otherwise in answers.
    pub(crate) fn open(
        sources: &[TableSource],
        n_threads: usize,
    ) -> Result<Option<IndexParts>, DataFusionError> {
        if sources.iter().any(|source| source.run.is_some()) {
            return Ok(None);
        }
        let mut paths = Vec::new();
        for source in sources {
            for entry in fs::read_dir(source.dir(TABLES[0]))? {
                let path = entry?.path();
                let name = path.to_string_lossy();
                if name.ends_with(EXTENSION) {
                    paths.push(path);
                }
            }
        }
        let parts = job::map(&paths, n_threads, |path: &PathBuf| IndexPart::open(path));
        let parts = parts.into_iter().collect::<Result<Option<Vec<_>>, _>>()?;
        Ok(parts.map(IndexParts))
    }

    /// Groups of parts that have to be joined.
    fn groups(&self, runs: &[String; 2]) -> Vec<PartGroup> {
        let mut places: BTreeMap<RankAndStep, [Vec<&IndexPart>; 2]> = BTreeMap::new();
        for part in &self.0 {
            for (side, run) in runs.iter().enumerate() {
                if *run == part.run {
                    places.entry(part.place).or_default()[side].push(part);
                }
            }
        }
        let mut groups: Vec<PartGroup> = Vec::new();
        let mut n_rows = u64::MAX;
        for sides in places.into_values() {
            // A rank or step that one run alone has makes no pairs.
            if sides.iter().any(Vec::is_empty) {
                continue;
            }
            if n_rows > N_ROWS_AT_ONCE {
                groups.push(PartGroup::default());
                n_rows = 0;
            }
            n_rows += sides[0].iter().map(|part| part.n_rows).sum::<u64>();
            if let Some(group) = groups.last_mut() {
                for (group, parts) in group.iter_mut().zip(sides) {
                    group.extend(parts.into_iter().map(|part| part.file.clone()));
                }
            }
        }
        groups
    }
}

impl IndexPart {
    fn open(path: &Path) -> Result<Option<IndexPart>, DataFusionError> {
        let reader = SerializedFileReader::new(regular_file::open_in_dump(path)?.0)?;
        let metadata = reader.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let place_of = |name: &str| {
            let mut columns = schema.columns().iter();
            columns.position(|column| column.name() == name)
        };
        let places = [place_of("run"), place_of("rank"), place_of("step")];
        let [Some(run), Some(rank), Some(step)] = places else {
            return Ok(None);
        };
        let mut known: Option<(String, RankAndStep)> = None;
        for group in metadata.row_groups() {
            let statistics = |place: usize| group.column(place).statistics();
            let n_rows = group.num_rows();
            let (Some(run), Some(rank), Some(step)) = (
                statistics(run).and_then(only_text),
                statistics(rank).and_then(|rank| only_number(rank, n_rows)),
                statistics(step).and_then(|step| only_number(step, n_rows)),
            ) else {
                return Ok(None);
            };
            let found = (run, (rank, step));
            if known.get_or_insert_with(|| found.clone()) != &found {
                return Ok(None);
            }
        }
        let (run, place) = known.unwrap_or_default();
        Ok(Some(IndexPart {
            file: file_url(path)?,
            run,
            place,
            n_rows: u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(0),
        }))
    }
}

/// The text that all rows have; none if they differ, some have none, or it is too long to be told.
fn only_text(statistics: &Statistics) -> Option<String> {
    let is_exact = statistics.min_is_exact() && statistics.max_is_exact();
    let text = statistics.min_bytes_opt()?;
    let is_only =
        statistics.max_bytes_opt() == Some(text) && statistics.null_count_opt() == Some(0);
    if !is_exact || !is_only {
        return None;
    }
    String::from_utf8(text.to_vec()).ok()
}

/// The number that all of `n_rows` have, or that they have none; nothing if they differ.
fn only_number(statistics: &Statistics, n_rows: i64) -> Option<Option<i64>> {
    let Statistics::Int64(numbers) = statistics else {
        return None;
    };
    match (
        numbers.null_count_opt()?,
        numbers.min_opt(),
        numbers.max_opt(),
    ) {
        (0, Some(min), Some(max)) if min == max => Some(Some(*min)),
        (n, ..) if i64::try_from(n) == Ok(n_rows) => Some(None),
        _ => None,
    }
}

/// The view of all pairs for two runs.
#[derive(Clone)]
pub(crate) struct PairsTable {
    /// The view's query.
    plan: LogicalPlan,
    schema: SchemaRef,
    /// The columns of parts.
    part_schema: SchemaRef,
    /// A context whose plans take one thread: groups are joined side by side.
    context: SessionContext,
    groups: Arc<[PartGroup]>,
    n_threads: usize,
}

impl std::fmt::Debug for PairsTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PairsTable of {} groups", self.groups.len())
    }
}

impl PairsTable {
    pub(crate) fn new(
        plan: LogicalPlan,
        part_schema: SchemaRef,
        context: SessionContext,
        parts: &IndexParts,
        runs: &[String; 2],
        n_threads: usize,
    ) -> PairsTable {
        PairsTable {
            schema: Arc::new(plan.schema().as_arrow().clone()),
            plan,
            part_schema,
            context,
            groups: parts.groups(runs).into(),
            n_threads,
        }
    }

    /// Puts the table in the place of the view.
    pub(crate) fn into_plan(self, plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
        let table: Arc<dyn TableProvider> = Arc::new(self);
        let replaced = plan.transform_up(|node| {
            let LogicalPlan::SubqueryAlias(view) = &node else {
                return Ok(Transformed::no(node));
            };
            if view.alias.table() != PAIRS {
                return Ok(Transformed::no(node));
            }
            let source = provider_as_source(table.clone());
            let scan = LogicalPlanBuilder::scan(PAIRS, source, None)?;
            Ok(Transformed::yes(scan.build()?))
        })?;
        Ok(replaced.data)
    }

    /// Plans the join of a group.
    fn join(&self, group: &PartGroup) -> Result<DataFrame, DataFusionError> {
        let [first, second] = group;
        let sides = [self.listing(first)?, self.listing(second)?];
        let plan = self.plan.clone().transform_up(|node| {
            let LogicalPlan::SubqueryAlias(side) = &node else {
                return Ok(Transformed::no(node));
            };
            let place = SIDES.iter().position(|name| *name == side.alias.table());
            let Some(place) = place else {
                return Ok(Transformed::no(node));
            };
            let source = provider_as_source(sides[place].clone());
            let scan = LogicalPlanBuilder::scan(TABLES[0], source, None)?;
            let scan = scan.alias(side.alias.clone())?;
            Ok(Transformed::yes(scan.build()?))
        })?;
        let plan = LogicalPlanBuilder::from(plan.data).alias(PAIRS)?;
        Ok(DataFrame::new(self.context.state(), plan.build()?))
    }

    fn listing(
        &self,
        files: &[ListingTableUrl],
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        let format = Arc::new(ParquetFormat::default());
        let options = ListingOptions::new(format).with_file_extension(EXTENSION);
        let config = ListingTableConfig::new_with_multi_paths(files.to_vec())
            .with_listing_options(options)
            .with_schema(self.part_schema.clone());
        Ok(Arc::new(ListingTable::try_new(config)?))
    }
}

#[async_trait]
impl TableProvider for PairsTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        Ok(vec![TableProviderFilterPushDown::Exact; filters.len()])
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        // Rows without columns, as for a count, are made of the first column.
        let columns = match projection.map(Vec::as_slice) {
            Some([]) => vec![0],
            Some(columns) => columns.to_vec(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let schema = project_schema(&self.schema, Some(&columns))?;
        let shown: Vec<usize> = match projection {
            Some(projection) => (0..projection.len()).collect(),
            None => (0..columns.len()).collect(),
        };
        let partitions = (0..self.n_threads).map(|thread| {
            let groups = self.groups.iter().skip(thread).step_by(self.n_threads);
            Arc::new(PairsPartition {
                table: self.clone(),
                groups: groups.cloned().collect(),
                schema: schema.clone(),
                filters: filters.to_vec(),
                limit,
            }) as Arc<dyn PartitionStream>
        });
        let scan = StreamingTableExec::try_new(
            schema.clone(),
            partitions.collect(),
            Some(&shown),
            [],
            false,
            limit,
        )?;
        Ok(Arc::new(scan))
    }
}

/// Groups that are joined one after the other.
#[derive(Clone, Debug)]
struct PairsPartition {
    table: PairsTable,
    groups: Vec<PartGroup>,
    schema: SchemaRef,
    filters: Vec<Expr>,
    limit: Option<usize>,
}

impl PairsPartition {
    async fn join(self, group: PartGroup) -> Result<SendableRecordBatchStream, DataFusionError> {
        let mut frame = self.table.join(&group)?;
        for filter in &self.filters {
            frame = frame.filter(filter.clone())?;
        }
        let columns = self.schema.fields().iter();
        let frame = frame.select(columns.map(|field| col(field.name().as_str())))?;
        let frame = frame.limit(0, self.limit)?;
        frame.execute_stream().await
    }
}

impl PartitionStream for PairsPartition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let partition = self.clone();
        let schema = self.schema.clone();
        let joined = stream::iter(self.groups.clone())
            .then(move |group| partition.clone().join(group))
            .try_flatten()
            .map(move |batch| {
                let batch = batch?;
                // Plans of a group may know more of a column than the view: that it is never empty.
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let columns = batch.columns().to_vec();
                Ok(RecordBatch::try_new_with_options(
                    schema.clone(),
                    columns,
                    &options,
                )?)
            });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), joined))
    }
}
