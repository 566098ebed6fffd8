//! Tests the bridge against a scripted server: broken streams, refusals, lost sessions.

mod client;
mod legacy;
mod modern;
mod script;
