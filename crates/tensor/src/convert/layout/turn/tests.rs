//! The fast ways to turn a grid against the plain one.

use super::*;

type Turn = fn(&mut CopyCursor<'_>, CopyLoop, CopyLoop, CopyLoop);

/// Turns grids of every extent up to two squares and a bit, with odd steps and odd alignment, and
/// expects the same bytes from both, those between the rows untouched.
fn check(width: usize, fast: Turn, slow: Turn) {
    let extents = || 1..=40 / width.min(4) + 3;
    for (n_a, n_b) in extents().flat_map(|a| extents().map(move |b| (a, b))) {
        for n_c in [1, 3] {
            let (b_src, a_dst) = (n_a * width + n_b % 5, n_b * width + n_a % 7);
            let a = CopyLoop {
                extent: n_a,
                src: width,
                dst: a_dst,
            };
            let b = CopyLoop {
                extent: n_b,
                src: b_src,
                dst: width,
            };
            let c = CopyLoop {
                extent: n_c,
                src: n_b * b_src + 1,
                dst: n_a * a_dst + 3,
            };
            let at = 1 + n_a % 3;
            let src: Vec<u8> = (0..at + n_c * c.src)
                .map(|i| (i * 7 + i / 251) as u8)
                .collect();
            let turned = |turn: Turn| {
                let mut dst = vec![0xee; at + n_c * c.dst];
                let mut cursor = CopyCursor {
                    src: &src,
                    dst: &mut dst,
                    src_at: at,
                    dst_at: at,
                };
                turn(&mut cursor, a, b, c);
                dst
            };
            assert!(
                turned(fast) == turned(slow),
                "{n_a} x {n_b} x {n_c}, width {width}"
            );
        }
    }
}

#[test]
fn squares_agree_with_the_plain_loop() {
    check(1, grids::<1, 16, 8>, plain::<1>);
    check(2, grids::<2, 8, 4>, plain::<2>);
    check(4, grids::<4, 4, 2>, plain::<4>);
    check(8, grids::<8, 2, 1>, plain::<8>);
}

/// The words are what other CPUs take throughout.
#[test]
fn words_agree_with_the_plain_loop() {
    fn in_words<const WIDTH: usize, const SIDE: usize>(
        cursor: &mut CopyCursor<'_>,
        a: CopyLoop,
        b: CopyLoop,
        c: CopyLoop,
    ) {
        if a.extent < SIDE || b.extent < SIDE {
            return plain::<WIDTH>(cursor, a, b, c);
        }
        let grids = TurnGrids::<WIDTH>::new(cursor, a, b, c).unwrap();
        // SAFETY: `in_squares` promises the rows.
        grids.in_squares::<SIDE>(|src, src_step, dst, dst_step| unsafe {
            word_square::<WIDTH, SIDE>(src, src_step, dst, dst_step);
        });
    }
    check(1, in_words::<1, 8>, plain::<1>);
    check(2, in_words::<2, 4>, plain::<2>);
    check(4, in_words::<4, 2>, plain::<4>);
    check(8, in_words::<8, 1>, plain::<8>);
}

#[test]
fn grids_beyond_the_slices_are_refused() {
    let (src, mut dst) = ([0; 64], [0; 64]);
    let side = |extent, step| CopyLoop {
        extent,
        src: step,
        dst: step,
    };
    let cases = [
        (side(8, 8), side(8, 8), side(1, 0), true),
        (side(8, 8), side(9, 8), side(1, 0), false),
        (side(8, 8), side(8, 8), side(2, 1), false),
        (side(8, 8), side(8, usize::MAX), side(1, 0), false),
        (side(0, 8), side(8, 8), side(1, 0), false),
    ];
    for (a, b, c, is_inside) in cases {
        let mut cursor = CopyCursor {
            src: &src,
            dst: &mut dst,
            src_at: 0,
            dst_at: 0,
        };
        assert_eq!(
            TurnGrids::<1>::new(&mut cursor, a, b, c).is_some(),
            is_inside,
            "{a:?} {b:?}"
        );
    }
}
