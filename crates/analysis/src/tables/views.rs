//! Questions that are often asked, as views for DuckDB.

use std::path::Path;

use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;

use super::TABLES;

/// The name of the file.
const FILE_NAME: &str = "views.sql";

/// Views over the tables, which have the names of their directories.
const VIEWS: &str = "\
-- The first output with a NaN of each run and rank, by step and order of execution.
create or replace view first_nan as
select run, rank, step, position, op_type, op_name, slot, module, source, n_nan from tensors
where side = 'output' and n_nan > 0
qualify row_number() over (partition by run, rank order by step, position, slot) = 1;

-- The same of NaN and infinities that an operator made of finite inputs.
create or replace view first_made_non_finite as
select * from events where event = 'made_non_finite'
qualify row_number() over (partition by run, rank order by step, position, output) = 1;

-- Tensors of two runs that go by the same names.
create or replace view pairs as
select a.run as run_a, b.run as run_b, a.rank, a.step, a.position, a.op_type, a.op_name, a.call,
    a.side, a.slot, a.dtype, a.shape, a.digest as digest_a, b.digest as digest_b,
    a.min as min_a, b.min as min_b, a.max as max_a, b.max as max_b,
    a.mean as mean_a, b.mean as mean_b, a.l2 as l2_a, b.l2 as l2_b
from tensors a join tensors b
    on a.rank is not distinct from b.rank and a.step is not distinct from b.step
    and a.op_name = b.op_name and a.call is not distinct from b.call
    and a.side = b.side and a.slot = b.slot and a.run < b.run;

-- Those whose bytes are known to differ, in order of execution.
create or replace view changed as
select * from pairs where digest_a <> digest_b order by run_a, run_b, rank, step, position, slot;

-- Those whose norms differ most, as a share of the larger one.
create or replace view worst as
select *, abs(l2_a - l2_b) / greatest(abs(l2_a), abs(l2_b)) as l2_error from pairs
where l2_a <> l2_b order by l2_error desc;

-- Tensors that only some of the runs have.
create or replace view unmatched as
select rank, step, op_name, call, side, slot, list(run) as runs from tensors
group by all having count(distinct run) < (select count(distinct run) from tensors);
";

/// Writes `views.sql` beside the tables below `out`.
///
/// # Errors
/// [`StoreError`] if it cannot be written.
pub fn write_views(out: &Path, creator: &Creator) -> Result<(), StoreError> {
    // DuckDB takes paths from where it was started.
    let place = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    let place = place.to_string_lossy().replace('\'', "''");
    let mut text = "-- duckdb -init views.sql\n".to_owned();
    for table in TABLES {
        text += &format!(
            "create or replace view {table} as\n\
             select * from read_parquet('{place}/{table}/*/*.parquet', union_by_name = true);\n"
        );
    }
    // Views on top of those above.
    text.push('\n');
    text += VIEWS;
    creator.replace_file(&out.join(FILE_NAME), &[text.as_bytes()])
}
