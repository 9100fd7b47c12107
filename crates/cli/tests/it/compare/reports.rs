//! Reports of every form, read back.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;
use tempfile::TempDir;

use crate::compare::compare;
use crate::compare::dumps::{dump_data, file, npy};
use crate::support::{opscope, text};

/// Names that mean something to HTML, to spreadsheets, to terminals and to CSV.
const HOSTILE: [&str; 5] = [
    "a</script><script>alert(1)</script>",
    "=HYPERLINK(\"x\")",
    "b\u{1b}[31m\nc",
    "<img src=x onerror=alert(1)>",
    "comma, \"quote\" & 'apostrophe' ]]> é \u{2028}",
];

/// All reports of two dumps that differ, and of which one lacks something.
fn reports(target: &Path, golden: &Path, dir: &TempDir) -> HashMap<&'static str, PathBuf> {
    let mut arguments = vec![target.as_os_str().to_owned(), golden.as_os_str().to_owned()];
    let mut paths = HashMap::new();
    for form in ["json", "jsonl", "csv", "xlsx", "html"] {
        let path = dir.path().join(format!("report.{form}"));
        arguments.push(format!("--{form}").into());
        arguments.push(path.clone().into());
        paths.insert(form, path);
    }
    let (code, told, errors) = compare(&arguments);
    assert_eq!((code, errors.as_str()), (1, ""), "{told}");
    for path in paths.values() {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path:?}");
    }
    paths
}

fn plain() -> (TempDir, HashMap<&'static str, PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let target = npy(
        &dir.path().join("target"),
        &[("1.output", f32::NAN), ("2.input", f32::NAN)],
    );
    let golden = npy(&dir.path().join("golden"), &[]);
    for slot in ["input", "output"] {
        fs::remove_file(target.join(file(3, slot))).unwrap();
    }
    let paths = reports(&target, &golden, &dir);
    (dir, paths)
}

fn hostile() -> (TempDir, HashMap<&'static str, PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let [target, golden] = ["target", "golden"].map(|name| dir.path().join(name));
    for (side, value) in [(&target, 1.0), (&golden, 2.0)] {
        for (i, name) in HOSTILE.iter().enumerate() {
            let file = format!("Add.x{i}.{i}.0.170000000000000{i}");
            dump_data(side, &file, name, &[1.0, value]);
        }
    }
    let paths = reports(&target, &golden, &dir);
    (dir, paths)
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Names of operators of a result.
fn names(operators: &[Value]) -> Vec<String> {
    let name = |operator: &Value| {
        operator["target"][0]["op_name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    operators.iter().map(name).collect()
}

#[test]
fn records_hold_what_the_document_holds() {
    for (_dir, paths) in [plain(), hostile()] {
        let document = json(&paths["json"]);
        let text = fs::read_to_string(&paths["jsonl"]).unwrap();
        let mut lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let kinds: Vec<String> = lines
            .iter_mut()
            .map(|line| {
                line.as_object_mut()
                    .unwrap()
                    .remove("type")
                    .unwrap()
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        let of_kind = |kind: &str| -> Vec<Value> {
            let lines = lines.iter().zip(&kinds).filter(|(_, known)| *known == kind);
            lines.map(|(line, _)| line.clone()).collect()
        };
        assert_eq!(
            (kinds[0].as_str(), kinds[kinds.len() - 1].as_str()),
            ("config", "summary")
        );
        assert_eq!(Value::from(of_kind("comparison")), document["operators"]);
        assert_eq!(Value::from(of_kind("skip")), document["skips"]);
        assert_eq!(of_kind("summary"), [document["summary"].clone()]);
        assert_eq!(lines[0]["version"], document["version"]);
        assert_eq!(lines[0]["target"], document["config"]["target"]);
    }
}

#[test]
fn a_cut_off_result_is_not_judged() {
    let (dir, paths) = plain();
    let text = fs::read_to_string(&paths["jsonl"]).unwrap();
    let cut = dir.path().join("cut.jsonl");
    let n_kept = text.trim_end().rfind('\n').unwrap();
    fs::write(&cut, &text[..n_kept]).unwrap();
    let (code, _, errors) = compare(["--from".as_ref(), cut.as_os_str()]);
    assert_eq!(code, 3);
    assert!(errors.contains("cut off"), "{errors}");
}

/// Results of before there were suspects of each operator, and places of elements.
#[test]
fn results_without_newer_fields_are_judged() {
    let (dir, paths) = plain();
    let mut document = json(&paths["json"]);
    for operator in document["operators"].as_array_mut().unwrap() {
        operator.as_object_mut().unwrap().remove("suspects");
        for slot in operator["slots"].as_array_mut().unwrap() {
            slot.as_object_mut().unwrap().remove("differing");
        }
    }
    let old = dir.path().join("old.json");
    fs::write(&old, document.to_string()).unwrap();
    let (code, told, errors) = compare(["--from".as_ref(), old.as_os_str()]);
    assert_eq!((code, errors.as_str()), (1, ""));
    assert!(
        told.starts_with("FAIL: cause at Mul `net_mul_1` output.0: "),
        "{told}"
    );
    assert!(!told.contains("differs by more than"), "{told}");
}

#[test]
fn standard_output_is_the_document_alone() {
    let (dir, paths) = plain();
    let from = paths["json"].as_os_str();
    for form in ["--json", "--jsonl"] {
        let (code, told, errors) = compare(["--from".as_ref(), from, form.as_ref(), "-".as_ref()]);
        assert_eq!((code, errors.as_str()), (1, ""));
        let saved = fs::read_to_string(&paths[form.trim_start_matches('-')]).unwrap();
        assert_eq!(told, saved);
    }
    // A file is replaced only where that was asked for.
    let csv = paths["csv"].as_os_str();
    fs::write(csv, "mine").unwrap();
    assert_eq!(
        compare(["--from".as_ref(), from, "--csv".as_ref(), csv]).0,
        2
    );
    assert_eq!(fs::read_to_string(csv).unwrap(), "mine");
    assert_eq!(
        compare([
            "--from".as_ref(),
            from,
            "--csv".as_ref(),
            csv,
            "--force".as_ref()
        ])
        .0,
        1
    );
    assert!(fs::read_to_string(csv).unwrap().starts_with("index,"));
    drop(dir);
}

#[test]
fn bare_names_are_files_of_the_current_directory() {
    let dir = tempfile::tempdir().unwrap();
    let side = npy(&dir.path().join("side"), &[]);
    for more in [&[][..], &["--force"]] {
        let mut command = opscope();
        command
            .current_dir(dir.path())
            .arg("compare")
            .args([&side, &side]);
        for form in ["json", "jsonl", "csv", "xlsx", "html"] {
            command.arg(format!("--{form}")).arg(format!("bare.{form}"));
        }
        let (code, _, errors) = text(command.args(more));
        assert_eq!((code, errors.as_str()), (0, ""));
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5 + 1);
}

/// Rows of a CSV file, by title.
fn rows(path: &Path) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut rows: Vec<Vec<String>> = vec![vec![String::new()]];
    let mut is_quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let row = rows.last_mut().unwrap();
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                row.last_mut().unwrap().push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(String::new()),
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => rows.push(vec![String::new()]),
            c => row.last_mut().unwrap().push(c),
        }
    }
    assert_eq!(rows.pop(), Some(vec![String::new()]));
    let titles = rows.remove(0);
    let row = |cells: Vec<String>| {
        assert_eq!(cells.len(), titles.len());
        titles.iter().cloned().zip(cells).collect()
    };
    rows.into_iter().map(row).collect()
}

#[test]
fn csv_has_a_row_for_each_slot_and_skip() {
    let (_dir, paths) = plain();
    let rows = rows(&paths["csv"]);
    assert_eq!(rows.len(), 6 + 1);
    // The rows of the operator that the verdict names come first.
    let order: Vec<&str> = rows[..6].iter().map(|row| row["index"].as_str()).collect();
    assert_eq!(order, ["1", "1", "0", "0", "2", "2"]);
    let marks: Vec<&str> = rows[..3]
        .iter()
        .map(|row| row["in_verdict"].as_str())
        .collect();
    assert_eq!(marks, ["yes", "yes", ""]);
    let row = &rows[1];
    let get = |name: &str| row[name].as_str();
    assert_eq!((get("cause"), get("suspects")), ("own", ""));
    assert_eq!(
        (get("index"), get("op_name"), get("slot")),
        ("1", "net_mul_1", "output.0")
    );
    assert_eq!(
        (get("level"), get("n_nan_mismatches"), get("n")),
        ("fail", "1", "6")
    );
    assert_eq!((get("outputs_error"), get("target_shape")), ("inf", "2x3"));
    assert_eq!(get("non_finite"), "producer");
    assert!(get("target_path").ends_with(&file(1, "output")));
    let skip = &rows[6];
    assert_eq!(
        (skip["level"].as_str(), skip["reason"].as_str()),
        ("skip", "missing")
    );
    assert_eq!(
        (skip["golden_op_name"].as_str(), skip["op_name"].as_str()),
        ("net_mul_3", "")
    );
}

#[test]
fn spreadsheets_get_no_formulas() {
    let (_dir, paths) = hostile();
    let operators = json(&paths["json"])["operators"]
        .as_array()
        .unwrap()
        .clone();
    let rows = rows(&paths["csv"]);
    let rows = rows.iter();
    for (row, name) in rows.zip(names(&operators)) {
        let cell = &row["op_name"];
        assert_eq!(cell.strip_prefix('\'').unwrap_or(cell), name);
        assert!(!cell.starts_with('='), "{cell}");
    }
    for (_, text) in parts(&paths["xlsx"]) {
        assert!(
            !text.contains("<f>") && !text.contains("<hyperlink"),
            "{text}"
        );
    }
}

/// Parts of a workbook that are XML.
fn parts(path: &Path) -> HashMap<String, String> {
    let mut archive = zip::ZipArchive::new(File::open(path).unwrap()).unwrap();
    let mut parts = HashMap::new();
    for i in 0..archive.len() {
        let mut part = archive.by_index(i).unwrap();
        let mut text = String::new();
        part.read_to_string(&mut text).unwrap();
        parts.insert(part.name().unwrap().into_owned(), text);
    }
    parts
}

/// Whether every element of an XML text is closed, in order.
fn assert_well_formed(name: &str, text: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, rest) = tag
            .split_once('>')
            .unwrap_or_else(|| panic!("{name}: {tag}"));
        assert!(
            !rest.contains('>') && !rest.contains('\u{1b}'),
            "{name}: {rest}"
        );
        let word = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(word), "{name}");
        } else if !tag.ends_with('/') && !tag.starts_with('?') {
            open.push(word);
        }
    }
    assert!(open.is_empty(), "{name}: {open:?}");
}

#[test]
fn workbooks_are_whole() {
    for (_dir, paths) in [plain(), hostile()] {
        let parts = parts(&paths["xlsx"]);
        for (name, text) in &parts {
            assert_well_formed(name, text);
        }
        let book = &parts["xl/workbook.xml"];
        for sheet in ["Summary", "Operators", "Slots", "Skipped"] {
            assert!(book.contains(&format!("name=\"{sheet}\"")), "{book}");
        }
        let document = json(&paths["json"]);
        let operators = document["operators"].as_array().unwrap();
        let n_slots: usize = operators
            .iter()
            .map(|o| o["slots"].as_array().unwrap().len())
            .sum();
        let n_skips = document["skips"].as_array().unwrap().len();
        for (sheet, n) in [(2, operators.len()), (3, n_slots), (4, n_skips)] {
            let text = &parts[&format!("xl/worksheets/sheet{sheet}.xml")];
            assert_eq!(text.matches("<row ").count(), n + 1, "{sheet}");
            assert!(
                text.contains("state=\"frozen\"") && text.contains("<autoFilter "),
                "{text}"
            );
        }
        let formats = &parts["xl/worksheets/sheet3.xml"];
        assert!(formats.contains("<formula>\"fail\"</formula>"), "{formats}");
    }
}

/// The answers that a page has inside.
fn page_contents(page: &str) -> Value {
    let start = "<script type=\"application/octet-stream\" id=\"opscope-data\">";
    let (_, data) = page.split_once(start).unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let bytes = STANDARD.decode(data).unwrap();
    serde_json::from_reader(GzDecoder::new(&bytes[..])).unwrap()
}

#[test]
fn pages_hold_names_as_data_only() {
    for (_dir, paths) in [plain(), hostile()] {
        let page = fs::read_to_string(&paths["html"]).unwrap();
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(
            !page.contains("<img") && !page.contains("<iframe") && !page.contains("<link rel=\"s")
        );
        assert!(!page.contains("src=\"") && !page.contains("http-equiv=\"refresh"));
        // The only addresses are names of namespaces, which are never fetched.
        let mut addresses = page.split("://").skip(1);
        assert!(addresses.all(|rest| rest.starts_with("www.w3.org/")));
        let data = page_contents(&page);
        let document = json(&paths["json"]);
        let operators = document["operators"].as_array().unwrap();
        let rows = data["rows"].as_array().unwrap();
        let shown: Vec<&str> = rows
            .iter()
            .map(|row| row["op_name"].as_str().unwrap())
            .collect();
        assert_eq!(shown, names(operators));
        for (row, operator) in rows.iter().zip(operators) {
            assert_eq!(row["status"], operator["level"]);
            // Of the operator that the verdict names its reason may be said in the operator's place.
            if row["at_fault"] == false {
                assert_eq!(
                    row["cause"],
                    operator.get("cause").cloned().unwrap_or_default()
                );
            }
            let details = &data["details"][row["id"].to_string()];
            let slots = operator["slots"].as_array().unwrap();
            assert_eq!(details["slots"].as_array().unwrap().len(), slots.len());
            for (shown, slot) in details["slots"].as_array().unwrap().iter().zip(slots) {
                assert_eq!(shown["status"], slot["level"]);
                let metrics = slot["metrics"].as_object().unwrap();
                assert_eq!(shown["metrics"].as_array().unwrap().len(), metrics.len());
                for metric in shown["metrics"].as_array().unwrap() {
                    assert_eq!(metric[1], metrics[metric[0].as_str().unwrap()]);
                }
            }
        }
        let first = &document["summary"]["first_failure"];
        assert_eq!(data["info"]["verdict"]["op"], first["operator"]);
        assert_eq!(data["info"]["verdict"]["status"], "fail");
        let groups = data["coverage"]["groups"].as_array().unwrap().iter();
        let groups = groups.filter(|group| group["reason"] != "no_slot");
        let n_skips: u64 = groups.map(|group| group["n"].as_u64().unwrap()).sum();
        assert_eq!(
            n_skips as usize,
            document["skips"].as_array().unwrap().len()
        );
    }
}

#[test]
fn terminals_get_no_orders() {
    let (_dir, paths) = hostile();
    let (_, told, _) = compare(["--from".as_ref(), paths["json"].as_os_str()]);
    assert!(!told.contains('\u{1b}'), "{told}");
    assert!(told.contains("b\\u{1b}[31m\\u{a}c"), "{told}");
}
