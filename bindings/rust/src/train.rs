//! Gradients, optimizers and metrics.
use crate::error::{c_lossy, Error};
use crate::graph::raw;
use crate::{low, DType, Operation, Output, Scope};
use std::mem::{size_of, zeroed};

/// The gradient for one value: `values` has its shape, or, if there are `rows`, the gradients of those rows.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Gradient {
    pub values: Output,
    pub rows: Output,
}
const _: () = assert!(size_of::<Gradient>() == size_of::<low::tw_gradient>());

/// The learning rate: a number, a value that a schedule computes, or the optimizer's default.
#[derive(Clone, Copy, Debug, Default)]
pub enum Rate {
    #[default]
    Default,
    Constant(f64),
    Value(Output),
}

/// Adds the operation that updates variables by their gradients.
pub trait Optimizer {
    #[doc(hidden)]
    fn rate(&self) -> Rate;
    /// # Safety
    /// The pointers are those of lists of `n`.
    #[doc(hidden)]
    unsafe fn apply(&self, s: *mut low::tw_scope, v: *const u64, g: *const low::tw_gradient, n: u32, rate: u64) -> *const low::tw_operation;
}

macro_rules! optimizer {
    ($(#[$doc:meta])* $name:ident, $record:ident, $init:ident, $apply:ident, [$($field:ident),*], [$($flag:ident),*]) => {
        $(#[$doc])*
        /// Fields that are None have the defaults of train.h.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name { pub rate: Rate, $(pub $field: Option<f64>,)* $(pub $flag: bool,)* }
        impl $name {
            pub fn new(learning_rate: f64) -> $name {
                $name { rate: Rate::Constant(learning_rate), ..Default::default() }
            }
        }
        impl Optimizer for $name {
            fn rate(&self) -> Rate { self.rate }
            unsafe fn apply(&self, s: *mut low::tw_scope, v: *const u64, g: *const low::tw_gradient, n: u32, rate: u64)
                -> *const low::tw_operation {
                let mut r: low::$record = zeroed();
                low::$init(&mut r);
                r.learning_rate = rate;
                $(r.$field = self.$field.unwrap_or(r.$field);)*
                $(r.$flag = self.$flag as u32;)*
                low::$apply(s, v, g, n, &r)
            }
        }
    };
}
optimizer!(/// Gradient descent.
    Sgd, tw_sgd, tw_sgd_init, tw_train_sgd, [], []);
optimizer!(/// Gradient descent with momentum.
    Momentum, tw_momentum, tw_momentum_init, tw_train_momentum, [momentum], [nesterov]);
optimizer!(/// By Kingma and Ba, arXiv:1412.6980.
    Adam, tw_adam, tw_adam_init, tw_train_adam, [beta1, beta2, epsilon], [nesterov]);
optimizer!(/// By Duchi, Hazan and Singer, 2011.
    Adagrad, tw_adagrad, tw_adagrad_init, tw_train_adagrad, [initial_accumulator], []);
optimizer!(/// By Tieleman and Hinton, 2012.
    RmsProp, tw_rmsprop, tw_rmsprop_init, tw_train_rmsprop, [rho, momentum, epsilon], [centered]);

/// A measure over many batches.
#[derive(Clone)]
pub struct Metric<'g> {
    pub name: String,
    pub value: Output,
    pub update: Option<Operation<'g>>,
    pub reset: Option<Operation<'g>>,
}

impl<'g> Scope<'g> {
    /// Adds the gradients of a scalar loss for values or variables.
    #[track_caller]
    pub fn gradients(&self, loss: Output, xs: &[Output]) -> Vec<Gradient> {
        self.at();
        let mut out = vec![Gradient::default(); xs.len()];
        unsafe { low::tw_scope_gradients(self.object, loss.0, raw(xs), xs.len() as u32, out.as_mut_ptr() as *mut low::tw_gradient) };
        out
    }

    /// Scales gradients so that the norm of all together is at most `max`.
    #[track_caller]
    pub fn clip_by_global_norm(&self, gradients: &mut [Gradient], max: f64) {
        self.at();
        unsafe { low::tw_clip_by_global_norm(self.object, gradients.as_mut_ptr() as *mut low::tw_gradient, gradients.len() as u32, max) };
    }

    /// Adds one update of variables by gradients.
    #[track_caller]
    pub fn apply(&self, optimizer: &dyn Optimizer, variables: &[Output], gradients: &[Gradient]) -> Option<Operation<'g>> {
        self.at();
        if variables.len() != gradients.len() {
            self.fail(Error::invalid(format!("apply: {} gradients for {} variables", gradients.len(), variables.len())));
            return None;
        }
        let rate = match optimizer.rate() {
            Rate::Default => Output::default(),
            Rate::Constant(number) => self.scalar(DType::FLOAT, number),
            Rate::Value(value) => value,
        };
        let (v, g) = (raw(variables), gradients.as_ptr() as *const low::tw_gradient);
        Operation::of(unsafe { optimizer.apply(self.object, v, g, variables.len() as u32, rate.0) })
    }

    /// Adds one update of all variables of the graph that hold real numbers and that the loss depends on.
    #[track_caller]
    pub fn minimize(&self, loss: Output, optimizer: &dyn Optimizer) -> Option<Operation<'g>> {
        let real = [DType::FLOAT, DType::DOUBLE, DType::HALF, DType::BFLOAT16];
        let all = self.try_or(self.graph.variables(), Vec::new());
        let variables: Vec<_> = all.iter().filter(|v| real.contains(&v.dtype)).map(|v| v.handle).collect();
        if variables.is_empty() {
            self.fail(Error::invalid("minimize: the graph has no variables of real numbers"));
            return None;
        }
        let gradients = self.gradients(loss, &variables);
        self.apply(optimizer, &variables, &gradients)
    }

    fn metric(&self, name: &str, add: impl FnOnce(&std::ffi::CStr, &mut low::tw_metric)) -> Metric<'g> {
        let mut m: low::tw_metric = unsafe { zeroed() };
        m.size = size_of::<low::tw_metric>() as u32;
        add(&c_lossy(name), &mut m);
        Metric { name: name.into(), value: Output(m.value), update: Operation::of(m.update), reset: Operation::of(m.reset) }
    }

    /// The share of examples whose class is the label. predictions: scores [batch, classes], or classes.
    #[track_caller]
    pub fn accuracy(&self, name: &str, predictions: Output, labels: Output) -> Metric<'g> {
        self.at();
        self.metric(name, |n, m| unsafe { low::tw_metric_accuracy(self.object, n.as_ptr(), predictions.0, labels.0, 0, m) })
    }

    /// The mean of values.
    #[track_caller]
    pub fn mean_metric(&self, name: &str, values: Output) -> Metric<'g> {
        self.at();
        self.metric(name, |n, m| unsafe { low::tw_metric_mean(self.object, n.as_ptr(), values.0, 0, m) })
    }
}
