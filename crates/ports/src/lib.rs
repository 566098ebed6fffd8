//! Every seam of Shoal as a trait, the in-memory engines, and one contract suite for all engines.
