package thalweg

import (
	"time"

	"thalweg.org/go/low"
)

// Server is one task of a cluster in this process.
type Server struct{ h *handle[low.Server] }

// NewServer makes a server for a task of a cluster: JSON such as {"worker": ["unix:w0"]}. options: "key=value".
func NewServer(cluster, job string, task int, options ...string) (*Server, error) {
	var a arena
	defer a.free()
	var out *low.Server
	if err := check(low.ServerCreate(nil, text(cluster), optionalText(job), uint32(task), a.texts(options), uint32(len(options)), &out)); err != nil {
		return nil, err
	}
	return &Server{newHandle(out, "server", low.ServerDestroy)}, nil
}

func (s *Server) call(f func(*low.Server) *low.Status) error {
	if s == nil {
		return failure(InvalidArgument, "the server is nil; make one with NewServer")
	}
	object, err := s.h.use()
	if err != nil {
		return err
	}
	defer s.h.leave()
	return check(f(object))
}

// Start listens and serves until Stop.
func (s *Server) Start() error { return s.call(low.ServerStart) }

// Stop ends the steps that run here and stops listening.
func (s *Server) Stop() error { return s.call(low.ServerStop) }

// Join waits until the server is stopped; 0: without limit.
func (s *Server) Join(limit time.Duration) error {
	return s.call(func(o *low.Server) *low.Status { return low.ServerJoin(o, int64(limit)) })
}

// Address returns the address at which the server listens.
func (s *Server) Address() (string, error) {
	var out *low.Buffer
	err := s.call(func(o *low.Server) *low.Status { return low.ServerAddress(o, &out) })
	return string(bytesOf(out)), err
}

// ResetCluster empties a container of state on every task of a cluster, as Session.Reset does, and returns the number of objects it held.
// target: the address of any task. container "": "localhost", that of sessions which name none. timeout: within which tasks must answer; 0:
// five seconds. options: as of a session, such as "insecure=true". If a task does not answer, the error names it, all others have emptied
// theirs, and the call may be repeated.
func ResetCluster(target, container string, timeout time.Duration, options ...string) (uint64, error) {
	var a arena
	defer a.free()
	all := append([]string{"target=" + target}, options...)
	var count uint64
	err := check(low.ClusterReset(nil, a.texts(all), uint32(len(all)), text(container), int64(timeout), &count))
	return count, err
}

// Close stops and ends the server.
func (s *Server) Close() {
	if s != nil {
		s.h.close()
	}
}
