//! Ranks that are threads of one process: for tests, and to try what a number of ranks does.

use std::sync::{Arc, Barrier, Mutex, PoisonError};

use super::Group;
use crate::error::TrainError;

/// A rank that is a thread. Each needs threads of its own to compute with: a rank that waits must not hold up another.
///
/// ```
/// use gpn_train::{Group, ThreadGroup};
///
/// let ranks = ThreadGroup::of(3).into_iter().map(|group| {
///     std::thread::spawn(move || group.gather(&[group.rank() as u8]).unwrap())
/// });
/// for gathered in ranks.collect::<Vec<_>>() {
///     assert_eq!(gathered.join().unwrap(), [[0], [1], [2]]);
/// }
/// ```
pub struct ThreadGroup {
    rank: usize,
    board: Arc<Board>,
}

/// Where ranks put what they send.
struct Board {
    /// By sender, then by receiver.
    sent: Vec<Mutex<Vec<Vec<u8>>>>,
    all_have_come: Barrier,
}

impl ThreadGroup {
    /// A group of so many ranks.
    pub fn of(size: usize) -> Vec<Self> {
        let sent = (0..size).map(|_| Mutex::default()).collect();
        let board = Arc::new(Board { sent, all_have_come: Barrier::new(size) });
        (0..size).map(|rank| Self { rank, board: board.clone() }).collect()
    }

    /// Puts `outgoing` on the board, and takes what each rank has for this one.
    fn pass(&self, outgoing: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let sent = |rank: usize| self.board.sent[rank].lock().unwrap_or_else(PoisonError::into_inner);
        *sent(self.rank) = outgoing;
        self.board.all_have_come.wait();
        let taken = (0..self.size()).map(|rank| sent(rank)[self.rank].clone()).collect();
        // Nobody may write before all have read.
        self.board.all_have_come.wait();
        taken
    }
}

impl Group for ThreadGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.board.sent.len()
    }

    fn exchange(&self, outgoing: &[Vec<f32>], incoming: &mut [Vec<f32>]) -> Result<(), TrainError> {
        let taken = self.pass(outgoing.iter().map(|values| bytes(values)).collect());
        for (incoming, taken) in incoming.iter_mut().zip(taken) {
            incoming.copy_from_slice(&floats(&taken));
        }
        Ok(())
    }

    fn share(&self, own: &[f32], incoming: &mut [Vec<f32>]) -> Result<(), TrainError> {
        self.exchange(&vec![own.to_vec(); self.size()], incoming)
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, TrainError> {
        Ok(self.pass(vec![own.to_vec(); self.size()]))
    }

    fn abort(&self) -> ! {
        std::process::exit(1)
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}
