//! Parts of one model put into another, to see what they change.

#![allow(dead_code, reason = "the readers of a graph come before their users")]

mod side;
