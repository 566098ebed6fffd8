/// A schema that is too large at one level is tried at the next.
#[derive(Debug)]
pub(in crate::openapi) struct Detail {
    pub(in crate::openapi) about: &'static str,
    pub(super) depth: usize,
    pub(super) text: usize,
    pub(super) examples: bool,
    /// Maximum choices of an `enum`. Longer lists of choices are left out.
    pub(super) choices: usize,
    pub(super) stubs: bool,
}

pub(in crate::openapi) const INPUT: &[Detail] = &[
    Detail {
        about: "whole",
        depth: 20,
        text: 1000,
        examples: true,
        choices: 1000,
        stubs: false,
    },
    Detail {
        about: "with short descriptions and without examples",
        depth: 20,
        text: 160,
        examples: false,
        choices: 250,
        stubs: false,
    },
    Detail {
        about: "without what is nested deepest",
        depth: 10,
        text: 100,
        examples: false,
        choices: 100,
        stubs: true,
    },
    Detail {
        about: "down to 6 levels, without descriptions",
        depth: 6,
        text: 0,
        examples: false,
        choices: 50,
        stubs: true,
    },
    Detail {
        about: "down to 3 levels, without descriptions",
        depth: 3,
        text: 0,
        examples: false,
        choices: 20,
        stubs: true,
    },
    Detail {
        about: "only the names and types of arguments and their members",
        depth: 1,
        text: 0,
        examples: false,
        choices: 0,
        stubs: true,
    },
    Detail {
        about: "only the names and types of arguments",
        depth: 0,
        text: 0,
        examples: false,
        choices: 0,
        stubs: true,
    },
];

pub(in crate::openapi) const OUTPUT: &[Detail] = &[
    Detail {
        about: "whole",
        depth: 20,
        text: 120,
        examples: true,
        choices: 20,
        stubs: false,
    },
    Detail {
        about: "without what is nested deepest",
        depth: 8,
        text: 60,
        examples: false,
        choices: 0,
        stubs: true,
    },
    Detail {
        about: "down to 3 levels, without descriptions",
        depth: 3,
        text: 0,
        examples: false,
        choices: 0,
        stubs: true,
    },
    Detail {
        about: "only the names and types of members",
        depth: 1,
        text: 0,
        examples: false,
        choices: 0,
        stubs: true,
    },
];
