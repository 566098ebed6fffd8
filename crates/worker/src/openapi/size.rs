//! How much of a model's context the list of tools takes.

use super::operation::CompiledOperation;

/// Tools, and bytes of them, that are more than most models can choose from.
const MANY: usize = 100;
const MANY_BYTES: usize = 200_000;
/// Bytes of JSON and English that common models read as one token.
const BYTES_OF_A_TOKEN: usize = 4;

/// The size of all tools together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListSize {
    tools: usize,
    /// As they are listed.
    pub(super) bytes: usize,
    /// The bytes that clients show to models: all but the schemas of results.
    shown: usize,
}

impl ListSize {
    /// The size with another tool.
    pub(super) fn with(self, operation: &CompiledOperation) -> Self {
        let bytes = operation.tool.len();
        let output = operation.output.as_ref().map_or(0, |output| output.len());
        Self {
            tools: self.tools + 1,
            bytes: self.bytes + bytes,
            shown: self.shown + bytes - output.min(bytes),
        }
    }

    /// Warns of a list that most models cannot use.
    pub(super) fn tell(self) {
        let Self {
            tools,
            bytes,
            shown,
        } = self;
        if tools <= MANY && bytes <= MANY_BYTES {
            return;
        }
        let tokens = shown / BYTES_OF_A_TOKEN;
        tracing::warn!(
            target: "shoal::openapi",
            tools,
            bytes,
            tokens,
            "the list of tools takes more of a model's context than most models can use; choose some with --allow, --tag or \
             --path, or with tools.allow, tags or paths. `shoal tools --stats` prints what each takes"
        );
    }
}
