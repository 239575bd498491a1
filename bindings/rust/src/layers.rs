//! Layers of neural networks.
use crate::error::{c_lossy, Error};
use crate::{low, DType, Output, Scope};
use std::mem::{size_of, zeroed};

/// A function that a layer applies to its results, by its number in layer.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation(pub u32);

impl Activation {
    pub const LINEAR: Activation = Activation(low::TW_ACTIVATION_NONE);
    pub const RELU: Activation = Activation(low::TW_ACTIVATION_RELU);
    pub const GELU: Activation = Activation(low::TW_ACTIVATION_GELU);
    pub const SIGMOID: Activation = Activation(low::TW_ACTIVATION_SIGMOID);
    pub const TANH: Activation = Activation(low::TW_ACTIVATION_TANH);
    pub const SOFTMAX: Activation = Activation(low::TW_ACTIVATION_SOFTMAX);
}

/// Options of layers that make variables.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayerOptions {
    /// 0: other first weights in each session.
    pub seed: i64,
    /// None: float.
    pub dtype: Option<DType>,
    pub no_bias: bool,
    /// `low::TW_INITIALIZER_...`; 0: the layer's own.
    pub kernel_initializer: u32,
}

impl LayerOptions {
    pub fn seed(seed: i64) -> LayerOptions {
        LayerOptions { seed, ..Default::default() }
    }
    fn record(&self) -> low::tw_layer_options {
        let mut r: low::tw_layer_options = unsafe { zeroed() };
        unsafe { low::tw_layer_options_init(&mut r) };
        r.seed = self.seed;
        r.no_bias = self.no_bias as u32;
        r.kernel_initializer = self.kernel_initializer;
        r.dtype = self.dtype.map_or(r.dtype, |d| d.0);
        r
    }
}

impl Scope<'_> {
    /// The size of a value's last axis, which must be known.
    fn last(&self, what: &str, name: &str, x: Output) -> i64 {
        let size = self.shape(x).and_then(|s| match s.last() {
            Some(&n) if n >= 0 => Ok(n),
            _ => Err(Error::invalid(format!("{} '{}': the last size of {:?} must be known", what, name, s))),
        });
        self.try_or(size, 0)
    }

    #[track_caller]
    pub fn activation(&self, kind: Activation, x: Output) -> Output {
        if kind == Activation::LINEAR {
            return x;
        }
        self.at();
        Output(unsafe { low::tw_activation(self.object, kind.0, x.0) })
    }

    /// activation(x kernel + bias), with variables `name`/kernel and `name`/bias. x: [.., inputs]; the result: [.., units].
    #[track_caller]
    pub fn dense(&self, name: &str, x: Output, units: i64, activation: Activation, options: LayerOptions) -> Output {
        self.at();
        let inputs = self.last("dense", name, x);
        let y = unsafe {
            let mut layer: low::tw_dense = zeroed();
            layer.size = size_of::<low::tw_dense>() as u32;
            low::tw_dense_create(self.object, c_lossy(name).as_ptr(), &options.record(), inputs, units, &mut layer);
            Output(low::tw_dense_apply(self.object, &layer, x.0))
        };
        self.activation(activation, y)
    }

    /// A convolution with a square window over [batch, height, width, channels] that keeps height and width.
    #[track_caller]
    pub fn conv2d(&self, name: &str, x: Output, filters: i64, window: i64, activation: Activation, options: LayerOptions) -> Output {
        self.at();
        let channels = self.last("conv2d", name, x);
        let y = unsafe {
            let (mut layer, mut sizes): (low::tw_convolution, low::tw_convolution_sizes) = (zeroed(), zeroed());
            low::tw_convolution_init(&mut layer);
            low::tw_convolution_sizes_init(&mut sizes);
            sizes.window_1 = window;
            sizes.window_2 = window;
            sizes.channels = channels;
            sizes.filters = filters;
            let like = layer;
            low::tw_convolution_create(self.object, c_lossy(name).as_ptr(), &options.record(), &like, &sizes, &mut layer);
            Output(low::tw_convolution_apply(self.object, &layer, x.0))
        };
        self.activation(activation, y)
    }

    /// Keeps the largest of each window of `window` x `window` elements.
    #[track_caller]
    pub fn max_pool2d(&self, x: Output, window: i64) -> Output {
        self.at();
        unsafe {
            let mut pool: low::tw_pool = zeroed();
            low::tw_pool_init(&mut pool);
            pool.kind = low::TW_POOL_MAX;
            pool.rank = 2;
            pool.padding = low::TW_PADDING_VALID;
            pool.window_1 = window;
            pool.window_2 = window;
            pool.stride_1 = window;
            pool.stride_2 = window;
            Output(low::tw_pool_apply(self.object, &pool, x.0))
        }
    }

    /// Makes a row of each example.
    #[track_caller]
    pub fn flatten(&self, x: Output) -> Output {
        let n = self.shape(x).and_then(|s| match s.get(1..) {
            Some(rest) if rest.iter().all(|&d| d >= 0) => Ok(rest.iter().product::<i64>() as i32),
            _ => Err(Error::invalid(format!("flatten: the sizes of {:?} behind the first must be known", s))),
        });
        let n = self.try_or(n, 1);
        self.reshape(x, &[-1, n])
    }

    /// Sets elements to 0 at that rate while `training`, a bool scalar, is true.
    #[track_caller]
    pub fn dropout(&self, x: Output, rate: f64, training: Output, seed: i64) -> Output {
        self.at();
        Output(unsafe { low::tw_dropout(self.object, x.0, rate, training.0, seed) })
    }

    /// The mean cross-entropy of logits [batch, classes] for labels [batch].
    #[track_caller]
    pub fn sparse_softmax_cross_entropy(&self, logits: Output, labels: Output) -> Output {
        let losses = self.op("SparseSoftmaxCrossEntropyWithLogits", &[logits, labels]);
        let axis = self.ints(&[0]);
        self.op("Mean", &[losses, axis])
    }
}
