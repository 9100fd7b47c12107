//! Functions of two runs, as `select * from changed('sound', 'faulty')`.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::datasource::ViewTable;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{Expr, SessionContext};
use opscope_analysis::tables::FUNCTIONS;

/// A query with two places for runs.
#[derive(Debug)]
struct RunsFunction {
    name: &'static str,
    plan: LogicalPlan,
}

/// Makes the functions known. Their views have to be known before.
pub(crate) async fn register(context: &SessionContext) -> Result<(), DataFusionError> {
    for function in FUNCTIONS {
        // Planned once; a call fills in the runs.
        let frame = context.sql(function.query).await?;
        let function = RunsFunction {
            name: function.name,
            plan: frame.into_unoptimized_plan(),
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
        let runs = [first, second].map(|run| ScalarValue::Utf8View(Some(run)));
        let plan = self.plan.clone().with_param_values(runs.to_vec())?;
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
