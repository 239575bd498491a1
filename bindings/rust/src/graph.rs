//! Graphs, scopes that add operations, and operations.
use crate::error::{bytes_of, c_lossy, c_text, check, status, text, Error, Result};
use crate::low;
use crate::{DType, Shape, Tensor};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr::{null, null_mut};

/// A value of a graph. The default is none: what a scope returns after a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Output(pub(crate) low::tw_output);

pub(crate) fn raw(outputs: &[Output]) -> *const low::tw_output {
    outputs.as_ptr() as *const low::tw_output // Output is transparent
}

/// A graph of operations.
pub struct Graph(pub(crate) *mut low::tw_graph);

// SAFETY: graph.h: adding locks, looking does not need to.
unsafe impl Send for Graph {}
unsafe impl Sync for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        unsafe { low::tw_graph_destroy(self.0) }
    }
}

/// One operation of a graph.
#[derive(Clone, Copy)]
pub struct Operation<'g> {
    pub(crate) object: *const low::tw_operation,
    graph: PhantomData<&'g Graph>,
}

// SAFETY: op.h: any thread may look at an operation.
unsafe impl Send for Operation<'_> {}
unsafe impl Sync for Operation<'_> {}

impl<'g> Operation<'g> {
    pub(crate) fn of(object: *const low::tw_operation) -> Option<Operation<'g>> {
        if object.is_null() {
            return None;
        }
        Some(Operation { object, graph: PhantomData })
    }
    pub fn name(&self) -> String {
        text(unsafe { low::tw_operation_name(self.object) }).unwrap_or_default()
    }
    /// The name of the op.
    pub fn op(&self) -> String {
        text(unsafe { low::tw_operation_type(self.object) }).unwrap_or_default()
    }
    /// Value `i`; none if there is no such value.
    pub fn output(&self, i: u32) -> Output {
        Output(unsafe { low::tw_operation_output(self.object, i) })
    }
    pub fn outputs(&self) -> Vec<Output> {
        (0..unsafe { low::tw_operation_output_count(self.object) }).map(|i| self.output(i)).collect()
    }
}

/// A variable of a graph.
#[derive(Clone, Debug)]
pub struct Variable {
    pub handle: Output,
    pub name: String,
    pub dtype: DType,
    pub shape: Option<Vec<i64>>,
}

pub(crate) fn shape_of(shape: &low::tw_shape) -> Option<Vec<i64>> {
    match shape.rank {
        r if r < 0 => None,
        0 => Some(Vec::new()),
        r => Some(unsafe { std::slice::from_raw_parts(shape.dims, r as usize) }.to_vec()),
    }
}

pub(crate) fn describe(graph: *const low::tw_graph, value: Output) -> Result<(DType, Option<Vec<i64>>)> {
    let (mut dtype, mut shape) = (0, low::tw_shape { dims: null(), rank: -1, reserved: 0 });
    check(unsafe { low::tw_graph_describe(graph, value.0, &mut dtype, &mut shape) })?;
    Ok((DType(dtype), shape_of(&shape)))
}

impl Graph {
    pub fn new() -> Result<Graph> {
        let mut made = null_mut();
        check(unsafe { low::tw_graph_create(null_mut(), &mut made) })?;
        Ok(Graph(made))
    }

    /// Makes a graph of a serialised GraphDef.
    pub fn import(bytes: &[u8]) -> Result<Graph> {
        let graph = Graph::new()?;
        check(unsafe { low::tw_graph_import(graph.0, bytes.as_ptr() as *const c_void, bytes.len() as u64, null()) })?;
        Ok(graph)
    }

    /// The graph as a serialised GraphDef.
    pub fn export(&self) -> Result<Vec<u8>> {
        let mut out = null_mut();
        check(unsafe { low::tw_graph_export(self.0, &mut out) })?;
        Ok(bytes_of(out))
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        unsafe { low::tw_graph_count(self.0) as usize }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Finds an operation by its name.
    pub fn operation(&self, name: &str) -> Result<Operation<'_>> {
        let (name, mut found) = (c_text(name)?, null());
        check(unsafe { low::tw_graph_find(self.0, name.as_ptr(), &mut found) })?;
        Operation::of(found).ok_or_else(|| Error::invalid("no operation"))
    }

    /// Finds a value by its name: "x" or "x:1".
    pub fn output(&self, name: &str) -> Result<Output> {
        let (name, mut found) = (c_text(name)?, 0);
        check(unsafe { low::tw_graph_find_output(self.0, name.as_ptr(), &mut found) })?;
        Ok(Output(found))
    }

    /// The element type and the shape of a value; None: not even the number of axes is known.
    pub fn describe(&self, value: Output) -> Result<(DType, Option<Vec<i64>>)> {
        describe(self.0, value)
    }

    /// The variables that the graph has now.
    pub fn variables(&self) -> Result<Vec<Variable>> {
        let mut list = null_mut();
        check(unsafe { low::tw_variables_create(self.0, &mut list) })?;
        let one = |i| {
            let (mut dtype, mut shape) = (0, low::tw_shape { dims: null(), rank: -1, reserved: 0 });
            check(unsafe { low::tw_variables_describe(list, i, &mut dtype, &mut shape) })?;
            let (handle, name) = unsafe { (low::tw_variables_handle(list, i), low::tw_variables_name(list, i)) };
            Ok(Variable { handle: Output(handle), name: text(name).unwrap_or_default(), dtype: DType(dtype), shape: shape_of(&shape) })
        };
        let all = (0..unsafe { low::tw_variables_count(list) }).map(one).collect();
        unsafe { low::tw_variables_destroy(list) };
        all
    }

    /// Begins to add operations, whose names have the prefix; "" for none.
    pub fn scope(&self, prefix: &str) -> Scope<'_> {
        let text = c_lossy(prefix);
        let prefix = if prefix.is_empty() { null() } else { text.as_ptr() };
        Scope { object: unsafe { low::tw_scope_create(self.0, prefix) }, owned: true, graph: self }
    }
}

/// Adds operations to a graph. It keeps its first failure: calls after it do nothing, and `finish` returns it. One thread at a time, so
/// that a scope is `Send` and not `Sync`.
pub struct Scope<'g> {
    pub(crate) object: *mut low::tw_scope,
    owned: bool, // a block's scope ends with the block
    pub(crate) graph: &'g Graph,
}

// SAFETY: a scope may move to another thread; raw pointers keep it from being Sync.
unsafe impl Send for Scope<'_> {}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if self.owned {
            unsafe { low::tw_status_release(low::tw_scope_finish(self.object)) }
        }
    }
}

/// Describes one operation; module `ops` uses one for each op.
pub struct Builder {
    pub(crate) object: *mut low::tw_op,
}

impl Drop for Builder {
    fn drop(&mut self) {
        unsafe { low::tw_op_destroy(self.object) }
    }
}

impl<'g> Scope<'g> {
    pub(crate) fn inside(object: *mut low::tw_scope, graph: &'g Graph) -> Scope<'g> {
        Scope { object, owned: false, graph }
    }

    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Ends the scope and returns its first failure.
    pub fn finish(mut self) -> Result<()> {
        if !self.owned {
            return Err(Error::new(crate::Code::FailedPrecondition, "the scope of a function of elements ends with the function"));
        }
        self.owned = false;
        check(unsafe { low::tw_scope_finish(self.object) })
    }

    /// Reports a failure of a function that builds on scopes.
    pub fn fail(&self, error: Error) {
        unsafe { low::tw_scope_fail(self.object, status(Err(error))) }
    }

    pub(crate) fn try_or<T>(&self, result: Result<T>, otherwise: T) -> T {
        result.unwrap_or_else(|e| {
            self.fail(e);
            otherwise
        })
    }

    /// Sets the device of the operations that follow, such as "CPU:0"; "" for any.
    pub fn set_device(&self, device: &str) {
        unsafe { low::tw_scope_set_device(self.object, c_lossy(device).as_ptr()) }
    }

    /// Records the line of the program for the operations that follow.
    #[track_caller]
    pub(crate) fn at(&self) {
        let l = Location::caller();
        let file = l.file().rsplit('/').next().unwrap_or("");
        unsafe { low::tw_scope_set_place(self.object, c_lossy(&format!("{}:{}", file, l.line())).as_ptr()) }
    }

    /// Begins an operation of an op.
    #[track_caller]
    pub fn begin(&self, op: &str, name: Option<&str>) -> Builder {
        self.at();
        let name = name.map(c_lossy);
        Builder { object: unsafe { low::tw_scope_begin(self.object, c_lossy(op).as_ptr(), name.as_ref().map_or(null(), |n| n.as_ptr())) } }
    }

    /// Adds the operation; None after a failure.
    pub fn end(&self, mut builder: Builder) -> Option<Operation<'g>> {
        let object = std::mem::replace(&mut builder.object, null_mut());
        Operation::of(unsafe { low::tw_scope_end_operation(self.object, object) })
    }

    /// Adds an operation with default attributes and returns its first value.
    #[track_caller]
    pub fn op(&self, op: &str, inputs: &[Output]) -> Output {
        self.at();
        Output(unsafe { low::tw_scope_op(self.object, c_lossy(op).as_ptr(), raw(inputs), inputs.len() as u32) })
    }

    /// Adds a value that each run feeds. -1 is an unknown size.
    #[track_caller]
    pub fn placeholder(&self, name: &str, dtype: DType, dims: &[i64]) -> Output {
        self.at();
        Output(unsafe { low::tw_scope_placeholder(self.object, c_lossy(name).as_ptr(), dtype.0, dims.as_ptr(), dims.len() as i32) })
    }

    #[track_caller]
    pub fn constant(&self, value: &Tensor) -> Output {
        self.at();
        Output(unsafe { low::tw_scope_constant(self.object, value.raw()) })
    }

    /// Adds a constant number of a type.
    #[track_caller]
    pub fn scalar(&self, dtype: DType, value: f64) -> Output {
        self.at();
        Output(unsafe { low::tw_scope_scalar(self.object, dtype.0, value) })
    }

    /// Adds a constant vector of int32: sizes, axes.
    #[track_caller]
    pub fn ints(&self, values: &[i32]) -> Output {
        self.at();
        Output(unsafe { low::tw_scope_ints(self.object, values.as_ptr(), values.len() as u32) })
    }

    /// Gives a value a name, by which it can be fed, fetched and found.
    #[track_caller]
    pub fn name(&self, name: &str, value: Output) -> Output {
        self.at();
        Output(unsafe { low::tw_scope_name(self.object, c_lossy(name).as_ptr(), value.0) })
    }

    /// Adds an operation that runs others.
    #[track_caller]
    pub fn group(&self, name: &str, operations: &[Operation<'g>]) -> Option<Operation<'g>> {
        self.at();
        let all: Vec<_> = operations.iter().map(|o| o.object).collect();
        Operation::of(unsafe { low::tw_scope_group(self.object, c_lossy(name).as_ptr(), all.as_ptr(), all.len() as u32) })
    }

    /// Adds a variable that `initializer` sets to a value.
    #[track_caller]
    pub fn variable(&self, name: &str, initial: Output) -> Output {
        self.at();
        Output(unsafe { low::tw_variable_create(self.object, c_lossy(name).as_ptr(), initial.0) })
    }

    #[track_caller]
    pub fn read(&self, variable: Output) -> Output {
        self.at();
        Output(unsafe { low::tw_variable_read(self.object, variable.0) })
    }

    #[track_caller]
    pub fn assign(&self, variable: Output, value: Output) -> Option<Operation<'g>> {
        self.at();
        Operation::of(unsafe { low::tw_variable_assign(self.object, variable.0, value.0) })
    }

    /// Adds the operation that sets all variables that the graph has now to their first values.
    #[track_caller]
    pub fn initializer(&self, name: &str) -> Option<Operation<'g>> {
        self.at();
        Operation::of(unsafe { low::tw_variable_initializer(self.object, c_lossy(name).as_ptr()) })
    }

    #[track_caller]
    pub fn add(&self, a: Output, b: Output) -> Output {
        self.op("Add", &[a, b])
    }
    #[track_caller]
    pub fn sub(&self, a: Output, b: Output) -> Output {
        self.op("Sub", &[a, b])
    }
    #[track_caller]
    pub fn mul(&self, a: Output, b: Output) -> Output {
        self.op("Mul", &[a, b])
    }
    #[track_caller]
    pub fn matmul(&self, a: Output, b: Output) -> Output {
        self.op("MatMul", &[a, b])
    }
    /// Gives a value other sizes, of which one may be -1.
    #[track_caller]
    pub fn reshape(&self, x: Output, dims: &[i32]) -> Output {
        let dims = self.ints(dims);
        self.op("Reshape", &[x, dims])
    }
    /// The mean of all elements.
    #[track_caller]
    pub fn mean(&self, x: Output) -> Output {
        let axes = self.axes(x);
        self.op("Mean", &[x, axes])
    }
    /// The sum of all elements.
    #[track_caller]
    pub fn sum(&self, x: Output) -> Output {
        let axes = self.axes(x);
        self.op("Sum", &[x, axes])
    }

    /// The shape of a value in the making, or a failure.
    pub(crate) fn shape(&self, x: Output) -> Result<Vec<i64>> {
        let graph = unsafe { low::tw_scope_graph(self.object) };
        if graph.is_null() {
            return Ok(vec![1, 1]); // the scope has failed; nothing is added any more
        }
        describe(graph, x)?.1.ok_or_else(|| Error::invalid("the number of axes must be known"))
    }

    #[track_caller]
    fn axes(&self, x: Output) -> Output {
        let rank = self.try_or(self.shape(x), Vec::new()).len() as i32;
        self.ints(&(0..rank).collect::<Vec<_>>())
    }
}

macro_rules! setters {
    ($($name:ident($value:ident: $kind:ty) => $call:ident($($argument:expr),*);)*) => {
        impl Builder {$(
            pub fn $name(&self, attr: &str, $value: $kind) {
                unsafe { low::$call(self.object, c_lossy(attr).as_ptr(), $($argument),*) }
            }
        )*}
    };
}
setters! {
    set_int(v: i64) => tw_op_set_int(v);
    set_float(v: f64) => tw_op_set_float(v);
    set_bool(v: bool) => tw_op_set_bool(v as u8);
    set_string(v: &str) => tw_op_set_string(v.as_ptr() as *const _, v.len() as u64);
    set_type(v: DType) => tw_op_set_type(v.0);
    set_shape(v: Shape<'_>) => tw_op_set_shape(v.map_or(null(), |d| d.as_ptr()), v.map_or(-1, |d| d.len() as i32));
    set_tensor(v: &Tensor) => tw_op_set_tensor(v.raw());
    set_func(v: &str) => tw_op_set_func(c_lossy(v).as_ptr());
    set_ints(v: &[i64]) => tw_op_set_ints(v.as_ptr(), v.len() as u32);
    set_floats(v: &[f64]) => tw_op_set_floats(v.as_ptr(), v.len() as u32);
    set_bools(v: &[bool]) => tw_op_set_bools(v.as_ptr() as *const u8, v.len() as u32);
    set_types(v: &[DType]) => tw_op_set_types(v.iter().map(|d| d.0).collect::<Vec<_>>().as_ptr(), v.len() as u32);
    set_strings(v: &[&str]) => tw_op_set_strings(strings(v).as_ptr(), v.len() as u32);
    set_funcs(v: &[&str]) => tw_op_set_funcs(strings(v).as_ptr(), v.len() as u32);
    set_shapes(v: &[Shape<'_>]) => tw_op_set_shapes(shapes(v).as_ptr(), v.len() as u32);
    set_tensors(v: &[&Tensor]) => tw_op_set_tensors(v.iter().map(|t| t.raw()).collect::<Vec<_>>().as_ptr(), v.len() as u32);
}

fn strings(all: &[&str]) -> Vec<low::tw_string> {
    all.iter().map(|s| low::tw_string { data: s.as_ptr() as *const _, size: s.len() as u64 }).collect()
}

pub(crate) fn shapes(all: &[Shape<'_>]) -> Vec<low::tw_shape> {
    all.iter().map(|s| low::tw_shape { dims: s.map_or(null(), |d| d.as_ptr()), rank: s.map_or(-1, |d| d.len() as i32), reserved: 0 }).collect()
}

impl Builder {
    pub fn input(&self, value: Output) {
        unsafe { low::tw_op_add_input(self.object, value.0) }
    }
    /// Adds the values of a list.
    pub fn inputs(&self, values: &[Output]) {
        unsafe { low::tw_op_add_inputs(self.object, raw(values), values.len() as u32) }
    }
    /// Makes the operation run after another.
    pub fn after(&self, before: Operation<'_>) {
        unsafe { low::tw_op_add_control(self.object, before.object) }
    }
    pub fn set_device(&self, device: &str) {
        unsafe { low::tw_op_set_device(self.object, c_lossy(device).as_ptr()) }
    }
}
