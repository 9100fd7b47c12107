//! Common queries, as views and functions over the tables.
//!
//! `views.sql` defines them for DuckDB, and `opscope sql` loads them.

use std::path::Path;

use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;

use super::{COMPARE_TABLE, TABLES, has_comparisons};

/// The name of the file.
const FILE_NAME: &str = "views.sql";

/// A query with a name.
#[derive(Clone, Copy, Debug)]
pub struct NamedQuery {
    /// The name of the view or function.
    pub name: &'static str,
    /// A one-sentence description of its answer.
    pub meaning: &'static str,
    /// The query; `$1` and `$2` are the runs passed to a function.
    pub query: &'static str,
}

impl NamedQuery {
    /// The body of a function with the arguments `first_run` and `second_run`.
    pub fn on_runs(&self) -> String {
        self.query
            .replace("$1", "first_run")
            .replace("$2", "second_run")
    }
}

/// Views over the tables, named like their directories, and over earlier views.
pub const VIEWS: &[NamedQuery] = &[
    NamedQuery {
        name: "first_nan",
        meaning: "The first output with a NaN of each run and rank, by step and order of execution.",
        query: "select run, rank, step, position, op_type, op_name, slot, module, source, n_nan
from tensors where side = 'output' and n_nan > 0
qualify row_number() over (partition by run, rank order by step, position, slot) = 1",
    },
    NamedQuery {
        name: "first_made_non_finite",
        meaning: "The same of NaN and infinities that an operator made of finite inputs.",
        query: "select * from events where event = 'made_non_finite'
qualify row_number() over (partition by run, rank order by step, position, output) = 1",
    },
    // A join over many columns is hashed only if all of them treat NULL alike. The parentheses help
    // parsers in which `and` binds more tightly.
    NamedQuery {
        name: "ordered_pairs",
        meaning: "Tensors of two runs that go by the same names, either run first.",
        query: "select a.run as run_a, b.run as run_b, a.rank, a.step, a.position, a.op_type, a.op_name, a.call,
    a.side, a.slot, a.dtype, a.shape, a.digest as digest_a, b.digest as digest_b,
    a.min as min_a, b.min as min_b, a.max as max_a, b.max as max_b,
    a.mean as mean_a, b.mean as mean_b, a.l2 as l2_a, b.l2 as l2_b
from tensors a join tensors b
    on (a.rank is not distinct from b.rank) and (a.step is not distinct from b.step)
    and (a.op_name is not distinct from b.op_name) and (a.call is not distinct from b.call)
    and (a.side is not distinct from b.side) and (a.slot is not distinct from b.slot)
where a.run <> b.run and a.op_name is not null and b.op_name is not null",
    },
    NamedQuery {
        name: "pairs",
        meaning: "The same, with every pair once.",
        query: "select * from ordered_pairs where run_a < run_b",
    },
    NamedQuery {
        name: "changed",
        meaning: "Those whose bytes are known to differ, in order of execution.",
        query: "select * from pairs where digest_a <> digest_b
order by run_a, run_b, rank, step, position, side, slot",
    },
    NamedQuery {
        name: "first_changed",
        meaning: "The first of them in each rank.",
        query: "select * from pairs where digest_a <> digest_b
qualify row_number() over (partition by run_a, run_b, rank order by step, position, side, slot) = 1",
    },
    NamedQuery {
        name: "worst",
        meaning: "Those whose norms differ most, as a share of the larger one.",
        query: "select *, abs(l2_a - l2_b) / greatest(abs(l2_a), abs(l2_b)) as l2_error from pairs
where l2_a <> l2_b order by l2_error desc",
    },
    NamedQuery {
        name: "unmatched",
        meaning: "Tensors that only some of the runs have.",
        query: "select rank, step, op_name, call, side, slot, array_agg(distinct run order by run) as runs
from tensors group by rank, step, op_name, call, side, slot
having count(distinct run) < (select count(distinct run) from tensors)",
    },
];

/// Functions of two runs, which are passed by name.
pub const FUNCTIONS: &[NamedQuery] = &[
    NamedQuery {
        name: "pairs",
        meaning: "Tensors of two runs that go by the same names.",
        query: "select * from ordered_pairs where run_a = $1 and run_b = $2",
    },
    NamedQuery {
        name: "changed",
        meaning: "Those whose bytes are known to differ, in order of execution.",
        query:
            "select * from ordered_pairs where run_a = $1 and run_b = $2 and digest_a <> digest_b
order by rank, step, position, side, slot",
    },
    NamedQuery {
        name: "first_changed",
        meaning: "The first of them in each rank.",
        query:
            "select * from ordered_pairs where run_a = $1 and run_b = $2 and digest_a <> digest_b
qualify row_number() over (partition by rank order by step, position, side, slot) = 1",
    },
    NamedQuery {
        name: "worst",
        meaning: "Those whose norms differ most, as a share of the larger one.",
        query: "select *, abs(l2_a - l2_b) / greatest(abs(l2_a), abs(l2_b)) as l2_error
from ordered_pairs where run_a = $1 and run_b = $2 and l2_a <> l2_b order by l2_error desc",
    },
    NamedQuery {
        name: "unmatched",
        meaning: "Tensors that one of the two runs has, and the other has not.",
        query: "select rank, step, op_name, call, side, slot, min(run) as run
from tensors where run = $1 or run = $2
group by rank, step, op_name, call, side, slot having count(distinct run) = 1",
    },
];

/// A DuckDB view over the parts of a table.
fn view_of(table: &str, place: &str) -> String {
    format!(
        "create or replace view {table} as\n\
         select * from read_parquet('{place}/{table}/*/*.parquet', union_by_name = true);\n"
    )
}

/// Writes `views.sql` next to the tables below `out`.
///
/// # Errors
/// [`StoreError`] if it cannot be written.
pub fn write_views(out: &Path, creator: &Creator) -> Result<(), StoreError> {
    // DuckDB resolves relative paths against its working directory.
    let place = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    let place = place.to_string_lossy().replace('\'', "''");
    let mut text = "-- duckdb -init views.sql\n".to_owned();
    for table in TABLES {
        text += &view_of(table, &place);
    }
    // A view over no files would fail as soon as the file is opened.
    if has_comparisons(out, None) {
        text += &view_of(COMPARE_TABLE, &place);
    }
    for NamedQuery {
        name,
        meaning,
        query,
    } in VIEWS
    {
        text += &format!("\n-- {meaning}\ncreate or replace view {name} as\n{query};\n");
    }
    for function in FUNCTIONS {
        let NamedQuery { name, meaning, .. } = function;
        let query = function.on_runs();
        text += &format!(
            "\n-- {meaning}\ncreate or replace macro {name}(first_run, second_run) as table\n{query};\n"
        );
    }
    creator.replace_file(&out.join(FILE_NAME), &[text.as_bytes()])
}
