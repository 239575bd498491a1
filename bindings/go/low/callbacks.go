package low

/*
#include <stdlib.h>
#include <thalweg/thalweg.h>

void twGoLog(void*, uint32_t, char*, uint64_t);
void twGoRelease(void*);
void twGoRunDone(void*, tw_status*, tw_tensor**);
tw_status* twGoNext(void*, tw_tensor**, uint32_t*);
tw_status* twGoReset(void*, int64_t);
tw_status* twGoBeforeStep(void*, tw_fit_progress*);
tw_status* twGoAfterStep(void*, tw_fit_progress*, uint32_t*);
tw_status* twGoEpochEnd(void*, tw_fit_progress*, uint32_t*);
*/
import "C"

import (
	"fmt"
	"runtime/cgo"
	"unsafe"
)

// The interfaces that a value given to Register may have, one for each kind of callback. A panic in a function becomes a failure, where
// the callback can report one.
type (
	// Logger receives messages of the log: a tw_log_sink.
	Logger interface {
		Log(level uint32, text string)
	}
	// Releaser is told that nobody refers to memory any more.
	Releaser interface{ Release() }
	// Finisher receives the end of an asynchronous run: a tw_run_done. It owns the status and the tensors.
	Finisher interface {
		RunDone(status *Status, fetches **Tensor)
	}
	// Source gives batches: the functions of a tw_iterator.
	Source interface {
		Next(tensors []*Tensor) (end bool, err error)
		Reset(epoch int64) error
	}
	// FitCalls has the functions of a tw_fit_callback.
	FitCalls interface {
		BeforeStep(at *FitProgress) error
		AfterStep(at *FitProgress) (stop bool, err error)
		EpochEnd(at *FitProgress) (stop bool, err error)
	}
)

// Addresses of the functions of C that call a registered value.
var (
	CallLog        = unsafe.Pointer(C.twGoLog)
	CallRelease    = unsafe.Pointer(C.twGoRelease)
	CallRunDone    = unsafe.Pointer(C.twGoRunDone)
	CallNext       = unsafe.Pointer(C.twGoNext)
	CallReset      = unsafe.Pointer(C.twGoReset)
	CallBeforeStep = unsafe.Pointer(C.twGoBeforeStep)
	CallAfterStep  = unsafe.Pointer(C.twGoAfterStep)
	CallEpochEnd   = unsafe.Pointer(C.twGoEpochEnd)
)

// Register keeps a value alive and returns an address for the `user` of callbacks, until Unregister. The address is of memory of C,
// because C may keep no address of Go's.
func Register(value interface{}) unsafe.Pointer {
	cell := (*C.uintptr_t)(C.malloc(C.size_t(unsafe.Sizeof(C.uintptr_t(0)))))
	*cell = C.uintptr_t(cgo.NewHandle(value))
	return unsafe.Pointer(cell)
}

// Unregister ends what Register began.
func Unregister(user unsafe.Pointer) {
	cgo.Handle(*(*C.uintptr_t)(user)).Delete()
	C.free(user)
}

// Registered returns the value of an address.
func Registered(user unsafe.Pointer) interface{} { return cgo.Handle(*(*C.uintptr_t)(user)).Value() }

// Alloc returns zeroed memory of C, which Free frees.
func Alloc(bytes uintptr) unsafe.Pointer { return C.calloc(1, C.size_t(bytes+1)) }

// Free frees memory of Alloc.
func Free(p unsafe.Pointer) { C.free(p) }

// Text copies a text of C; "" for nil.
func Text(p *byte) string {
	if p == nil {
		return ""
	}
	return C.GoString((*C.char)(unsafe.Pointer(p)))
}

// Failure is the status of an error of Go: one with a method Code keeps its code.
func Failure(err error) *Status {
	code := uint32(TW_UNKNOWN)
	if coded, ok := err.(interface{ StatusCode() uint32 }); ok {
		code = coded.StatusCode()
	}
	text := append([]byte(err.Error()), 0)
	return StatusCreate(code, &text[0])
}

func answer(err error) *C.tw_status {
	if err == nil {
		return nil
	}
	return (*C.tw_status)(unsafe.Pointer(Failure(err)))
}

// rescue turns a panic into a failure; a callback must not unwind through C.
func rescue(status **C.tw_status) {
	if cause := recover(); cause != nil {
		*status = answer(fmt.Errorf("panic in a callback: %v", cause))
	}
}

func put(out *C.uint32_t, yes bool) {
	if yes {
		*out = 1
	}
}

//export twGoLog
func twGoLog(user unsafe.Pointer, level C.uint32_t, text *C.char, bytes C.uint64_t) {
	defer func() { _ = recover() }() // a log that panics has nobody to tell
	Registered(user).(Logger).Log(uint32(level), C.GoStringN(text, C.int(bytes)))
}

//export twGoRelease
func twGoRelease(user unsafe.Pointer) {
	value := Registered(user).(Releaser)
	Unregister(user)
	value.Release()
}

//export twGoRunDone
func twGoRunDone(user unsafe.Pointer, status *C.tw_status, fetches **C.tw_tensor) {
	value := Registered(user).(Finisher)
	Unregister(user)
	value.RunDone((*Status)(unsafe.Pointer(status)), (**Tensor)(unsafe.Pointer(fetches)))
}

//export twGoNext
func twGoNext(user unsafe.Pointer, out **C.tw_tensor, outEnd *C.uint32_t) (status *C.tw_status) {
	defer rescue(&status)
	source := Registered(user).(interface {
		Source
		Width() int
	})
	end, err := source.Next(unsafe.Slice((**Tensor)(unsafe.Pointer(out)), source.Width()))
	put(outEnd, end)
	return answer(err)
}

//export twGoReset
func twGoReset(user unsafe.Pointer, epoch C.int64_t) (status *C.tw_status) {
	defer rescue(&status)
	return answer(Registered(user).(Source).Reset(int64(epoch)))
}

//export twGoBeforeStep
func twGoBeforeStep(user unsafe.Pointer, at *C.tw_fit_progress) (status *C.tw_status) {
	defer rescue(&status)
	return answer(Registered(user).(FitCalls).BeforeStep((*FitProgress)(unsafe.Pointer(at))))
}

//export twGoAfterStep
func twGoAfterStep(user unsafe.Pointer, at *C.tw_fit_progress, outStop *C.uint32_t) (status *C.tw_status) {
	defer rescue(&status)
	stop, err := Registered(user).(FitCalls).AfterStep((*FitProgress)(unsafe.Pointer(at)))
	put(outStop, stop)
	return answer(err)
}

//export twGoEpochEnd
func twGoEpochEnd(user unsafe.Pointer, at *C.tw_fit_progress, outStop *C.uint32_t) (status *C.tw_status) {
	defer rescue(&status)
	stop, err := Registered(user).(FitCalls).EpochEnd((*FitProgress)(unsafe.Pointer(at)))
	put(outStop, stop)
	return answer(err)
}
