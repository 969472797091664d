//! The nearest rows found so far.

/// The nearest of the rows that were offered, in order: by distance, then by row.
#[derive(Clone, Debug)]
pub struct Nearest {
    count: usize,
    found: Vec<(f32, u32)>,
}

impl Nearest {
    /// Keeps `count` rows.
    pub fn new(count: usize) -> Self {
        Self { count, found: Vec::new() }
    }

    /// Takes a row in if it is one of the nearest so far. The order of offers does not matter. NaN counts as
    /// infinitely far.
    #[inline]
    pub fn offer(&mut self, distance: f32, row: u32) {
        if self.count == 0 {
            return;
        }
        // Infinite values lead to NaN, whose sign depends on the processor.
        let distance = if distance.is_nan() { f32::INFINITY } else { distance };
        let is_before = |a: &(f32, u32)| a.0.total_cmp(&distance).then(a.1.cmp(&row)).is_lt();
        if self.found.len() < self.count || self.found.last().is_some_and(|last| !is_before(last)) {
            self.found.truncate(self.count - 1);
            let place = self.found.partition_point(is_before);
            self.found.insert(place, (distance, row));
        }
    }

    /// Takes in what another one found.
    pub fn merge(&mut self, other: &Self) {
        for &(distance, row) in &other.found {
            self.offer(distance, row);
        }
    }

    /// Whether as many rows were found as are kept.
    pub fn is_full(&self) -> bool {
        self.found.len() == self.count
    }

    /// The squared distance beyond which no row is taken in any more; infinite while there is room.
    pub(super) fn limit(&self) -> f32 {
        self.found.last().filter(|_| self.is_full()).map_or(f32::INFINITY, |last| last.0)
    }

    /// The rows, nearest first.
    pub fn into_rows(self) -> Vec<u32> {
        self.found.into_iter().map(|(_, row)| row).collect()
    }
}
