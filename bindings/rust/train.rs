//! Thalweg from Rust: continues the training of a saved model through the plain C API. The program
//! `digits` writes the model.
//!
//! usage: train FOLDER DIGITS.CSV OUT [STEPS]
//!   FOLDER       holds graph.pb and the checkpoint model.*
//!   DIGITS.CSV   64 pixels and a label per line
//!   OUT          prefix of the checkpoint to write
//!   STEPS        training steps on batches of 32 (at least 1; default: 100)
//!
//! A binding needs only the three layers below: declarations, errors made from statuses, and
//! handles that release their objects.

use std::ffi::{c_void, CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::ptr::{null, null_mut};

// The C API, as declared in c_api/include/thalweg.

#[allow(non_camel_case_types)]
mod c {
    use super::*;

    macro_rules! opaque {
        ($($name:ident)*) => {$(#[repr(C)] pub struct $name { _private: [u8; 0] })*};
    }
    opaque!(tw_status tw_runtime tw_graph tw_operation tw_session tw_callable tw_tensor tw_saver tw_import_options tw_run_options);

    pub type tw_output = u64;
    pub const TW_FLOAT: u32 = 1;
    pub const TW_INT32: u32 = 3;

    #[repr(C)]
    pub struct tw_signature {
        pub size: u32,
        pub flags: u32,
        pub feeds: *const tw_output,
        pub fetches: *const tw_output,
        pub targets: *const *const tw_operation,
        pub n_feeds: u32,
        pub n_fetches: u32,
        pub n_targets: u32,
        pub reserved: u32,
    }

    #[link(name = "thalweg")]
    extern "C" {
        pub fn tw_status_code(status: *const tw_status) -> u32;
        pub fn tw_status_code_name(code: u32) -> *const c_char;
        pub fn tw_status_message(status: *const tw_status) -> *const c_char;
        pub fn tw_status_release(status: *mut tw_status);

        pub fn tw_tensor_create_copy(dtype: u32, dims: *const i64, rank: u32, data: *const c_void, bytes: u64, out: *mut *mut tw_tensor)
            -> *mut tw_status;
        pub fn tw_tensor_dtype(tensor: *const tw_tensor) -> u32;
        pub fn tw_tensor_count(tensor: *const tw_tensor) -> u64;
        pub fn tw_tensor_data(tensor: *const tw_tensor) -> *const c_void;
        pub fn tw_tensor_release(tensor: *mut tw_tensor);

        pub fn tw_graph_create(runtime: *mut tw_runtime, out: *mut *mut tw_graph) -> *mut tw_status;
        pub fn tw_graph_destroy(graph: *mut tw_graph);
        pub fn tw_graph_import(graph: *mut tw_graph, data: *const c_void, bytes: u64, options: *const tw_import_options) -> *mut tw_status;
        pub fn tw_graph_find(graph: *const tw_graph, name: *const c_char, out: *mut *const tw_operation) -> *mut tw_status;
        pub fn tw_graph_find_output(graph: *const tw_graph, name: *const c_char, out: *mut tw_output) -> *mut tw_status;

        pub fn tw_session_create(graph: *mut tw_graph, options: *const *const c_char, n: u32, out: *mut *mut tw_session) -> *mut tw_status;
        pub fn tw_session_destroy(session: *mut tw_session);
        pub fn tw_callable_create(session: *mut tw_session, what: *const tw_signature, out: *mut *mut tw_callable) -> *mut tw_status;
        pub fn tw_callable_run(callable: *mut tw_callable, feeds: *const *mut tw_tensor, options: *const tw_run_options,
            out: *mut *mut tw_tensor) -> *mut tw_status;
        pub fn tw_callable_destroy(callable: *mut tw_callable);

        pub fn tw_saver_create(graph: *mut tw_graph, variables: *const tw_output, n: u32, out: *mut *mut tw_saver) -> *mut tw_status;
        pub fn tw_saver_save(saver: *mut tw_saver, session: *mut tw_session, prefix: *const c_char) -> *mut tw_status;
        pub fn tw_saver_restore(saver: *mut tw_saver, session: *mut tw_session, prefix: *const c_char) -> *mut tw_status;
        pub fn tw_saver_destroy(saver: *mut tw_saver);
    }
}

// Errors.

/// The code and message of a status, or an error of this program, with code 0.
#[derive(Debug)]
struct Error {
    code: u32,
    message: String,
}

type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            0 => write!(f, "{}", self.message),
            code => write!(f, "{}: {}", text(unsafe { c::tw_status_code_name(code) }), self.message),
        }
    }
}

fn text(from: *const c_char) -> String {
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

/// Converts a status to a result and releases it.
fn check(status: *mut c::tw_status) -> Result<()> {
    if status.is_null() {
        return Ok(());
    }
    let error = unsafe { Error { code: c::tw_status_code(status), message: text(c::tw_status_message(status)) } };
    unsafe { c::tw_status_release(status) };
    Err(error)
}

fn failed(message: String) -> Error {
    Error { code: 0, message }
}

fn c_text(from: &str) -> Result<CString> {
    CString::new(from).map_err(|_| failed(format!("'{}' has a zero byte in it", from.escape_default())))
}

// Handles.

macro_rules! handle {
    ($name:ident, $raw:ident, $destroy:ident) => {
        struct $name(*mut c::$raw);
        impl $name {
            /// Owns the object that `make` returns through its parameter.
            fn make(make: impl FnOnce(*mut *mut c::$raw) -> *mut c::tw_status) -> Result<Self> {
                let mut made = null_mut();
                check(make(&mut made))?;
                Ok(Self(made))
            }
        }
        impl Drop for $name {
            fn drop(&mut self) {
                unsafe { c::$destroy(self.0) }
            }
        }
    };
}
handle!(Tensor, tw_tensor, tw_tensor_release);
handle!(Graph, tw_graph, tw_graph_destroy);
handle!(Session, tw_session, tw_session_destroy);
handle!(Callable, tw_callable, tw_callable_destroy);
handle!(Saver, tw_saver, tw_saver_destroy);

impl Tensor {
    fn of<T: Copy>(dtype: u32, dims: &[i64], values: &[T]) -> Result<Self> {
        let bytes = std::mem::size_of_val(values) as u64;
        Self::make(|out| unsafe {
            c::tw_tensor_create_copy(dtype, dims.as_ptr(), dims.len() as u32, values.as_ptr() as *const c_void, bytes, out)
        })
    }

    /// Returns the value of a float scalar.
    fn float(&self) -> Result<f32> {
        let (dtype, count) = unsafe { (c::tw_tensor_dtype(self.0), c::tw_tensor_count(self.0)) };
        if dtype != c::TW_FLOAT || count != 1 {
            return Err(failed(format!("expected one float, found {} elements of type {}", count, dtype)));
        }
        Ok(unsafe { *(c::tw_tensor_data(self.0) as *const f32) })
    }
}

impl Graph {
    fn load(path: &str) -> Result<Self> {
        let data = read(path)?;
        let graph = Self::make(|out| unsafe { c::tw_graph_create(null_mut(), out) })?;
        check(unsafe { c::tw_graph_import(graph.0, data.as_ptr() as *const c_void, data.len() as u64, null()) })?;
        Ok(graph)
    }

    fn output(&self, name: &str) -> Result<c::tw_output> {
        let (name, mut found) = (c_text(name)?, 0);
        check(unsafe { c::tw_graph_find_output(self.0, name.as_ptr(), &mut found) })?;
        Ok(found)
    }

    fn operation(&self, name: &str) -> Result<*const c::tw_operation> {
        let (name, mut found) = (c_text(name)?, null());
        check(unsafe { c::tw_graph_find(self.0, name.as_ptr(), &mut found) })?;
        Ok(found)
    }
}

impl Callable {
    fn new(session: &Session, feeds: &[c::tw_output], fetches: &[c::tw_output], targets: &[*const c::tw_operation]) -> Result<Self> {
        let what = c::tw_signature {
            size: std::mem::size_of::<c::tw_signature>() as u32,
            flags: 0,
            feeds: feeds.as_ptr(),
            fetches: fetches.as_ptr(),
            targets: targets.as_ptr(),
            n_feeds: feeds.len() as u32,
            n_fetches: fetches.len() as u32,
            n_targets: targets.len() as u32,
            reserved: 0,
        };
        Self::make(|out| unsafe { c::tw_callable_create(session.0, &what, out) })
    }

    /// Runs one step and fetches one value.
    fn run(&self, feeds: &[&Tensor]) -> Result<Tensor> {
        let feeds: Vec<_> = feeds.iter().map(|t| t.0).collect();
        Tensor::make(|out| unsafe { c::tw_callable_run(self.0, feeds.as_ptr(), null(), out) })
    }
}

// The program.

fn read(path: &str) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| failed(format!("cannot read '{}': {}", path, e)))
}

struct Digits {
    pixels: Vec<f32>,
    labels: Vec<i32>,
}

fn load_digits(path: &str) -> Result<Digits> {
    let text = String::from_utf8_lossy(&read(path)?).into_owned();
    let mut digits = Digits { pixels: Vec::new(), labels: Vec::new() };
    for (i, line) in text.lines().enumerate() {
        let values: std::result::Result<Vec<f32>, _> = line.split(',').map(|v| v.trim().parse::<f32>()).collect();
        match values {
            Ok(values) if values.len() == 65 => {
                digits.pixels.extend(&values[..64]);
                digits.labels.push(values[64] as i32);
            }
            _ => return Err(failed(format!("{}:{}: needs 64 pixels and a label", path, i + 1))),
        }
    }
    match digits.labels.is_empty() {
        true => Err(failed(format!("{}: there are no digits", path))),
        false => Ok(digits),
    }
}

/// Runs the steps; returns the loss before each.
fn train(step: &Callable, digits: &Digits, steps: usize) -> Result<Vec<f32>> {
    let batch = 32.min(digits.labels.len());
    let rate = Tensor::of(c::TW_FLOAT, &[], &[0.001f32])?;
    let mut losses = Vec::new();
    for i in 0..steps {
        let at = (i * batch) % (digits.labels.len() - batch + 1);
        let image = Tensor::of(c::TW_FLOAT, &[batch as i64, 64], &digits.pixels[at * 64..(at + batch) * 64])?;
        let label = Tensor::of(c::TW_INT32, &[batch as i64], &digits.labels[at..at + batch])?;
        losses.push(step.run(&[&image, &label, &rate])?.float()?);
    }
    Ok(losses)
}

fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / values.len().max(1) as f32
}

fn run(folder: &str, data: &str, out: &str, steps: usize) -> Result<()> {
    let digits = load_digits(data)?;
    let graph = Graph::load(&format!("{}/graph.pb", folder))?;
    let saver = Saver::make(|out| unsafe { c::tw_saver_create(graph.0, null(), 0, out) })?;
    let session = Session::make(|out| unsafe { c::tw_session_create(graph.0, null(), 0, out) })?;
    let model = c_text(&format!("{}/model", folder))?;
    check(unsafe { c::tw_saver_restore(saver.0, session.0, model.as_ptr()) })?;

    let feeds = [graph.output("image")?, graph.output("label")?, graph.output("learning_rate")?];
    let step = Callable::new(&session, &feeds, &[graph.output("loss")?], &[graph.operation("Adam")?])?;
    let losses = train(&step, &digits, steps)?;
    let tenth = (steps + 9) / 10;
    let (first, last) = (mean(&losses[..tenth]), mean(&losses[steps - tenth..]));
    println!("loss {:.4} over the first tenth of {} steps, {:.4} over the last", first, steps, last);

    let prefix = c_text(out)?;
    check(unsafe { c::tw_saver_save(saver.0, session.0, prefix.as_ptr()) })
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let steps = match arguments.get(4).map_or(Ok(100), |n| n.parse::<usize>()) {
        Ok(steps) if steps > 0 && (4..=5).contains(&arguments.len()) => steps,
        _ => {
            eprintln!("usage: train FOLDER DIGITS.CSV OUT [STEPS]");
            std::process::exit(2);
        }
    };
    if let Err(error) = run(&arguments[1], &arguments[2], &arguments[3], steps) {
        eprintln!("train: {}", error);
        std::process::exit(1);
    }
}
