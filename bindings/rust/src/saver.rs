//! Checkpoints in TensorFlow's format.
use crate::error::{c_text, c_texts, check, text, Result};
use crate::graph::raw;
use crate::{low, Graph, Output, Session, Tensor};
use std::marker::PhantomData;
use std::ptr::null_mut;

/// Writes variables to checkpoints and reads them back.
pub struct Saver<'g> {
    object: *mut low::tw_saver,
    graph: PhantomData<&'g Graph>,
}

// SAFETY: the contract in thalweg.h: any thread may use a handle.
unsafe impl Send for Saver<'_> {}
unsafe impl Sync for Saver<'_> {}

impl Drop for Saver<'_> {
    fn drop(&mut self) {
        unsafe { low::tw_saver_destroy(self.object) }
    }
}

impl<'g> Saver<'g> {
    /// Makes a saver for some variables; none: all that the graph has now.
    pub fn new(graph: &'g Graph, variables: &[Output]) -> Result<Saver<'g>> {
        let mut object = null_mut();
        check(unsafe { low::tw_saver_create(graph.0, raw(variables), variables.len() as u32, &mut object) })?;
        Ok(Saver { object, graph: PhantomData })
    }
    /// Writes the variables to the files `prefix`.*.
    pub fn save(&self, session: &Session, prefix: &str) -> Result<()> {
        let prefix = c_text(prefix)?;
        check(unsafe { low::tw_saver_save(self.object, session.0, prefix.as_ptr()) })
    }
    /// Reads the variables.
    pub fn restore(&self, session: &Session, prefix: &str) -> Result<()> {
        let prefix = c_text(prefix)?;
        check(unsafe { low::tw_saver_restore(self.object, session.0, prefix.as_ptr()) })
    }
}

/// Reads the tensors of a checkpoint.
pub struct Checkpoint(*mut low::tw_checkpoint);

// SAFETY: as Saver.
unsafe impl Send for Checkpoint {}
unsafe impl Sync for Checkpoint {}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        unsafe { low::tw_checkpoint_close(self.0) }
    }
}

impl Checkpoint {
    /// Opens the files `prefix`.*.
    pub fn open(prefix: &str) -> Result<Checkpoint> {
        let (prefix, mut object) = (c_text(prefix)?, null_mut());
        check(unsafe { low::tw_checkpoint_open(prefix.as_ptr(), &mut object) })?;
        Ok(Checkpoint(object))
    }
    pub fn names(&self) -> Vec<String> {
        (0..unsafe { low::tw_checkpoint_count(self.0) }).filter_map(|i| text(unsafe { low::tw_checkpoint_name(self.0, i) })).collect()
    }
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let name = c_text(name)?;
        Tensor::make(|out| unsafe { low::tw_checkpoint_read(self.0, name.as_ptr(), out) })
    }
    /// Writes tensors to the files `prefix`.*.
    pub fn write(prefix: &str, tensors: &[(&str, &Tensor)]) -> Result<()> {
        let prefix = c_text(prefix)?;
        let (_texts, names) = c_texts(&tensors.iter().map(|t| t.0).collect::<Vec<_>>())?;
        let all: Vec<_> = tensors.iter().map(|t| t.1.raw()).collect();
        check(unsafe { low::tw_checkpoint_write(prefix.as_ptr(), names.as_ptr(), all.as_ptr(), all.len() as u32) })
    }
}
