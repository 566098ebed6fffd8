use super::area::area;
use super::known::Pool;
use super::labels::{KIND, labels};

area! {
    /// The metrics of the catalog.
    CatalogMetrics {
        /// Observes the pools' entries.
        pub observe_entries: UpDownCounter(u64) [pool: Pool, kind: EntryKind]
            = "shoal.catalog.entries", "{entry}", "Tools, prompts and resources of a pool.";
        /// Observes hidden names.
        pub observe_conflicts: UpDownCounter(u64) []
            = "shoal.catalog.conflicts", "{entry}", "Names that several pools offer.";
    }
}

labels! {
    /// A kind of entry.
    EntryKind: KIND {
        /// Tool.
        Tool = "tool",
        /// Prompt.
        Prompt = "prompt",
        /// Resource.
        Resource = "resource",
        /// Resource template.
        ResourceTemplate = "resource_template",
    }
}
