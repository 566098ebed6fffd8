//! Limits uses of a resource in total and per principal.

use shoal_ports::{Principal, PrincipalCounts};

#[derive(Default)]
pub(crate) struct CheckShares {
    all: usize,
    of: PrincipalCounts,
}

pub(crate) enum Full {
    All(usize),
    OfPrincipal(usize),
}

impl CheckShares {
    pub(crate) fn enter(
        &mut self,
        principal: &Principal,
        most: usize,
        most_of_principal: usize,
    ) -> Result<(), Full> {
        if self.all >= most {
            return Err(Full::All(self.all));
        }
        let own = self.of.of(principal);
        if own >= most_of_principal {
            return Err(Full::OfPrincipal(own));
        }
        self.all += 1;
        self.of.add(principal, 1);
        Ok(())
    }

    pub(crate) fn leave(&mut self, principal: &Principal) {
        self.all -= 1;
        self.of.subtract(principal, 1);
    }

    pub(crate) fn of(&self, principal: &Principal) -> usize {
        self.of.of(principal)
    }

    pub(crate) fn len(&self) -> usize {
        self.all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all == 0
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::Principal;

    use super::{CheckShares, Full};

    #[test]
    fn a_principal_has_a_share_and_gives_it_back() {
        let mut shares = CheckShares::default();
        let [mallory, alice, bob] = ["mallory", "alice", "bob"].map(Principal::new);
        let enter = |who: &Principal, shares: &mut CheckShares| shares.enter(who, 3, 2);
        for _ in 0..2 {
            assert!(enter(&mallory, &mut shares).is_ok());
        }
        assert!(matches!(
            enter(&mallory, &mut shares),
            Err(Full::OfPrincipal(2))
        ));
        assert!(enter(&alice, &mut shares).is_ok());
        assert!(matches!(enter(&bob, &mut shares), Err(Full::All(3))));
        shares.leave(&mallory);
        assert!(enter(&bob, &mut shares).is_ok());
        for who in [&mallory, &alice, &bob] {
            shares.leave(who);
        }
        assert!(shares.is_empty() && shares.of.is_empty());
    }
}
