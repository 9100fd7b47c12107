use super::*;

fn numbers(dims: &[usize]) -> ElementArray<'static> {
    let n = count(dims).unwrap();
    let bytes: Vec<u8> = (0..n as u16).flat_map(u16::to_le_bytes).collect();
    ElementArray::flat(DType::U16, Cow::Owned(bytes))
        .reshape(dims)
        .unwrap()
}

fn values(array: &ElementArray<'_>, order: SaveOrder) -> Vec<u16> {
    let bytes = array.bytes_in_order(order);
    let (chunks, _) = bytes.as_chunks::<2>();
    chunks
        .iter()
        .map(|&chunk| u16::from_le_bytes(chunk))
        .collect()
}

/// Looks up each element individually.
fn expected(dims: &[usize], strides: &[usize]) -> Vec<u16> {
    let mut out = vec![0];
    for (&dim, &stride) in dims.iter().zip(strides) {
        out = out
            .iter()
            .flat_map(|&start| (0..dim).map(move |i| start + (i * stride) as u16))
            .collect();
    }
    out
}

#[test]
fn every_permutation_reads_the_right_elements() {
    let dims = [3, 40, 2, 35];
    let strides = [2800, 70, 35, 1];
    for code in 0..256_usize {
        let axes: Vec<usize> = (0..4).map(|i| code >> (2 * i) & 3).collect();
        if (0..4).any(|axis| !axes.contains(&axis)) {
            continue;
        }
        let array = numbers(&dims).transpose(&axes).cut(&[2, 33, 2, 34]);
        let picked: Vec<usize> = axes.iter().map(|&axis| strides[axis]).collect();
        assert_eq!(
            values(&array, SaveOrder::C),
            expected(array.dims(), &picked),
            "{axes:?}"
        );
    }
}

#[test]
fn reshape_copies_only_where_it_must() {
    let array = numbers(&[2, 3, 4]).transpose(&[1, 0, 2]);
    assert_eq!(
        array.geometry.try_reshape(&[3, 2, 2, 2]).unwrap().strides(),
        [4, 12, 2, 1]
    );
    assert!(array.geometry.try_reshape(&[6, 4]).is_none());
    let copy = array.reshape(&[6, 4]).unwrap();
    assert_eq!(
        values(&copy, SaveOrder::C)[..8],
        [0, 1, 2, 3, 12, 13, 14, 15]
    );
    assert!(numbers(&[2, 3]).reshape(&[7]).is_err());
    assert!(numbers(&[1]).reshape(&[1; 65]).is_err());
    assert_eq!(numbers(&[1]).reshape(&[]).unwrap().dims(), [0_usize; 0]);
}

#[test]
fn order_is_numpys() {
    // Expectations according to numpy's flags.
    let cases: [(&[usize], &[usize], SaveOrder); 5] = [
        (&[2, 3], &[1, 0], SaveOrder::Fortran),
        (&[2, 3], &[0, 1], SaveOrder::C),
        (&[1, 4, 1, 1], &[0, 3, 1, 2], SaveOrder::C),
        (&[5, 1, 1, 7], &[0, 3, 1, 2], SaveOrder::C),
        (&[2, 3, 4], &[2, 0, 1], SaveOrder::C),
    ];
    for (dims, axes, order) in cases {
        let array = numbers(dims).transpose(axes);
        assert_eq!(array.saved_order(), order, "{dims:?} {axes:?}");
    }
    let array = numbers(&[2, 3]).transpose(&[1, 0]);
    assert_eq!(values(&array, SaveOrder::Fortran), [0, 1, 2, 3, 4, 5]);
    assert_eq!(values(&array, SaveOrder::C), [0, 3, 1, 4, 2, 5]);
    assert_eq!(
        numbers(&[0, 3]).transpose(&[1, 0]).saved_order(),
        SaveOrder::C
    );
    let c = numbers(&[2, 3, 4]).transpose(&[1, 0, 2]);
    assert_eq!(values(&c, SaveOrder::Fortran).len(), 24);
}
