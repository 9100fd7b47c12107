//! Answers, a batch of rows after the other.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::LineDelimited;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use futures::StreamExt;
use tokio::runtime::Runtime;

use crate::SqlError;
use crate::text::{TextNumbers, csv_cell, text_rows};

/// Level of compression of answers in Parquet, as of the tables.
const ZSTD_LEVEL: i32 = 3;

/// The rows of an answer, which are made while they are read.
pub struct SqlAnswer<'a> {
    stream: SendableRecordBatchStream,
    needs_statistics: bool,
    runtime: &'a Runtime,
}

impl<'a> SqlAnswer<'a> {
    pub(crate) fn new(
        stream: SendableRecordBatchStream,
        needs_statistics: bool,
        runtime: &'a Runtime,
    ) -> SqlAnswer<'a> {
        SqlAnswer {
            stream,
            needs_statistics,
            runtime,
        }
    }

    /// Whether the question is about statistics, which tensors may lack.
    pub fn needs_statistics(&self) -> bool {
        self.needs_statistics
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// The names of the columns.
    pub fn names(&self) -> Vec<String> {
        let schema = self.schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.collect()
    }

    /// The names of columns of numbers.
    pub fn numbers(&self) -> Vec<String> {
        let schema = self.schema();
        let numbers = schema.fields().iter();
        let numbers = numbers.filter(|field| field.data_type().is_numeric());
        numbers.map(|field| field.name().clone()).collect()
    }

    /// The next rows.
    ///
    /// # Errors
    /// [`SqlError::Answer`] if they cannot be made.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let next = self.runtime.block_on(self.stream.next());
        next.transpose().map_err(SqlError::Answer)
    }

    /// The next rows as texts; `None` at the end. A missing value is none.
    ///
    /// # Errors
    /// As of [`next_batch`](SqlAnswer::next_batch).
    pub fn next_texts(&mut self) -> Result<Option<Vec<Vec<Option<String>>>>, SqlError> {
        let Some(batch) = self.next_batch()? else {
            return Ok(None);
        };
        text_rows(&batch).map(Some).map_err(of_arrow)
    }

    /// Writes all rows as CSV with a line of names. A missing value is empty, an empty text two
    /// quotes.
    ///
    /// # Errors
    /// [`SqlError`] if a row cannot be made or written.
    pub fn write_csv(mut self, out: &mut dyn Write) -> Result<(), SqlError> {
        let names = self.names().into_iter().map(Some).collect();
        write_csv_line(names, out)?;
        while let Some(rows) = self.next_texts()? {
            for row in rows {
                write_csv_line(row, out)?;
            }
        }
        Ok(out.flush()?)
    }

    /// Writes each row as a line of JSON. Numbers that are not finite are the texts `nan`, `inf`
    /// and `-inf`; missing values are `null`.
    ///
    /// # Errors
    /// As of [`write_csv`](SqlAnswer::write_csv).
    pub fn write_json_lines(mut self, out: &mut dyn Write) -> Result<(), SqlError> {
        let builder = WriterBuilder::new()
            .with_explicit_nulls(true)
            .with_encoder_factory(Arc::new(TextNumbers));
        let mut writer: LineDelimitedWriter<_> = builder.build::<_, LineDelimited>(&mut *out);
        while let Some(batch) = self.next_batch()? {
            writer.write(&batch).map_err(of_arrow)?;
        }
        writer.finish().map_err(of_arrow)?;
        drop(writer);
        Ok(out.flush()?)
    }

    /// Writes all rows as a Parquet file.
    ///
    /// # Errors
    /// As of [`write_csv`](SqlAnswer::write_csv).
    pub fn write_parquet(mut self, out: &mut (dyn Write + Send)) -> Result<(), SqlError> {
        let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(of_parquet)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .build();
        let writer = ArrowWriter::try_new(&mut *out, self.schema(), Some(properties));
        let mut writer = writer.map_err(of_parquet)?;
        while let Some(batch) = self.next_batch()? {
            writer.write(&batch).map_err(of_parquet)?;
        }
        writer.close().map_err(of_parquet)?;
        Ok(out.flush()?)
    }
}

fn write_csv_line(cells: Vec<Option<String>>, out: &mut dyn Write) -> Result<(), SqlError> {
    let cells = cells.into_iter().map(|cell| csv_cell(cell.as_deref()));
    let line = cells.collect::<Vec<_>>().join(",");
    Ok(writeln!(out, "{line}")?)
}

/// Writers hide errors of what they write to in their own.
fn of_arrow(error: ArrowError) -> SqlError {
    match error {
        ArrowError::IoError(_, source) => SqlError::Output(source),
        error => SqlError::Answer(error.into()),
    }
}

fn of_parquet(error: ParquetError) -> SqlError {
    match error {
        ParquetError::External(source) => match source.downcast() {
            Ok(source) => SqlError::Output(*source),
            Err(source) => SqlError::Answer(ParquetError::External(source).into()),
        },
        error => SqlError::Answer(error.into()),
    }
}
