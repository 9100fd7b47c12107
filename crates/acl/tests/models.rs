//! Loading, describing and executing models.

mod support;

use opscope_acl::{ConfigValue, status};

use support::{Fixture, bytes};

#[test]
fn models_are_described() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    let desc = process.create_desc();
    assert_eq!(process.fill_desc(desc, 1), Err(status::GE_EXEC_NOT_INIT));
    process.init(None).unwrap();
    assert_eq!(
        process.fill_desc(desc, 1),
        Err(status::GE_EXEC_MODEL_ID_INVALID)
    );
    assert_eq!(process.fill_desc(desc + 1, 1), Err(status::INVALID_PARAM));
    let model = fixture.load("net.onnx", "chain");
    assert_eq!(
        (process.n_inputs(desc), process.input_size(desc, 0)),
        (0, 0)
    );
    process.fill_desc(desc, model).unwrap();
    assert_eq!((process.n_inputs(desc), process.n_outputs(desc)), (1, 1));
    assert_eq!(
        (process.input_size(desc, 0), process.input_size(desc, 1)),
        (8, 0)
    );
    assert_eq!(
        (process.output_size(desc, 0), process.output_size(desc, 1)),
        (8, 0)
    );
    let dims = process.input_dims(desc, 0).unwrap();
    assert_eq!((&*dims.name, &*dims.dims), ("x", &[2][..]));
    assert_eq!(process.input_dims(desc, 1), Err(status::INVALID_PARAM));
    assert_eq!(process.input_index(desc, "x"), Ok(0));
    assert_eq!(process.input_index(desc, "z"), Err(status::INVALID_PARAM));
    assert_eq!(process.output_index(desc, "z"), Ok(0));
    assert_eq!(
        (
            process.input_data_type(desc, 0),
            process.input_data_type(desc, 1)
        ),
        (0, -1)
    );
    assert_eq!(
        (
            process.input_format(desc, 0),
            process.output_format(desc, 9)
        ),
        (2, -1)
    );
    assert_eq!(process.current_output_dims(desc, 0).unwrap().dims, [2]);
    let attribute = "_datadump_original_op_names";
    assert_eq!(
        process.operator_attribute(desc, "a", attribute).as_deref(),
        Some("")
    );
    assert_eq!(process.operator_attribute(desc, "c", attribute), None);
    assert_eq!(process.operator_attribute(desc, "a", "other"), None);
}

#[test]
fn models_are_described_without_being_loaded() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    process.init(None).unwrap();
    let from_file = process.create_desc();
    process
        .fill_desc_from_file(from_file, &fixture.file("open.onnx", "open"))
        .unwrap();
    assert_eq!(process.input_dims(from_file, 0).unwrap().dims, [-1, 2]);
    assert_eq!(
        process.input_dims_range(from_file, 0).unwrap(),
        [(1, -1), (2, 2)]
    );
    assert_eq!(
        (
            process.input_size(from_file, 0),
            process.n_inputs(from_file)
        ),
        (0, 1)
    );
    assert_eq!(
        process.input_index(from_file, "ascend_mbatch_shape_data"),
        Ok(1)
    );
    assert_eq!(process.input_size(from_file, 1), 16);
    assert_eq!(
        process.current_output_dims(from_file, 0),
        Err(status::API_NOT_SUPPORT)
    );
    let from_mem = process.create_desc();
    assert_eq!(
        process.fill_desc_from_mem(from_mem, b""),
        Err(status::INVALID_PARAM)
    );
    process.fill_desc_from_mem(from_mem, b"chain").unwrap();
    assert_eq!(process.n_outputs(from_mem), 1);
}

#[test]
fn models_are_loaded_and_executed() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    let missing = fixture.dir.path().join("missing.onnx");
    assert_eq!(
        process.load_from_file(&missing),
        Err(status::GE_EXEC_NOT_INIT)
    );
    process.init(None).unwrap();
    assert_eq!(
        process.load_from_file(&missing),
        Err(status::GE_EXEC_MODEL_PATH_INVALID)
    );
    assert!(process.recent_error().unwrap().contains("missing.onnx"));
    let broken = fixture.file("broken.onnx", "?");
    assert_eq!(
        process.load_from_file(&broken),
        Err(status::GE_EXEC_MODEL_DATA_SIZE_INVALID)
    );
    assert_eq!(process.load_from_mem(b""), Err(status::INVALID_PARAM));
    assert!(process.query_size(&broken).unwrap().1 > 0);
    assert_eq!(
        process.query_size(&missing),
        Err(status::GE_EXEC_MODEL_PATH_INVALID)
    );
    // Failed loads use no ID.
    assert_eq!(process.load_from_mem(b"chain"), Ok(1));
    assert_eq!(fixture.execute(1, [1.0, -2.0]), Ok(vec![3.0, -3.0]));
    assert_eq!(
        fixture.execute(2, [1.0, 2.0]),
        Err(status::GE_EXEC_MODEL_ID_INVALID)
    );
}

#[test]
fn buffers_have_to_fit() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    process.init(None).unwrap();
    assert_eq!(process.load_from_mem(b"chain"), Ok(1));
    let (good, out) = (
        fixture.dataset(&[&bytes(&[1.0, 2.0])]),
        fixture.dataset(&[&[0; 8]]),
    );
    let two = fixture.dataset(&[&[0; 8], &[0; 8]]);
    let null = process.create_dataset();
    let buffer = process.create_data_buffer(0, 8);
    process.add_dataset_buffer(null, buffer).unwrap();
    assert_eq!(process.execute(1, two, out), Err(status::GE_PARAM_INVALID));
    assert_eq!(process.execute(1, good, two), Err(status::GE_PARAM_INVALID));
    assert_eq!(process.execute(1, null, out), Err(status::INVALID_PARAM));
    assert_eq!(process.execute(1, 0, out), Err(status::INVALID_PARAM));
    assert_eq!(
        process.execute(1, good, good + 8),
        Err(status::INVALID_PARAM)
    );
    assert_eq!(
        process.execute_async(1, good, null, 0),
        Err(status::INVALID_PARAM)
    );
    assert_eq!(
        process.execute_async(1, good, out, 99),
        Err(status::RT_INVALID_HANDLE)
    );
    assert_eq!(process.execute_async(1, good, out, 0), Ok(()));
    // Memory is allocated for an output without an address.
    process.execute(1, good, null).unwrap();
    assert_eq!(fixture.contents(null, 0), bytes(&[3.0, 5.0]));
    let address = process.data_buffer_address(buffer);
    process.free(address).unwrap();
    process.destroy_data_buffer(buffer).unwrap();
    assert_eq!(process.execute(1, good, null), Err(status::INVALID_PARAM));
    process.unload(1).unwrap();
    assert_eq!(process.unload(1), Err(status::GE_EXEC_MODEL_ID_INVALID));
}

#[test]
fn models_are_loaded_by_options() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    process.init(None).unwrap();
    let config = process.create_config_handle();
    assert_eq!(process.load_with_config(config), Err(status::INVALID_PARAM));
    process
        .set_config_option(config, 1, ConfigValue::Number(1))
        .unwrap();
    assert_eq!(process.load_with_config(config), Err(status::INVALID_PARAM));
    let path = fixture.file("net.onnx", "chain");
    process
        .set_config_option(config, 2, ConfigValue::Path(&path))
        .unwrap();
    let wrong = process.set_config_option(config, 2, ConfigValue::Number(1));
    assert_eq!(wrong, Err(status::INVALID_PARAM));
    assert_eq!(process.load_with_config(config), Ok(1));
}

#[test]
fn open_extents_are_set_or_described() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    process.init(None).unwrap();
    let model = fixture.load("open.onnx", "open");
    let fixed = fixture.load("net.onnx", "chain");
    let input = fixture.dataset(&[&bytes(&[1.0, 2.0, 3.0, 4.0])]);
    let output = fixture.dataset(&[&[0; 16]]);
    let shape = |dataset| {
        let desc = process.dataset_tensor_desc(dataset, 0).unwrap();
        (0..2)
            .map(|i| process.tensor_desc_dim(desc, i).unwrap())
            .collect::<Vec<_>>()
    };
    // Derived from the size of the buffer.
    process.execute(model, input, output).unwrap();
    assert_eq!(shape(output), [2, 2]);
    process.set_dynamic_batch_size(model, input, 1, 1).unwrap();
    process.execute(model, input, output).unwrap();
    assert_eq!(shape(output), [1, 2]);
    let desc = process.create_desc();
    process.fill_desc(desc, model).unwrap();
    assert_eq!(process.current_output_dims(desc, 0).unwrap().dims, [1, 2]);
    process
        .set_input_dynamic_dims(model, input, 1, &[2, 2])
        .unwrap();
    process.execute(model, input, output).unwrap();
    assert_eq!(shape(output), [2, 2]);
    let tensor = process.create_tensor_desc(0, &[1, 2], 2).unwrap();
    process.set_dataset_tensor_desc(input, tensor, 0).unwrap();
    process.execute(model, input, output).unwrap();
    assert_eq!(shape(output), [1, 2]);

    let set = |model, index, n| process.set_dynamic_batch_size(model, input, index, n);
    assert_eq!(set(model, 1, 0), Err(status::INVALID_PARAM));
    assert_eq!(set(model, 2, 1), Err(status::INVALID_PARAM));
    assert_eq!(set(fixed, 0, 1), Err(status::GE_PARAM_INVALID));
    assert_eq!(set(9, 0, 1), Err(status::GE_EXEC_MODEL_ID_INVALID));
    let size = process.set_dynamic_hw_size(model, input, 0, 0, 1);
    assert_eq!(size, Err(status::INVALID_PARAM));
    // The buffer is shorter than tolerated.
    process.set_dataset_tensor_desc(input, 0, 0).unwrap();
    set(model, 1, 11).unwrap();
    assert_eq!(
        process.execute(model, input, output),
        Err(status::GE_PARAM_INVALID)
    );
    assert!(
        process
            .recent_error()
            .unwrap()
            .contains("input 0 takes 88 bytes")
    );
}
