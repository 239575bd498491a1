//! Models from files.
use crate::error::{c_text, c_texts, check, text, Error, Result};
use crate::graph::shape_of;
use crate::session::own;
use crate::{low, DType, RunOptions, Tensor};
use std::collections::BTreeMap;
use std::mem::{size_of, zeroed};
use std::ptr::{null, null_mut};

/// A model from a file: ONNX, a SavedModel, or what else a plugin imports. Any number of threads may run it at once.
pub struct Model(*mut low::tw_model);

// SAFETY: model.h: any number of threads may run a model at once.
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { low::tw_model_destroy(self.0) }
    }
}

/// An input or output of a model.
#[derive(Clone, Debug)]
pub struct Value {
    pub name: String,
    pub dtype: DType,
    pub shape: Option<Vec<i64>>,
    pub optional: bool,
}

/// One way to run a model.
#[derive(Clone, Debug)]
pub struct Signature {
    pub name: String,
    pub inputs: Vec<Value>,
    pub outputs: Vec<Value>,
}

/// Options of `Model::load_with`.
#[derive(Clone, Copy, Default)]
pub struct ModelOptions<'a> {
    /// "": the surest one.
    pub importer: &'a str,
    /// "key=value" for the importer, such as "tags=serve".
    pub options: &'a [&'a str],
    /// "key=value" for the session, such as "threads=2".
    pub session: &'a [&'a str],
}

unsafe fn values(all: *const *const low::tw_model_value, n: u32) -> Vec<Value> {
    let one = |v: &low::tw_model_value| Value {
        name: text(v.name).unwrap_or_default(),
        dtype: DType(v.dtype),
        shape: v.shape.as_ref().and_then(shape_of),
        optional: v.is_optional != 0,
    };
    (0..n as usize).map(|i| one(&**all.add(i))).collect()
}

unsafe fn signature(s: &low::tw_model_signature) -> Signature {
    Signature { name: text(s.name).unwrap_or_default(), inputs: values(s.inputs, s.n_inputs), outputs: values(s.outputs, s.n_outputs) }
}

impl Model {
    /// Loads a model file or folder.
    pub fn load(path: &str) -> Result<Model> {
        Model::load_with(path, &ModelOptions::default())
    }

    pub fn load_with(path: &str, options: &ModelOptions<'_>) -> Result<Model> {
        let (path, importer) = (c_text(path)?, c_text(options.importer)?);
        let ((_a, importing), (_b, session)) = (c_texts(options.options)?, c_texts(options.session)?);
        let mut o: low::tw_model_options = unsafe { zeroed() };
        o.size = size_of::<low::tw_model_options>() as u32;
        o.importer = if options.importer.is_empty() { null() } else { importer.as_ptr() };
        o.options = importing.as_ptr();
        o.n_options = importing.len() as u32;
        o.session_options = session.as_ptr();
        o.n_session_options = session.len() as u32;
        let mut object = null_mut();
        check(unsafe { low::tw_model_load(null_mut(), path.as_ptr(), &o, &mut object) })?;
        Ok(Model(object))
    }

    /// The ways to run the model.
    pub fn signatures(&self) -> Vec<Signature> {
        (0..unsafe { low::tw_model_signature_count(self.0) }).map(|i| unsafe { signature(&*low::tw_model_signature_at(self.0, i)) }).collect()
    }

    /// Runs the default signature by the names in the file.
    pub fn run(&self, inputs: &[(&str, &Tensor)]) -> Result<BTreeMap<String, Tensor>> {
        self.run_with("", inputs, &RunOptions::default())
    }

    /// Runs a signature; "" is the default one.
    pub fn run_with(&self, name: &str, inputs: &[(&str, &Tensor)], options: &RunOptions) -> Result<BTreeMap<String, Tensor>> {
        let c_name = c_text(name)?;
        let name = if name.is_empty() { null() } else { c_name.as_ptr() };
        let mut found = null();
        check(unsafe { low::tw_model_find(self.0, name, &mut found) })?;
        let s = unsafe { signature(&*found) };
        let mut given = vec![null_mut(); s.inputs.len()];
        for (input, tensor) in inputs {
            match s.inputs.iter().position(|v| v.name == *input) {
                Some(i) => given[i] = tensor.raw(),
                None => {
                    let names: Vec<_> = s.inputs.iter().map(|v| v.name.as_str()).collect();
                    return Err(Error::invalid(format!("signature '{}' has no input '{}'; it has: {}", s.name, input, names.join(", "))));
                }
            }
        }
        let mut out = vec![null_mut(); s.outputs.len()];
        check(unsafe { low::tw_model_run(self.0, name, given.as_ptr(), &options.record(), out.as_mut_ptr()) })?;
        Ok(s.outputs.into_iter().map(|v| v.name).zip(own(out)).collect())
    }
}
