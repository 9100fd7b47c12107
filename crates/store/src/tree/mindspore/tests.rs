use std::path::Component;

use proptest::prelude::*;

use super::*;

#[test]
fn paths_for_every_target() {
    let tree = MindSporeTree::new(Path::new("/d"), TreeTarget::Cpu, 3, "ResNet50");
    assert_eq!(
        tree.iteration_dir(1, 7),
        Path::new("/d/rank_3/ResNet50/1/7")
    );
    assert_eq!(
        tree.constants_dir(1),
        Path::new("/d/rank_3/ResNet50/1/constants")
    );
    assert_eq!(
        tree.graph_file(2, "ir"),
        Path::new("/d/rank_3/graphs/ms_output_trace_code_graph_2.ir")
    );
    assert_eq!(
        tree.execution_order_file(2),
        Path::new("/d/rank_3/execution_order/ms_execution_order_graph_2.csv")
    );
    assert_eq!(
        tree.global_execution_order_file(2),
        Path::new("/d/rank_3/execution_order/ms_global_execution_order_graph_2.csv")
    );
    assert_eq!(
        tree.configuration_copy(),
        Path::new("/d/rank_3/.dump_metadata/data_dump.json")
    );
    let run = GraphRun {
        step: 5,
        time: "20240102030405",
        device: 1,
        model_name: "net/a.b",
        model_id: 2,
        iteration: 9,
    };
    let tree = MindSporeTree::new(Path::new("/d"), TreeTarget::AscendGraph, 0, "n");
    let dir = tree.run_dir(&run);
    assert_eq!(dir, Path::new("/d/5/20240102030405/1/net_a_b/2/9"));
    assert_eq!(tree.acl_configuration(1), Path::new("/d/acl_dump_1.json"));
    let place = MindSporePlace::from_path(&dir);
    assert_eq!(
        (place.rank, place.step, place.iteration),
        (Some(1), Some(5), Some(9))
    );
    let tree = MindSporeTree::new(Path::new("/d"), TreeTarget::GraphEngine, 0, "n");
    let dir = tree.run_dir(&run);
    assert_eq!(dir, Path::new("/d/20240102030405/1/net_a_b/2/9"));
    assert_eq!(MindSporePlace::from_path(&dir).step, None);
    let dir = tree.run_constants_dir(&run);
    assert_eq!(dir, Path::new("/d/20240102030405/1/net_a_b/2/constants"));
    let place = MindSporePlace::from_path(&dir);
    assert!(place.is_constants && place.iteration.is_none());
}

#[test]
fn places_are_read_back() {
    let place = MindSporePlace::from_path(Path::new("/x/rank_2/Net/3/4"));
    assert_eq!(
        (place.rank, place.graph_id, place.iteration),
        (Some(2), Some(3), Some(4))
    );
    assert_eq!(place.net_name.as_deref(), Some("Net"));
    let constants = MindSporePlace::from_path(Path::new("rank_0/Net/3/constants"));
    assert!(constants.is_constants && constants.iteration.is_none());
    assert_eq!(
        MindSporePlace::from_path(Path::new("3/4")).graph_id,
        Some(3)
    );
    assert_eq!(
        MindSporePlace::from_path(Path::new("/elsewhere")),
        MindSporePlace::default()
    );
}

#[test]
fn names_of_nodes() {
    assert_eq!(clean_name(r"Default/a.b c\d:*|-ä"), "Default_a_b_c_d:*|-ä");
    let full_name = "Default/fc 1-Dense/MatMul-op0";
    assert_eq!(short_name(full_name), "MatMul");
    assert_eq!(
        kernel_args_file_name("MatMul", full_name),
        "MatMul.Default_fc 1-Dense_MatMul-op0.json"
    );
    assert_eq!(graph_id_of("ms_output_trace_code_graph_12.ir"), Some(12));
    assert_eq!(
        graph_id_of("ms_global_execution_order_graph_0.csv"),
        Some(0)
    );
    assert_eq!(graph_id_of("ms_output_trace_code_graph_x.ir"), None);
    assert!(!is_execution_order("ms_global_execution_order_graph_0.csv"));
    assert!(is_acl_configuration("acl_dump_0.json"));
}

#[test]
fn long_names_become_digits() {
    let digits = NameDigits::default();
    assert_eq!(digits.short_name(&"x".repeat(255)), None);
    let names: Vec<String> = (0..100)
        .map(|_| digits.short_name(&"x".repeat(256)).unwrap())
        .collect();
    for name in &names {
        let number: u64 = name.strip_suffix(".npy").unwrap().parse().unwrap();
        assert!(number < SHORT_NAME_END);
    }
    // Files of the runtime have no suffix, descriptions of operators another one.
    let plain = digits.short_name(&format!("Conv.{}.1.0.1700000000000000", "x".repeat(250)));
    assert!(plain.unwrap().parse::<u64>().unwrap() < SHORT_NAME_END);
    let json = digits.short_name(&format!("Conv.{}.json", "x".repeat(250)));
    assert!(json.unwrap().ends_with(".json"));
    let compressed = digits.short_name(&format!("{}.npy.zst", "x".repeat(250)));
    let number = compressed
        .as_deref()
        .and_then(|name| name.strip_suffix(".npy.zst"));
    assert!(number.unwrap().parse::<u64>().unwrap() < SHORT_NAME_END);
    assert!(names.iter().collect::<std::collections::HashSet<_>>().len() > 90);
}

proptest! {
    #[test]
    fn no_name_leaves_the_tree(net in ".{0,12}", op_type in ".{0,12}", name in ".{0,12}") {
        let tree = MindSporeTree::new(Path::new("/d"), TreeTarget::Cpu, 0, &net);
        let file = TensorFileName::of_operator(&op_type, &name).to_string();
        for (path, n) in [
            (tree.iteration_dir(0, 0).join(file), 5),
            (tree.rank_dir().join(kernel_args_file_name(&op_type, &name)), 2),
        ] {
            let below: Vec<_> = path.strip_prefix("/d").unwrap().components().collect();
            prop_assert_eq!(below.len(), n);
            prop_assert!(below.iter().all(|c| matches!(c, Component::Normal(_))));
        }
    }

    #[test]
    fn written_names_are_read(op_type in "[^. ]{1,9}", name in ".{0,20}", slot in 0_u32..99) {
        let mut written = TensorFileName::of_operator(&op_type, &name);
        written.slot = slot;
        written.timestamp = 1_700_000_000_000_000;
        written.dtype = Some("Float32".to_owned());
        let read = TensorFileName::parse(&written.to_string());
        prop_assert_eq!(read, Some(written));
    }
}
