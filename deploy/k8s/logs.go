package k8s

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"assay/pkg/pod"
)

// read reads the log once, from where the last attempt ended. A live one is read
// until a little after the end of the pod: kubelets take seconds to say that a log
// has ended.
func (s *session) read(ctx context.Context, live bool) (bytes int64, err error) {
	c, err := s.t.client(s.j.Kubeconfig, s.j.Context)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	params := map[string]string{"container": pod.Container, "timestamps": "true", "follow": strconv.FormatBool(live)}
	if s.since != "" {
		params["sinceTime"] = s.since
	}
	body, err := c.stream(ctx, apiCore+s.j.Namespace+"/pods/"+s.pod+"/log", params)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	if live {
		go s.endWith(ctx, cancel)
	}
	return s.lines(body)
}

// lines reads a log to its end, or to its last record.
func (s *session) lines(body io.Reader) (n int64, err error) {
	s.log.Resume()
	r := bufio.NewReaderSize(body, 64<<10)
	whole := true // what comes next begins a line
	for !s.log.Complete() {
		line, err := r.ReadSlice('\n')
		n += int64(len(line))
		if whole && len(line) > 0 && !stamped(line) {
			return n, fmt.Errorf("the kubelet says instead of the log: %s", line[:min(len(line), 300)])
		}
		if len(line) > 0 {
			s.since = s.log.Line(line)
			whole = line[len(line)-1] == '\n'
		}
		if !s.begun && s.log.Begun() {
			s.begun = true
			_ = s.keepBegin(s.seen()) // it shows that the rank runs; the end has it too
			s.t.notify()
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, nil
}

// stamped reports whether a line of a log begins with its time, as all that were
// asked for do: what does not is of the kubelet, not of the container.
func stamped(line []byte) bool {
	stamp, _, _ := bytes.Cut(bytes.TrimRight(line[:min(len(line), 40)], "\r\n"), []byte(" "))
	_, err := time.Parse(time.RFC3339Nano, string(stamp))
	return err == nil
}

// endWith ends the reading of a log a little after the end of its pod.
func (s *session) endWith(ctx context.Context, cancel context.CancelFunc) {
	select {
	case <-s.f.ended:
		s.rest(ctx, afterEnd)
		cancel()
	case <-ctx.Done():
	}
}
