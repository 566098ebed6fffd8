use shoal_protocol::ToolCost;

use super::operation::CompiledOperation;

const MANY: usize = 100;
const MANY_BYTES: usize = 200_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListSize {
    tools: usize,
    pub(super) bytes: usize,
    tokens: usize,
}

impl ListSize {
    pub(super) fn with(self, operation: &CompiledOperation) -> Self {
        Self {
            tools: self.tools + 1,
            bytes: self.bytes + operation.tool.len(),
            tokens: self.tokens + ToolCost::of(&operation.tool).shown,
        }
    }

    pub(super) fn tell(self) {
        let Self {
            tools,
            bytes,
            tokens,
        } = self;
        if tools <= MANY && bytes <= MANY_BYTES {
            return;
        }
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
