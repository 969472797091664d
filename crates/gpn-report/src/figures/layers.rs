//! Places for a small class graph: columns from the roots on the left to the leaves on the right, few crossings,
//! nothing on top of anything.

/// Where classes and edges go.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    /// Column of each class.
    pub(crate) column: Vec<usize>,
    /// Middle of each class from the top.
    pub(crate) y: Vec<f32>,
    /// For each edge, the heights at which it passes the columns between its ends, from parent to child.
    pub(crate) passes: Vec<Vec<f32>>,
    /// Lowest place used.
    pub(crate) height: f32,
}

/// A class or the place where a long edge passes a column.
struct Slot {
    column: usize,
    height: f32,
    left: Vec<usize>,
    right: Vec<usize>,
}

/// Lays out classes of given heights, `gap` apart, with edges from parent to child. Nothing if the edges run in
/// a circle.
pub(crate) fn layers(heights: &[f32], edges: &[(usize, usize)], gap: f32) -> Option<Layers> {
    let column = columns(heights.len(), edges)?;
    let mut slots: Vec<Slot> = heights
        .iter()
        .zip(&column)
        .map(|(&height, &column)| Slot { column, height, left: vec![], right: vec![] })
        .collect();
    let mut chains = Vec::new();
    for &(parent, child) in edges {
        let mut chain = vec![parent];
        for column in column[parent] + 1..column[child] {
            chain.push(slots.len());
            slots.push(Slot { column, height: gap, left: vec![], right: vec![] });
        }
        chain.push(child);
        for pair in chain.windows(2) {
            slots[pair[0]].right.push(pair[1]);
            slots[pair[1]].left.push(pair[0]);
        }
        chains.push(chain[1..chain.len() - 1].to_vec());
    }
    let order = ordered(&slots);
    let y = heights_of(&slots, &order, gap);
    let top = (0..slots.len()).map(|s| y[s] - slots[s].height / 2.0).fold(f32::INFINITY, f32::min);
    let y: Vec<f32> = y.iter().map(|v| v - top).collect();
    let height = (0..slots.len()).map(|s| y[s] + slots[s].height / 2.0).fold(0.0, f32::max);
    Some(Layers {
        passes: chains.iter().map(|chain| chain.iter().map(|&s| y[s]).collect()).collect(),
        y: y[..heights.len()].to_vec(),
        column,
        height,
    })
}

/// The column of each class: right of all its parents, and as near to its children as that allows.
fn columns(n: usize, edges: &[(usize, usize)]) -> Option<Vec<usize>> {
    let mut waiting = vec![0usize; n];
    for &(_, child) in edges {
        waiting[child] += 1;
    }
    let mut order: Vec<usize> = (0..n).filter(|&c| waiting[c] == 0).collect();
    let mut column = vec![0usize; n];
    let mut next = 0;
    while next < order.len() {
        let class = order[next];
        next += 1;
        for &(_, child) in edges.iter().filter(|e| e.0 == class) {
            column[child] = column[child].max(column[class] + 1);
            waiting[child] -= 1;
            if waiting[child] == 0 {
                order.push(child);
            }
        }
    }
    if order.len() < n {
        return None;
    }
    for &class in order.iter().rev() {
        let nearest = edges.iter().filter(|e| e.0 == class).map(|e| column[e.1]).min();
        if let Some(nearest) = nearest {
            column[class] = nearest - 1;
        }
    }
    Some(column)
}

/// The slots of each column from top to bottom: sorted again and again by the mean rank of their neighbours, the
/// order with the fewest crossings kept.
fn ordered(slots: &[Slot]) -> Vec<Vec<usize>> {
    let count = slots.iter().map(|s| s.column + 1).max().unwrap_or(0);
    let mut order = vec![Vec::new(); count];
    for (s, slot) in slots.iter().enumerate() {
        order[slot.column].push(s);
    }
    let mut best = order.clone();
    let mut fewest = crossings(slots, &best);
    let mut rank = vec![0usize; slots.len()];
    for round in 0..16 {
        let rightwards = round % 2 == 0;
        for step in 0..count {
            let c = if rightwards { step } else { count - 1 - step };
            for column in &order {
                for (r, &s) in column.iter().enumerate() {
                    rank[s] = r;
                }
            }
            let mean = |s: usize| {
                let near = if rightwards { &slots[s].left } else { &slots[s].right };
                if near.is_empty() {
                    rank[s] as f32
                } else {
                    near.iter().map(|&t| rank[t] as f32).sum::<f32>() / near.len() as f32
                }
            };
            order[c].sort_by(|&a, &b| mean(a).total_cmp(&mean(b)));
        }
        let now = crossings(slots, &order);
        if now < fewest {
            fewest = now;
            best.clone_from(&order);
        }
    }
    best
}

fn crossings(slots: &[Slot], order: &[Vec<usize>]) -> usize {
    let mut rank = vec![0usize; slots.len()];
    for column in order {
        for (r, &s) in column.iter().enumerate() {
            rank[s] = r;
        }
    }
    let mut count = 0;
    for column in order {
        let lines: Vec<(usize, usize)> =
            column.iter().flat_map(|&s| slots[s].right.iter().map(move |&t| (s, t))).collect();
        for (i, a) in lines.iter().enumerate() {
            for b in &lines[..i] {
                let (left, right) = (rank[a.0].cmp(&rank[b.0]), rank[a.1].cmp(&rank[b.1]));
                count += usize::from(left == right.reverse() && left != std::cmp::Ordering::Equal);
            }
        }
    }
    count
}

/// The middle of each slot: as near to the mean of its neighbours as its order and its size allow.
fn heights_of(slots: &[Slot], order: &[Vec<usize>], gap: f32) -> Vec<f32> {
    let mut y = vec![0.0f32; slots.len()];
    let apart = |a: usize, b: usize| f32::midpoint(slots[a].height, slots[b].height) + gap;
    for column in order {
        let mut at = 0.0;
        for (i, &s) in column.iter().enumerate() {
            if i > 0 {
                at += apart(column[i - 1], s);
            }
            y[s] = at;
        }
        let middle = at / 2.0;
        for &s in column {
            y[s] -= middle;
        }
    }
    for round in 0..24 {
        for step in 0..order.len() {
            let column = &order[if round % 2 == 0 { step } else { order.len() - 1 - step }];
            let wanted: Vec<f32> = column
                .iter()
                .map(|&s| {
                    let near = slots[s].left.iter().chain(&slots[s].right);
                    let (sum, n) = near.fold((0.0, 0.0), |(sum, n), &t| (sum + y[t], n + 1.0));
                    if n == 0.0 { y[s] } else { sum / n }
                })
                .collect();
            let gaps: Vec<f32> = column.windows(2).map(|pair| apart(pair[0], pair[1])).collect();
            for (&s, v) in column.iter().zip(spread(&wanted, &gaps)) {
                y[s] = v;
            }
        }
    }
    y
}

/// The values nearest to the wanted ones, in the sense of least squares, that keep the order and the gaps:
/// neighbours that want to pass each other move as one block.
fn spread(wanted: &[f32], gaps: &[f32]) -> Vec<f32> {
    let mut offset = 0.0;
    let mut offsets = vec![0.0f32];
    for gap in gaps {
        offset += gap;
        offsets.push(offset);
    }
    let mut blocks: Vec<(f32, usize)> = Vec::new();
    for (value, offset) in wanted.iter().zip(&offsets) {
        blocks.push((value - offset, 1));
        while let [.., (a, n), (b, m)] = blocks[..] {
            if a <= b {
                break;
            }
            blocks.pop();
            blocks.pop();
            blocks.push(((a * n as f32 + b * m as f32) / (n + m) as f32, n + m));
        }
    }
    let values = blocks.iter().flat_map(|&(value, n)| std::iter::repeat_n(value, n));
    values.zip(&offsets).map(|(value, offset)| value + offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_order_and_gaps() {
        assert_eq!(spread(&[0.0, 10.0], &[4.0]), [0.0, 10.0]);
        assert_eq!(spread(&[5.0, 5.0, 5.0], &[2.0, 2.0]), [3.0, 5.0, 7.0]);
        let moved = spread(&[9.0, 0.0, 50.0], &[1.0, 1.0]);
        assert_eq!(moved, [4.0, 5.0, 50.0]);
    }

    #[test]
    fn classes_do_not_overlap_and_trees_do_not_cross() {
        let edges = [(0, 2), (1, 3), (0, 4), (1, 5), (6, 0), (6, 1), (6, 7)];
        let heights = [30.0; 8];
        let laid = layers(&heights, &edges, 10.0).unwrap();
        assert_eq!(laid.column, [1, 1, 2, 2, 2, 2, 0, 1]);
        for a in 0..8 {
            for b in 0..a {
                if laid.column[a] == laid.column[b] {
                    assert!((laid.y[a] - laid.y[b]).abs() >= 39.9, "{a} {b}");
                }
            }
        }
        let inner = f32::midpoint(laid.y[2], laid.y[4]);
        assert!((inner < f32::midpoint(laid.y[3], laid.y[5])) == (laid.y[0] < laid.y[1]));
    }

    #[test]
    fn long_edges_pass_the_columns_between() {
        let laid = layers(&[30.0; 4], &[(0, 1), (1, 2), (0, 2), (3, 2)], 10.0).unwrap();
        assert_eq!(laid.column, [0, 1, 2, 1]);
        assert_eq!(laid.passes.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 1, 0]);
    }

    #[test]
    fn circles_are_refused() {
        assert!(layers(&[1.0; 2], &[(0, 1), (1, 0)], 1.0).is_none());
        assert!(layers(&[], &[], 1.0).is_some());
    }
}
