mod asking;
mod catalog;
mod client;
mod context;
mod keeping;
mod peers;
mod probe;
mod running;
