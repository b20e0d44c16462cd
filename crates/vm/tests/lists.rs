//! The rules of the policies with active and inactive lists, one by one, on a machine without time.

#[path = "lists/classic.rs"]
mod classic;
#[path = "lists/machine.rs"]
mod machine;
#[path = "lists/pageout.rs"]
mod pageout;
#[path = "lists/split.rs"]
mod split;
