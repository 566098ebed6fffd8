use rand::Rng as _;
use rand::rngs::StdRng;

pub(crate) fn one<'a, T>(random: &mut StdRng, of: &'a [T]) -> &'a T {
    &of[random.random_range(0..of.len())]
}

pub(crate) fn often(random: &mut StdRng, percent: u32) -> bool {
    random.random_range(0..100) < percent
}

pub(crate) fn odd<'a>(
    random: &mut StdRng,
    percent: u32,
    usual: &'a str,
    odd: &[&'a str],
) -> &'a str {
    match often(random, percent) {
        true => one::<&str>(random, odd),
        false => usual,
    }
}
