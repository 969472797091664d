//! Ranks that are threads of one process: for tests, and to try what a number of ranks does.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{ByRank, Group};
use crate::error::TrainError;

/// A rank that is a thread. Each needs threads of its own to compute with: a rank that waits must not hold up another. Where
/// one is dropped, by a panic or at the end, the others get an error from then on instead of waiting for it.
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
    meeting: Mutex<Meeting>,
    /// Told when a meeting ends or a rank is gone.
    news: Condvar,
}

/// Where ranks wait for each other.
#[derive(Default)]
struct Meeting {
    /// Meetings that have ended.
    number: u64,
    /// Ranks that have come to this one.
    present: usize,
    /// The first rank that will come to no more of them.
    gone: Option<usize>,
}

impl Board {
    fn meeting(&self) -> MutexGuard<'_, Meeting> {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all ranks have come; an error where one of them never will.
    fn wait_for_all(&self) -> Result<(), TrainError> {
        let mut meeting = self.meeting();
        let number = meeting.number;
        meeting.present += 1;
        if meeting.present == self.sent.len() && meeting.gone.is_none() {
            meeting.number += 1;
            meeting.present = 0;
            self.news.notify_all();
            return Ok(());
        }
        loop {
            // A rank may end once all have come, while others have yet to hear of it.
            if meeting.number > number {
                return Ok(());
            }
            if let Some(rank) = meeting.gone {
                let reason = "it has ended while others wait for it".into();
                return Err(TrainError::Rank { rank, reason });
            }
            meeting = self.news.wait(meeting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl ThreadGroup {
    /// A group of so many ranks.
    pub fn of(size: usize) -> Vec<Self> {
        let sent = (0..size).map(|_| Mutex::default()).collect();
        let board = Arc::new(Board { sent, meeting: Mutex::default(), news: Condvar::new() });
        (0..size).map(|rank| Self { rank, board: board.clone() }).collect()
    }

    /// Puts `outgoing` on the board, and takes what each rank has for this one.
    fn pass(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TrainError> {
        let sent = |rank: usize| self.board.sent[rank].lock().unwrap_or_else(PoisonError::into_inner);
        *sent(self.rank) = outgoing;
        self.board.wait_for_all()?;
        let taken = (0..self.size()).map(|rank| sent(rank)[self.rank].clone()).collect();
        // Nobody may write before all have read.
        self.board.wait_for_all()?;
        Ok(taken)
    }
}

impl Drop for ThreadGroup {
    fn drop(&mut self) {
        self.board.meeting().gone.get_or_insert(self.rank);
        self.board.news.notify_all();
    }
}

impl Group for ThreadGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.board.sent.len()
    }

    fn exchange(&self, outgoing: &ByRank, incoming: &mut ByRank) -> Result<(), TrainError> {
        let taken = self.pass(outgoing.parts().map(bytes).collect())?;
        incoming.values.copy_from_slice(&floats(&taken.concat()));
        Ok(())
    }

    fn share(&self, own: &[f32], incoming: &mut ByRank) -> Result<(), TrainError> {
        let taken = self.pass(vec![bytes(own); self.size()])?;
        incoming.values.copy_from_slice(&floats(&taken.concat()));
        Ok(())
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, TrainError> {
        self.pass(vec![own.to_vec(); self.size()])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_wait_for_one_that_has_ended_get_an_error() {
        for panics in [false, true] {
            let mut ranks = ThreadGroup::of(3);
            let last = ranks.pop().unwrap();
            let others: Vec<_> = ranks
                .into_iter()
                .map(|group| {
                    std::thread::spawn(move || {
                        group.gather(&[1]).unwrap();
                        group.gather(&[2]).unwrap_err().to_string()
                    })
                })
                .collect();
            let ended = std::thread::spawn(move || {
                last.gather(&[1]).unwrap();
                assert!(!panics, "a rank that panics");
            });
            assert_eq!(ended.join().is_err(), panics);
            for other in others {
                let told = other.join().unwrap();
                assert!(told.starts_with("rank ") && told.contains("it has ended"), "{told}");
            }
        }
    }
}
