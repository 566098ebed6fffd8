use shoal_ports::{Principal, SessionId, WorkerId};
use shoal_protocol::RawJson;

use crate::config::Affinity;

/// Sends related calls to the same worker. Every node computes the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AffinityKey(u64);

impl AffinityKey {
    /// `None` if any worker may take the call.
    pub(crate) fn of(
        affinity: &Affinity,
        params: Option<&RawJson>,
        session: Option<&SessionId>,
        principal: Option<&Principal>,
    ) -> Option<Self> {
        match affinity {
            Affinity::None => None,
            Affinity::All => Some(Self::of_text("")),
            Affinity::Session => session
                .map(SessionId::as_str)
                .or(principal.map(Principal::as_str))
                .map(Self::of_text),
            Affinity::Key(name) => {
                let value = params?.member("arguments")?.member(name)?;
                Some(match value.string() {
                    Some(text) => Self::of_text(&text),
                    None => Self::of_text(value.as_str()),
                })
            }
        }
    }

    fn of_text(text: &str) -> Self {
        Self(hash(text.as_bytes()))
    }

    /// The heaviest worker takes the key (rendezvous hashing), so a worker that joins or leaves moves only its own
    /// keys.
    pub(super) fn weight(self, seed: u64) -> u64 {
        mix(self.0 ^ seed.rotate_left(32))
    }
}

pub(super) fn seed(worker: &WorkerId) -> u64 {
    mix(hash(worker.as_str().as_bytes()))
}

/// FNV-1a, the same for every version of Rust.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The finalizer of splitmix64.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use shoal_ports::{Principal, SessionId, WorkerId};
    use shoal_protocol::RawJson;

    use super::{AffinityKey, seed};
    use crate::config::Affinity;

    fn owner(key: AffinityKey, workers: &[WorkerId]) -> &WorkerId {
        let weight = |worker: &&WorkerId| key.weight(seed(worker));
        workers.iter().max_by_key(weight).unwrap()
    }

    #[test]
    fn keys_spread_and_stay_where_they_are() {
        let workers: Vec<_> = (0..5).map(|n| WorkerId::new(format!("p@n{n}"))).collect();
        let mut owned = [0; 5];
        for key in (0..1000).map(|n| AffinityKey::of_text(&format!("tenant-{n}"))) {
            let first = owner(key, &workers);
            owned[workers.iter().position(|w| w == first).unwrap()] += 1;
            let fewer = owner(key, &workers[..4]);
            assert!(fewer == first || *first == workers[4]);
        }
        assert!(
            owned.iter().all(|count| (120..280).contains(count)),
            "{owned:?}"
        );
    }

    #[test]
    fn a_key_is_a_value_however_it_is_written() {
        let of = |arguments: &str| {
            let params = format!(r#"{{"name":"t","arguments":{arguments}}}"#);
            let params = RawJson::parse_text(params.into()).unwrap();
            let affinity = Affinity::Key("tenant".into());
            AffinityKey::of(&affinity, Some(&params), None, None)
        };
        assert_eq!(
            of(r#"{"tenant":"a"}"#),
            of("{\"tenant\":\"\\u0061\",\"x\":1}")
        );
        assert_ne!(of(r#"{"tenant":"a"}"#), of(r#"{"tenant":"b"}"#));
        assert!(of(r#"{"tenant":7}"#).is_some());
        assert_eq!(of("{}"), None);
    }

    #[test]
    fn a_modern_caller_has_no_session_but_a_principal() {
        let (session, alice) = (SessionId::new("s"), Principal::new("alice"));
        let of = |session, principal| AffinityKey::of(&Affinity::Session, None, session, principal);
        assert_eq!(of(Some(&session), Some(&alice)), of(Some(&session), None));
        assert_ne!(of(None, Some(&alice)), of(Some(&session), None));
        assert_eq!(of(None, None), None);
    }
}
