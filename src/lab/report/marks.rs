//! Shapes of the marks at points: one for each colour and, of the same colour, for each dash, so that lines are told apart
//! without colours too.

use super::figure::{GREY, PALETTE_LENGTH};

/// The outline of a mark around the origin, in pixels; `size` is about half of its height.
pub(super) fn shape(style: usize, size: i32) -> Vec<(i32, i32)> {
    let s = size;
    let (wide, thin) = (s * 5 / 4, (s / 3).max(1));
    let circle = || {
        let at = |k: i32| f64::from(k) * std::f64::consts::TAU / 16.0;
        (0..16)
            .map(|k| {
                ((f64::from(s) * at(k).cos()).round() as i32, (f64::from(s) * at(k).sin()).round() as i32)
            })
            .collect()
    };
    // Marks that no line joins have no dash either: they differ in shape.
    let (colour, dash) = (style % PALETTE_LENGTH, style / PALETTE_LENGTH);
    let shape = if colour == GREY { colour } else { (colour + 4 * dash) % GREY };
    match shape {
        0 => circle(),
        1 => vec![(-s, -s), (s, -s), (s, s), (-s, s)],
        2 => vec![(0, -wide), (wide, s), (-wide, s)],
        3 => vec![(0, -wide), (wide, 0), (0, wide), (-wide, 0)],
        4 => vec![(0, wide), (wide, -s), (-wide, -s)],
        5 => plus(wide, thin),
        6 => plus(wide, thin).into_iter().map(|(x, y)| ((x - y) * 7 / 10, (x + y) * 7 / 10)).collect(),
        7 => vec![(-wide, 0), (s, -wide), (s, wide)],
        8 => vec![(wide, 0), (-s, -wide), (-s, wide)],
        9 => vec![(-thin * 2, -wide), (thin * 2, -wide), (thin * 2, wide), (-thin * 2, wide)],
        _ => circle(),
    }
}

fn plus(long: i32, half: i32) -> Vec<(i32, i32)> {
    let (l, h) = (long, half);
    vec![
        (-h, -l),
        (h, -l),
        (h, -h),
        (l, -h),
        (l, h),
        (h, h),
        (h, l),
        (-h, l),
        (-h, h),
        (-l, h),
        (-l, -h),
        (-h, -h),
    ]
}
