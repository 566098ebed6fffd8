mod client;
mod legacy;
mod modern;
mod script;
