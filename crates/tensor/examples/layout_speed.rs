//! Measures layout conversions against copying:
//! `cargo run --release -p opscope-tensor --example layout_speed -- [--hot] [NAME]`.
//!
//! Prints bytes read each second, in GB/s, on one core, for the cases whose name contains `NAME`.
//! Tensors of two-byte elements are about 4 MB each, and there are so many of them that they come
//! from memory rather than from the cache; with `--hot` there is one.

#![allow(clippy::print_stdout, reason = "this is a command")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use opscope_tensor::convert::layout::{LayoutConversion, LayoutPlan};
use opscope_tensor::{Layout, Shape};

/// Conversions in a measurement; the fastest of several measurements counts.
const N_TENSORS: usize = 24;
const N_MEASUREMENTS: usize = 9;

struct Case {
    name: &'static str,
    from: Layout,
    to: Layout,
    /// Shape for two-byte elements.
    device: &'static [usize],
    plain: &'static [usize],
}

const CASES: &[Case] = &[
    Case {
        name: "NC1HWC0 -> NCHW  56x56",
        from: Layout::Nc1hwc0,
        to: Layout::Nchw,
        device: &[10, 4, 56, 56, 16],
        plain: &[10, 64, 56, 56],
    },
    Case {
        name: "NC1HWC0 -> NCHW  64x64, 60 channels",
        from: Layout::Nc1hwc0,
        to: Layout::Nchw,
        device: &[8, 4, 64, 64, 16],
        plain: &[8, 60, 64, 64],
    },
    Case {
        name: "NC1HWC0 -> NCHW  7x7",
        from: Layout::Nc1hwc0,
        to: Layout::Nchw,
        device: &[20, 128, 7, 7, 16],
        plain: &[20, 2048, 7, 7],
    },
    Case {
        name: "FRACTAL_Z -> NCHW  3x3",
        from: Layout::FractalZ,
        to: Layout::Nchw,
        device: &[16 * 9, 56, 16, 16],
        plain: &[896, 256, 3, 3],
    },
    Case {
        name: "FRACTAL_Z -> NCHW  3x3, 512 channels",
        from: Layout::FractalZ,
        to: Layout::Nchw,
        device: &[32 * 9, 32, 16, 16],
        plain: &[512, 512, 3, 3],
    },
    Case {
        name: "FRACTAL_Z -> NCHW  1x1",
        from: Layout::FractalZ,
        to: Layout::Nchw,
        device: &[64, 128, 16, 16],
        plain: &[2048, 1024, 1, 1],
    },
    Case {
        name: "FRACTAL_NZ -> ND  1024x2048",
        from: Layout::FractalNz,
        to: Layout::Nd,
        device: &[128, 64, 16, 16],
        plain: &[1024, 2048],
    },
    Case {
        name: "FRACTAL_NZ -> ND  1000x2041",
        from: Layout::FractalNz,
        to: Layout::Nd,
        device: &[128, 63, 16, 16],
        plain: &[1000, 2041],
    },
    Case {
        name: "NHWC -> NCHW",
        from: Layout::Nhwc,
        to: Layout::Nchw,
        device: &[4, 64, 64, 128],
        plain: &[4, 128, 64, 64],
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (is_hot, name) = match args.as_slice() {
        [first, rest @ ..] if first == "--hot" => (true, rest.first()),
        args => (false, args.first()),
    };
    let n_tensors = if is_hot { 1 } else { N_TENSORS };
    for width in [2, 4, 1, 8] {
        println!("elements of {width} bytes");
        for case in CASES
            .iter()
            .filter(|case| name.is_none_or(|name| case.name.contains(name.as_str())))
        {
            let device = Shape::new(case.device)?;
            let plain = Shape::new(case.plain)?;
            let conversion = LayoutConversion {
                original: Some((case.to, &plain)),
                ..LayoutConversion::new(case.from, &device, case.to, width)
            };
            let there = LayoutPlan::new(&conversion)?;
            let back = LayoutPlan::new(&LayoutConversion {
                original: None,
                c0: Some(16),
                ..LayoutConversion::new(case.to, &plain, case.from, width)
            })?;
            let n_src = device.n_elements() * width;
            let mut src = vec![vec![1_u8; n_src]; n_tensors];
            let mut dst = vec![vec![1_u8; there.out_bytes()]; n_tensors];
            src.iter_mut()
                .for_each(|s| s.iter_mut().enumerate().for_each(|(i, b)| *b = i as u8));
            let n_copy = n_src.min(there.out_bytes());
            let copy = measure(n_tensors, n_src, |i| {
                dst[i][..n_copy].copy_from_slice(&src[i][..n_copy]);
            });
            let from = measure(n_tensors, n_src, |i| {
                there.run(&src[i], &mut dst[i]).unwrap();
            });
            let to = measure(n_tensors, n_src, |i| {
                back.run(&dst[i], &mut src[i]).unwrap();
            });
            println!(
                "  {:<38} {from:6.1} GB/s  {:4.0} % of copying; back {to:6.1} GB/s",
                case.name,
                from / copy * 100.0
            );
        }
    }
    Ok(())
}

/// Bytes a nanosecond of the fastest measurement.
fn measure(n_tensors: usize, n_bytes: usize, mut convert: impl FnMut(usize)) -> f64 {
    let n_runs = N_TENSORS.max(n_tensors);
    (0..N_MEASUREMENTS)
        .map(|_| {
            let start = Instant::now();
            (0..n_runs).for_each(|i| convert(black_box(i % n_tensors)));
            (n_bytes * n_runs) as f64 / start.elapsed().as_nanos() as f64
        })
        .fold(0.0, f64::max)
}
