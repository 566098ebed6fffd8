#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PatternShape {
    /// Characters, classes and assertions, times their repetitions.
    pub(super) atoms: u64,
    /// The nesting depth of look-arounds, or 0 if none is repeated.
    pub(super) depth: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Atom,
    Open(PatternGroup),
    Close,
    Or,
    /// The maximum of repetitions; without one, the minimum plus one.
    Repeat(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternGroup {
    Plain,
    LookAhead,
    LookBehind,
}

struct Tokens<'a> {
    pattern: &'a str,
    at: usize,
}

#[derive(Default)]
struct PatternReading {
    before: u64,
    last: u64,
    depth: u32,
    last_looks: bool,
    looks: bool,
}

impl PatternReading {
    fn atoms(&self) -> u64 {
        self.before.saturating_add(self.last)
    }

    fn piece(&mut self, atoms: u64, depth: u32) {
        self.before = self.atoms();
        self.last = atoms;
        self.depth = self.depth.max(depth);
        self.last_looks = depth > 0;
    }

    fn close(self, around: &mut Self) {
        around.piece(self.atoms(), self.depth + u32::from(self.looks));
    }
}

impl PatternShape {
    pub(super) fn of(pattern: &str) -> Self {
        let mut open = Vec::new();
        let mut reading = PatternReading::default();
        let mut repeated = false;
        for token in Tokens::of(pattern) {
            match token {
                Token::Atom => reading.piece(1, 0),
                Token::Or => {}
                Token::Repeat(times) => {
                    reading.last = reading.last.saturating_mul(times);
                    repeated |= reading.last_looks;
                }
                Token::Open(group) => {
                    let inside = PatternReading {
                        looks: group != PatternGroup::Plain,
                        ..PatternReading::default()
                    };
                    open.push(std::mem::replace(&mut reading, inside));
                }
                Token::Close => {
                    let mut around = open.pop().unwrap_or_default();
                    reading.close(&mut around);
                    reading = around;
                }
            }
        }
        while let Some(mut around) = open.pop() {
            reading.close(&mut around);
            reading = around;
        }
        Self {
            atoms: reading.atoms(),
            depth: if repeated { reading.depth } else { 0 },
        }
    }
}

/// Splits `^(?=…)(?!…)…` into look-aheads' contents and the rest.
pub(super) fn leading_look_aheads(pattern: &str) -> Option<Vec<&str>> {
    let mut rest = pattern.strip_prefix('^')?;
    let mut parts = Vec::new();
    while let Some(body) = rest
        .strip_prefix("(?=")
        .or_else(|| rest.strip_prefix("(?!"))
    {
        let end = end_of_group(body)?;
        parts.push(&body[..end]);
        rest = &body[end + 1..];
        let mut after = Tokens::of(rest);
        if matches!(after.next(), Some(Token::Repeat(_))) {
            return None;
        }
    }
    if has_alternatives(rest) {
        return None;
    }
    parts.push(rest);
    Some(parts)
}

fn end_of_group(body: &str) -> Option<usize> {
    let mut tokens = Tokens::of(body);
    let mut level = 0_usize;
    loop {
        let start = tokens.at;
        match tokens.next()? {
            Token::Open(_) => level += 1,
            Token::Close if level == 0 => return Some(start),
            Token::Close => level -= 1,
            _ => {}
        }
    }
}

fn has_alternatives(pattern: &str) -> bool {
    let mut level = 0_isize;
    Tokens::of(pattern).any(|token| {
        match token {
            Token::Open(_) => level += 1,
            Token::Close => level -= 1,
            _ => {}
        }
        token == Token::Or && level <= 0
    })
}

impl<'a> Tokens<'a> {
    fn of(pattern: &'a str) -> Self {
        Self { pattern, at: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.pattern[self.at..]
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    fn take(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn escaped(&mut self) {
        let kind = self.take();
        if matches!(kind, Some('p' | 'P' | 'u' | 'x')) && self.rest().starts_with('{') {
            self.at += self.rest().find('}').map_or(0, |end| end + 1);
        }
    }

    fn class(&mut self) {
        while let Some(next) = self.take() {
            match next {
                '\\' => self.escaped(),
                ']' => return,
                _ => {}
            }
        }
    }

    fn group(&mut self) -> PatternGroup {
        if self.skip("?=") || self.skip("?!") {
            PatternGroup::LookAhead
        } else if self.skip("?<=") || self.skip("?<!") {
            PatternGroup::LookBehind
        } else {
            if !self.skip("?:") && self.skip("?<") {
                self.at += self.rest().find('>').map_or(0, |end| end + 1);
            }
            PatternGroup::Plain
        }
    }

    /// Reads the rest of `{2}`, `{2,}` or `{2,5}`. Other text is literal.
    fn counted(&mut self) -> Token {
        let counts = self.rest().split_once('}').map(|(counts, _)| counts);
        let times = counts.and_then(|counts| {
            let (least, most) = counts.split_once(',').unwrap_or((counts, counts));
            let least = number(least)?;
            match most {
                "" => Some(least.saturating_add(1)),
                most => number(most),
            }
        });
        match (counts, times) {
            (Some(counts), Some(times)) => {
                self.at += counts.len() + 1;
                Token::Repeat(times.max(1))
            }
            _ => Token::Atom,
        }
    }
}

fn number(digits: &str) -> Option<u64> {
    let all = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    all.then(|| digits.parse().unwrap_or(u64::MAX))
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let token = match self.take()? {
            '(' => Token::Open(self.group()),
            ')' => Token::Close,
            '|' => Token::Or,
            '*' | '+' | '?' => Token::Repeat(1),
            '{' => self.counted(),
            '[' => {
                self.class();
                Token::Atom
            }
            '\\' => {
                self.escaped();
                Token::Atom
            }
            _ => Token::Atom,
        };
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::{PatternShape, leading_look_aheads};

    #[test]
    fn atoms_are_counted_as_often_as_they_are_repeated() {
        for (pattern, atoms, depth) in [
            ("", 0, 0),
            ("abc", 3, 0),
            ("a{3}b{2,}c{1,9}d*e+f?", 3 + 3 + 9 + 3, 0),
            ("(?:(?<name>ab){10}c){10}", 210, 0),
            (r"[(\]{9}]{2}\({3}\p{Lu}\u{1000}{2}", 2 + 3 + 1 + 2, 0),
            ("a{,3}{x}", 8, 0),
            ("(?=a(?<!b(?:c)))(?!d)(?<=e)", 5, 0),
            ("(?:(?=a(?<!b(?:c)))f)+(?!d)(?<=e)", 6, 2),
            ("(?=(?:(?!a)b)*)c", 3, 2),
            ("a{99999999999999999999}(b", u64::MAX, 0),
            ("a)b(", 2, 0),
        ] {
            assert_eq!(
                PatternShape::of(pattern),
                PatternShape { atoms, depth },
                "{pattern}"
            );
        }
    }

    #[test]
    fn look_aheads_at_the_beginning_are_told_apart() {
        for (pattern, parts) in [
            ("^abc$", Some(vec!["abc$"])),
            (
                r"^(?=.*[)\]])(?!a|(b))\w(c|d)$",
                Some(vec![r".*[)\]]", "a|(b)", r"\w(c|d)$"]),
            ),
            ("^(?=a)", Some(vec!["a", ""])),
            ("(?=a)b", None),
            ("^(?=a)b|c", None),
            ("^(?=a)*b", None),
            ("^(?=a", None),
        ] {
            assert_eq!(leading_look_aheads(pattern), parts, "{pattern}");
        }
    }
}
