//! Failures, and texts of C.
use crate::low;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;

pub type Result<T> = std::result::Result<T, Error>;

macro_rules! codes {
    ($($name:ident = $value:ident),*) => {
        /// What a caller can do about a failure; types.h describes each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code { $($name),* }
        impl Code {
            pub(crate) fn of(value: u32) -> Code {
                match value { $(low::$value => Code::$name,)* _ => Code::Unknown }
            }
            pub(crate) fn number(self) -> u32 {
                match self { $(Code::$name => low::$value),* }
            }
        }
    };
}
codes!(Cancelled = TW_CANCELLED, Unknown = TW_UNKNOWN, InvalidArgument = TW_INVALID_ARGUMENT, DeadlineExceeded = TW_DEADLINE_EXCEEDED,
    NotFound = TW_NOT_FOUND, AlreadyExists = TW_ALREADY_EXISTS, PermissionDenied = TW_PERMISSION_DENIED,
    ResourceExhausted = TW_RESOURCE_EXHAUSTED, FailedPrecondition = TW_FAILED_PRECONDITION, Aborted = TW_ABORTED,
    OutOfRange = TW_OUT_OF_RANGE, Unimplemented = TW_UNIMPLEMENTED, Internal = TW_INTERNAL, Unavailable = TW_UNAVAILABLE,
    DataLoss = TW_DATA_LOSS, Unauthenticated = TW_UNAUTHENTICATED);

/// A failure.
#[derive(Clone, Debug)]
pub struct Error {
    pub code: Code,
    /// Names the operation, the wrong value and the remedy.
    pub message: String,
    /// The name of the operation that failed.
    pub operation: Option<String>,
    /// The line of the program that made the operation.
    pub place: Option<String>,
}

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), operation: None, place: None }
    }
    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error::new(Code::InvalidArgument, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Error {
        let code = if e.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::Unknown };
        Error::new(code, e.to_string())
    }
}

/// Copies a text of C; None for NULL.
pub(crate) fn text(from: *const c_char) -> Option<String> {
    if from.is_null() {
        return None;
    }
    Some(unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
}

/// A text for C.
pub(crate) fn c_text(from: &str) -> Result<CString> {
    CString::new(from).map_err(|_| Error::invalid(format!("'{}' has a zero byte in it", from.escape_default())))
}

/// A text for a name or place that only informs: a zero byte ends it.
pub(crate) fn c_lossy(from: &str) -> CString {
    CString::new(from.split('\0').next().unwrap_or("")).unwrap_or_default()
}

/// Texts for C, and their addresses, which are valid as long as the first.
pub(crate) fn c_texts(from: &[&str]) -> Result<(Vec<CString>, Vec<*const c_char>)> {
    let texts: Vec<CString> = from.iter().map(|t| c_text(t)).collect::<Result<_>>()?;
    let addresses = texts.iter().map(|t| t.as_ptr()).collect();
    Ok((texts, addresses))
}

/// Makes a result of a status, which it releases.
pub(crate) fn check(status: *mut low::tw_status) -> Result<()> {
    if status.is_null() {
        return Ok(());
    }
    let error = unsafe {
        Error {
            code: Code::of(low::tw_status_code(status)),
            message: text(low::tw_status_message(status)).unwrap_or_default(),
            operation: text(low::tw_status_operation(status)),
            place: text(low::tw_status_place(status)),
        }
    };
    unsafe { low::tw_status_release(status) };
    Err(error)
}

/// A status for the library of a result of a callback.
pub(crate) fn status(result: Result<()>) -> *mut low::tw_status {
    match result {
        Ok(()) => std::ptr::null_mut(),
        Err(e) => unsafe { low::tw_status_create(e.code.number(), c_lossy(&e.message).as_ptr()) },
    }
}

/// Runs a callback; a panic becomes a failure, because it must not unwind through C.
pub(crate) fn guarded(call: impl FnOnce() -> Result<()>) -> *mut low::tw_status {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).unwrap_or_else(|cause| {
        let why = cause.downcast_ref::<&str>().map(|s| s.to_string()).or_else(|| cause.downcast_ref::<String>().cloned());
        Err(Error::new(Code::Unknown, format!("panic in a callback: {}", why.unwrap_or_default())))
    });
    status(result)
}

/// Takes the bytes of a buffer.
pub(crate) fn bytes_of(buffer: *mut low::tw_buffer) -> Vec<u8> {
    if buffer.is_null() {
        return Vec::new();
    }
    let (data, n) = unsafe { (low::tw_buffer_data(buffer) as *const u8, low::tw_buffer_bytes(buffer) as usize) };
    let bytes = if n == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(data, n) }.to_vec() };
    unsafe { low::tw_buffer_release(buffer) };
    bytes
}

pub(crate) fn string_of(buffer: *mut low::tw_buffer) -> String {
    String::from_utf8_lossy(&bytes_of(buffer)).into_owned()
}
