//! Random streams: one per (seed, purpose, index), value-stable across machines, versions and thread counts.
//!
//! Work that is numbered (task 17, step 4,000, sample 12) takes its own stream, so its random choices do not
//! depend on what was drawn before it or on which thread it runs.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

/// What a stream is for. Two purposes never share random numbers, even with the same seed and index.
///
/// Indices are below 2^61.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Which classes are for training and which for testing.
    Split,
    /// Which samples a class gets.
    Assignment,
    /// Classes and samples of a task; the index is the task's number.
    Task,
    /// Crops and flips; the index is the number of the batch.
    Augmentation,
    /// Which kind of step a training step is; the index is the step's number.
    Step,
    /// The samples of an auxiliary batch; the index is the step's number.
    AuxiliaryBatch,
    /// Which half of a long list of neighbours is followed; the index is the step's number.
    HalvedLists,
    /// Which samples a refresh of the memory looks at; the index is the number of the refresh.
    Memory,
    /// Crops and flips of the samples that a refresh of the memory looks at; a part has its own
    /// index, see [`Stream::of_part`].
    MemoryCrops,
    /// Which samples of a class measure while a catalogue is fitted; the index is the class's number.
    HeldOut,
}

impl Purpose {
    /// The number in the key, and the stream of index 0. Purposes that were told apart late share the number of an older
    /// one, far behind its streams: the numbers decide what every published seed gives, so they never change.
    fn place(self) -> (u64, u64) {
        match self {
            Self::Split => (1, 0),
            Self::Assignment => (2, 0),
            Self::Task => (3, 0),
            Self::Augmentation => (4, 0),
            Self::Step => (6, 0),
            Self::AuxiliaryBatch => (6, 1 << 61),
            Self::HalvedLists => (6, 1 << 62),
            Self::Memory => (7, 0),
            Self::MemoryCrops => (7, 1 << 63),
            Self::HeldOut => (8, 0),
        }
    }
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream for one purpose and index.
    ///
    /// ```
    /// use gpn_data::rng::{Purpose, Stream};
    /// let draw = |index| Stream::new(7, Purpose::Task, index).below(1_000_000);
    /// assert_eq!(draw(3), draw(3));
    /// assert_ne!(draw(3), draw(4));
    /// ```
    pub fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        let (number, first) = purpose.place();
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&number.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(first + index);
        Self(generator)
    }

    /// The stream for part `part` of the work with number `index`, where its parts are done by several threads.
    pub fn of_part(seed: u64, purpose: Purpose, index: u64, part: u32) -> Self {
        Self::new(seed, purpose, (index << 32) + u64::from(part))
    }

    /// The next 32 random bits.
    pub fn bits(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// A whole number below `bound`, each equally likely (Lemire's rejection method).
    ///
    /// `bound` is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        debug_assert!(bound > 0 && u32::try_from(bound).is_ok());
        let bound = bound as u32;
        let mut product = u64::from(self.bits()) * u64::from(bound);
        if (product as u32) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u32) < threshold {
                product = u64::from(self.bits()) * u64::from(bound);
            }
        }
        (product >> 32) as usize
    }

    /// A number in [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Two independent numbers from the standard normal distribution (Box and Muller).
    pub fn normal_pair(&mut self) -> (f32, f32) {
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        let angle = std::f64::consts::TAU * self.unit();
        ((radius * libm::cos(angle)) as f32, (radius * libm::sin(angle)) as f32)
    }

    /// `count` different items, every ordered choice equally likely.
    ///
    /// `count` is at most the number of items.
    pub fn choose<T: Copy>(&mut self, items: &[T], count: usize) -> Vec<T> {
        debug_assert!(count <= items.len());
        if count * 8 >= items.len() {
            let mut pool = items.to_vec();
            for i in 0..count {
                let j = i + self.below(pool.len() - i);
                pool.swap(i, j);
            }
            pool.truncate(count);
            return pool;
        }
        let mut positions: Vec<usize> = Vec::with_capacity(count);
        while positions.len() < count {
            let position = self.below(items.len());
            if !positions.contains(&position) {
                positions.push(position);
            }
        }
        positions.into_iter().map(|position| items[position]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_never_change() {
        let mut stream = Stream::new(42, Purpose::Task, 5);
        let drawn: Vec<usize> = (0..6).map(|_| stream.below(1000)).collect();
        assert_eq!(drawn, [788, 393, 232, 354, 431, 192], "a change here changes every published task");
    }

    #[test]
    fn streams_of_training_never_change() {
        let bits = |purpose, index| Stream::new(42, purpose, index).bits();
        let drawn = [
            bits(Purpose::Step, 5),
            bits(Purpose::AuxiliaryBatch, 5),
            bits(Purpose::HalvedLists, 5),
            bits(Purpose::Memory, 5),
            bits(Purpose::MemoryCrops, 5),
            Stream::of_part(42, Purpose::MemoryCrops, 2, 5).bits(),
        ];
        // Keys and streams as they were before purposes had names of their own.
        let expected = [
            (6, 5),
            (6, (1 << 61) + 5),
            (6, (1 << 62) + 5),
            (7, 5),
            (7, (1 << 63) + 5),
            (7, (1 << 63) + (2 << 32) + 5),
        ];
        for (drawn, (number, stream)) in drawn.into_iter().zip(expected) {
            let mut key = [0; 32];
            key[0] = 42;
            key[8] = number;
            let mut generator = ChaCha8Rng::from_seed(key);
            generator.set_stream(stream);
            assert_eq!(drawn, generator.next_u32());
        }
    }

    #[test]
    fn purposes_and_indices_are_independent() {
        let first = |purpose, index| Stream::new(1, purpose, index).bits();
        let all = [
            first(Purpose::Task, 0),
            first(Purpose::Task, 1),
            first(Purpose::Augmentation, 0),
            first(Purpose::Augmentation, 1),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
    }

    #[test]
    fn below_is_uniform() {
        let mut stream = Stream::new(3, Purpose::Step, 0);
        let mut counts = [0_i32; 7];
        for _ in 0..70_000 {
            counts[stream.below(7)] += 1;
        }
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 400), "{counts:?}");
    }

    #[test]
    fn choose_takes_each_item_once() {
        let items: Vec<u32> = (0..50).collect();
        for (index, count) in [0, 1, 3, 30, 50].into_iter().enumerate() {
            let mut chosen = Stream::new(9, Purpose::Assignment, index as u64).choose(&items, count);
            chosen.sort_unstable();
            chosen.dedup();
            assert_eq!(chosen.len(), count);
        }
    }
}
