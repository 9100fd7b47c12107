use std::path::PathBuf;

use super::*;

fn golden(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ort_trace");
    dir.join(name)
}

fn read(name: &str) -> FileBytes {
    std::fs::read(golden(name)).unwrap().into()
}

fn rows_of(database: &Database, table: &SqlTable) -> Result<Vec<(i64, Vec<String>)>, FormatError> {
    let mut rows = database.rows(table);
    let mut buffer = RowBuffer::default();
    let mut found = Vec::new();
    while let Some(row) = rows.next_row()? {
        let values = rows.read(&row, &mut buffer)?;
        let texts = values.iter().map(|value| match value {
            SqlValue::Null => "null".to_owned(),
            SqlValue::Integer(number) => number.to_string(),
            SqlValue::Real(number) => format!("{number:?}"),
            SqlValue::Text(_) => format!("{:?}", value.text().unwrap_or("other")),
            SqlValue::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        });
        found.push((row.number, texts.collect()));
    }
    Ok(found)
}

/// The rows that SQLite read from databases that it wrote: `tests/peers/ort_sqlite_cases.py`.
#[test]
fn rows_are_what_the_library_reads() {
    let known = std::fs::read(golden("pages/known.json")).unwrap();
    let known: serde_json::Value = serde_json::from_slice(&known).unwrap();
    for name in ["small", "vacuum", "large"] {
        let path = golden(&format!("pages/{name}.db"));
        let database = Database::open(&path).unwrap();
        let table = database.table("NUMBERS").unwrap();
        assert_eq!(table.columns, ["n", "real_number", "text", "bytes"]);
        let found = rows_of(&database, &table).unwrap();
        let expected = known[name].as_array().unwrap();
        assert_eq!(found.len(), expected.len(), "{name}");
        for ((number, values), row) in found.iter().zip(expected) {
            let real = row[2].as_f64();
            // A number without a fraction takes fewer bytes as a whole one.
            let whole = real.filter(|real| real.fract() == 0.0);
            let is_whole = |real: f64| values[1] == format!("{real:.0}");
            let as_real = real.map_or("null".to_owned(), |real| format!("{real:?}"));
            assert_eq!(*number, row[0].as_i64().unwrap(), "{name}");
            assert_eq!(values[0], row[1].to_string(), "{name}");
            assert!(
                values[1] == as_real || whole.is_some_and(is_whole),
                "{name} {values:?}"
            );
            assert_eq!(
                values[2],
                format!("{:?}", row[3].as_str().unwrap()),
                "{name}"
            );
            assert_eq!(values[3], row[4].as_str().unwrap(), "{name}");
            let mut rows = database.rows(&table);
            let alone = rows.find(*number).unwrap().unwrap();
            assert_eq!(alone.number, *number);
        }
        for absent in [i64::MIN, -1, 0, 1, 4, 1 << 40] {
            assert!(
                database.rows(&table).find(absent).unwrap().is_none(),
                "{name} {absent}"
            );
        }
    }
}

#[test]
fn tables_are_told_from_what_only_has_their_names() {
    let check = |file: &str, table: &str, expected: &str| {
        let found = Database::open(&golden(file)).map_err(|error| match error {
            StoreError::Corrupt { source, .. } => source.to_string(),
            StoreError::Io { source, .. } => source.to_string(),
        });
        let found = found.and_then(|found| found.table(table).map_err(|error| error.to_string()));
        let text = found.map_or_else(|error| error, |table| table.columns.join(" "));
        assert!(text.contains(expected), "{file} {table}: {text}");
    };
    check("pages/small.db", "numbers", "n real_number text bytes");
    check(
        "pages/small.db",
        "numbers_view",
        "expected the table `numbers_view`, found a view",
    );
    check(
        "pages/small.db",
        "other",
        "found columns that are not plain",
    );
    check(
        "pages/small.db",
        "absent",
        "expected the table `absent`, found none of this name",
    );
    check(
        "pages/wide.db",
        "numbers",
        "byte 56: expected texts in UTF-8, found encoding 2",
    );
    check(
        "known.json",
        "numbers",
        "byte 0: expected the magic of SQLite",
    );
}

/// A process was stopped in a transaction, with new pages in the file:
/// `tests/peers/ort_sqlite_cases.py`.
#[test]
fn a_transaction_that_did_not_end_is_undone() {
    let file = || read("unfinished-pid3.db");
    let journal = || std::fs::read(golden("unfinished-pid3.db-journal")).unwrap();
    let producers = |journal: Option<Vec<u8>>| {
        let database = Database::from_bytes(file().into(), journal.map(FileBytes::from))?;
        let table = database.table("Tensors")?;
        let rows = rows_of(&database, &table)?;
        Ok(rows
            .into_iter()
            .map(|(_, mut row)| row.swap_remove(4))
            .collect::<Vec<_>>())
    };
    let before = producers(Some(journal())).unwrap();
    assert_eq!(before.len(), 14);
    assert!(
        before
            .iter()
            .all(|text| text.ends_with(":0\"") || text.ends_with(":1\"")),
        "{before:?}"
    );
    // Without its journal the file is something between two states.
    let torn = producers(None);
    assert!(torn.is_ok_and(|torn: Vec<String>| torn != before));
    // One that is blanked belongs to a transaction that ended.
    let blank = producers(Some([vec![0; 28], journal()[28..].to_vec()].concat()));
    assert_ne!(blank.unwrap(), before);
    let check = |at: usize, byte: u8| {
        let mut damaged = journal();
        damaged[at] = byte;
        let error: FormatError = producers(Some(damaged)).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("a journal of pages of 4096 bytes"),
            "{error}"
        );
    };
    check(26, 0x20);
    check(22, 3);
    let mut empty = journal();
    empty[16..20].fill(0);
    assert!(producers(Some(empty)).is_err());
    // Whatever a damaged journal holds, nothing but an error or rows comes of it.
    for at in (0..journal().len()).step_by(41).chain(0..64) {
        let mut damaged = journal();
        damaged[at] ^= 0x55;
        let _ = producers(Some(damaged));
    }
}

/// A page with the header and tree of a leaf, and what follows the header of the file if it is the
/// first.
fn leaf(page_bytes: usize, is_first: bool, cells: &[Vec<u8>]) -> Vec<u8> {
    let mut page = vec![0; page_bytes];
    let start = if is_first { HEADER_BYTES } else { 0 };
    page[start] = 0x0d;
    page[start + 3..start + 5].copy_from_slice(&(cells.len() as u16).to_be_bytes());
    let mut end = page_bytes;
    for (i, cell) in cells.iter().enumerate() {
        end -= cell.len();
        page[end..end + cell.len()].copy_from_slice(cell);
        let at = start + 8 + 2 * i;
        page[at..at + 2].copy_from_slice(&(end as u16).to_be_bytes());
    }
    page
}

/// A row of short texts and small numbers.
fn cell(number: u8, values: &[&str]) -> Vec<u8> {
    let is_number = |value: &str| value.parse::<u8>().is_ok();
    let kinds = values.iter().flat_map(|value| {
        let n = 13 + 2 * value.len() as u64;
        let kind = if is_number(value) { 1 } else { n };
        if kind < 128 {
            vec![kind as u8]
        } else {
            vec![0x80 | (kind >> 7) as u8, (kind & 0x7f) as u8]
        }
    });
    let kinds: Vec<u8> = kinds.collect();
    let contents = values.iter().flat_map(|value| match value.parse::<u8>() {
        Ok(number) => vec![number],
        Err(_) => value.as_bytes().to_vec(),
    });
    let row = [vec![kinds.len() as u8 + 1], kinds, contents.collect()].concat();
    [vec![row.len() as u8, number], row].concat()
}

fn file_of(page_bytes: usize, tables: &[&[&str]], pages: &[Vec<u8>]) -> Vec<u8> {
    let cells: Vec<Vec<u8>> = (1..)
        .zip(tables)
        .map(|(number, table)| cell(number, table))
        .collect();
    let mut file = leaf(page_bytes, true, &cells);
    file[..16].copy_from_slice(&MAGIC);
    let size = if page_bytes == PAGE_BYTES_MAX {
        LARGEST_PAGE
    } else {
        page_bytes as u16
    };
    file[16..18].copy_from_slice(&size.to_be_bytes());
    file[59] = 1;
    file.extend(pages.concat());
    file
}

const T: &[&str] = &["table", "t", "t", "2", "CREATE TABLE t (a, b)"];

fn texts_of(file: Vec<u8>) -> Result<String, FormatError> {
    let database = Database::from_bytes(file.into(), None)?;
    let table = database.table("t")?;
    let rows = rows_of(&database, &table)?;
    let rows = rows
        .into_iter()
        .map(|(number, values)| format!("{number} {}", values.join(" ")));
    Ok(rows.collect::<Vec<_>>().join("; "))
}

#[test]
fn pages_have_any_size() {
    for page_bytes in [512, 1024, 4096, 32_768, PAGE_BYTES_MAX] {
        let rows = leaf(
            page_bytes,
            false,
            &[cell(3, &["x", "7"]), cell(9, &["", "y"])],
        );
        let found = texts_of(file_of(page_bytes, &[T], &[rows])).unwrap();
        assert_eq!(found, "3 \"x\" 7; 9 \"\" \"y\"", "{page_bytes}");
    }
}

#[test]
fn hostile_databases_get_an_error_with_a_place() {
    let check = |change: &dyn Fn(&mut Vec<u8>), expected: &str| {
        let rows = leaf(512, false, &[cell(1, &["x", "7"]), cell(2, &["", "y"])]);
        let mut file = file_of(512, &[T], &[rows, vec![0; 512]]);
        change(&mut file);
        let found = texts_of(file).unwrap_or_else(|error| error.to_string());
        assert!(found.contains(expected), "{found} instead of {expected}");
    };
    check(&|_| (), "1 \"x\" 7; 2 \"\" \"y\"");
    check(
        &|file| file.truncate(300),
        "byte 0: expected a page from 1 to 1, found 1",
    );
    check(
        &|file| file.truncate(512),
        "expected a page from 1 to 1, found 2",
    );
    check(&|file| file[17] = 3, "byte 16: expected a size of pages");
    check(
        &|file| file[20] = 200,
        "byte 20: expected 480 bytes of a page",
    );
    check(
        &|file| file[31] = 9,
        "byte 28: expected at most 3 pages, which the file has, found 9",
    );
    check(&|file| file[59] = 3, "byte 56: expected texts in UTF-8");
    check(
        &|file| file[512] = 0x0a,
        "byte 512: expected a page of a table, found kind 10",
    );
    check(
        &|file| file[515] = 0xff,
        "byte 515: expected a list of cells that fits the page",
    );
    check(
        &|file| file[520..522].copy_from_slice(&[0, 5]),
        "expected a place of a cell in the page",
    );
    // The second row before the first.
    check(
        &|file| {
            let places = [file[520], file[521], file[522], file[523]];
            file[520..524].copy_from_slice(&[places[2], places[3], places[0], places[1]]);
        },
        "expected a row behind 2, found 1",
    );
    // A row that is longer than the file.
    check(
        &|file| {
            let at = 512 + usize::from(u16::from_be_bytes([file[520], file[521]]));
            file[at..at + 4].copy_from_slice(&[0xff, 0xff, 0x7f, 1]);
        },
        "expected a row that fits the file, found a longer one",
    );
}

#[test]
fn pages_that_go_down_on_themselves_get_an_error_with_a_place() {
    let check = |pages: [u8; 2], expected: &str| {
        let [second, third] = pages.map(interior);
        let found = texts_of(file_of(512, &[T], &[second, third]));
        let found = found.unwrap_or_else(|error| error.to_string());
        assert!(found.contains(expected), "{found} instead of {expected}");
    };
    // A page that is its own child, and one that goes down on itself through another.
    check([2, 3], "each page once");
    check([3, 2], "each page once");
    check([0, 3], "byte 520: expected a page from 1 to 3, found 0");
}

/// A page of a table that has nothing but its last child.
fn interior(child: u8) -> Vec<u8> {
    let mut page = vec![0; 512];
    page[0] = INTERIOR_KIND;
    page[11] = child;
    page
}

const INTERIOR_KIND: u8 = 0x05;

#[test]
fn trees_and_chains_end() {
    // Levels without end, each another page.
    let levels = (3..40_u8).map(|child| {
        let mut page = vec![0; 512];
        page[0] = INTERIOR_KIND;
        page[11] = child;
        page
    });
    let error = texts_of(file_of(512, &[T], &levels.collect::<Vec<_>>())).unwrap_err();
    assert!(
        error.to_string().contains("at most 20 levels of pages"),
        "{error}"
    );
    // A row of 1000 bytes, whose further pages are each other's next.
    let row_of = |next: u8| {
        let start = n_bytes_in_leaf();
        let row = [vec![0x87, 0x68, 1], vec![0; start], vec![0, 0, 0, next]].concat();
        leaf(512, false, &[row])
    };
    let chain = |next: u8| [vec![0, 0, 0, next], vec![0; 508]].concat();
    let error = texts_of(file_of(512, &[T], &[row_of(3), chain(3), chain(3)])).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("each page once, found page 3 again"),
        "{error}"
    );
    let error = texts_of(file_of(512, &[T], &[row_of(0), chain(0)])).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("expected a page from 1 to 3, found 0"),
        "{error}"
    );
}

/// Bytes of a row of 1000 that a page of 512 keeps itself.
fn n_bytes_in_leaf() -> usize {
    let fewest = (512 - 12) * 32 / 255 - 23;
    let filling = fewest + (1000 - fewest) % 508;
    if filling <= 477 { filling } else { fewest }
}

#[test]
fn a_view_or_virtual_table_is_no_table() {
    let check = |table: &[&str], expected: &str| {
        let error = texts_of(file_of(512, &[table], &[vec![0; 512]])).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(
        &["view", "t", "t", "0", "CREATE VIEW t AS SELECT 1"],
        "found a view",
    );
    check(
        &["table", "t", "t", "0", "CREATE VIRTUAL TABLE t USING x(a)"],
        "found a virtual table",
    );
    check(
        &["table", "t", "t", "2", "CREATE TABLE t (a AS (1))"],
        "found columns that are not plain",
    );
    check(
        &["trigger", "t", "t", "0", "CREATE TRIGGER t"],
        "found none of this name",
    );
    check(
        &["table", "t", "t"],
        "expected the five values of a table, found 3 values",
    );
    check(
        &["1", "t", "t", "2", "x"],
        "expected the kind and name of a table",
    );
}

#[test]
fn a_log_beside_a_database_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.db");
    std::fs::copy(golden("outputs-pid2.db"), &path).unwrap();
    let log = dir.path().join("trace.db-wal");
    std::fs::write(&log, "").unwrap();
    assert!(Database::open(&path).is_ok());
    std::fs::write(&log, "x").unwrap();
    let error = Database::open(&path).err().unwrap();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        source.contains("expected no write-ahead log, found"),
        "{source}"
    );
    // Nothing is made beside a database by reading it.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}
