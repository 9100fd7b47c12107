//! Layouts in which slots can be compared.

use opscope_analysis::compare::matching::{LayoutHint, SlotPair};
use opscope_analysis::compare::side::ExecutionSlot;
use opscope_store::record::SlotSide;
use opscope_tensor::{DType, Layout};

use crate::matching::{matched, op, side};

struct Tensor(Option<Layout>, &'static [u64], Option<&'static [u64]>);

fn pair(target: &Tensor, golden: &Tensor) -> SlotPair {
    let run = |tensor: &Tensor| {
        let mut run = op("Conv", "conv", &[], &[]);
        let mut slot = ExecutionSlot::described(SlotSide::Output, 0, DType::F16, tensor.1);
        slot.layout = tensor.0;
        slot.original_shape = tensor.2.map(<[u64]>::to_vec);
        run.slots.push(slot);
        run
    };
    let (target, golden) = (side(vec![run(target)]), side(vec![run(golden)]));
    matched(&target, &golden).pairs[0].slots[0]
}

#[test]
fn both_are_brought_to_a_plain_layout() {
    use Layout::*;
    let blocks = || Tensor(Some(Nc1hwc0), &[1, 2, 4, 4, 16], Some(&[1, 20, 4, 4]));
    let matrix = || Tensor(Some(FractalNz), &[2, 1, 16, 16], Some(&[10, 30]));
    let weight = || Tensor(Some(FractalZ), &[18, 1, 16, 16], Some(&[16, 20, 3, 3]));
    let volume = || Tensor(Some(Ndc1hwc0), &[1, 2, 1, 4, 4, 16], Some(&[1, 8, 2, 4, 4]));
    let nchw = || Tensor(Some(Nchw), &[1, 20, 4, 4], None);
    let nhwc = || Tensor(Some(Nhwc), &[1, 4, 4, 20], None);
    let plain = || Tensor(None, &[1, 20, 4, 4], None);
    let bias = |layout| Tensor(Some(layout), &[20], None);
    for (target, golden, expected) in [
        (blocks(), nchw(), Some(Nchw)),
        (blocks(), nhwc(), Some(Nchw)),
        (blocks(), plain(), Some(Nchw)),
        (plain(), blocks(), Some(Nchw)),
        (blocks(), blocks(), None),
        (
            Tensor(Some(Nc1hwc0), &[1, 2, 4, 4, 16], None),
            Tensor(None, &[1, 32, 4, 4], None),
            Some(Nchw),
        ),
        (
            Tensor(Some(Nc1hwc0), &[1, 1, 1, 1, 16], Some(&[10])),
            Tensor(None, &[10], None),
            Some(Nchw),
        ),
        (matrix(), Tensor(Some(Nd), &[10, 30], None), Some(Nd)),
        (matrix(), Tensor(None, &[10, 30], None), Some(Nd)),
        (
            Tensor(Some(FractalNz), &[3, 2, 1, 16, 16], Some(&[1, 3, 10, 30])),
            plain(),
            Some(Nd),
        ),
        (
            weight(),
            Tensor(Some(Nchw), &[16, 20, 3, 3], None),
            Some(Nchw),
        ),
        (
            volume(),
            Tensor(Some(Ncdhw), &[1, 8, 2, 4, 4], None),
            Some(Ncdhw),
        ),
        (nhwc(), nchw(), Some(Nchw)),
        (nchw(), nhwc(), Some(Nhwc)),
        (nchw(), plain(), None),
        (bias(Nhwc), bias(Nchw), None),
    ] {
        let found = pair(&target, &golden);
        assert_eq!(
            found.layout,
            expected,
            "{:?} {:?}",
            (target.0, target.1),
            (golden.0, golden.1)
        );
        assert_eq!(found.hint, None);
    }
}

#[test]
fn axes_are_never_turned_silently() {
    let known = |layout, shape| Tensor(layout, shape, None);
    let found = pair(&known(None, &[1, 4, 4, 20]), &known(None, &[1, 20, 4, 4]));
    assert_eq!(found.layout, None);
    let expected = LayoutHint::Layouts {
        target: Layout::Nhwc,
        golden: Layout::Nchw,
    };
    assert_eq!(found.hint, Some(expected));
    let same = pair(&known(None, &[1, 4, 4, 20]), &known(None, &[1, 4, 4, 20]));
    let other = pair(&known(None, &[1, 4, 5, 20]), &known(None, &[1, 4, 4, 20]));
    assert_eq!([same.hint, other.hint], [None, None]);
}
