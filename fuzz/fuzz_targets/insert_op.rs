//! Any text is a file for inserted operators or refused with a place inside it; the operators of an
//! accepted file are added to the gears of a model or refused, and round-trip there.

#![no_main]

use libfuzzer_sys::fuzz_target;
use opscope_config::dialect::insert_op;
use opscope_store::file_format::gears_json::{self, ExtentGear, GearInput, GearKind, Gears};

fuzz_target!(|text: &str| {
    let ops = match insert_op::parse(text) {
        Ok(ops) => ops,
        Err(error) => {
            assert!(error.place.line <= text.matches('\n').count() + 1);
            return;
        }
    };
    let input = |name: &str| GearInput {
        name: name.to_owned(),
        dims: vec![2, 3, 4, 6],
    };
    let gear = ExtentGear {
        values: vec![],
        outputs: vec![],
    };
    let gears = Gears::new(
        GearKind::Fixed,
        vec![input("a"), input("b")],
        vec![],
        vec![gear],
    )
    .expect("they are right");
    let Ok(gears) = gears.with_aipp(ops) else {
        return;
    };
    for op in &gears.aipp {
        // Accepted sizes are those of the model's input.
        assert!(op.max_src_image_size > 0 || op.output_size((6, 4)) == (6, 4));
    }
    let text = gears_json::encode(&gears);
    assert_eq!(
        gears_json::parse(text.as_bytes()).expect("it was written"),
        gears
    );
});
