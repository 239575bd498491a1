//! Batches of training loops, and datasets.
use crate::error::{c_texts, check, guarded, Error, Result};
use crate::graph::raw;
use crate::session::own;
use crate::{low, Graph, Output, Scope, Tensor};
use std::ffi::c_void;
use std::mem::{size_of, zeroed};
use std::ptr::null_mut;

/// Options of `Batches::new`.
#[derive(Clone, Copy, Debug)]
pub struct BatchOptions {
    /// Rows of a batch.
    pub size: i64,
    pub seed: i64,
    pub shuffle: bool,
    pub drop_remainder: bool,
}

impl Default for BatchOptions {
    fn default() -> BatchOptions {
        BatchOptions { size: 32, seed: 0, shuffle: false, drop_remainder: false }
    }
}

type Next = Box<dyn FnMut() -> Result<Option<Vec<Tensor>>> + Send>;
type Reset = Box<dyn FnMut(i64) -> Result<()> + Send>;

struct Functions {
    n: usize,
    next: Next,
    reset: Option<Reset>,
}

/// Gives the batches of a training loop; as an iterator of Rust, those of the rest of the epoch. One thread at a time.
pub struct Batches {
    pub(crate) object: *mut low::tw_iterator,
    functions: Option<Box<low::tw_iterator>>, // the record of functions of this program
}

// SAFETY: an iterator may move to another thread; the functions of a program are Send. It is not Sync, as raw pointers are not.
unsafe impl Send for Batches {}

impl Drop for Batches {
    fn drop(&mut self) {
        unsafe { low::tw_iterator_destroy(self.object) }
    }
}

unsafe extern "C" fn next(user: *mut c_void, out: *mut *mut low::tw_tensor, end: *mut u32) -> *mut low::tw_status {
    let functions = &mut *(user as *mut Functions);
    guarded(|| {
        let tensors = match (functions.next)()? {
            Some(tensors) => tensors,
            None => {
                *end = 1;
                return Ok(());
            }
        };
        if tensors.len() != functions.n {
            return Err(Error::invalid(format!("the iterator's function returned {} tensors, not {}", tensors.len(), functions.n)));
        }
        for (i, tensor) in tensors.iter().enumerate() {
            low::tw_tensor_retain(tensor.raw());
            *out.add(i) = tensor.raw();
        }
        Ok(())
    })
}

unsafe extern "C" fn reset(user: *mut c_void, epoch: i64) -> *mut low::tw_status {
    let functions = &mut *(user as *mut Functions);
    guarded(|| functions.reset.as_mut().map_or(Ok(()), |r| r(epoch)))
}

unsafe extern "C" fn destroy(user: *mut c_void) {
    drop(Box::from_raw(user as *mut Functions));
}

impl Batches {
    /// Gives rows of tensors with equal first sizes.
    pub fn new(tensors: &[&Tensor], options: BatchOptions) -> Result<Batches> {
        let all: Vec<_> = tensors.iter().map(|t| t.raw()).collect();
        let mut o: low::tw_batch_options = unsafe { zeroed() };
        unsafe { low::tw_batch_options_init(&mut o) };
        o.batch = options.size;
        o.seed = options.seed;
        o.shuffle = options.shuffle as u32;
        o.drop_remainder = options.drop_remainder as u32;
        let mut object = null_mut();
        check(unsafe { low::tw_iterator_create_batches(all.as_ptr(), all.len() as u32, &o, &mut object) })?;
        Ok(Batches { object, functions: None })
    }

    /// Gives what a function returns: batches of `n` tensors, and None at the end of an epoch. `reset` begins an epoch; None: there is
    /// only one. A panic in either is a failure of the loop that called it.
    pub fn from_fn<N>(n: usize, next_batch: N, reset_to: Option<Box<dyn FnMut(i64) -> Result<()> + Send>>) -> Batches
    where
        N: FnMut() -> Result<Option<Vec<Tensor>>> + Send + 'static,
    {
        let has_reset = reset_to.is_some();
        let user = Box::into_raw(Box::new(Functions { n, next: Box::new(next_batch), reset: reset_to }));
        let mut record: Box<low::tw_iterator> = Box::new(unsafe { zeroed() });
        record.size = size_of::<low::tw_iterator>() as u32;
        record.n_tensors = n as u32;
        record.n_batches = -1;
        record.user = user as *mut c_void;
        record.next = Some(next);
        record.reset = if has_reset { Some(reset) } else { None };
        record.destroy = Some(destroy);
        Batches { object: &mut *record, functions: Some(record) }
    }

    /// The next batch; None at the end of the epoch.
    pub fn next_batch(&mut self) -> Result<Option<Vec<Tensor>>> {
        let n = unsafe { (*self.object).n_tensors } as usize;
        let (mut out, mut end) = (vec![null_mut(); n], 0);
        check(unsafe { low::tw_iterator_next(self.object, out.as_mut_ptr(), &mut end) })?;
        Ok(if end != 0 { None } else { Some(own(out)) })
    }

    /// Begins an epoch.
    pub fn reset(&mut self, epoch: i64) -> Result<()> {
        check(unsafe { low::tw_iterator_reset(self.object, epoch) })
    }

    /// Whether the batches come from functions of this program.
    pub fn is_program(&self) -> bool {
        self.functions.is_some()
    }
}

impl Iterator for Batches {
    type Item = Result<Vec<Tensor>>;
    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

/// Describes where elements come from and what happens to them: a value of a graph. An element is one or more tensors.
#[derive(Clone, Copy, Debug)]
pub struct Dataset(pub Output);

impl<'g> Scope<'g> {
    /// Has an element for each row of values with equal first sizes.
    #[track_caller]
    pub fn rows(&self, components: &[Output]) -> Dataset {
        self.at();
        Dataset(Output(unsafe { low::tw_dataset_rows(self.object, raw(components), components.len() as u32) }))
    }
    /// Has the numbers from start to stop, as int64.
    #[track_caller]
    pub fn range(&self, start: i64, stop: i64, step: i64) -> Dataset {
        self.at();
        Dataset(Output(unsafe { low::tw_dataset_range(self.object, start, stop, step) }))
    }
    /// Has the lines of text files. files: a vector of strings.
    #[track_caller]
    pub fn lines(&self, files: Output) -> Dataset {
        self.at();
        Dataset(Output(unsafe { low::tw_dataset_lines(self.object, files.0) }))
    }
    /// Has the records of TFRecord files.
    #[track_caller]
    pub fn records(&self, files: Output) -> Dataset {
        self.at();
        Dataset(Output(unsafe { low::tw_dataset_records(self.object, files.0) }))
    }

    fn elements(
        &self, d: Dataset, function: impl FnOnce(&Scope<'g>, &[Output]) -> Vec<Output>, end: unsafe fn(*mut low::tw_scope, u64, *mut low::tw_block) -> u64,
    ) -> Dataset {
        let graph = unsafe { low::tw_scope_graph(self.object) };
        if graph.is_null() {
            return Dataset(Output::default());
        }
        struct Block(*mut low::tw_block); // ends the block if the function panics
        impl Drop for Block {
            fn drop(&mut self) {
                unsafe { low::tw_block_destroy(self.0) }
            }
        }
        unsafe {
            let mut arguments = vec![Output::default(); low::tw_dataset_component_count(graph, d.0 .0) as usize];
            let mut block = Block(low::tw_dataset_block(self.object, d.0 .0, arguments.as_mut_ptr() as *mut u64));
            let inner = Scope::inside(low::tw_block_scope(block.0), self.graph);
            let results = function(&inner, &arguments);
            low::tw_block_give(block.0, raw(&results), results.len() as u32);
            Dataset(Output(end(self.object, d.0 .0, std::mem::replace(&mut block.0, null_mut()))))
        }
    }
}

unsafe fn map(s: *mut low::tw_scope, d: u64, block: *mut low::tw_block) -> u64 {
    low::tw_dataset_map(s, d, block, low::TW_DATASET_AUTO)
}
unsafe fn filter(s: *mut low::tw_scope, d: u64, block: *mut low::tw_block) -> u64 {
    low::tw_dataset_filter(s, d, block)
}

macro_rules! stages {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*) => $call:ident($($more:expr),*);)*) => {
        impl Dataset {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self, s: &Scope<'_>, $($argument: i64),*) -> Dataset {
                s.at();
                Dataset(Output(unsafe { low::$call(s.object, self.0 .0, $($argument,)* $($more),*) }))
            }
        )*}
    };
}
stages! {
    /// Keeps the first elements.
    take(n) => tw_dataset_take();
    /// Drops the first elements.
    skip(n) => tw_dataset_skip();
    /// Keeps each n-th element.
    shard(shards, index) => tw_dataset_shard();
    /// Gives all elements again; -1: without end.
    repeat(n) => tw_dataset_repeat();
    /// Draws each element from a buffer, in another order in each epoch.
    shuffle(buffer, seed) => tw_dataset_shuffle(1);
    /// Stacks elements.
    batch(n) => tw_dataset_batch(0);
    /// Computes elements before they are taken.
    prefetch(n) => tw_dataset_prefetch();
}

impl Dataset {
    /// Gives the results of a function for each element, which adds operations through its scope.
    #[track_caller]
    pub fn map<'g>(self, s: &Scope<'g>, function: impl FnOnce(&Scope<'g>, &[Output]) -> Vec<Output>) -> Dataset {
        s.at();
        s.elements(self, function, map)
    }

    /// Keeps the elements for which a function gives true.
    #[track_caller]
    pub fn filter<'g>(self, s: &Scope<'g>, function: impl FnOnce(&Scope<'g>, &[Output]) -> Output) -> Dataset {
        s.at();
        s.elements(self, |s, e| vec![function(s, e)], filter)
    }

    /// Runs the dataset in a session of its own. Finish the scope first.
    pub fn batches(self, graph: &Graph, session_options: &[&str]) -> Result<Batches> {
        let (_texts, texts) = c_texts(session_options)?;
        let mut o: low::tw_dataset_iterator_options = unsafe { zeroed() };
        unsafe { low::tw_dataset_iterator_options_init(&mut o) };
        o.session = texts.as_ptr();
        o.n_session = texts.len() as u32;
        let mut object = null_mut();
        check(unsafe { low::tw_dataset_iterator_create(graph.0, self.0 .0, &o, &mut object) })?;
        Ok(Batches { object, functions: None })
    }
}
