//! Frames of recorded machines, and what keys do.
