//! Thalweg runs and trains machine-learning models.
//!
//! A [`Graph`] holds operations, which a [`Scope`] adds. A [`Session`] runs them; a [`Callable`] is a prepared run. A [`Trainer`] runs a
//! training loop over the batches of a [`Batches`] iterator; a [`Saver`] writes the variables to a checkpoint. [`Model::load`] reads a
//! model file, and runs it by the names in the file.
//!
//! Failures are [`Error`]s with a [`Code`]; their messages name the line of the program that made the failed operation. What one thread
//! at a time may use is not `Sync`; everything else is `Send` and `Sync`, as the C API promises. Values that need a graph or a session
//! borrow it, so that a program which ends them in the wrong order does not compile.
//!
//! Module [`ops`] has a function for each op, module [`low`] every function of the C API.

mod error;
mod graph;
mod iterator;
mod layers;
pub mod low;
mod model;
pub mod ops;
mod saver;
mod server;
mod session;
mod tensor;
mod train;
mod trainer;

pub use error::{Code, Error, Result};
pub use graph::{Builder, Graph, Operation, Output, Scope, Variable};
pub use iterator::{BatchOptions, Batches, Dataset};
pub use layers::{Activation, LayerOptions};
pub use model::{Model, ModelOptions, Signature, Value};
pub use saver::{Checkpoint, Saver};
pub use server::{reset_cluster, Server};
pub use session::{Callable, CancelToken, RunOptions, Session};
pub use tensor::{read_csv, DType, Element, Shape, Tensor};
pub use train::{Adagrad, Adam, Gradient, Metric, Momentum, Optimizer, Rate, RmsProp, Sgd};
pub use trainer::{FitOptions, FitReport, Progress, Trainer, TrainerModel};

/// The version of the library.
pub fn version() -> String {
    error::text(unsafe { low::tw_version_string() }).unwrap_or_default()
}

/// The names of the devices.
pub fn devices() -> Result<Vec<String>> {
    let mut list = std::ptr::null_mut();
    error::check(unsafe { low::tw_devices_create(std::ptr::null_mut(), &mut list) })?;
    let n = unsafe { low::tw_devices_count(list) };
    let names = (0..n).filter_map(|i| error::text(unsafe { low::tw_devices_name(list, i) })).collect();
    unsafe { low::tw_devices_destroy(list) };
    Ok(names)
}

/// Empties a container of this process without a session, as [`Session::reset`] does. container "": `localhost`.
pub fn reset_container(container: &str) -> Result<u64> {
    let (container, mut count) = (error::c_text(container)?, 0);
    error::check(unsafe { low::tw_runtime_reset(std::ptr::null_mut(), container.as_ptr(), &mut count) })?;
    Ok(count)
}

/// Loads a plugin that the runtime does not find by itself.
pub fn load_plugin(path: &str) -> Result<()> {
    let path = error::c_text(path)?;
    error::check(unsafe { low::tw_plugin_load(std::ptr::null_mut(), path.as_ptr()) })
}
