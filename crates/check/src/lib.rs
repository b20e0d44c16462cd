//! Model-checked worlds and every model-checked test
