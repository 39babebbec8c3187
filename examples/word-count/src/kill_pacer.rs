use std::{collections::VecDeque, time::Duration};

use crate::{failure::Failure, input::Chunks, kill_gate::KillGate, random::random_below, stop::Stop};

/// So much of the input is read ahead: while kills remain, its end is not fed.
const LOOKAHEAD_BYTES: u64 = 4 << 20;
/// Where the length of the input is not known, a kill happens in each such part of it.
const STRETCH_BYTES: u64 = 8 << 20;
/// While a kill is due, a chunk is fed in each such time, so that it meets a process that counts.
const TRICKLE: Duration = Duration::from_millis(5);
/// So many chunks lie between two kills on average, if the input has them: a kill is done within fewer.
const CHUNKS_PER_KILL: u64 = 128;

/// The size of the chunks for an input of `bytes` with `kills`, so that a small input still has chunks to kill between.
pub(crate) fn chunk_bytes(bytes: Option<u64>, kills: u32, largest: usize) -> usize {
    let stretches = u64::from(kills).saturating_add(1).saturating_mul(CHUNKS_PER_KILL);
    let bytes = bytes.map_or(1 << 10, |bytes| bytes / stretches);
    usize::try_from(bytes).unwrap_or(largest).clamp(16, largest)
}

/// Hands out the chunks of the input and sees to it that every kill falls into the counting.
pub(crate) struct KillPacer {
    chunks: Chunks,
    gate: KillGate,
    /// Where in the input the kills that are not yet due shall be, in bytes fed.
    places: VecDeque<u64>,
    ahead: VecDeque<String>,
    ahead_bytes: u64,
    ended: bool,
    fed: u64,
}

impl KillPacer {
    /// Plans `kills` over an input of `bytes`, if that is known.
    pub(crate) fn new(chunks: Chunks, bytes: Option<u64>, kills: u32, gate: KillGate) -> Self {
        let length = bytes.unwrap_or_else(|| STRETCH_BYTES.saturating_mul(u64::from(kills).saturating_add(1)));
        let places = places(0, length, kills);
        Self { chunks, gate, places, ahead: VecDeque::new(), ahead_bytes: 0, ended: false, fed: 0 }
    }

    /// The next chunk, when it is time for it; `None` at the end, after the last kill.
    pub(crate) fn next_chunk(&mut self, stop: &Stop) -> Result<Option<String>, Failure> {
        self.read_ahead()?;
        loop {
            let last_chunk = self.ahead.len() < 2;
            let place_reached = self.places.front().is_some_and(|place| self.fed >= *place);
            if self.gate.is_due() {
                stop.sleep(TRICKLE)?;
                // It has to be done before the next kill's place or the end is fed.
                if self.gate.is_due() && self.gate.is_ready() && !place_reached && !last_chunk {
                    break;
                }
            } else if place_reached || (last_chunk && !self.places.is_empty()) {
                self.places.pop_front();
                self.gate.make_due();
            } else {
                break;
            }
        }
        let chunk = self.ahead.pop_front();
        let len = chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        self.ahead_bytes -= len;
        self.fed += len;
        Ok(chunk)
    }

    /// The input, read to its end.
    pub(crate) fn into_chunks(self) -> Chunks {
        self.chunks
    }

    fn read_ahead(&mut self) -> Result<(), Failure> {
        while !self.ended && self.ahead_bytes < LOOKAHEAD_BYTES {
            if let Some(chunk) = self.chunks.next_chunk()? {
                self.ahead_bytes += chunk.len() as u64;
                self.ahead.push_back(chunk);
            } else {
                // Now it is known what remains: the kills that are not yet due are spread over it.
                self.ended = true;
                let kills = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
                self.places = places(self.fed, self.ahead_bytes, kills);
            }
        }
        Ok(())
    }
}

/// Random places for `kills` in the `length` bytes from `start`: one in the first half of each of as many equal
/// stretches, and none in one more stretch at the end.
fn places(start: u64, length: u64, kills: u32) -> VecDeque<u64> {
    let stretch = length / u64::from(kills).saturating_add(1);
    (0..u64::from(kills)).map(|n| start + n * stretch + random_below(stretch / 2)).collect()
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, thread};

    use super::*;
    use crate::input::Inputs;

    #[test]
    fn each_kill_has_its_stretch() {
        for _ in 0..100 {
            let places = places(1000, 400, 3);
            for (n, place) in places.iter().enumerate() {
                let start = 1000 + 100 * n as u64;
                assert!((start..start + 50).contains(place), "{places:?}");
            }
        }
        assert_eq!(places(7, 0, 2), [7, 7]);
        assert_eq!(places(7, 100, 0), [0; 0]);
    }

    #[test]
    fn a_small_input_has_small_chunks() {
        assert_eq!(chunk_bytes(Some(1 << 30), 3, 32 << 10), 32 << 10);
        assert_eq!(chunk_bytes(Some(512 * 1000), 3, 32 << 10), 1000);
        assert_eq!(chunk_bytes(Some(0), 3, 32 << 10), 16);
        assert_eq!(chunk_bytes(Some(u64::MAX), u32::MAX, 32 << 10), 32 << 10);
        assert_eq!(chunk_bytes(None, 3, 32 << 10), 1 << 10);
    }

    /// Feeds `content` while another thread does the kills; returns how much was fed at each kill, and at the end.
    fn fed_at_kills(content: &[u8], known: bool, kills: u32) -> (Vec<u64>, u64) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        let inputs = Inputs::named(&[file.path().to_owned()]).unwrap();
        let bytes = inputs.bytes().filter(|_| known);
        let (gate, stop) = (KillGate::default(), Stop::default());
        let mut pacer = KillPacer::new(inputs.chunks(64, None), bytes, kills, gate.clone());

        thread::scope(|scope| {
            let killer = gate.clone();
            scope.spawn(move || {
                for _ in 0..kills {
                    killer.set_ready(true);
                    while !killer.is_due() {
                        thread::sleep(Duration::from_micros(100));
                    }
                    thread::sleep(Duration::from_millis(12));
                    killer.kill_done();
                }
            });
            let (mut fed, mut at_kills) = (0, Vec::new());
            while let Some(chunk) = pacer.next_chunk(&stop).unwrap() {
                while at_kills.len() < gate.done() as usize {
                    at_kills.push(fed);
                }
                fed += chunk.len() as u64;
            }
            (at_kills, fed)
        })
    }

    #[test]
    fn all_kills_happen_before_the_end() {
        let content = b"some words ".repeat(200);
        for known in [true, false] {
            let (at_kills, fed) = fed_at_kills(&content, known, 3);
            assert_eq!((at_kills.len(), fed), (3, 2201), "{known}");
            assert!(at_kills.iter().all(|at| *at < 2201), "{at_kills:?}");
            assert!(at_kills.is_sorted_by(|one, next| one < next), "{at_kills:?}");
        }
    }

    #[test]
    fn kills_happen_even_without_chunks_to_kill_between() {
        let (at_kills, fed) = fed_at_kills(b"word", true, 2);
        assert_eq!((at_kills.as_slice(), fed), ([0, 0].as_slice(), 5));
    }
}
