//! A table of many files, of which a question opens those alone whose numbers may fit.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::pruning::PrunableStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, DFSchema, ScalarValue, Statistics};
use datafusion::datasource::listing::{ListingTable, PartitionedFile};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use opscope_analysis::tables::{PartRange, PartRanges};

use crate::source::{TableSource, directory_url};

/// A table with the ranges of its parts, as far as they are known.
#[derive(Debug)]
pub(crate) struct RangedTable {
    table: ListingTable,
    /// By the directory of the parts, as the engine writes it.
    ranges: HashMap<String, PartRanges>,
}

impl RangedTable {
    /// # Errors
    /// [`DataFusionError`] if a source's directory is not there.
    pub(crate) fn new(
        table: ListingTable,
        name: &str,
        sources: &[&TableSource],
    ) -> Result<RangedTable, DataFusionError> {
        let ranges = sources.iter().map(|source| {
            let dir = directory_url(&source.dir(name))?;
            let ranges = PartRanges::read(&source.index, name, &source.label);
            Ok((dir.prefix().to_string(), ranges))
        });
        let ranges = ranges.collect::<Result<_, DataFusionError>>()?;
        Ok(RangedTable { table, ranges })
    }

    /// The range of a file, unless it has changed since it was looked at.
    fn range(&self, file: &PartitionedFile) -> Option<&PartRange> {
        let meta = &file.object_meta;
        let (dir, name) = meta.location.as_ref().rsplit_once('/')?;
        let range = self.ranges.get(dir)?.part(name)?;
        let modified = meta.last_modified.timestamp_nanos_opt()?;
        let is_same =
            range.n_bytes == meta.size && u64::try_from(modified) == Ok(range.modified_ns);
        is_same.then_some(range)
    }

    /// The files of a group that may have rows for a question.
    fn fitting(&self, group: &FileGroup, predicate: &PruningPredicate) -> FileGroup {
        let schema = self.table.schema();
        let unknown = Arc::new(Statistics::new_unknown(&schema));
        let statistics = group.files().iter().map(|file| match self.range(file) {
            Some(range) => Arc::new(statistics(range, &schema)),
            None => Arc::clone(&unknown),
        });
        let statistics = PrunableStatistics::new(statistics.collect(), Arc::clone(&schema));
        // What cannot be judged is opened.
        let Ok(may_fit) = predicate.prune(&statistics) else {
            return group.clone();
        };
        let files = group.files().iter().zip(may_fit);
        let files = files.filter(|(_, may_fit)| *may_fit);
        FileGroup::new(files.map(|(file, _)| file.clone()).collect())
    }

    /// The conditions of a question as far as ranges tell of them; `None` if they tell nothing.
    fn predicate(&self, state: &dyn Session, filters: &[Expr]) -> Option<PruningPredicate> {
        let condition = conjunction(filters.iter().cloned())?;
        let schema = self.table.schema();
        let names = DFSchema::try_from(Arc::clone(&schema)).ok()?;
        let condition = state.create_physical_expr(condition, &names).ok()?;
        let builder = PruningPredicateBuilder::new().with_file_schema(schema);
        builder.try_build(condition).ok()
    }
}

fn statistics(range: &PartRange, schema: &SchemaRef) -> Statistics {
    let columns = schema.fields().iter().map(|field| {
        let Some((bounds, n_empty)) = range.columns.get(field.name()) else {
            return ColumnStatistics::new_unknown();
        };
        let value = |value: i64| Precision::Exact(ScalarValue::Int64(Some(value)));
        ColumnStatistics {
            null_count: usize::try_from(*n_empty).map_or(Precision::Absent, Precision::Exact),
            min_value: bounds.map_or(Precision::Absent, |(least, _)| value(least)),
            max_value: bounds.map_or(Precision::Absent, |(_, most)| value(most)),
            ..ColumnStatistics::new_unknown()
        }
    });
    Statistics {
        num_rows: usize::try_from(range.n_rows).map_or(Precision::Absent, Precision::Exact),
        total_byte_size: Precision::Absent,
        column_statistics: columns.collect(),
    }
}

#[async_trait::async_trait]
impl TableProvider for RangedTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let plan = self.table.scan(state, projection, filters, limit).await?;
        let Some(predicate) = self.predicate(state, filters) else {
            return Ok(plan);
        };
        let scan = plan.downcast_ref::<DataSourceExec>();
        let config = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
        let Some(config) = config else {
            return Ok(plan);
        };
        let groups = config.file_groups.iter();
        let groups = groups.map(|group| self.fitting(group, &predicate));
        let groups: Vec<FileGroup> = groups.filter(|group| !group.is_empty()).collect();
        if groups.is_empty() {
            return Ok(Arc::new(EmptyExec::new(plan.schema())));
        }
        let config = FileScanConfigBuilder::from(config.clone()).with_file_groups(groups);
        Ok(DataSourceExec::from_data_source(config.build()))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>, DataFusionError> {
        self.table.supports_filters_pushdown(filters)
    }
}
