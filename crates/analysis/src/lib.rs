//! What is done with dumps after they were written.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`msaccucmp`] | a drop-in for the vendor's converter: same command line, names, bytes and exit status |
//!
//! Dumps are read through `opscope-store`, whoever wrote them; nothing here knows an engine.

pub mod msaccucmp;
