use super::*;

fn subject(op_name: &str, shape: &[u64]) -> StatisticSubject {
    StatisticSubject {
        op_type: "Conv2D".to_owned(),
        op_name: op_name.to_owned(),
        task_id: 1,
        stream_id: 2,
        timestamp: 1_700_000_000_000_000,
        side: SlotSide::Output,
        slot: 3,
        n_bytes: 48,
        dtype: "float32".to_owned(),
        shape: shape.to_vec(),
    }
}

#[test]
fn the_recorded_row() {
    let row = row(
        &StatisticSubject {
            task_id: 0,
            stream_id: 0,
            slot: 0,
            ..subject("Default/conv1-Conv2d/Conv2D-op0", &[3, 4])
        },
        &[
            StatisticCell::Real(6.0),
            StatisticCell::Real(-5.0),
            StatisticCell::Real(146_f64.sqrt()),
        ],
    );
    assert_eq!(
        row,
        "Conv2D,Default/conv1-Conv2d/Conv2D-op0,0,0,1700000000000000,output,0,48,float32,\"[3,4]\",6,-5,12.083,\n"
    );
    assert_eq!(
        header(&StatisticCategory::DEFAULT),
        "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,L2Norm Value\n"
    );
}

#[test]
fn rows_come_back() {
    let categories = [
        StatisticCategory::Max,
        StatisticCategory::Count,
        StatisticCategory::Sha1,
        StatisticCategory::Md5,
    ];
    let cells = [
        StatisticCell::Real(f64::NEG_INFINITY),
        StatisticCell::Count(u64::MAX),
        StatisticCell::Text("ab12".to_owned()),
        StatisticCell::Null,
    ];
    let subjects = [
        subject("a,b,\"[1]\",c", &[]),
        subject("Default/x", &[u64::MAX, 0]),
    ];
    // Spreadsheets put a mark in front when they save the table.
    let mut text = "\u{feff}".to_owned() + &header(&categories);
    for subject in &subjects {
        text += &row(subject, &cells);
    }
    let table = parse(&text).unwrap();
    let columns: Vec<_> = table
        .columns
        .iter()
        .map(|c| StatisticCategory::from_column(c))
        .collect();
    assert_eq!(columns, categories.map(Some));
    assert_eq!(table.rows[0].0, subjects[0]);
    assert_eq!(table.rows[1].0, subjects[1]);
    let values = ["-inf", "18446744073709551615", "ab12"].map(|v| Some(v.to_owned()));
    assert_eq!(table.rows[0].1[..3], values);
    assert_eq!(table.rows[0].1[3], None);
    assert!(table.errors.is_empty());
}

#[test]
fn older_forms_are_read() {
    let common = COMMON_COLUMNS.join(",");
    // Extents in parentheses, replaced names; no comma at the end, nothing finite.
    let text = format!(
        "{common},Max Value,Min Value,Avg Value,Count\r\n\
         Conv2D,Default_Conv2D-op0,0,0,17,output,0,48,float32,\"(3,4)\",null,null,null,12\r\n\
         ReLU,Default_ReLU-op0,0,0,18,input,1,4,int32,\"()\",1,2,3,4,\n"
    );
    let table = parse(&text).unwrap();
    assert_eq!(table.rows.len(), 2);
    assert_eq!(table.rows[0].0.shape, [3, 4]);
    assert_eq!(table.rows[0].1, [None, None, None, Some("12".to_owned())]);
    assert_eq!(table.rows[1].1[3].as_deref(), Some("4"));
    assert!(table.rows[1].0.shape.is_empty());
}

#[test]
fn damage_is_noted_and_the_rest_read() {
    let text = header(&[StatisticCategory::Max])
        + "nonsense\n"
        + "A,b,0,0,1,sideways,0,4,float32,\"[1]\",1,\n"
        + &row(&subject("x", &[1]), &[StatisticCell::Real(1.0)])
        + "A,b,0,0,1,input,0,4,float32,\"[1";
    let table = parse(&text).unwrap();
    assert_eq!((table.rows.len(), table.errors.len()), (1, 3));
    assert_eq!(
        table.errors[0].offset,
        header(&[StatisticCategory::Max]).len() as u64
    );
    assert!(parse("Input/Output,Index\n").is_err());
    assert!(parse("").is_err());
}

#[test]
fn names_of_categories() {
    for name in ["hash", "hash:sha1"] {
        assert_eq!(
            StatisticCategory::from_name(name),
            Some(StatisticCategory::Sha1)
        );
    }
    assert_eq!(
        StatisticCategory::from_name("hash:md5"),
        Some(StatisticCategory::Md5)
    );
    assert_eq!(StatisticCategory::from_name("Max"), None);
    assert!(StatisticCategory::L2Norm.is_on_device() && !StatisticCategory::Count.is_on_device());
}
