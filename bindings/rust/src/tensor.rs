//! Tensors.
use crate::error::{check, string_of, text, Error, Result};
use crate::low;
use std::ffi::c_void;
use std::fmt;

/// An element type, by its number in types.h.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DType(pub u32);

impl DType {
    pub const FLOAT: DType = DType(low::TW_FLOAT);
    pub const DOUBLE: DType = DType(low::TW_DOUBLE);
    pub const INT32: DType = DType(low::TW_INT32);
    pub const INT64: DType = DType(low::TW_INT64);
    pub const UINT8: DType = DType(low::TW_UINT8);
    pub const BOOL: DType = DType(low::TW_BOOL);
    pub const STRING: DType = DType(low::TW_STRING);
    pub const HALF: DType = DType(low::TW_HALF);
    pub const BFLOAT16: DType = DType(low::TW_BFLOAT16);
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(unsafe { low::tw_dtype_name(self.0) }).unwrap_or_else(|| format!("dtype {}", self.0)))
    }
}

/// Sizes, -1 for an unknown one; None: not even the number of axes is known.
pub type Shape<'a> = Option<&'a [i64]>;

/// A type of Rust that is an element type, too.
///
/// # Safety
/// Every pattern of bits must be a value, and `DTYPE` must be the type of that size and meaning.
pub unsafe trait Element: Copy + Send + 'static {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty = $number:ident),*) => {$(unsafe impl Element for $rust { const DTYPE: DType = DType(low::$number); })*};
}
elements!(f32 = TW_FLOAT, f64 = TW_DOUBLE, i8 = TW_INT8, i16 = TW_INT16, i32 = TW_INT32, i64 = TW_INT64, u8 = TW_UINT8, u16 = TW_UINT16,
    u32 = TW_UINT32, u64 = TW_UINT64);

/// An array of one element type in the library's memory. A clone is another reference to the same elements.
pub struct Tensor(*mut low::tw_tensor);

// SAFETY: counts are atomic; the elements can be written only through `data_mut`, which refuses a tensor that anybody shares.
unsafe impl Send for Tensor {}
unsafe impl Sync for Tensor {}

impl Clone for Tensor {
    fn clone(&self) -> Tensor {
        unsafe { low::tw_tensor_retain(self.0) };
        Tensor(self.0)
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        unsafe { low::tw_tensor_release(self.0) }
    }
}

unsafe extern "C" fn drop_vector<T>(user: *mut c_void) {
    drop(Box::from_raw(user as *mut Vec<T>));
}

impl Tensor {
    /// Owns what `make` puts in place.
    pub(crate) fn make(make: impl FnOnce(*mut *mut low::tw_tensor) -> *mut low::tw_status) -> Result<Tensor> {
        let mut made = std::ptr::null_mut();
        check(make(&mut made))?;
        Ok(Tensor(made))
    }

    pub(crate) fn own(object: *mut low::tw_tensor) -> Tensor {
        Tensor(object)
    }

    pub(crate) fn raw(&self) -> *mut low::tw_tensor {
        self.0
    }

    /// Copies a slice. `dims`: the size of each axis.
    pub fn new<T: Element>(data: &[T], dims: &[i64]) -> Result<Tensor> {
        let bytes = std::mem::size_of_val(data) as u64;
        Tensor::make(|out| unsafe {
            low::tw_tensor_create_copy(T::DTYPE.0, dims.as_ptr(), dims.len() as u32, data.as_ptr() as *const c_void, bytes, out)
        })
    }

    /// Takes a vector without copying it; it is dropped when nobody refers to the tensor any more, on any thread.
    pub fn from_vec<T: Element>(data: Vec<T>, dims: &[i64]) -> Result<Tensor> {
        let bytes = std::mem::size_of_val(data.as_slice()) as u64;
        let kept = Box::into_raw(Box::new(data));
        let address = unsafe { (*kept).as_mut_ptr() } as *mut c_void;
        Tensor::make(|out| unsafe {
            low::tw_tensor_create_from(T::DTYPE.0, dims.as_ptr(), dims.len() as u32, address, bytes, Some(drop_vector::<T>), kept as *mut c_void, out)
        })
    }

    /// Makes a tensor of zeros, which `data_mut` fills.
    pub fn zeros<T: Element>(dims: &[i64]) -> Result<Tensor> {
        Tensor::make(|out| unsafe { low::tw_tensor_create(T::DTYPE.0, dims.as_ptr(), dims.len() as u32, out) })
    }

    /// Makes a tensor without axes.
    pub fn scalar<T: Element>(value: T) -> Result<Tensor> {
        Tensor::new(&[value], &[])
    }

    /// Makes a tensor of texts or bytes.
    pub fn strings<S: AsRef<[u8]>>(data: &[S], dims: &[i64]) -> Result<Tensor> {
        let tensor = Tensor::make(|out| unsafe { low::tw_tensor_create(low::TW_STRING, dims.as_ptr(), dims.len() as u32, out) })?;
        if tensor.len() != data.len() {
            return Err(Error::invalid(format!("{} texts do not fill sizes {:?}", data.len(), dims)));
        }
        for (i, s) in data.iter().enumerate() {
            let s = s.as_ref();
            check(unsafe { low::tw_tensor_set_string(tensor.0, i as u64, s.as_ptr() as *const _, s.len() as u64) })?;
        }
        Ok(tensor)
    }

    pub fn dtype(&self) -> DType {
        DType(unsafe { low::tw_tensor_dtype(self.0) })
    }

    /// The sizes.
    pub fn shape(&self) -> &[i64] {
        let rank = unsafe { low::tw_tensor_rank(self.0) } as usize;
        if rank == 0 {
            return &[];
        }
        unsafe { std::slice::from_raw_parts(low::tw_tensor_dims(self.0), rank) }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        unsafe { low::tw_tensor_count(self.0) as usize }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn expect<T: Element>(&self) -> Result<()> {
        if self.dtype() != T::DTYPE {
            return Err(Error::invalid(format!("the tensor holds {:?}, not {:?}", self.dtype(), T::DTYPE)));
        }
        if !unsafe { low::tw_tensor_device(self.0) }.is_null() {
            return Err(Error::new(crate::Code::FailedPrecondition, "the tensor is in a device's memory; use to_host first"));
        }
        Ok(())
    }

    /// The elements, without a copy.
    pub fn data<T: Element>(&self) -> Result<&[T]> {
        self.expect::<T>()?;
        if self.is_empty() {
            return Ok(&[]);
        }
        Ok(unsafe { std::slice::from_raw_parts(low::tw_tensor_data(self.0) as *const T, self.len()) })
    }

    /// The elements for writing: FAILED_PRECONDITION if anybody else refers to the tensor or its memory.
    pub fn data_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        self.expect::<T>()?;
        if self.is_empty() {
            return Ok(&mut []);
        }
        let data = unsafe { low::tw_tensor_mutable_data(self.0) } as *mut T;
        if data.is_null() {
            return Err(Error::new(crate::Code::FailedPrecondition, "the tensor is shared, or its memory is read-only"));
        }
        Ok(unsafe { std::slice::from_raw_parts_mut(data, self.len()) })
    }

    /// The only element.
    pub fn item<T: Element>(&self) -> Result<T> {
        match self.data::<T>()? {
            [one] => Ok(*one),
            all => Err(Error::invalid(format!("the tensor has {} elements, not one", all.len()))),
        }
    }

    /// Bytes of string `i`.
    pub fn string(&self, i: usize) -> Result<&[u8]> {
        let (mut data, mut bytes) = (std::ptr::null(), 0);
        check(unsafe { low::tw_tensor_get_string(self.0, i as u64, &mut data, &mut bytes) })?;
        if bytes == 0 {
            return Ok(&[]);
        }
        Ok(unsafe { std::slice::from_raw_parts(data as *const u8, bytes as usize) })
    }

    /// The same elements under other sizes; the memory is shared.
    pub fn reshape(&self, dims: &[i64]) -> Result<Tensor> {
        Tensor::make(|out| unsafe { low::tw_tensor_reshape(self.0, dims.as_ptr(), dims.len() as u32, out) })
    }

    /// The same elements in host memory.
    pub fn to_host(&self) -> Result<Tensor> {
        Tensor::make(|out| unsafe { low::tw_tensor_to_host(self.0, out) })
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = std::ptr::null_mut();
        match check(unsafe { low::tw_tensor_text(self.0, 20, &mut out) }) {
            Ok(()) => f.write_str(&string_of(out)),
            Err(e) => write!(f, "{}", e),
        }
    }
}

/// Reads the numbers of a file with commas between them, a row for each line.
pub fn read_csv(path: &str) -> Result<Vec<Vec<f32>>> {
    let contents = std::fs::read_to_string(path).map_err(|e| Error::new(Error::from(e).code, format!("cannot read '{}'", path)))?;
    let cell = |line: usize, text: &str| {
        text.trim().parse().map_err(|_| Error::invalid(format!("{}:{}: '{}' is not a number", path, line + 1, text)))
    };
    contents.lines().enumerate().map(|(i, line)| line.split(',').map(|c| cell(i, c)).collect()).collect()
}
