//! One test suite for each storage seam.
