package rank

import "time"

// hear notes what the workload says on a stream.
func (w *wrapper) hear(s *stream) {
	listen := w.ready.listenFor()
	s.heard = func(chunk []byte) {
		w.spoke.Store(int64(time.Since(w.end.StartedAt)))
		if listen != nil {
			listen(chunk)
		}
	}
}

// quiet is for how long the workload has written nothing. Its start counts as a word.
func (w *wrapper) quiet() time.Duration {
	return time.Since(w.end.StartedAt) - time.Duration(w.spoke.Load())
}
