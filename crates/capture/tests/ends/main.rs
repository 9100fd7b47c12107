//! How a session ends when things go wrong or get too much: every tensor is accounted for.

mod behind;
mod double;
mod failing;
mod lent;
mod limits;
mod sizes;
