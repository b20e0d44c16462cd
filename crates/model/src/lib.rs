//! The modelled machine: page frames that are only numbers, and event time
