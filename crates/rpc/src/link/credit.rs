/// The credit that each frame takes besides its payload.
const FRAME_COST: u64 = 256;

pub(crate) fn cost(payload: usize) -> u64 {
    payload as u64 + FRAME_COST
}

/// Credit for read frames, not yet granted back to the peer.
#[derive(Debug, Default)]
pub(crate) struct UngrantedCredit(u64);

impl UngrantedCredit {
    /// `None` if the credit is not worth a frame yet.
    pub(crate) fn add(&mut self, cost: u64, credit: u64) -> Option<u64> {
        self.0 += cost;
        (self.0 >= credit / 2).then(|| std::mem::take(&mut self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::{UngrantedCredit, cost};

    #[test]
    fn credit_is_granted_in_lumps_and_none_is_lost() {
        let mut taken = UngrantedCredit::default();
        let granted: u64 = (0..100).filter_map(|_| taken.add(cost(44), 1000)).sum();
        assert_eq!(granted + taken.0, 100 * 300);
        assert!(taken.0 < 500);
    }

    #[test]
    fn a_small_credit_never_starves_the_sender() {
        for credit in [0, 1, 256, 257, 1000] {
            let mut taken = UngrantedCredit::default();
            assert!((0..credit.max(1)).any(|_| taken.add(cost(0), credit).is_some()));
        }
    }
}
