use super::*;

fn write(dir: &Path, name: &str, content: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn statistics_alone_make_records() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value\n\
                Add,Default/a.b/Add-op0,0,0,5,input,0,8,float32,\"[2]\",1,\n\
                Add,Default/a.b/Add-op0,0,0,6,output,0,8,float32,\"[2]\",2,\n\
                Add,Default/a.b/Add-op0,0,0,7,input,0,8,float32,\"[2]\",3,\n\
                broken\n";
    write(dir.path(), "rank_1/Net/0/2/statistic.csv", rows);
    let dump = MindSporeListing::open(dir.path()).unwrap();
    assert_eq!(dump.records.len(), 2);
    let first = &dump.records[0];
    assert_eq!(first.full_name.as_deref(), Some("Default/a.b/Add-op0"));
    assert_eq!(first.op_name, "Default_a_b_Add-op0");
    assert_eq!(
        (first.place.rank, first.place.iteration),
        (Some(1), Some(2))
    );
    assert_eq!((first.slots.len(), first.slots[1].row), (2, Some((0, 1))));
    assert_eq!(dump.records[1].run, 1);
    assert_eq!(dump.errors.len(), 1);
}

#[test]
fn rows_meet_the_files_of_their_tensors() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape\n\
                Add,x,0,0,5,output,0,8,float32,\"[2]\",\nMul,y,0,0,6,output,0,8,float32,\"[2]\",\n";
    write(dir.path(), "0/0/statistic.csv", rows);
    write(
        dir.path(),
        "0/0/Add.x.0.0.5.output.0.DefaultFormat.float32.npy",
        "",
    );
    write(
        dir.path(),
        "0/0/Mul.y.0.0.9.output.0.DefaultFormat.float32.npy",
        "",
    );
    let dump = MindSporeListing::open(dir.path()).unwrap();
    let pairs: Vec<_> = dump
        .records
        .iter()
        .map(|r| (r.slots.len(), r.slots[0].file.is_some(), r.slots[0].row))
        .collect();
    assert_eq!(pairs, [(1, true, Some((0, 0))), (1, true, Some((0, 1)))]);
}

#[test]
fn whole_graphs_have_steps_and_other_files() {
    let dir = tempfile::tempdir().unwrap();
    let leaf = "3/20240102030405/0/net/1/0";
    write(dir.path(), "acl_dump_0.json", "{}");
    write(dir.path(), &format!("{leaf}/Add.a.2.7.17"), "");
    write(
        dir.path(),
        &format!("{leaf}/Mul.b.3.7.18.output.0.NCHW.bfloat16.npy"),
        "",
    );
    write(dir.path(), &format!("{leaf}/77.npy"), "");
    write(dir.path(), &format!("{leaf}/78.npy"), "");
    write(
        dir.path(),
        &format!("{leaf}/mapping.csv"),
        "77.npy,Sub.c.4.7.19.input.0.ND.int8.npy\n",
    );
    let dump = MindSporeListing::open(dir.path()).unwrap();
    let types: Vec<_> = dump.records.iter().map(|r| r.op_type.as_str()).collect();
    assert_eq!(types, ["Add", "", "Mul", "Sub"]);
    assert!(dump.records.iter().all(|r| r.place.step == Some(3)));
    assert_eq!(dump.records[0].dump_files.len(), 1);
    assert_eq!(dump.records[3].slots[0].side, SlotSide::Input);
}

#[test]
fn other_directories_are_given_back() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "Add.a.1.0.5", "x");
    write(dir.path(), "Add.a.1.0.5.output.0.npy", "x");
    assert!(MindSporeListing::open(dir.path()).is_none());
    assert!(MindSporeListing::open(&dir.path().join("absent")).is_none());
}

#[test]
fn damage_beside_the_tensors_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "graphs/ms_output_trace_code_graph_0.ir",
        "graphs/ms_output_trace_code_graph_0.pb",
    ] {
        write(dir.path(), &format!("rank_0/{name}"), "nonsense");
    }
    write(
        dir.path(),
        "rank_0/N/0/0/Add.Default_Add-op0.0.0.5.output.0.DefaultFormat.Float32.npy",
        "",
    );
    let dump = MindSporeListing::open(dir.path()).unwrap();
    assert_eq!((dump.errors.len(), dump.records.len()), (2, 1));
    assert_eq!(dump.records[0].full_name, None);
}

#[test]
fn accelerators_follow_the_list_and_the_cpu_its_times() {
    for (dtype, expected) in [
        ("float32", ["Mul", "Add", "Mul", "Add"]),
        ("Float32", ["Add", "Add", "Mul", "Mul"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let order = "NodeExecutionOrder-FullNameWithScope\nDefault/Mul-op3\nDefault/Add-op0\n";
        let path = "rank_0/execution_order/ms_execution_order_graph_0.csv";
        write(dir.path(), path, order);
        for (name, time) in [("Add", 5), ("Add", 6), ("Mul", 7), ("Mul", 8)] {
            let file =
                format!("{name}.Default_{name}-op0.0.0.{time}.output.0.DefaultFormat.{dtype}.npy");
            write(dir.path(), &format!("rank_0/Net/0/0/{file}"), "");
        }
        let dump = MindSporeListing::open(dir.path()).unwrap();
        let types: Vec<_> = dump.records.iter().map(|r| r.op_type.as_str()).collect();
        assert_eq!(types, expected);
        let mul = dump.records.iter().find(|r| r.op_type == "Mul").unwrap();
        assert_eq!(mul.full_name.as_deref(), Some("Default/Mul-op0"));
        assert_eq!(mul.listed_name.as_deref(), Some("Default/Mul-op3"));
    }
}
