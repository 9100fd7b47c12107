//! Valid and invalid uses of handles, memory, streams and tensor descriptions.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use opscope_acl::{AclProcess, status};

use support::Fixture;

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
    // Device memory has the documented size: a multiple of 32, and 32 more.
    assert_eq!(process.memset(a + 8, 64, 0, 56), Ok(()));
    assert_eq!(process.memset(a + 8, 64, 0, 57), refused);
    let c = process.malloc_aligned(16, 0).unwrap();
    assert_eq!(process.memset(c, 64, 0, 32), Ok(()));
    assert_eq!(process.memset(c, 64, 0, 33), refused);
    assert_eq!(process.malloc(0, 0), Err(status::INVALID_PARAM));
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
    let destroy: [fn(&AclProcess, usize) -> opscope_acl::Answer; 8] = [
        AclProcess::destroy_desc,
        AclProcess::destroy_dataset,
        AclProcess::destroy_data_buffer,
        AclProcess::destroy_tensor_desc,
        AclProcess::destroy_stream,
        AclProcess::destroy_event,
        AclProcess::destroy_op_attr,
        AclProcess::destroy_config_handle,
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
    // No number is reused.
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
        // The stream waits for its blocking callback, and the other callback came first.
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
