//! Reads the files that accompany the tensors: graphs, lists, statistics.

use std::path::Path;

use super::{
    DumpEntry, FileName, GraphOrder, MindSporeListing, RankGraph, StatisticTable, place_of,
};
use crate::file_bytes::FileBytes;
use crate::file_format::{execution_order, ms_graph_ir, ms_graph_pb, statistic_csv};
use crate::tree::mindspore::{
    self as tree, graph_id_of, is_execution_order, is_global_execution_order, is_graph,
};
use crate::{FormatError, StoreError};

/// Largest accompanying file that is read.
const BESIDE_BYTES_MAX: usize = 2 << 30;

impl MindSporeListing {
    pub(super) fn read_table(&mut self, entry: &DumpEntry) {
        let path = &entry.path;
        match read_text(path, statistic_csv::FORMAT_NAME, statistic_csv::parse) {
            Ok(mut table) => {
                let corrupt = StoreError::corrupt(statistic_csv::FORMAT_NAME, path);
                if !table.errors.is_empty() {
                    self.errors.push(corrupt(table.errors.remove(0)));
                }
                for kept in self
                    .kept_times
                    .iter()
                    .filter(|kept| path.starts_with(&kept.root))
                {
                    let times = kept.first..=kept.last;
                    table
                        .rows
                        .retain(|(subject, _)| times.contains(&subject.timestamp));
                }
                self.tables.push(StatisticTable {
                    path: path.clone(),
                    place: place_of(path),
                    table,
                });
            }
            Err(error) => self.errors.push(error),
        }
    }

    pub(super) fn read_beside(&mut self, entry: DumpEntry) {
        let name = entry.real_name.as_str();
        let Some(graph_id) = graph_id_of(name) else {
            return;
        };
        let rank = entry.path.parent().and_then(tree::rank_above);
        let result =
            if is_graph(name, ms_graph_ir::EXTENSION) || is_graph(name, ms_graph_pb::EXTENSION) {
                self.read_graph(entry, rank, graph_id)
            } else if is_execution_order(name) {
                let lines = read_text(&entry.path, "execution order", |text| {
                    Ok(execution_order::parse(text)
                        .into_iter()
                        .map(str::to_owned)
                        .collect())
                });
                lines.map(|lines| {
                    let order = GraphOrder {
                        rank,
                        graph_id,
                        lines,
                    };
                    self.orders.push(order);
                })
            } else if is_global_execution_order(name) {
                let lines = read_text(&entry.path, "list of iterations", |text| {
                    Ok(execution_order::parse_iterations(text))
                });
                lines.map(|lines| {
                    let order = GraphOrder {
                        rank,
                        graph_id,
                        lines,
                    };
                    self.iterations.push(order);
                })
            } else {
                // Its name only shows that it is about a graph.
                self.add_file(entry, FileName::Foreign);
                Ok(())
            };
        self.errors.extend(result.err());
    }

    fn read_graph(
        &mut self,
        entry: DumpEntry,
        rank: Option<u32>,
        graph_id: u32,
    ) -> Result<(), StoreError> {
        let path = entry.path;
        let graph = if is_graph(&entry.real_name, ms_graph_ir::EXTENSION) {
            read_text(&path, ms_graph_ir::FORMAT_NAME, ms_graph_ir::decode)?
        } else {
            let bytes = open(&path)?;
            let corrupt = StoreError::corrupt(ms_graph_pb::FORMAT_NAME, &path);
            ms_graph_pb::decode(bytes.as_ref()).map_err(corrupt)?
        };
        self.graphs.push(RankGraph {
            rank,
            graph_id,
            path,
            graph,
        });
        Ok(())
    }

    /// Keeps one file of each graph: the text, which contains more.
    pub(super) fn drop_second_graphs(&mut self) {
        self.graphs.sort_by_key(|g| {
            let extension = g.path.extension();
            let is_message = extension.is_some_and(|e| e == ms_graph_pb::EXTENSION);
            (g.rank, g.graph_id, is_message)
        });
        self.graphs.dedup_by_key(|g| (g.rank, g.graph_id));
    }
}

fn open(path: &Path) -> Result<FileBytes, StoreError> {
    checked(FileBytes::open_in_dump(path), path)
}

/// The bytes of a graph or statistics file that the user named.
///
/// # Errors
/// [`StoreError`] if the file cannot be read, or is larger than any that is read.
pub fn open_named(path: &Path) -> Result<FileBytes, StoreError> {
    checked(FileBytes::open(path), path)
}

fn checked(opened: std::io::Result<FileBytes>, path: &Path) -> Result<FileBytes, StoreError> {
    let bytes = opened.map_err(StoreError::io("read", path))?;
    let n_bytes = bytes.as_ref().len();
    if n_bytes > BESIDE_BYTES_MAX {
        let expected = format!("at most {BESIDE_BYTES_MAX} bytes");
        let error = FormatError::new(0, expected, n_bytes.to_string());
        return Err(StoreError::corrupt("MindSpore", path)(error));
    }
    Ok(bytes)
}

fn read_text<T>(
    path: &Path,
    format: &'static str,
    parse: impl FnOnce(&str) -> Result<T, FormatError>,
) -> Result<T, StoreError> {
    let bytes = open(path)?;
    let text = str::from_utf8(bytes.as_ref()).map_err(|error| {
        FormatError::new(error.valid_up_to() as u64, "text in UTF-8", "other bytes")
    });
    text.and_then(parse)
        .map_err(StoreError::corrupt(format, path))
}
