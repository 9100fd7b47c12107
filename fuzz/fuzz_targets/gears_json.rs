//! Any bytes are the gears of a model or refused; accepted gears round-trip, and define a shape for
//! every input.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_store::file_format::gears_json;

fuzz_target!(|bytes: &[u8]| {
    let Ok(gears) = gears_json::parse(bytes) else {
        return;
    };
    for gear in &gears.gears {
        let dims = gears.input_dims(gear);
        assert_eq!(dims.len(), gears.inputs.len());
        for (input, dims) in gears.inputs.iter().zip(dims) {
            assert_eq!(input.dims.len(), dims.len());
        }
    }
    let text = gears_json::encode(&gears);
    if text.len() <= gears_json::FILE_BYTES_MAX {
        assert_eq!(
            gears_json::parse(text.as_bytes()).expect("it was written"),
            gears
        );
    }
});
