//! The random generator of CPython's `random` module, as far as the published splits need it: MT19937 seeded with
//! an integer, `choice` and `sample`.

const WORDS: usize = 624;
const MIDDLE: usize = 397;

/// A generator that draws what CPython's `random.Random(seed)` draws.
///
/// ```
/// use gpn_data::benchmark::PythonRandom;
/// // >>> random.seed(111); [random.choice(range(1000)) for _ in range(3)]
/// let mut random = PythonRandom::new(111);
/// assert_eq!([(); 3].map(|()| random.below(1000)), [847, 971, 217]);
/// ```
pub struct PythonRandom {
    state: [u32; WORDS],
    position: usize,
}

impl PythonRandom {
    /// As `random.seed(seed)`.
    pub fn new(seed: u64) -> Self {
        let key = [seed as u32, (seed >> 32) as u32];
        let key = if key[1] == 0 { &key[..1] } else { &key[..] };
        let mut state = [0_u32; WORDS];
        state[0] = 19_650_218;
        for i in 1..WORDS {
            state[i] = mixed(state[i - 1], 1_812_433_253).wrapping_add(i as u32);
        }
        let mut i = 1;
        for step in 0..WORDS.max(key.len()) {
            let j = step % key.len();
            state[i] =
                (state[i] ^ mixed(state[i - 1], 1_664_525)).wrapping_add(key[j]).wrapping_add(j as u32);
            i = following(i, &mut state);
        }
        for _ in 1..WORDS {
            state[i] = (state[i] ^ mixed(state[i - 1], 1_566_083_941)).wrapping_sub(i as u32);
            i = following(i, &mut state);
        }
        state[0] = 0x8000_0000;
        Self { state, position: WORDS }
    }

    fn bits32(&mut self) -> u32 {
        if self.position == WORDS {
            self.twist();
        }
        let mut y = self.state[self.position];
        self.position += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for i in 0..WORDS {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % WORDS] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + MIDDLE) % WORDS] ^ (y >> 1) ^ odd;
        }
        self.position = 0;
    }

    /// As `random.randrange(bound)`; `bound` is at least 1 and below 2^32.
    pub fn below(&mut self, bound: usize) -> usize {
        let bits = usize::BITS - bound.leading_zeros();
        loop {
            let drawn = (self.bits32() >> (32 - bits)) as usize;
            if drawn < bound {
                return drawn;
            }
        }
    }

    /// As `random.choice(items)`; there is at least one item.
    pub fn choice<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// As `random.sample(items, count)`; `count` is at most the number of items.
    pub fn sample<T: Copy>(&mut self, items: &[T], count: usize) -> Vec<T> {
        // CPython copies the list when it is small and remembers the positions already taken when it is large;
        // the two ways draw differently, so the threshold is part of the result.
        let mut threshold = 21;
        if count > 5 {
            threshold += 4_usize.pow(((count * 3) as f64).log(4.0).ceil() as u32);
        }
        if items.len() <= threshold {
            let mut pool = items.to_vec();
            return (0..count)
                .map(|i| {
                    let j = self.below(items.len() - i);
                    let chosen = pool[j];
                    pool[j] = pool[items.len() - i - 1];
                    chosen
                })
                .collect();
        }
        let mut taken = std::collections::HashSet::new();
        (0..count)
            .map(|_| {
                let mut j = self.below(items.len());
                while !taken.insert(j) {
                    j = self.below(items.len());
                }
                items[j]
            })
            .collect()
    }
}

fn mixed(previous: u32, factor: u32) -> u32 {
    (previous ^ (previous >> 30)).wrapping_mul(factor)
}

fn following(i: usize, state: &mut [u32; WORDS]) -> usize {
    if i + 1 < WORDS {
        return i + 1;
    }
    state[0] = state[WORDS - 1];
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values: CPython 3.11, `random.seed(SEED)` followed by the calls named beside them.

    #[test]
    fn choice_draws_as_cpython() {
        let mut random = PythonRandom::new(111); // [random.choice(range(1000)) for _ in range(8)]
        assert_eq!([(); 8].map(|()| random.below(1000)), [847, 971, 217, 943, 965, 323, 505, 198]);
        let mut random = PythonRandom::new(0); // [random.getrandbits(32) for _ in range(4)]
        assert_eq!(
            [(); 4].map(|()| random.bits32()),
            [3_626_764_237, 1_654_615_998, 3_255_389_356, 3_823_568_514]
        );
        let mut random = PythonRandom::new((1 << 40) + 5); // [random.choice(range(77)) for _ in range(8)]
        assert_eq!([(); 8].map(|()| random.below(77)), [64, 66, 34, 3, 67, 5, 21, 10]);
        let mut random = PythonRandom::new(5); // 2,000 getrandbits(32), then random.choice(range(3))
        for _ in 0..2000 {
            random.bits32();
        }
        assert_eq!([(); 8].map(|()| random.choice(&[0, 1, 2])), [2, 0, 0, 2, 1, 0, 1, 2]);
    }

    #[test]
    fn sample_draws_as_cpython() {
        let range = |n: u32| (0..n).collect::<Vec<_>>();
        let mut random = PythonRandom::new(1111); // four samples one after the other
        assert_eq!(random.sample(&range(10), 6), [3, 9, 5, 6, 7, 1]);
        assert_eq!(
            random.sample(&range(500), 20),
            [186, 228, 42, 372, 258, 487, 95, 47, 452, 307, 173, 337, 349, 54, 224, 75, 323, 476, 492, 289]
        );
        assert_eq!(
            random.sample(&range(60), 20),
            [11, 17, 55, 2, 23, 30, 18, 22, 19, 13, 8, 40, 33, 37, 29, 52, 27, 7, 54, 38]
        );
        assert_eq!(random.sample(&range(22), 3), [4, 0, 14]);
    }
}
