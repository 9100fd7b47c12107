//! Files with one entry, for a model with a picture and a list.

use super::*;
use crate::file_format::gears_json::{encode, parse};

fn file(aipp: &str) -> String {
    format!(
        r#"{{"version": 1, "kind": "fixed",
        "inputs": [{{"name": "x", "dims": [1, 3, 4, 6]}}, {{"name": "k", "dims": [2]}}],
        "outputs": [], "gears": [{{"values": [], "outputs": []}}], "aipp": [{aipp}]}}"#
    )
}

#[test]
fn what_a_file_leaves_out_has_a_default() {
    let text = file(
        r#"{"aipp_mode": "static", "input_format": "RGB888_U8", "csc_switch": true,
        "matrix_r1c2": 5, "output_bias_0": 7, "var_reci_chn_1": 0.5, "crop": true,
        "src_image_size_w": 9, "src_image_size_h": 8, "load_start_pos_w": 3}"#,
    );
    let gears = parse(text.as_bytes()).unwrap();
    let op = &gears.aipp[0];
    assert_eq!(op.matrix(), [66, 129, 25, -38, -74, 5, 112, -94, -18]);
    assert_eq!(op.output_biases(), [7, 128, 128]);
    assert_eq!(op.factors(), [1.0, 0.5, 1.0, 1.0]);
    assert_eq!(op.crop_size((6, 4)), (6, 4));
    assert_eq!(parse(encode(&gears).as_bytes()).unwrap(), gears);
    let off = AippOp::default();
    assert_eq!((off.matrix(), off.input_biases()), ([0; 9], [0; 3]));
}

#[test]
fn contradictions_are_named() {
    let base = r#""aipp_mode": "static", "input_format": "YUV420SP_U8""#;
    let sized = format!(r#"{base}, "src_image_size_w": 8, "src_image_size_h": 6"#);
    let cases = [
        (r#""aipp_mode": "static""#.to_owned(), "`input_format`"),
        (format!(r#"{base}, "related_input_rank": 1"#), "four axes"),
        (
            format!(r#"{base}, "related_input_name": "z""#),
            "one of the model's 2",
        ),
        (format!(r#"{base}, "colour": 1"#), "unknown field"),
        (
            format!(r#"{base}, "padding": true"#),
            "with `crop` or `padding`",
        ),
        (format!(r#"{base}, "src_image_size_w": 8"#), "or neither"),
        (sized.clone(), "pictures of 6x4 after crop"),
        (sized.replace(": 8", ": 7"), "even `src_image_size_w`"),
        (
            format!(r#"{sized}, "crop": true, "load_start_pos_w": 1"#),
            "even `load_start_pos_w`",
        ),
        (
            format!(r#"{sized}, "crop": true, "crop_size_h": 7"#),
            "`crop_size_h` from 0 to 6",
        ),
        (
            format!(r#"{sized}, "padding": true, "top_padding_size": 33"#),
            "`top_padding_size` from 0 to 32",
        ),
        (format!(r#"{base}, "matrix_r0c0": 32677"#), "`matrix_r*c*`"),
        (
            format!(r#"{base}, "min_chn_3": -1"#),
            "`min_chn_*` from 0 to 255",
        ),
        (
            format!(r#"{base}, "rotation_angle": 1"#),
            "`rotation_angle`",
        ),
    ];
    for (members, part) in cases {
        let error = parse(file(&format!("{{{members}}}")).as_bytes()).unwrap_err();
        let told = format!("{}, found {}", error.expected, error.found);
        assert!(told.contains(part), "{members}: {told}");
    }
}
