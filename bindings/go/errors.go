package thalweg

import (
	"errors"
	"fmt"

	"thalweg.org/go/low"
)

// Code says what a caller can do about a failure. A code is an error itself, so that errors.Is(err, thalweg.NotFound) tests for it.
type Code uint32

// The codes of failures.
const (
	Cancelled          Code = low.TW_CANCELLED
	Unknown            Code = low.TW_UNKNOWN
	InvalidArgument    Code = low.TW_INVALID_ARGUMENT
	DeadlineExceeded   Code = low.TW_DEADLINE_EXCEEDED
	NotFound           Code = low.TW_NOT_FOUND
	AlreadyExists      Code = low.TW_ALREADY_EXISTS
	PermissionDenied   Code = low.TW_PERMISSION_DENIED
	ResourceExhausted  Code = low.TW_RESOURCE_EXHAUSTED
	FailedPrecondition Code = low.TW_FAILED_PRECONDITION
	Aborted            Code = low.TW_ABORTED
	OutOfRange         Code = low.TW_OUT_OF_RANGE
	Unimplemented      Code = low.TW_UNIMPLEMENTED
	Internal           Code = low.TW_INTERNAL
	Unavailable        Code = low.TW_UNAVAILABLE
	DataLoss           Code = low.TW_DATA_LOSS
	Unauthenticated    Code = low.TW_UNAUTHENTICATED
)

// Error returns the name of the code, such as "INVALID_ARGUMENT".
func (c Code) Error() string { return low.Text(low.StatusCodeName(uint32(c))) }

// Error is a failure that the library reports.
type Error struct {
	Code      Code
	Message   string
	Operation string // the name of the operation that failed; "" if there is none
	Place     string // the line of the program that made the operation; "" if unknown
	cause     error  // of a cancelled run: the context's
}

// Error returns the message, which names the operation, the wrong value and the remedy.
func (e *Error) Error() string { return e.Message }

// Is tells whether the failure has the code `target`.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap returns the error of the context that cancelled the run, or nil.
func (e *Error) Unwrap() error { return e.cause }

// StatusCode is the code as a number, for callbacks that give the error back to the library.
func (e *Error) StatusCode() uint32 { return uint32(e.Code) }

// check makes an error of a status, which it releases.
func check(status *low.Status) error {
	if status == nil {
		return nil
	}
	err := &Error{Code: Code(low.StatusCode(status)), Message: low.Text(low.StatusMessage(status)),
		Operation: low.Text(low.StatusOperation(status)), Place: low.Text(low.StatusPlace(status))}
	low.StatusRelease(status)
	return err
}

func failure(code Code, format string, values ...interface{}) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, values...)}
}

// CodeOf returns the code of an error: 0 for nil, Unknown for an error that is not the library's.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return Unknown
	}
	return 0
}

// Must returns the value, and panics if there is an error; for examples and tests.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
