//! Tests from outside of the crate, in one program: linking takes longer than they do.

mod acl_sink;
mod fake_engine;
mod full_disk;
mod mindspore;
mod names;
mod native;
mod purposes;
mod reduce;
mod ring;
