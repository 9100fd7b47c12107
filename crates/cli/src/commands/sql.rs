//! `opscope sql`.

mod duckdb;
mod parts;
mod question;
mod script;
mod tables;

use std::path::PathBuf;

use clap::ValueEnum;

use crate::arguments::{self, ModeArguments};
use crate::exit::CommandFailure;

/// Ask dumps in SQL
///
/// The tables are those of `opscope index`: tensors, operators, edges and events. Of dumps, tables
/// are made, or brought up to date, in `.opscope/index` of each; directories of tables are taken as
/// they are. Views answer what is often asked: first_nan, first_made_non_finite, pairs, changed,
/// first_changed, worst and unmatched; the last five are functions of two runs as well.
/// `describe tensors` lists columns.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope sql \"select * from first_nan\" dump
  opscope sql \"select op_type, count(*), max(max) from tensors group by op_type\" dump
  opscope sql \"select * from first_changed('sound', 'faulty')\" sound faulty
  opscope sql \"select op_name, slot, rel_l2 from compare where level = 'fail'\" faulty sound --compare
  opscope sql \"select * from tensors\" dump --out tensors.csv")]
pub(crate) struct SqlArguments {
    /// The question: one statement that reads
    #[arg(value_name = "QUERY")]
    query: String,
    /// Dumps, or directories of tables
    #[arg(value_name = "DUMP", required = true)]
    dumps: Vec<PathBuf>,
    /// The form of the answer [default: that of the file's name, else a table]
    #[arg(long, value_enum, value_name = "FORM")]
    format: Option<AnswerFormat>,
    /// Where to write the answer [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Most rows of a table that is printed; the other forms have all rows
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rows: usize,
    /// Compute statistics and digests of tensors that the dump has elements of and no statistics
    #[arg(long)]
    stats: bool,
    /// Compare the first dump with the second as `opscope compare` does: the table `compare` has
    /// the result
    #[arg(long)]
    compare: bool,
    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Memory for sorting, grouping and joining. Sorting and grouping go on in temporary files
    /// beyond it
    #[arg(long, value_name = "SIZE", value_parser = arguments::size, default_value = "4GiB")]
    memory: u64,
    #[command(flatten)]
    modes: ModeArguments,
}

/// Forms of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AnswerFormat {
    /// Aligned columns, for people
    Table,
    /// Comma-separated values with a line of names
    Csv,
    /// A JSON object a line
    Jsonl,
    /// A Parquet file, which needs `--out`
    Parquet,
}

pub(crate) fn run(_arguments: &SqlArguments) -> Result<(), CommandFailure> {
    let message = "DuckDB answers questions in SQL";
    let hint = "`pip install duckdb-cli`, `opscope index DUMP --out TABLES`, then \
                `duckdb -init TABLES/views.sql -c QUERY`";
    Err(CommandFailure::message(crate::exit::USAGE, message).with_hint(hint))
}
