//! Dumps of AscendCL, and directories of arrays.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use opscope_store::StoreError;
use opscope_store::dump::{Entry, Listing, of_step_tables};
use opscope_store::file_format::stats_csv::{self, Table};
use opscope_store::file_format::{npy_zst, op_debug};
use opscope_store::tree::acl::{DumpFileName, Origin};

use super::order::by_execution;
use super::{Catalogue, ElementsPlace, Item, ItemKind, side_of};
use crate::FileKind;
use crate::convert::ResultName;
use crate::job;
use crate::tensor_file::Head;

/// Digits of a timestamp in microseconds; those with more are local times.
const TIMESTAMP_DIGITS_MAX: usize = 16;

/// The contents of one file.
enum Content {
    Tensors(Head),
    Table(Table),
}

/// Which file a table of statistics describes.
type FileKey = (Option<PathBuf>, String);

pub(super) fn catalogue(mut listing: Listing, n_threads: usize, is_single: bool) -> Catalogue {
    let of_steps = of_step_tables(&mut listing);
    let mut entries = listing.entries;
    entries.extend(listing.tables);
    entries.extend(of_steps.iter().map(|(entry, _)| entry.clone()));
    let of_steps: HashMap<FileKey, Table> = (of_steps.into_iter())
        .map(|(entry, table)| (key(&entry, ""), table))
        .collect();
    entries.sort_by_cached_key(order);
    let entries = by_execution(entries);
    let contents = job::map(&entries, n_threads, |entry| {
        match of_steps.get(&key(entry, "")) {
            Some(table) => Ok(Content::Table(table.clone())),
            None => read(entry),
        }
    });
    let mut catalogue = Catalogue {
        errors: listing.errors,
        passed_over: listing.passed_over,
        ..Catalogue::default()
    };
    let tables = tables(&entries, &contents);
    let has_tensors: HashSet<FileKey> = entries
        .iter()
        .zip(&contents)
        .filter(|(_, content)| matches!(content, Ok(Content::Tensors(_))))
        .map(|(entry, _)| key(entry, stats_csv::FILE_NAME_SUFFIX))
        .filter(|key| tables.contains_key(key))
        .collect();
    let mut items = Vec::new();
    for (entry, content) in entries.iter().zip(&contents) {
        match content {
            Ok(Content::Tensors(head)) => {
                let table = tables.get(&key(entry, stats_csv::FILE_NAME_SUFFIX));
                items.extend(of_head(entry, head, table.copied()));
            }
            // What describes tensors that are there was taken over by them.
            Ok(Content::Table(_)) if has_tensors.contains(&key(entry, "")) => {}
            Ok(Content::Table(table)) => items.extend(of_table(entry, table)),
            Err(_) if is_table(entry) => {}
            Err(_) if is_single || is_named_so(entry) => items.push(damaged(entry)),
            Err(_) => {}
        }
    }
    let errors = contents.into_iter().filter_map(Result::err);
    catalogue.errors.extend(errors);
    catalogue.items = items;
    catalogue
}

/// The order of execution. What a dump file was converted to stands where that would stand.
fn order(entry: &Entry) -> impl Ord + use<> {
    let result = result_name(entry);
    let slot = result.as_ref().map(|result| result.slot);
    let entry = match result {
        None => entry.clone(),
        Some(result) => Entry {
            real_name: result.file.to_string(),
            name: Some(result.file),
            ..entry.clone()
        },
    };
    (entry.order(), slot)
}

/// Parses the name of a converted tensor; `None` if the file is not named like one.
pub(super) fn result_name(entry: &Entry) -> Option<ResultName> {
    let (stem, _) = npy_zst::split_name(&entry.real_name)?;
    ResultName::parse(stem)
}

fn read(entry: &Entry) -> Result<Content, StoreError> {
    if is_table(entry) && entry.name.is_some() {
        return stats_csv::read_file(&entry.path).map(Content::Table);
    }
    if entry.name.is_none()
        && stats_csv::may_be_table(&entry.real_name)
        && let Some(table) = stats_csv::read_if_table(&entry.path)?
    {
        return Ok(Content::Table(table));
    }
    Head::read(&entry.path, &entry.real_name).map(Content::Tensors)
}

fn tables<'a>(
    entries: &[Entry],
    contents: &'a [Result<Content, StoreError>],
) -> HashMap<FileKey, &'a Table> {
    let pairs = entries.iter().zip(contents);
    let of_pair = |(entry, content): (&Entry, &'a Result<Content, StoreError>)| match content {
        Ok(Content::Table(table)) => Some((key(entry, ""), table)),
        _ => None,
    };
    pairs.filter_map(of_pair).collect()
}

fn key(entry: &Entry, suffix: &str) -> FileKey {
    let dir = entry.path.parent().map(Path::to_owned);
    (dir, format!("{}{suffix}", entry.real_name))
}

/// Whether the name is that of a part of a dump, whatever the file holds.
fn is_named_so(entry: &Entry) -> bool {
    entry.name.is_some() || npy_zst::split_name(&entry.real_name).is_some()
}

fn is_table(entry: &Entry) -> bool {
    entry.real_name.ends_with(stats_csv::FILE_NAME_SUFFIX)
}

/// Returns an item with everything that the path and name of a file say.
fn of_entry(entry: &Entry) -> Item {
    let dir = entry.path.parent().unwrap_or(Path::new("."));
    // A relative path may leave out the directories that say what it is.
    let absolute = std::path::absolute(dir);
    let origin = Origin::of(absolute.as_deref().unwrap_or(dir));
    let mut item = Item {
        model: origin.model,
        model_id: origin.model_id,
        rank: origin.rank.or(origin.device),
        step: origin.step,
        path: entry.path.clone(),
        ..Item::default()
    };
    if let Some(name) = &entry.name {
        item.take_name(name);
    } else if let Some(result) = result_name(entry) {
        item.take_name(&result.file);
        item.slot = Some(result.slot);
    } else {
        match npy_zst::split_name(&entry.real_name) {
            Some((stem, _)) => item.take_stem(stem),
            None => item.op_name.clone_from(&entry.real_name),
        }
    }
    if op_debug::is_record_name(&entry.real_name) {
        item.kind = ItemKind::OverflowRecord;
    }
    item
}

impl Item {
    /// The name of an array without its suffix: `{op_name}.{output}.{timestamp}`, as golden data of the vendor's
    /// comparison have it, or anything.
    fn take_stem(&mut self, stem: &str) {
        let is_digits = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let parts = || {
            let (rest, time) = stem.rsplit_once('.')?;
            let (op_name, output) = rest.rsplit_once('.')?;
            let time = Some(time).filter(is_digits)?;
            let output = Some(output).filter(is_digits)?.parse().ok()?;
            (!op_name.is_empty()).then_some((op_name, output, time))
        };
        let Some((op_name, output, time)) = parts() else {
            self.op_name = stem.to_owned();
            return;
        };
        self.op_name = op_name.to_owned();
        self.slot = Some((opscope_store::record::Side::Output, output));
        self.timestamp = Some(time)
            .filter(|time| time.len() <= TIMESTAMP_DIGITS_MAX)
            .and_then(|time| time.parse().ok());
    }

    fn take_name(&mut self, name: &DumpFileName) {
        self.op_type.clone_from(&name.op_type);
        self.op_name.clone_from(&name.op_name);
        self.task_id = Some(name.task_id);
        self.stream_id = name.stream_id;
        let timestamp = Some(&name.timestamp).filter(|t| t.len() <= TIMESTAMP_DIGITS_MAX);
        self.timestamp = timestamp.and_then(|timestamp| timestamp.parse().ok());
    }
}

fn of_head<'a>(
    entry: &'a Entry,
    head: &'a Head,
    table: Option<&'a Table>,
) -> impl Iterator<Item = Item> + 'a {
    let mut of_file = of_entry(entry);
    if !head.op_name.is_empty() {
        of_file.op_name.clone_from(&head.op_name);
    }
    if of_file.timestamp.is_none() && head.dump_time > 0 {
        of_file.timestamp = Some(head.dump_time);
    }
    head.tensors.iter().map(move |(kind, index, tensor)| {
        let mut item = of_file.clone();
        item.describe(tensor);
        if head.kind != FileKind::Npy {
            item.slot = Some((side_of(*kind), u32::try_from(*index).unwrap_or(u32::MAX)));
        }
        item.elements = Some(ElementsPlace {
            real_name: entry.real_name.clone(),
            tensor: Some((*kind, *index)),
        });
        let row = table.and_then(|table| Some((table, row_of(table, item.slot?)?)));
        if let Some((table, row)) = row {
            item.statistics = statistics(table, row);
        }
        item
    })
}

/// The row about a tensor.
pub(super) fn row_of(
    table: &Table,
    (side, index): (opscope_store::record::Side, u32),
) -> Option<usize> {
    (0..table.rows.len()).find(|&row| {
        let subject = table.subject(row);
        subject.is_some_and(|subject| (subject.side, subject.index) == (side, index))
    })
}

fn of_table<'a>(entry: &'a Entry, table: &'a Table) -> impl Iterator<Item = Item> + 'a {
    let of_file = of_entry(entry);
    (0..table.rows.len()).filter_map(move |row| {
        let subject = table.subject(row)?;
        Some(Item {
            slot: Some((subject.side, subject.index)),
            dtype: subject.dtype.map(|dtype| dtype.to_string()),
            layout: subject.layout.map(|layout| layout.to_string()),
            shape: Some(subject.shape),
            n_bytes: Some(subject.n_bytes),
            statistics: statistics(table, row),
            ..of_file.clone()
        })
    })
}

pub(super) fn statistics(table: &Table, row: usize) -> Vec<(String, Option<String>)> {
    let cells = table.statistics(row);
    cells
        .map(|(column, cell)| {
            let is_value = !cell.is_empty() && cell != "NA";
            (column.to_owned(), is_value.then(|| cell.to_owned()))
        })
        .collect()
}

fn damaged(entry: &Entry) -> Item {
    Item {
        n_bytes: None,
        elements: Some(ElementsPlace {
            real_name: entry.real_name.clone(),
            tensor: None,
        }),
        ..of_entry(entry)
    }
}
