//! Operators whose operands are described in other layouts than ONNX's, on every engine there is:
//! expected values are computed here, in the described layout.

use std::sync::Arc;

use opscope_engine::single_operator::{SingleOperatorModel, read_json};
use opscope_engine::{LoadOptions, LoadedModel, ModelSource, SharedEngine};
use opscope_tensor::{DType, Shape, Tensor};

/// tract, and the ONNX Runtime that the environment names.
fn engines() -> Vec<SharedEngine> {
    #[cfg_attr(
        not(any(feature = "tract", feature = "onnxruntime")),
        allow(unused_mut)
    )]
    let mut engines: Vec<SharedEngine> = Vec::new();
    #[cfg(feature = "tract")]
    engines.push(Arc::new(opscope_engine::onnx::Tract));
    #[cfg(feature = "onnxruntime")]
    if let Some(path) = std::env::var_os("OPSCOPE_ENGINE_LIB") {
        let library = opscope_engine::onnx::OnnxRuntime::load(std::path::Path::new(&path));
        engines.push(Arc::new(library.unwrap()));
    }
    engines
}

/// Elements with their extents.
#[derive(Clone, Debug)]
struct Array {
    dims: Vec<usize>,
    values: Vec<f32>,
}

impl Array {
    /// Small whole numbers that repeat late, so that sums are exact.
    fn new(dims: &[usize], seed: usize) -> Array {
        let n: usize = dims.iter().product();
        let values = (0..n).map(|i| ((i * 7 + seed * 5) % 23) as f32 - 11.0);
        Array {
            dims: dims.to_vec(),
            values: values.collect(),
        }
    }

    fn at(&self, index: &[usize]) -> f32 {
        let flat = index
            .iter()
            .zip(&self.dims)
            .fold(0, |flat, (i, n)| flat * n + i);
        self.values[flat]
    }

    /// Filled in C order from each index.
    fn from_fn(dims: &[usize], value: impl Fn(&[usize]) -> f32) -> Array {
        let n: usize = dims.iter().product();
        let index = |mut flat: usize| {
            let mut index = vec![0; dims.len()];
            for (i, n) in index.iter_mut().zip(dims).rev() {
                (*i, flat) = (flat % n, flat / n);
            }
            index
        };
        Array {
            dims: dims.to_vec(),
            values: (0..n).map(|flat| value(&index(flat))).collect(),
        }
    }

    /// The same elements with axis `i` where axis `order[i]` was.
    fn permuted(&self, order: &[usize]) -> Array {
        let dims: Vec<usize> = order.iter().map(|&axis| self.dims[axis]).collect();
        Array::from_fn(&dims, |index| {
            let mut from = vec![0; index.len()];
            for (i, &axis) in order.iter().enumerate() {
                from[axis] = index[i];
            }
            self.at(&from)
        })
    }

    fn tensor(&self) -> Tensor {
        let bytes = self.values.iter().flat_map(|value| value.to_le_bytes());
        let shape = Shape::new(self.dims.clone()).unwrap();
        Tensor::from_vec(DType::F32, shape, bytes.collect()).unwrap()
    }
}

fn load(engine: &SharedEngine, text: &str) -> SingleOperatorModel {
    let operator = read_json(text).unwrap().remove(0);
    let prepared = operator
        .for_engine()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let options = LoadOptions::with_threads(1);
    let model = engine.load(ModelSource::Memory(prepared.bytes()), &options);
    let model = model.unwrap_or_else(|error| panic!("{} {text}: {error}", engine.name()));
    prepared.around(model)
}

/// Runs the operator on every engine; the first result has to be `expected`.
fn check(text: &str, inputs: &[&Array], expected: &Array) {
    let inputs: Vec<Tensor> = inputs.iter().map(|input| input.tensor()).collect();
    for engine in engines() {
        let mut model = load(&engine, text);
        let results = model.run(&inputs, None);
        let results = results.unwrap_or_else(|error| panic!("{} {text}: {error}", engine.name()));
        assert_eq!(
            results[0].shape().dims(),
            expected.dims,
            "{} {text}",
            engine.name()
        );
        let found = results[0].host_bytes().unwrap().as_chunks().0.iter();
        for (i, (&found, &value)) in found.zip(&expected.values).enumerate() {
            let found = f32::from_le_bytes(found);
            let is_near = (found - value).abs() <= 1e-4 * value.abs().max(1.0);
            assert!(
                is_near,
                "{} {text}: {found} at {i}, expected {value}",
                engine.name()
            );
        }
    }
}

fn desc(format: &str, dims: &[usize]) -> String {
    format!(r#"{{"format": "{format}", "shape": {dims:?}, "type": "float"}}"#)
}

/// Batch, height, width, channels and height, width, channels of a group, output channels; strides,
/// dilations, and pads at the top, bottom, left and right.
fn convolved(
    x: &Array,
    k: &Array,
    (strides, dilations, pads, groups): ([usize; 2], [usize; 2], [usize; 4], usize),
) -> Array {
    let [n, h, w, _] = x.dims[..] else { panic!() };
    let [kh, kw, group_channels, out_channels] = k.dims[..] else {
        panic!()
    };
    let extent = |size: usize, pad: usize, kernel: usize, i: usize| {
        (size + pad - dilations[i] * (kernel - 1) - 1) / strides[i] + 1
    };
    let dims = [
        n,
        extent(h, pads[0] + pads[1], kh, 0),
        extent(w, pads[2] + pads[3], kw, 1),
        out_channels,
    ];
    Array::from_fn(&dims, |o| {
        let group = o[3] / (out_channels / groups);
        let mut sum = 0.0;
        for (i, j, c) in (0..kh)
            .flat_map(|i| (0..kw).flat_map(move |j| (0..group_channels).map(move |c| (i, j, c))))
        {
            let y = (o[1] * strides[0] + i * dilations[0]).checked_sub(pads[0]);
            let z = (o[2] * strides[1] + j * dilations[1]).checked_sub(pads[2]);
            if let (Some(y), Some(z)) = (y, z)
                && y < h
                && z < w
            {
                sum += x.at(&[o[0], y, z, group * group_channels + c]) * k.at(&[i, j, c, o[3]]);
            }
        }
        sum
    })
}

#[test]
fn convolutions() {
    let x = Array::new(&[2, 5, 6, 4], 1);
    // Positions of the axes N, H, W, C and H, W, C, N in each layout.
    let images = [
        ("NHWC", [0, 1, 2, 3]),
        ("NCHW", [0, 3, 1, 2]),
        ("HWCN", [1, 2, 3, 0]),
        ("CHWN", [3, 1, 2, 0]),
    ];
    let kernels = [
        ("HWCN", [0, 1, 2, 3]),
        ("NCHW", [3, 2, 0, 1]),
        ("NHWC", [3, 0, 1, 2]),
        ("CHWN", [2, 0, 1, 3]),
    ];
    let settings = [
        ([1, 1], [1, 1], [0, 0, 0, 0], 1),
        ([2, 1], [1, 2], [1, 0, 2, 1], 2),
    ];
    for (image, image_order) in images {
        for (kernel, kernel_order) in kernels {
            for setting in settings {
                let (strides, dilations, pads, groups) = setting;
                let k = Array::new(&[2, 3, 4 / groups, 6], 2);
                let expected = convolved(&x, &k, setting);
                let given = (x.permuted(&image_order), k.permuted(&kernel_order));
                let all = |spatial: [usize; 2]| {
                    let of = |letter| match letter {
                        'H' => spatial[0],
                        'W' => spatial[1],
                        _ => 1,
                    };
                    image.chars().map(of).collect::<Vec<usize>>()
                };
                let vendors = format!(
                    r#"{{"op": "Conv2D", "input_desc": [{}, {}], "output_desc": [{}], "attr": [
                        {{"name": "strides", "type": "list_int", "value": {:?}}},
                        {{"name": "dilations", "type": "list_int", "value": {:?}}},
                        {{"name": "pads", "type": "list_int", "value": {pads:?}}},
                        {{"name": "groups", "type": "int", "value": {groups}}}]}}"#,
                    desc(image, &given.0.dims),
                    desc(kernel, &given.1.dims),
                    // It follows the image if nothing is said.
                    r#"{"type": "float"}"#,
                    all(strides),
                    all(dilations),
                );
                check(
                    &vendors,
                    &[&given.0, &given.1],
                    &expected.permuted(&image_order),
                );
                let [top, bottom, left, right] = pads;
                let onnx = format!(
                    r#"{{"op": "Conv", "inputs": [{}, {}], "outputs": [{{"type": "float", "format": "NHWC"}}],
                        "attributes": {{"strides": {strides:?}, "dilations": {dilations:?},
                        "pads": [{top}, {left}, {bottom}, {right}], "group": {groups}}}}}"#,
                    desc(image, &given.0.dims),
                    desc(kernel, &given.1.dims),
                );
                // Whatever the image has, the result is in its own layout.
                if image != "NCHW" || kernel != "NCHW" {
                    check(&onnx, &[&given.0, &given.1], &expected);
                }
            }
        }
    }
}

#[test]
fn a_kernel_may_be_a_constant_and_the_layout_an_attribute() {
    let (x, k) = (Array::new(&[1, 4, 4, 2], 3), Array::new(&[3, 3, 2, 3], 4));
    let bias = Array::new(&[3], 5);
    let plain = convolved(&x, &k, ([1, 1], [1, 1], [1, 1, 1, 1], 1));
    let expected = Array::from_fn(&plain.dims, |o| plain.at(o) + bias.values[o[3]]);
    let text = format!(
        r#"{{"op": "Conv2D", "input_desc": [{}, {{"format": "HWCN", "type": "float", "shape": {:?}, "const_value": {:?}}},
            {}], "attr": {{"data_format": "NHWC", "strides": [1, 1, 1, 1], "pads": [-1, -1, -1, -1]}}}}"#,
        desc("ND", &x.dims),
        k.dims,
        k.values,
        desc("ND", &[3]),
    );
    check(&text, &[&x, &bias], &expected);
}

#[test]
fn volumes() {
    // One output channel and a kernel of one element show where each axis went.
    let x = Array::new(&[1, 2, 3, 4, 2], 6);
    let k = Array::new(&[1, 1, 1, 2, 3], 7);
    let expected = Array::from_fn(&[1, 2, 2, 4, 3], |o| {
        let sum = |c| x.at(&[0, o[1], o[2] * 2, o[3], c]) * k.at(&[0, 0, 0, c, o[4]]);
        (0..2).map(sum).sum()
    });
    let text = format!(
        r#"{{"op": "Conv3D", "input_desc": [{}, {}], "attr": {{"strides": [1, 1, 2, 1, 1], "pads": [0, 0, 0, 0, 0, 0]}}}}"#,
        desc("NDHWC", &x.dims),
        desc("DHWCN", &k.dims),
    );
    check(&text, &[&x, &k], &expected);
}

#[test]
fn pools() {
    let x = Array::new(&[1, 4, 6, 3], 8);
    let window = |o: &[usize]| -> Vec<f32> {
        let at = |i: usize| x.at(&[o[0], o[1] * 2 + i / 3, o[2] * 3 + i % 3, o[3]]);
        (0..6).map(at).collect()
    };
    let dims = [1, 2, 2, 3];
    let largest = Array::from_fn(&dims, |o| window(o).into_iter().fold(f32::MIN, f32::max));
    let mean = Array::from_fn(&dims, |o| window(o).iter().sum::<f32>() / 6.0);
    let cases = [
        (
            r#""MaxPool""#,
            r#""kernel_shape": [2, 3], "strides": [2, 3]"#,
            &largest,
        ),
        (
            r#""MaxPool""#,
            r#""ksize": [1, 2, 3, 1], "strides": [1, 2, 3, 1], "padding": "VALID""#,
            &largest,
        ),
        (
            r#""MaxPoolV3""#,
            r#""ksize": [1, 2, 3, 1], "strides": [1, 2, 3, 1], "pads": [0, 0, 0, 0]"#,
            &largest,
        ),
        (
            r#""AveragePool""#,
            r#""kernel_shape": [2, 3], "strides": [2, 3]"#,
            &mean,
        ),
        (
            r#""AvgPool""#,
            r#""ksize": [1, 2, 3, 1], "strides": [1, 2, 3, 1], "padding": "SAME""#,
            &mean,
        ),
    ];
    for (op, attributes, expected) in cases {
        let text = format!(
            r#"{{"op": {op}, "inputs": [{}], "attributes": {{{attributes}}}}}"#,
            desc("NHWC", &x.dims)
        );
        check(&text, &[&x], expected);
    }
    let mean = Array::from_fn(&[1, 1, 1, 3], |o| {
        let all = (0..24).map(|i| x.at(&[0, i / 6, i % 6, o[3]]));
        all.sum::<f32>() / 24.0
    });
    let global = format!(
        r#"{{"op": "GlobalAveragePool", "inputs": [{}]}}"#,
        desc("NHWC", &x.dims)
    );
    check(&global, &[&x], &mean);
}

#[test]
fn one_value_for_each_channel() {
    let x = Array::new(&[2, 3, 3, 3], 9);
    let [a, b, c, d] = [1, 2, 3, 4].map(|seed| Array::new(&[3], seed));
    let variance = Array::from_fn(&[3], |i| d.at(i).abs() + 1.0);
    let normal = |o: &[usize], channel: usize| {
        let at = |one: &Array| one.values[channel];
        (x.at(o) - at(&c)) / (at(&variance) + 1e-5).sqrt() * at(&a) + at(&b)
    };
    let leaky = |o: &[usize], channel: usize| {
        let value = x.at(o);
        if value < 0.0 {
            value * a.values[channel]
        } else {
            value
        }
    };
    // Every axis but the batch has three elements: only the layout says which are the channels.
    for (layout, axis) in [("NHWC", 3), ("NCHW", 1)] {
        let x_desc = desc(layout, &x.dims);
        let one = desc("ND", &[3]);
        let text = format!(
            r#"{{"op": "BatchNormalization", "inputs": [{x_desc}, {one}, {one}, {one}, {one}]}}"#
        );
        let expected = Array::from_fn(&x.dims, |o| normal(o, o[axis]));
        check(&text, &[&x, &a, &b, &c, &variance], &expected);
        let text = format!(r#"{{"op": "PRelu", "inputs": [{x_desc}, {one}]}}"#);
        check(
            &text,
            &[&x, &a],
            &Array::from_fn(&x.dims, |o| leaky(o, o[axis])),
        );
        let text = format!(r#"{{"op": "BiasAdd", "inputs": [{x_desc}, {one}]}}"#);
        let expected = Array::from_fn(&x.dims, |o| x.at(o) + a.values[o[axis]]);
        check(&text, &[&x, &a], &expected);
        let text = format!(
            r#"{{"op": "BiasAdd", "inputs": [{}, {one}], "attributes": {{"data_format": "{layout}"}}}}"#,
            desc("ND", &x.dims)
        );
        check(&text, &[&x, &a], &expected);
        let text =
            format!(r#"{{"op": "InstanceNormalization", "inputs": [{x_desc}, {one}, {one}]}}"#);
        let expected = Array::from_fn(&x.dims, |o| {
            let spatial = |i: usize| {
                let (p, q) = (i / 3, i % 3);
                match layout {
                    "NHWC" => x.at(&[o[0], p, q, o[3]]),
                    _ => x.at(&[o[0], o[1], p, q]),
                }
            };
            let mean = (0..9).map(spatial).sum::<f32>() / 9.0;
            let square = (0..9).map(|i| (spatial(i) - mean).powi(2)).sum::<f32>() / 9.0;
            (x.at(o) - mean) / (square + 1e-5).sqrt() * a.values[o[axis]] + b.values[o[axis]]
        });
        check(&text, &[&x, &a, &b], &expected);
    }
}

#[test]
fn depth_and_sizes() {
    let x = Array::new(&[1, 2, 3, 8], 10);
    let expected = Array::from_fn(&[1, 4, 6, 2], |o| {
        let block = (o[1] % 2) * 2 + o[2] % 2;
        x.at(&[0, o[1] / 2, o[2] / 2, block * 2 + o[3]])
    });
    for attributes in [
        r#""blocksize": 2"#,
        r#""block_size": 2, "data_format": "NHWC""#,
    ] {
        let text = format!(
            r#"{{"op": "DepthToSpace", "inputs": [{}], "attributes": {{{attributes}}}}}"#,
            desc("NHWC", &x.dims)
        );
        check(&text, &[&x], &expected);
    }
    let back = format!(
        r#"{{"op": "SpaceToDepth", "inputs": [{}], "attributes": {{"block_size": 2}}}}"#,
        desc("NHWC", &expected.dims)
    );
    check(&back, &[&expected], &x);
    // Scales stand in the order of the described axes.
    let nearest = Array::from_fn(&[1, 4, 9, 8], |o| x.at(&[0, o[1] / 2, o[2] / 3, o[3]]));
    let text = format!(
        r#"{{"op": "Resize", "inputs": [{}, {{"format": "RESERVED", "type": "UNDEFINED"}},
            {{"type": "float", "shape": [4], "const_value": [1, 2, 3, 1]}}],
            "attributes": {{"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}}}}"#,
        desc("NHWC", &x.dims)
    );
    check(&text, &[&x], &nearest);
}

#[test]
fn operators_that_name_axes_by_number_stay_as_they_are() {
    let x = Array::new(&[1, 2, 3, 4], 11);
    let sum = Array::from_fn(&x.dims, |o| x.at(o) + o[3] as f32);
    let text = format!(
        r#"{{"op": "Add", "inputs": [{}, {{"type": "float", "shape": [4], "const_value": [0, 1, 2, 3]}}],
            "outputs": [{}]}}"#,
        desc("NHWC", &x.dims),
        desc("NHWC", &x.dims)
    );
    check(&text, &[&x], &sum);
    let turned = x.permuted(&[0, 3, 1, 2]);
    let text = format!(
        r#"{{"op": "TransposeD", "inputs": [{}], "outputs": [{}], "attributes": {{"perm": [0, 3, 1, 2]}}}}"#,
        desc("NHWC", &x.dims),
        desc("NCHW", &turned.dims)
    );
    check(&text, &[&x], &turned);
    let least = Array::from_fn(&[1, 2, 3, 1], |o| {
        (0..4)
            .map(|c| x.at(&[0, o[1], o[2], c]))
            .fold(f32::MAX, f32::min)
    });
    let text = format!(
        r#"{{"op": "ReduceMinD", "inputs": [{}], "attributes": {{"axes": [3], "keep_dims": true}}}}"#,
        desc("NHWC", &x.dims)
    );
    check(&text, &[&x], &least);
}
