//! The training loop.
use crate::error::{c_text, c_texts, check, guarded, text, Error, Result};
use crate::graph::raw;
use crate::session::own;
use crate::{low, Batches, CancelToken, Graph, Metric, Operation, Output, Session, Tensor};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{size_of, zeroed};
use std::ptr::null_mut;

/// What a trainer trains.
#[derive(Clone, Default)]
pub struct TrainerModel<'g> {
    /// Tensor i of a batch is fed to feeds[i].
    pub feeds: Vec<Output>,
    /// Predictions need only the first so many of them; 0: all.
    pub inputs: u32,
    /// The mean loss of a batch.
    pub loss: Output,
    /// One update; None: the trainer does not fit.
    pub step: Option<Operation<'g>>,
    /// A bool scalar that is true in training steps; none: there is none.
    pub training: Output,
    pub metrics: Vec<Metric<'g>>,
    pub predictions: Vec<Output>,
}

/// Runs the training loop. One thread at a time.
pub struct Trainer<'s> {
    object: *mut low::tw_trainer,
    predictions: usize,
    outlived: PhantomData<&'s (Graph, Session)>,
}

// SAFETY: a trainer may move to another thread; raw pointers keep it from being Sync.
unsafe impl Send for Trainer<'_> {}

impl Drop for Trainer<'_> {
    fn drop(&mut self) {
        unsafe { low::tw_trainer_destroy(self.object) }
    }
}

/// The place of a loop.
#[derive(Clone, Debug)]
pub struct Progress {
    pub epoch: i64,
    pub epochs: i64,
    pub step: i64,
    pub batch: i64,
    pub values: BTreeMap<String, f64>,
    pub validation: BTreeMap<String, f64>,
    pub improved: bool,
    pub seconds: f64,
}

type Callback<'a> = Box<dyn FnMut(&Progress) -> Result<bool> + 'a>;

/// Options of `Trainer::fit`.
pub struct FitOptions<'a> {
    pub epochs: i64,
    pub validation: Option<&'a mut Batches>,
    /// The watched value; "": the loss.
    pub watch: &'a str,
    /// Epochs without a better value after which training stops; 0: never.
    pub patience: i64,
    pub keep_best: bool,
    pub larger_is_better: bool,
    /// A line for each epoch on standard error.
    pub progress: bool,
    /// For checkpoints, from which a training goes on; "": none.
    pub folder: &'a str,
    pub every_steps: i64,
    pub cancel: Option<CancelToken>,
    /// Called after each step and each epoch; Ok(true) ends the loop as if all were done. An error, or a panic, ends it with a failure.
    pub after_step: Option<Callback<'a>>,
    pub epoch_end: Option<Callback<'a>>,
}

impl Default for FitOptions<'_> {
    fn default() -> Self {
        FitOptions {
            epochs: 1, validation: None, watch: "", patience: 0, keep_best: false, larger_is_better: false, progress: false, folder: "",
            every_steps: 0, cancel: None, after_step: None, epoch_end: None,
        }
    }
}

/// The result of `Trainer::fit`.
#[derive(Clone, Copy, Debug)]
pub struct FitReport {
    pub epochs: i64,
    pub steps: i64,
    /// The step from which a checkpoint went on; -1: none did.
    pub resumed_at: i64,
    pub best_epoch: i64,
    pub best: f64,
    /// A function, or patience, ended it.
    pub stopped: bool,
}

struct Callbacks<'a> {
    after_step: Option<Callback<'a>>,
    epoch_end: Option<Callback<'a>>,
    failed: Option<Error>, // of a function of the program, whole
}

unsafe fn values(names: *const *const std::os::raw::c_char, values: *const f64, n: u32) -> BTreeMap<String, f64> {
    if values.is_null() {
        return BTreeMap::new();
    }
    (0..n as usize).map(|i| (text(*names.add(i)).unwrap_or_default(), *values.add(i))).collect()
}

unsafe fn progress(at: *const low::tw_fit_progress) -> Progress {
    let p = &*at;
    Progress {
        epoch: p.epoch, epochs: p.epochs, step: p.step, batch: p.batch, values: values(p.names, p.values, p.n_values),
        validation: values(p.names, p.validation, p.n_values), improved: p.improved != 0, seconds: p.seconds,
    }
}

unsafe fn call(function: &mut Option<Callback<'_>>, failed: &mut Option<Error>, at: *const low::tw_fit_progress, stop: *mut u32) -> *mut low::tw_status {
    guarded(|| {
        match function.as_mut().map_or(Ok(false), |f| f(&progress(at))) {
            Ok(yes) => *stop = yes as u32,
            Err(e) => {
                *failed = Some(e.clone());
                return Err(e);
            }
        }
        Ok(())
    })
}

unsafe extern "C" fn after_step(user: *mut c_void, at: *const low::tw_fit_progress, stop: *mut u32) -> *mut low::tw_status {
    let c = &mut *(user as *mut Callbacks);
    call(&mut c.after_step, &mut c.failed, at, stop)
}

unsafe extern "C" fn epoch_end(user: *mut c_void, at: *const low::tw_fit_progress, stop: *mut u32) -> *mut low::tw_status {
    let c = &mut *(user as *mut Callbacks);
    call(&mut c.epoch_end, &mut c.failed, at, stop)
}

impl<'s> Trainer<'s> {
    /// Makes a trainer. Graph and session outlive it.
    pub fn new(graph: &'s Graph, session: &'s Session, model: &TrainerModel<'s>) -> Result<Trainer<'s>> {
        let mut m: low::tw_trainer_model = unsafe { zeroed() };
        unsafe { low::tw_trainer_model_init(&mut m) };
        m.graph = graph.0;
        m.session = session.0;
        m.feeds = raw(&model.feeds);
        m.n_feeds = model.feeds.len() as u32;
        m.n_inputs = model.inputs;
        m.loss = model.loss.0;
        m.training = model.training.0;
        m.step = model.step.map_or(std::ptr::null(), |o| o.object);
        let mut metrics = Vec::new();
        for one in &model.metrics {
            let (update, reset) = match (one.update, one.reset) {
                (Some(update), Some(reset)) => (update, reset),
                _ => return Err(Error::invalid(format!("metric '{}' is empty; what made it has failed", one.name))),
            };
            let size = size_of::<low::tw_metric>() as u32;
            metrics.push(low::tw_metric { size, flags: 0, value: one.value.0, update: update.object, reset: reset.object });
        }
        let names: Vec<&str> = model.metrics.iter().map(|m| m.name.as_str()).collect();
        let (_texts, names) = c_texts(&names)?;
        m.metrics = metrics.as_ptr();
        m.metric_names = names.as_ptr();
        m.n_metrics = metrics.len() as u32;
        m.predictions = raw(&model.predictions);
        m.n_predictions = model.predictions.len() as u32;
        let mut object = null_mut();
        check(unsafe { low::tw_trainer_create(&m, &mut object) })?;
        Ok(Trainer { object, predictions: model.predictions.len(), outlived: PhantomData })
    }

    /// Trains over the batches of `data`. An error of a function of the options comes back whole.
    pub fn fit(&mut self, data: &mut Batches, options: FitOptions<'_>) -> Result<FitReport> {
        let mut o: low::tw_fit_options = unsafe { zeroed() };
        unsafe { low::tw_fit_options_init(&mut o) };
        let (watch, folder) = (c_text(options.watch)?, c_text(options.folder)?);
        o.epochs = options.epochs;
        o.validation = options.validation.as_ref().map_or(null_mut(), |b| b.object);
        o.watch = if options.watch.is_empty() { std::ptr::null() } else { watch.as_ptr() };
        o.folder = if options.folder.is_empty() { std::ptr::null() } else { folder.as_ptr() };
        o.patience = options.patience;
        o.every_steps = options.every_steps;
        for (yes, flag) in [(options.keep_best, low::TW_FIT_KEEP_BEST), (options.larger_is_better, low::TW_FIT_LARGER_IS_BETTER), (options.progress, low::TW_FIT_PROGRESS)] {
            o.flags |= if yes { flag } else { 0 };
        }
        o.cancel = options.cancel.as_ref().map_or(null_mut(), |c| c.raw());
        let mut callbacks = Callbacks { after_step: options.after_step, epoch_end: options.epoch_end, failed: None };
        let mut record: low::tw_fit_callback = unsafe { zeroed() };
        record.size = size_of::<low::tw_fit_callback>() as u32;
        record.after_step = callbacks.after_step.as_ref().map(|_| after_step as unsafe extern "C" fn(_, _, _) -> _);
        record.epoch_end = callbacks.epoch_end.as_ref().map(|_| epoch_end as unsafe extern "C" fn(_, _, _) -> _);
        record.user = &mut callbacks as *mut Callbacks as *mut c_void;
        o.callbacks = &record;
        o.n_callbacks = 1;
        let mut r: low::tw_fit_report = unsafe { zeroed() };
        r.size = size_of::<low::tw_fit_report>() as u32;
        let result = check(unsafe { low::tw_trainer_fit(self.object, data.object, &o, &mut r) });
        if let Some(error) = callbacks.failed {
            return Err(error);
        }
        result?;
        let stopped = r.why != low::TW_FIT_COMPLETE;
        Ok(FitReport { epochs: r.epochs, steps: r.steps, resumed_at: r.resumed_at, best_epoch: r.best_epoch, best: r.best, stopped })
    }

    /// The loss and the metrics over one epoch, by their names.
    pub fn evaluate(&mut self, data: &mut Batches) -> Result<BTreeMap<String, f64>> {
        let n = unsafe { low::tw_trainer_value_count(self.object) };
        let mut all = vec![0.0; n as usize];
        check(unsafe { low::tw_trainer_evaluate(self.object, data.object, null_mut(), all.as_mut_ptr()) })?;
        let name = |i| text(unsafe { low::tw_trainer_value_name(self.object, i) }).unwrap_or_default();
        Ok((0..n).map(|i| (name(i), all[i as usize])).collect())
    }

    /// The predictions for one epoch, with the rows of all batches.
    pub fn predict(&mut self, data: &mut Batches) -> Result<Vec<Tensor>> {
        let mut out = vec![null_mut(); self.predictions];
        check(unsafe { low::tw_trainer_predict(self.object, data.object, null_mut(), out.as_mut_ptr()) })?;
        Ok(own(out))
    }
}
