//! Handles, memory, streams and descriptions, rightly and wrongly used.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use opscope_acl::{ConfigValue, Process, status};

use support::{Fixture, bytes};

#[test]
fn memory_is_checked_against_its_allocation() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    assert_eq!(process.malloc(0, 0), Err(status::INVALID_PARAM));
    assert_eq!(
        process.malloc(usize::MAX, 0),
        Err(status::RT_MEMORY_ALLOCATION)
    );
    assert_eq!(
        process.malloc(isize::MAX as usize, 0),
        Err(status::RT_MEMORY_ALLOCATION)
    );
    let a = process.malloc(16, 0).unwrap();
    let b = process.malloc_host(8).unwrap();
    assert_eq!((a % 512, b % 512), (0, 0));
    assert_eq!(process.read_memory(a, 16).unwrap(), [0; 16]);
    process.memset(a, 16, 0x1ff, 4).unwrap();
    process.memcpy(b, 8, a, 8, 4).unwrap();
    assert_eq!(
        process.read_memory(b, 8).unwrap(),
        [255, 255, 255, 255, 0, 0, 0, 0]
    );
    // Ranges may overlap.
    process.memcpy(a + 2, 14, a, 8, 3).unwrap();
    assert_eq!(
        process.read_memory(a, 7).unwrap(),
        [255, 255, 255, 255, 255, 255, 0]
    );

    let refused = Err(status::RT_PARAM_INVALID);
    assert_eq!(process.memcpy(b, 4, a, 5, 0), refused);
    assert_eq!(process.memcpy(b, 9, a, 9, 0), refused);
    assert_eq!(process.memcpy(a, 17, b, 17, 0), refused);
    assert_eq!(process.memcpy(b, 8, a, 8, 8), refused);
    assert_eq!(process.memcpy(b, usize::MAX, a, usize::MAX, 0), refused);
    assert_eq!(process.memset(a + 8, 16, 0, 9), refused);
    assert_eq!(process.memset(a, 1, 0, 2), refused);
    assert_eq!(process.memcpy(0, 8, a, 8, 0), Err(status::INVALID_PARAM));
    assert_eq!(process.memcpy(b, 8, 0, 8, 0), Err(status::INVALID_PARAM));
    assert_eq!(process.memcpy(0, 0, 0, 0, 99), Ok(()));
    assert_eq!(
        process.read_memory(a - 1, 4).err(),
        Some(status::RT_PARAM_INVALID)
    );

    assert_eq!(process.free(0), Err(status::INVALID_PARAM));
    assert_eq!(process.free(b), refused);
    assert_eq!(process.free(a + 8), refused);
    assert_eq!(process.free(a), Ok(()));
    assert_eq!(process.free(a), refused);
    assert_eq!(process.free_host(b), Ok(()));
    assert_eq!(process.free_host(b), refused);
}

#[test]
fn handles_of_the_wrong_kind_give_codes() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    process.set_device(0).unwrap();
    let desc = process.create_desc();
    let dataset = process.create_dataset();
    let buffer = process.create_data_buffer(0, 0);
    let tensor = process.create_tensor_desc(0, &[2], 2).unwrap();
    let stream = process.create_stream().unwrap();
    let event = process.create_event().unwrap();
    let attributes = process.create_op_attr();
    let config = process.create_config_handle();
    let all = [
        desc, dataset, buffer, tensor, stream, event, attributes, config,
    ];
    let destroy: [fn(&Process, usize) -> opscope_acl::Answer; 8] = [
        Process::destroy_desc,
        Process::destroy_dataset,
        Process::destroy_data_buffer,
        Process::destroy_tensor_desc,
        Process::destroy_stream,
        Process::destroy_event,
        Process::destroy_op_attr,
        Process::destroy_config_handle,
    ];
    for (i, destroy) in destroy.iter().enumerate() {
        let wrong = if i == 4 || i == 5 {
            status::RT_INVALID_HANDLE
        } else {
            status::INVALID_PARAM
        };
        assert_eq!(destroy(process, 0), Err(status::INVALID_PARAM), "{i} null");
        for other in all.iter().filter(|other| **other != all[i]) {
            assert_eq!(destroy(process, *other), Err(wrong), "{i} wrong");
        }
        assert_eq!(destroy(process, usize::MAX), Err(wrong), "{i} invented");
    }
    for (i, destroy) in destroy.iter().enumerate() {
        assert_eq!(destroy(process, all[i]), Ok(()), "{i}");
        assert!(destroy(process, all[i]).is_err(), "{i} twice");
    }
    // No number comes back.
    assert!(!all.contains(&process.create_desc()));
}

#[test]
fn contexts_and_streams() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    assert_eq!(process.n_devices(), 1);
    assert_eq!(process.device(), Err(status::RT_CONTEXT_NULL));
    assert_eq!(process.create_stream(), Err(status::RT_CONTEXT_NULL));
    for wrong in [-1, 1] {
        assert_eq!(process.set_device(wrong), Err(status::RT_INVALID_DEVICEID));
        assert_eq!(
            process.create_context(wrong),
            Err(status::RT_INVALID_DEVICEID)
        );
        assert_eq!(
            process.reset_device(wrong),
            Err(status::RT_INVALID_DEVICEID)
        );
    }
    process.set_device(0).unwrap();
    let shared = process.current_context().unwrap();
    let shared_stream = process.create_stream().unwrap();
    let own = process.create_context(0).unwrap();
    assert_eq!(process.current_context(), Ok(own));
    assert_eq!(
        process.synchronize_stream(shared_stream),
        Err(status::RT_STREAM_CONTEXT)
    );
    let stream = process.create_stream_with_config(0, 0).unwrap();
    assert_eq!(process.synchronize_stream(stream), Ok(()));
    assert_eq!(process.synchronize_stream_with_timeout(0, 0), Ok(()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(process.current_context(), Err(status::RT_CONTEXT_NULL));
            process.set_current_context(own).unwrap();
            process.synchronize_stream(stream).unwrap();
        });
    });
    assert_eq!(
        process.destroy_context(shared),
        Err(status::RT_INVALID_HANDLE)
    );
    process.destroy_context(own).unwrap();
    assert_eq!(process.destroy_context(own), Err(status::RT_INVALID_HANDLE));
    assert_eq!(process.current_context(), Err(status::RT_CONTEXT_NULL));
    assert_eq!(
        process.synchronize_stream(stream),
        Err(status::RT_INVALID_HANDLE)
    );
    process.set_device(0).unwrap();
    assert_eq!(process.current_context(), Ok(shared));
    process.reset_device(0).unwrap();
    assert_eq!(process.device(), Ok(0));
    process.reset_device(0).unwrap();
    assert_eq!(process.device(), Err(status::RT_CONTEXT_NULL));
    assert_eq!(process.reset_device(0), Ok(()));
}

#[test]
fn events_and_callbacks() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    process.set_device(0).unwrap();
    let stream = process.create_stream().unwrap();
    let (start, end) = (
        process.create_event().unwrap(),
        process.create_event().unwrap(),
    );
    assert_eq!(
        process.event_elapsed_ms(start, end),
        Err(status::RT_PARAM_INVALID)
    );
    process.record_event(start, stream).unwrap();
    process.record_event(end, 0).unwrap();
    assert!(process.event_elapsed_ms(start, end).unwrap() >= 0.0);
    assert!(process.event_elapsed_ms(end, start).unwrap() <= 0.0);
    assert_eq!(process.stream_wait_event(stream, end), Ok(()));
    assert_eq!(process.query_event(end), Ok(0));

    let count = Arc::new(AtomicU32::new(0));
    let work = || -> opscope_acl::Work {
        let count = count.clone();
        Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        })
    };
    let launch = |block| process.launch_callback(work(), block, stream);
    assert_eq!(launch(0), Err(status::STREAM_NOT_SUBSCRIBE));
    assert_eq!(launch(2), Err(status::INVALID_PARAM));
    assert_eq!(
        process.process_report(7, 0),
        Err(status::THREAD_NOT_SUBSCRIBE)
    );
    process.subscribe_report(7, stream).unwrap();
    assert_eq!(
        process.subscribe_report(8, stream),
        Err(status::REPEAT_SUBSCRIBE)
    );
    assert_eq!(
        process.process_report(7, 1),
        Err(status::WAIT_CALLBACK_TIMEOUT)
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while count.load(Ordering::Relaxed) < 2 {
                let _ = process.process_report(7, -1);
            }
        });
        launch(0).unwrap();
        launch(1).unwrap();
        // The stream waits for the callback that blocks it, and the other came first.
        process.synchronize_stream(stream).unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 2);
    });
    launch(1).unwrap();
    assert_eq!(
        process.synchronize_stream_with_timeout(stream, 1),
        Err(status::RT_STREAM_SYNC_TIMEOUT)
    );
    assert_eq!(
        process.unsubscribe_report(8, stream),
        Err(status::THREAD_NOT_SUBSCRIBE)
    );
    process.unsubscribe_report(7, stream).unwrap();
    process.synchronize_device().unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[test]
fn tensors_are_described() {
    let fixture = Fixture::new();
    let process = &fixture.process;
    let desc = process.create_tensor_desc(1, &[2, 3], 0).unwrap();
    assert_eq!(process.tensor_desc_size(desc), 12);
    assert_eq!(process.tensor_desc_n_elements(desc), 6);
    assert_eq!(
        (
            process.tensor_desc_data_type(desc),
            process.tensor_desc_format(desc)
        ),
        (1, 0)
    );
    assert_eq!(process.tensor_desc_dim(desc, 1), Ok(3));
    assert_eq!(process.tensor_desc_dim(desc, 2), Err(status::INVALID_PARAM));
    assert_eq!(process.tensor_desc_name(desc).unwrap(), "");
    process.set_tensor_desc_name(desc, "x").unwrap();
    assert_eq!(process.tensor_desc_name(desc).unwrap(), "x");
    process.set_tensor_shape(desc, &[-1, 3]).unwrap();
    assert_eq!(
        (
            process.tensor_desc_size(desc),
            process.tensor_desc_n_dims(desc)
        ),
        (0, 2)
    );
    process.set_tensor_shape(desc, &[]).unwrap();
    assert_eq!(
        (
            process.tensor_desc_size(desc),
            process.tensor_desc_n_elements(desc)
        ),
        (2, 1)
    );
    process
        .set_tensor_shape(desc, &[i64::MAX, i64::MAX])
        .unwrap();
    assert_eq!(process.tensor_desc_size(desc), 0);
    assert_eq!(
        process.set_tensor_shape(desc, &[1; 129]),
        Err(status::INVALID_PARAM)
    );
    assert_eq!(process.create_tensor_desc(0, &[1; 129], 0), None);
    assert_eq!(
        process.set_tensor_const(desc, &[]),
        Err(status::INVALID_PARAM)
    );
    process.set_tensor_format(desc, 29).unwrap();
    assert_eq!(process.tensor_desc_format(desc), 29);
    assert_eq!(
        (process.tensor_desc_format(0), process.tensor_desc_size(0)),
        (-1, 0)
    );
}

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
    // Failed loads use up no number.
    assert_eq!(process.load_from_mem(b"chain"), Ok(1));
    assert_eq!(fixture.execute(1, [1.0, -2.0]), Ok(vec![3.0, -3.0]));
    assert_eq!(
        fixture.execute(2, [1.0, 2.0]),
        Err(status::GE_EXEC_MODEL_ID_INVALID)
    );

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
    // An output without memory is given some.
    process.execute(1, good, null).unwrap();
    assert_eq!(fixture.contents(null, 0), bytes(&[3.0, 5.0]));
    let address = process.data_buffer_address(buffer);
    process.free(address).unwrap();
    process.destroy_data_buffer(buffer).unwrap();
    assert_eq!(process.execute(1, good, null), Err(status::INVALID_PARAM));
    process.unload(1).unwrap();
    assert_eq!(process.unload(1), Err(status::GE_EXEC_MODEL_ID_INVALID));

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
    assert_eq!(process.load_with_config(config), Ok(2));
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
    // From the size of the buffer.
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
    // More is needed than a short buffer may lack.
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
