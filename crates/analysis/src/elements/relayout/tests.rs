use super::*;

fn elements(dtype: DType, layout: Layout, dims: &[usize]) -> DumpElements<'static> {
    let shape = Shape::new(dims).unwrap();
    let n_bytes = shape.n_bytes(dtype).unwrap();
    DumpElements {
        dtype,
        shape,
        layout: Ok(layout),
        bytes: (0..n_bytes)
            .map(|i| (i * 7 % 251) as u8)
            .collect::<Vec<_>>()
            .into(),
    }
}

fn to(target: Layout) -> WantedLayout {
    WantedLayout {
        target,
        shape: None,
    }
}

fn entry(original: &[u64], n_groups: usize) -> StoredTensor {
    let mut stored = StoredTensor::array(DType::F32, &Shape::scalar(), Layout::Nd, 0..0);
    stored.original_shape = Some(original.to_vec());
    stored.n_groups = Some(n_groups).filter(|n| *n > 1);
    stored
}

/// Round trips are the identity, also by way of a third layout.
#[test]
fn there_and_back() {
    use Layout::*;
    let image = (Nchw, vec![2_usize, 20, 3, 5]);
    let volume = (Ncdhw, vec![2_usize, 20, 4, 3, 5]);
    for dtype in [
        DType::F32,
        DType::F16,
        DType::I8,
        DType::BF16,
        DType::F8E5M2,
    ] {
        for (plain, device, dims) in [
            (image.0, Nc1hwc0, &image.1),
            (image.0, C1hwnc0, &image.1),
            (image.0, FractalZ, &image.1),
            (image.0, FractalNz, &image.1),
            (image.0, Nhwc, &image.1),
            (Nhwc, Nc1hwc0, &image.1),
            (Hwcn, FractalZ, &image.1),
            (Nd, FractalZz, &image.1),
            (volume.0, Ndc1hwc0, &volume.1),
            (volume.0, FractalZ3d, &volume.1),
        ] {
            let original: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
            let entry = entry(&original, 0);
            let source = elements(dtype, plain, dims);
            let there = to(device).apply(source.clone(), &entry).unwrap();
            assert_eq!(there.layout, Ok(device));
            let back = to(plain).apply(there, &entry).unwrap();
            assert_eq!(back.shape, source.shape, "{device} {dtype}");
            assert!(back.bytes == source.bytes, "{device} {dtype}");
        }
    }
}

#[test]
fn groups_come_back() {
    for n_groups in [2, 4] {
        let entry = entry(&[8, 5, 3, 3], n_groups);
        let source = elements(DType::F16, Layout::Nchw, &[8, 5, 3, 3]);
        let there = to(Layout::FractalZ).apply(source.clone(), &entry).unwrap();
        let back = to(Layout::Nchw).apply(there, &entry).unwrap();
        assert!(back.bytes == source.bytes);
    }
}

/// The original shape has the axis order of the operator before fusion, if the file names it.
#[test]
fn the_original_operator_tells_the_order() {
    let mut entry = entry(&[2, 3, 5, 20], 0);
    entry.original_layout = Some(Layout::Nhwc);
    let plain = elements(DType::F32, Layout::Nhwc, &[2, 3, 5, 20]);
    let device = to(Layout::Nc1hwc0).apply(plain.clone(), &entry).unwrap();
    let found = to(Layout::Nchw).apply(device.clone(), &entry).unwrap();
    assert_eq!(found.shape.dims(), [2, 20, 3, 5]);
    let expected = to(Layout::Nchw).apply(plain.clone(), &entry).unwrap();
    assert!(found.bytes == expected.bytes);
    // A matrix layout has no axes to permute, so conversion goes by the original layout.
    let device = to(Layout::FractalNz).apply(plain, &entry).unwrap();
    let found = to(Layout::Nchw).apply(device, &entry).unwrap();
    assert!(found.bytes == expected.bytes);
}

/// If the file does not record it, the device's shape often determines the order.
#[test]
fn the_device_shape_tells_the_order() {
    let plain = elements(DType::F32, Layout::Nchw, &[2, 20, 3, 5]);
    let entry = entry(&[2, 20, 3, 5], 0);
    let device = to(Layout::Nc1hwc0).apply(plain.clone(), &entry).unwrap();
    let found = to(Layout::Nhwc).apply(device.clone(), &entry).unwrap();
    let expected = to(Layout::Nhwc).apply(plain, &entry).unwrap();
    assert!(found.shape == expected.shape && found.bytes == expected.bytes);
    let mut other = entry;
    other.original_shape = Some(vec![9, 20, 3, 5]);
    assert!(to(Layout::Nhwc).apply(device, &other).is_err());
}

#[test]
fn packed_elements_are_decoded_first_and_keep_their_blocks() {
    let source = elements(DType::I4, Layout::Nchw, &[1, 70, 1, 1]);
    let there = to(Layout::Nc1hwc0).apply(source, &entry(&[], 0)).unwrap();
    assert_eq!(
        (there.dtype, there.shape.dims()),
        (DType::I8, &[1, 2, 1, 1, 64][..])
    );
}

#[test]
fn a_wanted_shape_cuts() {
    let device = elements(DType::F32, Layout::Nc1hwc0, &[2, 2, 3, 5, 16]);
    let wanted = |dims: &[usize]| WantedLayout {
        target: Layout::Nhwc,
        shape: Some(Shape::new(dims).unwrap()),
    };
    let entry = entry(&[], 0);
    let cut = wanted(&[1, 3, 4, 5]).apply(device.clone(), &entry).unwrap();
    assert_eq!(cut.shape.dims(), [1, 3, 4, 5]);
    assert!(
        wanted(&[1, 3, 4, 33])
            .apply(device.clone(), &entry)
            .is_err()
    );
    assert!(wanted(&[1, 3]).apply(device, &entry).is_err());
}

#[test]
fn what_cannot_be_done_is_an_error() {
    let none = entry(&[], 0);
    let cases = [
        (
            elements(DType::F32, Layout::FractalZ, &[1, 1, 16, 16]),
            Layout::Nchw,
            "original",
        ),
        (
            elements(DType::F32, Layout::Nchw, &[1, 2, 3, 4]),
            Layout::FractalZG,
            "no conversion",
        ),
        (
            elements(DType::F32, Layout::Nd, &[7]),
            Layout::Nc1hwc0,
            "axes",
        ),
    ];
    for (source, target, expected) in cases {
        let error = to(target).apply(source, &none).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut short = elements(DType::F32, Layout::Nchw, &[1, 2, 3, 4]);
    short.bytes = vec![0; 3].into();
    assert!(to(Layout::Nhwc).apply(short, &none).is_err());
    let mut unknown = elements(DType::F32, Layout::Nchw, &[1, 2, 3, 4]);
    unknown.layout = Err(200);
    assert_eq!(
        to(Layout::Nhwc).apply(unknown, &none).unwrap_err(),
        RelayoutError::UnknownLayout(200)
    );
}
