//! Sessions, prepared runs, and tokens that cancel.
use crate::error::{c_text, c_texts, check, Error, Result};
use crate::graph::raw;
use crate::{low, Graph, Operation, Output, Tensor};
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::Duration;

/// Runs a graph. Any number of threads may run it at once.
pub struct Session(pub(crate) *mut low::tw_session);

// SAFETY: session.h: any number of threads may use a session and its callables at once.
unsafe impl Send for Session {}
unsafe impl Sync for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        unsafe { low::tw_session_destroy(self.0) }
    }
}

struct Token(*mut low::tw_cancel_token);
unsafe impl Send for Token {}
unsafe impl Sync for Token {}
impl Drop for Token {
    fn drop(&mut self) {
        unsafe { low::tw_cancel_token_destroy(self.0) }
    }
}

/// Cancels runs, from any thread. A clone is the same token.
#[derive(Clone)]
pub struct CancelToken(Arc<Token>);

impl CancelToken {
    pub fn new() -> Result<CancelToken> {
        let mut made = null_mut();
        check(unsafe { low::tw_cancel_token_create(&mut made) })?;
        Ok(CancelToken(Arc::new(Token(made))))
    }
    pub fn cancel(&self) {
        unsafe { low::tw_cancel_token_cancel(self.0 .0) }
    }
    pub fn is_cancelled(&self) -> bool {
        unsafe { low::tw_cancel_token_cancelled(self.0 .0) != 0 }
    }
    pub(crate) fn raw(&self) -> *mut low::tw_cancel_token {
        self.0 .0
    }
}

/// Options of a run.
#[derive(Clone, Default)]
pub struct RunOptions {
    pub timeout: Option<Duration>,
    pub cancel: Option<CancelToken>,
}

impl RunOptions {
    pub(crate) fn record(&self) -> low::tw_run_options {
        low::tw_run_options {
            size: size_of::<low::tw_run_options>() as u32,
            flags: 0,
            timeout_ns: self.timeout.map_or(0, |t| t.as_nanos().clamp(1, i64::MAX as u128) as i64),
            cancel: self.cancel.as_ref().map_or(null_mut(), |c| c.raw()),
            stats: null_mut(),
        }
    }
}

fn signature(feeds: &[Output], fetches: &[Output], targets: &[*const low::tw_operation]) -> low::tw_signature {
    low::tw_signature {
        size: size_of::<low::tw_signature>() as u32,
        flags: 0,
        feeds: raw(feeds),
        fetches: raw(fetches),
        targets: targets.as_ptr(),
        n_feeds: feeds.len() as u32,
        n_fetches: fetches.len() as u32,
        n_targets: targets.len() as u32,
        reserved: 0,
        feed_devices: null(),
        fetch_devices: null(),
    }
}

pub(crate) fn own(fetched: Vec<*mut low::tw_tensor>) -> Vec<Tensor> {
    fetched.into_iter().map(Tensor::own).collect()
}

impl Session {
    /// Makes a session. options: "key=value", as `tw_session_option` lists them, such as "threads=2".
    pub fn new(graph: &Graph, options: &[&str]) -> Result<Session> {
        let (_texts, options) = c_texts(options)?;
        let mut made = null_mut();
        check(unsafe { low::tw_session_create(graph.0, options.as_ptr(), options.len() as u32, &mut made) })?;
        Ok(Session(made))
    }

    /// Runs one step: feeds values, runs targets and what they need, and returns the fetched values.
    pub fn run(&self, feeds: &[(Output, &Tensor)], fetches: &[Output], targets: &[Operation<'_>]) -> Result<Vec<Tensor>> {
        self.run_with(feeds, fetches, targets, &RunOptions::default())
    }

    /// The same with a timeout, or a token that cancels it.
    pub fn run_with(&self, feeds: &[(Output, &Tensor)], fetches: &[Output], targets: &[Operation<'_>], options: &RunOptions) -> Result<Vec<Tensor>> {
        let inputs: Vec<_> = feeds.iter().map(|f| f.0).collect();
        let tensors: Vec<_> = feeds.iter().map(|f| f.1.raw()).collect();
        let targets: Vec<_> = targets.iter().map(|t| t.object).collect();
        let what = signature(&inputs, fetches, &targets);
        let mut out = vec![null_mut(); fetches.len()];
        check(unsafe { low::tw_session_run(self.0, &what, tensors.as_ptr(), &options.record(), out.as_mut_ptr()) })?;
        Ok(own(out))
    }

    /// Empties a container of state: variables lose their values, queues, tables and the like are removed. The session can go on; its
    /// variables can be initialised again. container "": the session's default one, which is its graph's own unless the session has a
    /// target or the option "container". With a target, the container is emptied on every task. Returns the number of objects it held.
    pub fn reset(&self, container: &str) -> Result<u64> {
        let (container, mut count) = (c_text(container)?, 0);
        check(unsafe { low::tw_session_reset(self.0, container.as_ptr(), &mut count) })?;
        Ok(count)
    }

    /// Refuses new runs and waits for those in progress.
    pub fn close(&self) -> Result<()> {
        check(unsafe { low::tw_session_close(self.0) })
    }

    /// Prepares a run, whose feeds and fetches have an order.
    pub fn callable<'s>(&'s self, feeds: &[Output], fetches: &[Output], targets: &[Operation<'_>]) -> Result<Callable<'s>> {
        let targets: Vec<_> = targets.iter().map(|t| t.object).collect();
        let what = signature(feeds, fetches, &targets);
        let mut object = null_mut();
        check(unsafe { low::tw_callable_create(self.0, &what, &mut object) })?;
        Ok(Callable { object, feeds: feeds.len(), fetches: fetches.len(), session: PhantomData })
    }
}

/// A prepared run. Any number of threads may run it at once.
pub struct Callable<'s> {
    object: *mut low::tw_callable,
    feeds: usize,
    fetches: usize,
    session: PhantomData<&'s Session>,
}

// SAFETY: as Session.
unsafe impl Send for Callable<'_> {}
unsafe impl Sync for Callable<'_> {}

impl Drop for Callable<'_> {
    fn drop(&mut self) {
        unsafe { low::tw_callable_destroy(self.object) }
    }
}

impl Callable<'_> {
    /// Runs the step with a tensor for each feed, and returns the fetches.
    pub fn run(&self, feeds: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.call(feeds, null())
    }

    /// The same with a timeout, or a token that cancels it.
    pub fn run_with(&self, feeds: &[&Tensor], options: &RunOptions) -> Result<Vec<Tensor>> {
        self.call(feeds, &options.record())
    }

    fn call(&self, feeds: &[&Tensor], options: *const low::tw_run_options) -> Result<Vec<Tensor>> {
        if feeds.len() != self.feeds {
            return Err(Error::invalid(format!("the callable takes {} tensors, not {}", self.feeds, feeds.len())));
        }
        let feeds: Vec<_> = feeds.iter().map(|t| t.raw()).collect();
        let mut out = vec![null_mut(); self.fetches];
        check(unsafe { low::tw_callable_run(self.object, feeds.as_ptr(), options, out.as_mut_ptr()) })?;
        Ok(own(out))
    }
}
