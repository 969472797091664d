//! Names beside points, none on top of another.

/// The first of several names of a class, as WordNet lists them.
pub(crate) fn first_name(name: &str) -> &str {
    name.split(',').next().map(str::trim).filter(|first| !first.is_empty()).unwrap_or(name)
}

/// A rectangle: left, top, right, bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f32,
    pub(crate) top: f32,
    pub(crate) right: f32,
    pub(crate) bottom: f32,
}

impl Area {
    pub(crate) fn around([x, y]: [f32; 2], radius: f32) -> Self {
        Self { left: x - radius, top: y - radius, right: x + radius, bottom: y + radius }
    }

    /// The area without a rim.
    pub(crate) fn shrunk(self, rim: f32) -> Self {
        Self {
            left: self.left + rim,
            top: self.top + rim,
            right: self.right - rim,
            bottom: self.bottom - rim,
        }
    }

    /// The part of a line that lies within the area.
    pub(crate) fn clip(&self, from: [f32; 2], to: [f32; 2]) -> Option<[[f32; 2]; 2]> {
        let along = [to[0] - from[0], to[1] - from[1]];
        let (mut start, mut end) = (0.0f32, 1.0f32);
        let sides = [
            (along[0], self.left - from[0], self.right - from[0]),
            (along[1], self.top - from[1], self.bottom - from[1]),
        ];
        for (step, low, high) in sides {
            if step == 0.0 {
                if low > 0.0 || high < 0.0 {
                    return None;
                }
            } else {
                let (a, b) = (low / step, high / step);
                start = start.max(a.min(b));
                end = end.min(a.max(b));
            }
        }
        let at = |t: f32| [from[0] + along[0] * t, from[1] + along[1] * t];
        (start < end).then(|| [at(start), at(end)])
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    pub(crate) fn inside(&self, other: &Self) -> bool {
        self.left >= other.left
            && self.right <= other.right
            && self.top >= other.top
            && self.bottom <= other.bottom
    }
}

/// Finds free places for names.
#[derive(Debug)]
pub(crate) struct Labels {
    bounds: Area,
    taken: Vec<Area>,
}

impl Labels {
    /// Names stay within `bounds`.
    pub(crate) fn new(bounds: Area) -> Self {
        Self { bounds, taken: Vec::new() }
    }

    /// Keeps names off an area.
    pub(crate) fn keep_off(&mut self, area: Area) {
        self.taken.push(area);
    }

    /// Takes an area if it is free.
    pub(crate) fn take(&mut self, area: Area) -> bool {
        let free = area.inside(&self.bounds) && !self.taken.iter().any(|other| other.overlaps(&area));
        if free {
            self.taken.push(area);
        }
        free
    }

    /// Finds a place beside a point for a text of a width at a size, trying the right first, then round the
    /// point, then farther away; gives the start of the baseline, or nothing if there is no room.
    pub(crate) fn beside(&mut self, at: [f32; 2], radius: f32, width: f32, size: f32) -> Option<[f32; 2]> {
        let [x, y] = at;
        let (rise, drop) = (size * 0.76, size * 0.24);
        for reach in [0.0, 7.0, 15.0] {
            let gap = radius + 3.0 + reach;
            let slant = gap * 0.72;
            let middle = y + (rise - drop) / 2.0;
            let places = [
                [x + gap, middle],
                [x - gap - width, middle],
                [x - width / 2.0, y - gap - drop],
                [x - width / 2.0, y + gap + rise],
                [x + slant, y - slant - drop],
                [x + slant, y + slant + rise],
                [x - slant - width, y - slant - drop],
                [x - slant - width, y + slant + rise],
            ];
            for [left, base] in places {
                let area = Area {
                    left: left - 1.0,
                    top: base - rise,
                    right: left + width + 1.0,
                    bottom: base + drop,
                };
                if self.take(area) {
                    return Some([left, base]);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_the_border() {
        let area = Area { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };
        assert_eq!(area.clip([-5.0, 5.0], [5.0, 5.0]), Some([[0.0, 5.0], [5.0, 5.0]]));
        assert_eq!(area.clip([1.0, 1.0], [2.0, 2.0]), Some([[1.0, 1.0], [2.0, 2.0]]));
        assert_eq!(area.clip([5.0, -5.0], [5.0, 15.0]), Some([[5.0, 0.0], [5.0, 10.0]]));
        assert_eq!(area.clip([-3.0, 8.0], [3.0, 17.0]), None);
        assert_eq!(area.clip([-1.0, -1.0], [-1.0, 11.0]), None);
    }

    #[test]
    fn names_never_overlap() {
        let bounds = Area { left: 0.0, top: 0.0, right: 100.0, bottom: 60.0 };
        let mut labels = Labels::new(bounds);
        let mut placed = 0;
        for i in 0..40 {
            let at = [10.0 + (i * 37 % 80) as f32, 5.0 + (i * 23 % 50) as f32];
            placed += usize::from(labels.beside(at, 2.0, 25.0, 10.0).is_some());
        }
        assert!((6..=24).contains(&placed), "{placed}");
        for (i, a) in labels.taken.iter().enumerate() {
            assert!(a.inside(&bounds));
            assert!(labels.taken[..i].iter().all(|b| !a.overlaps(b)));
        }
    }
}
