//! Statistics instead of tensors, and what is not written at all.

use std::sync::Arc;

use opscope_capture::{Plan, Sink, SlotSides};
use opscope_config::dialect::acl::AclContent;
use opscope_store::file_format::mapping_csv;
use opscope_store::file_format::stats_csv::{StatsColumn, StatsColumns};
use opscope_store::record::{ModelId, Record};

use super::double::{execute, files, floats, lazy_sink, operator, with_session};

const HEADER: &str = "Input/Output,Index,Data Size,Data Type,Format,Shape,";

#[test]
fn one_table_for_each_operator() {
    let dir = tempfile::tempdir().unwrap();
    let operators = [operator(0, "Add", "a.b", &["x", "", "y"], &["s"])];
    let sink = lazy_sink(dir.path()).with_content(AclContent::Statistics(StatsColumns::Plain));
    let summary = with_session(Plan::everything(), Arc::new(sink), &operators, &[], |tap| {
        let mut probe = tap.open(&operators[0]).unwrap();
        probe.input(0, floats(&[1.0, -2.0, 3.0]));
        probe.input(2, floats(&[0.5]));
        probe.output(0, floats(&[f32::INFINITY]));
        probe.submit();
    });
    let files = files(dir.path());
    let text = &files["20240102030405/0/net/1/0/Add.a_b.0.0.STAMP.csv"];
    let expected = format!(
        "{HEADER}Max Value,Min Value,Avg Value,Count,Nan Count,Negative Inf Count,Positive Inf Count\n\
         Input,0,12,DT_FLOAT,ND,3,3,-2,0.666667,3,0,0,0\n\
         Input,2,4,DT_FLOAT,ND,1,0.5,0.5,0.5,1,0,0,0\n\
         Output,0,4,DT_FLOAT,ND,1,inf,inf,inf,1,0,0,1\n"
    );
    assert_eq!(str::from_utf8(text).unwrap(), expected);
    let c = summary.counters;
    assert_eq!((c.n_written, c.n_files), (3, 1));
    assert_eq!(c.n_bytes_written, expected.len() as u64);
}

#[test]
fn chosen_columns_reach_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let columns = StatsColumns::Chosen(vec![StatsColumn::L2Norm, StatsColumn::Max]);
    let sink = lazy_sink(dir.path()).with_content(AclContent::Statistics(columns));
    let operators = [operator(0, "Add", "a", &[], &["s"])];
    with_session(Plan::everything(), Arc::new(sink), &operators, &[], |tap| {
        execute(tap, &operators[0], &[], &[floats(&[3.0, 4.0])]);
    });
    let files = files(dir.path());
    let text = files.values().next().unwrap();
    let expected = format!("{HEADER}Count,Max Value,l2norm\nOutput,0,8,DT_FLOAT,ND,2,2,4,5\n");
    assert_eq!(str::from_utf8(text).unwrap(), expected);
}

#[test]
fn long_names_count_their_suffix() {
    let dir = tempfile::tempdir().unwrap();
    // 255 bytes with the stamp, 259 with the suffix.
    let name = "n".repeat(255 - "Add..0.0.".len() - 16);
    let operators = [operator(0, "Add", &name, &[], &["s"])];
    let sink = lazy_sink(dir.path()).with_content(AclContent::Statistics(StatsColumns::Plain));
    with_session(Plan::everything(), Arc::new(sink), &operators, &[], |tap| {
        execute(tap, &operators[0], &[], &[floats(&[3.0])]);
    });
    let files = files(dir.path());
    assert_eq!(files.len(), 2);
    let mapping = &files["20240102030405/0/net/1/0/mapping.csv"];
    let mapping = str::from_utf8(mapping).unwrap();
    let (short, long) = mapping_csv::parse(mapping).next().unwrap();
    assert!(long.ends_with(".csv") && long.len() == 259, "{long}");
    assert!(short.bytes().all(|b| b.is_ascii_digit()), "{short}");
}

#[test]
fn empty_tensors_alone_have_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let operators = [operator(0, "Add", "a", &["x"], &["s"])];
    let sink = Arc::new(lazy_sink(dir.path()));
    let summary = with_session(Plan::everything(), sink, &operators, &[], |tap| {
        execute(tap, &operators[0], &[floats(&[])], &[floats(&[])]);
    });
    let c = summary.counters;
    assert_eq!((c.n_written, c.n_files, c.n_bytes_written), (2, 0, 0));
    assert!(files(dir.path()).is_empty());
}

#[test]
fn an_operator_on_its_own_goes_below_the_device() {
    let dir = tempfile::tempdir().unwrap();
    let record = Record {
        model: Arc::new(ModelId {
            device: 3,
            ..ModelId::default()
        }),
        operator: operator(65535, "Add", "Add", &["x"], &["s"]),
        step: 9,
        timestamp_us: 1_700_000_000_000_000,
        inputs: vec![],
        outputs: vec![(0, floats(&[1.0]))],
    };
    lazy_sink(dir.path()).write(&record).unwrap();
    let path = dir
        .path()
        .join("20240102030405/3/Add.Add.65535.65535.1700000000000000");
    assert!(path.is_file());
}

#[test]
fn nothing_is_created_before_there_is_something_to_write() {
    let dir = tempfile::tempdir().unwrap();
    let operators = [operator(0, "Add", "a", &["x"], &["s"])];
    let plan = Plan {
        sides: SlotSides::Outputs,
        ..Plan::nothing()
    };
    let sink = Arc::new(lazy_sink(dir.path()));
    with_session(plan, sink, &operators, &[], |tap| {
        execute(tap, &operators[0], &[floats(&[1.0])], &[floats(&[1.0])]);
    });
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
