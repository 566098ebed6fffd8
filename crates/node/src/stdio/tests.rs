//! The bridge against a server that says exactly what a test wants: broken streams, refusals, losses.

mod client;
mod legacy;
mod modern;
mod script;
