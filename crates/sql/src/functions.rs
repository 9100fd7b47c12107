//! Functions of two runs, as `select * from changed('sound', 'faulty')`.

use std::sync::{Arc, OnceLock};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::datasource::ViewTable;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{Expr, SessionContext};
use opscope_analysis::tables::{FUNCTIONS, TABLES};

use crate::pairs::{IndexParts, PAIRS, PairsTable};
use crate::source::TableSource;

/// A query with two places for runs.
#[derive(Debug)]
struct RunsFunction {
    name: &'static str,
    plan: LogicalPlan,
    pairs: Arc<PairsOfRuns>,
}

/// All that is needed to join two runs part by part.
struct PairsOfRuns {
    sources: Vec<TableSource>,
    /// The query of the view of all pairs.
    plan: LogicalPlan,
    part_schema: SchemaRef,
    context: SessionContext,
    n_threads: usize,
    /// The parts, once a function is called.
    parts: OnceLock<Option<IndexParts>>,
}

/// Makes the functions known. Their views have to be known before.
pub(crate) async fn register(
    context: &SessionContext,
    sources: &[TableSource],
) -> Result<(), DataFusionError> {
    let pairs = Arc::new(PairsOfRuns::new(context, sources).await?);
    for function in FUNCTIONS {
        // Planned once; a call fills in the runs.
        let frame = context.sql(function.query).await?;
        let function = RunsFunction {
            name: function.name,
            plan: frame.into_unoptimized_plan(),
            pairs: pairs.clone(),
        };
        context.register_udtf(function.name, Arc::new(function));
    }
    Ok(())
}

impl TableFunctionImpl for RunsFunction {
    fn call_with_args(
        &self,
        args: TableFunctionArgs<'_, '_>,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        let [first, second] = args.exprs() else {
            return Err(self.misuse());
        };
        let runs = [first, second].map(|run| match run {
            Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
            _ => None,
        });
        let [Some(first), Some(second)] = runs else {
            return Err(self.misuse());
        };
        let runs = [first, second];
        let plan = match self.pairs.table(&runs)? {
            Some(pairs) => pairs.into_plan(self.plan.clone())?,
            None => self.plan.clone(),
        };
        let runs = runs.map(|run| ScalarValue::Utf8View(Some(run)));
        let plan = plan.with_param_values(runs.to_vec())?;
        Ok(Arc::new(ViewTable::new(plan, None)))
    }
}

impl RunsFunction {
    fn misuse(&self) -> DataFusionError {
        let name = self.name;
        let message =
            format!("`{name}` takes two runs, as in {name}('a', 'b'): names of the column `run`");
        DataFusionError::Plan(message)
    }
}

impl PairsOfRuns {
    async fn new(
        context: &SessionContext,
        sources: &[TableSource],
    ) -> Result<PairsOfRuns, DataFusionError> {
        let view = context.table(PAIRS).await?.into_unoptimized_plan();
        let tensors = context.table_provider(TABLES[0]).await?;
        let config = context.copied_config();
        let n_threads = config.target_partitions();
        // Of its own: a context that is in its own functions would never be freed.
        let joins = SessionContext::new_with_config_rt(
            config.with_target_partitions(1),
            context.runtime_env(),
        );
        Ok(PairsOfRuns {
            sources: sources.to_vec(),
            plan: view,
            part_schema: tensors.schema(),
            context: joins,
            n_threads,
            parts: OnceLock::new(),
        })
    }

    /// The pairs of two runs; none if their parts cannot be told apart by rank and step.
    fn table(&self, runs: &[String; 2]) -> Result<Option<PairsTable>, DataFusionError> {
        let parts = match self.parts.get() {
            Some(parts) => parts,
            None => {
                let parts = IndexParts::open(&self.sources, self.n_threads)?;
                self.parts.get_or_init(|| parts)
            }
        };
        let table = parts.as_ref().map(|parts| {
            PairsTable::new(
                self.plan.clone(),
                self.part_schema.clone(),
                self.context.clone(),
                parts,
                runs,
                self.n_threads,
            )
        });
        Ok(table)
    }
}

impl std::fmt::Debug for PairsOfRuns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PairsOfRuns of {} dumps", self.sources.len())
    }
}
