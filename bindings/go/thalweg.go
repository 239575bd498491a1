// Package thalweg runs and trains machine-learning models.
//
// A Graph holds operations, which a Scope adds. A Session runs them; a Callable is a prepared run. A Trainer runs a training loop over the
// batches of an Iterator; a Saver writes the variables to a checkpoint. Load reads a model file, and runs it by the names in the file.
//
// Failures are errors of type *Error, with a code that errors.Is tests for: errors.Is(err, thalweg.NotFound). Their messages name the line
// of the program that made the failed operation. Runs take a context, and end when it is done. Objects have a Close, which any goroutine
// may call at any time; the garbage collector closes what is forgotten. Any goroutine may use any object, except that a Scope, an Iterator
// and a Trainer serve one goroutine at a time.
//
// Package ops has a function for each op, package low every function of the C API.
package thalweg

import (
	"runtime"
	"strconv"
	"strings"
	"sync"

	"thalweg.org/go/low"
)

// Version returns the version of the library.
func Version() string { return low.Text(low.VersionString()) }

// Level is the level of a message of the log.
type Level uint32

// The levels of the log.
const (
	LogDebug   Level = low.TW_LOG_DEBUG
	LogInfo    Level = low.TW_LOG_INFO
	LogWarning Level = low.TW_LOG_WARNING
	LogError   Level = low.TW_LOG_ERROR
)

type logger func(Level, string)

func (f logger) Log(level uint32, text string) { f(Level(level), text) }

var logging sync.Mutex

// SetLog sends messages of at least that level to the function, which may be called from any thread; nil ends the log. An earlier function
// may still be running when SetLog returns, so that its registration is kept.
func SetLog(least Level, sink func(Level, string)) error {
	logging.Lock()
	defer logging.Unlock()
	if sink == nil {
		return check(low.LogSetSink(nil, nil, nil, uint32(least)))
	}
	return check(low.LogSetSink(nil, low.CallLog, low.Register(logger(sink)), uint32(least)))
}

// LoadPlugin loads a plugin that the runtime does not find by itself.
func LoadPlugin(path string) error { return check(low.PluginLoad(nil, text(path))) }

// Devices returns the names of the devices.
func Devices() ([]string, error) {
	var devices *low.Devices
	if err := check(low.DevicesCreate(nil, &devices)); err != nil {
		return nil, err
	}
	defer low.DevicesDestroy(devices)
	names := make([]string, low.DevicesCount(devices))
	for i := range names {
		names[i] = low.Text(low.DevicesName(devices, uint32(i)))
	}
	return names, nil
}

const module = "thalweg.org/go"

// place is the line of the program that called into this module: "train.go:18".
func place() string {
	var counters [16]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	for {
		frame, more := frames.Next()
		inside := strings.HasPrefix(frame.Function, module+".") || strings.HasPrefix(frame.Function, module+"/ops.")
		if !inside || !more {
			return frame.File[strings.LastIndexByte(frame.File, '/')+1:] + ":" + strconv.Itoa(frame.Line)
		}
	}
}
