use super::area::area;
use super::known::Pool;
use super::labels::{KIND, labels};

area! {
    /// The metrics of the catalog.
    CatalogMetrics {
        /// Observes the pools' entries.
        pub observe_entries: UpDownCounter(u64) [pool: Pool, kind: EntryKind]
            = "shoal.catalog.entries", "{entry}", "Tools, prompts, resources and resource templates of a pool.";
        /// Observes hidden names.
        pub observe_conflicts: UpDownCounter(u64) []
            = "shoal.catalog.conflicts", "{entry}", "Names that several pools offer. Shoal hides all but one of each.";
    }
}

labels! {
    /// A kind of entry.
    EntryKind: KIND {
        /// A tool.
        Tool = "tool",
        /// A prompt.
        Prompt = "prompt",
        /// A resource.
        Resource = "resource",
        /// A resource template.
        ResourceTemplate = "resource_template",
    }
}
