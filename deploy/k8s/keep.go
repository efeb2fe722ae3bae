package k8s

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/phrase"
	"assay/pkg/plan"
	"assay/pkg/pod"
	"assay/pkg/regular"
	"assay/pkg/rundir"
	"assay/pkg/signame"
)

// maxRecord is the largest marker that is read, in bytes.
const maxRecord = 1 << 20

// keep writes down what is known of how the rank ended, from the best source there
// is: its own files on a shared filesystem, the archive in its log, its termination
// message, and what Kubernetes says of its container. It returns why a rank without
// any record could not be read, or "".
func (s *session) keep() (unread string) {
	if s.shared() {
		return ""
	}
	p := s.seen()
	err := s.keepBest(p)
	if err != nil {
		return fmt.Sprintf("what pod %s left could not be kept: %v", p.Name, err)
	}
	return s.complaint(p)
}

// complaint is what the wrapper said of a rank whose end it could not record.
func (s *session) complaint(p *podView) string {
	status := p.terminated()
	if status == nil || s.attempt.Job.K8s.Unwrapped || !strings.HasPrefix(status.Message, "assay rank ") {
		return ""
	}
	if _, err := os.Stat(filepath.Join(s.dir(), rundir.EndFile)); err == nil {
		return ""
	}
	return fmt.Sprintf("the wrapper in pod %s said: %s", p.Name, phrase.Line(status.Message))
}

func (s *session) keepBest(p *podView) error {
	if s.attempt.Job.K8s.Unwrapped && p.terminated() != nil && p.stuck(true) == nil {
		return s.keepStatus(p)
	}
	if done, err := s.keepArchive(); done || err != nil {
		return err
	}
	if done, err := s.keepMessage(p); done || err != nil {
		return err
	}
	switch {
	case p.stuck(true) != nil:
		return s.keepRefusal(p, *p.stuck(true))
	case p.started():
		return s.keepBegin(p)
	}
	return nil
}

// shared reports whether the rank itself wrote its records where this process sees
// them.
func (s *session) shared() bool {
	for _, name := range []string{rundir.EndFile, rundir.BeginFile} {
		var marker struct {
			evidence.Identity
			By string `json:"by"`
		}
		data, err := regular.ReadFile(filepath.Join(s.dir(), name), maxRecord)
		if err == nil && json.Unmarshal(data, &marker) == nil && marker.Identity == s.attempt.Identity(s.rank) && marker.By == "" && !s.log.Begun() {
			return true
		}
	}
	return false
}

// keepArchive unpacks what the rank sent through its log.
func (s *session) keepArchive() (bool, error) {
	files, omitted, err := s.log.Archive()
	var end evidence.End
	if err == nil {
		err = json.Unmarshal(files[rundir.EndFile], &end)
	}
	if err == nil && end.Identity != s.attempt.Identity(s.rank) {
		err = errors.New("what the log holds is of another rank or run")
	}
	if err == nil {
		p := s.seen()
		if err = contradiction(end, p); err == nil {
			if m := s.told(p); m != nil && (m.End.ExitCode != end.ExitCode || m.End.Outcome != end.Outcome) {
				err = fmt.Errorf("it says that the rank exited %d, and the termination message says %d", end.ExitCode, m.End.ExitCode)
			}
		}
	}
	if err != nil {
		if s.problem == "" {
			s.problem = err.Error()
		}
		return false, nil
	}
	for name, data := range files {
		if name == rundir.EndFile {
			continue // it comes last, and says that all is there
		}
		path := filepath.Join(s.dir(), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return false, err
		}
		if err := durable.WriteFile(path, data, fileMode(s.dir())); err != nil {
			return false, err
		}
	}
	if !s.onVolume(end) {
		leftOut(&end, omitted)
	}
	return true, s.writeJSON(rundir.EndFile, end)
}

// onVolume reports whether everything of the rank lies on a results volume.
func (s *session) onVolume(end evidence.End) bool {
	has := slices.ContainsFunc(s.attempt.Job.K8s.Volumes, func(v plan.Volume) bool { return v.Results })
	return has && !strings.Contains(end.Lost, "results volume")
}

// leftOut names what could not be sent. Without its results a rank has lost
// evidence; without a part of its log it has not.
func leftOut(end *evidence.End, omitted []pod.Omitted) {
	for _, o := range omitted {
		to := &end.Message
		if strings.HasPrefix(o.Name, rundir.ResultsDir+"/") || o.Name == rundir.MetricsFile {
			to = &end.Lost
		}
		*to = strings.TrimPrefix(*to+"; "+o.String(), "; ")
	}
}

// killed is the exit code of a container that was killed, also after its rank had
// told its end.
const killed = 137

// contradiction is the error when the end that a rank told is not the one that
// Kubernetes saw: the wrapper exits with what it records, and a workload that may do
// anything in its container can forge the one and not the other.
func contradiction(end evidence.End, p *podView) error {
	status := p.terminated()
	if status == nil || status.Reason != "Completed" && status.Reason != "Error" && status.Reason != wordOOM ||
		int(status.ExitCode) == end.ExitCode || status.ExitCode == killed {
		return nil
	}
	return fmt.Errorf("it says that the rank exited %d, and Kubernetes says %d", end.ExitCode, status.ExitCode)
}

// told is the end in the termination message of a pod, nil when there is none that is
// of this rank.
func (s *session) told(p *podView) *pod.Message {
	status := p.terminated()
	if status == nil || status.Message == "" || s.attempt.Job.K8s.Unwrapped {
		return nil
	}
	m, err := pod.DecodeMessage([]byte(status.Message))
	if err != nil || m.End.Identity != s.attempt.Identity(s.rank) {
		return nil
	}
	return &m
}

// keepMessage writes down what the termination message says.
func (s *session) keepMessage(p *podView) (bool, error) {
	m := s.told(p)
	if m == nil || contradiction(m.End, p) != nil {
		return false, nil
	}
	s.t.mu.Lock()
	s.j.partial = true
	s.t.mu.Unlock()
	why := s.problem
	if why == "" {
		why = "its log ended before them"
	}
	lost := fmt.Sprintf("only its termination message could be had, not its log and its results (%s)", why)
	if len(m.Cut) > 0 {
		lost += "; it leaves out " + strings.Join(m.Cut, ", ")
	}
	if m.End.Results != nil && m.End.Results.File != "" || len(m.Cut) > 0 || m.End.Lost != "" {
		m.End.Lost = strings.TrimPrefix(m.End.Lost+"; "+lost, "; ")
	} else {
		m.End.Message = strings.TrimPrefix(m.End.Message+"; "+lost, "; ")
	}
	if len(m.Metrics.Readings)+len(m.Metrics.Problems) > 0 {
		if err := s.writeJSON(rundir.MetricsFile, m.Metrics); err != nil {
			return false, err
		}
		m.End.Metrics = true
	}
	return true, s.writeJSON(rundir.EndFile, m.End)
}

// keepStatus writes the end of a rank that ran without the wrapper.
func (s *session) keepStatus(p *podView) error {
	status := p.terminated()
	end := s.end(p)
	end.StartedAt, end.FinishedAt = status.StartedAt.UTC(), status.FinishedAt.UTC()
	end.ElapsedSeconds = end.FinishedAt.Sub(end.StartedAt).Seconds()
	end.Outcome, end.ExitCode = evidence.OutcomeExited, int(status.ExitCode)
	switch {
	case p.Status.Reason == "DeadlineExceeded":
		end.Outcome = evidence.OutcomeTimedOut
	case p.DeletionTimestamp != nil && status.ExitCode != 0 || p.deletedWhileRunning(): // what is told to stop may end well
		end.Outcome = evidence.OutcomeStopped
	case status.ExitCode > 128 && status.ExitCode < 128+65:
		end.Outcome, end.Signal = evidence.OutcomeSignaled, signame.Of(syscall.Signal(status.ExitCode-128))
	}
	if s.problem != "" {
		end.Lost = "its log could not be read to its end: " + s.problem
	}
	if m := s.scan.result(); len(m.Readings)+len(m.Problems) > 0 {
		if err := s.writeJSON(rundir.MetricsFile, m); err != nil {
			return err
		}
		end.Metrics = true
	}
	end.Skip, end.Said = s.scan.words()
	return s.writeJSON(rundir.EndFile, end)
}

// keepRefusal writes the end of a rank that could not start.
func (s *session) keepRefusal(p *podView, r refusal) error {
	return writeRefusal(s.attempt.Dir, s.end(p), r)
}

func writeRefusal(attemptDir string, end evidence.End, r refusal) error {
	end.Outcome, end.Code, end.ExitCode, end.Message = evidence.OutcomeRefused, r.code, 6, r.text
	dir, err := rundir.MakeRankDir(attemptDir, end.Rank)
	if err != nil {
		return err
	}
	return durable.WriteJSON(filepath.Join(dir, rundir.EndFile), end, fileMode(dir))
}

// keepBegin writes down that a rank began which left nothing itself, or only that.
func (s *session) keepBegin(p *podView) error {
	var b evidence.Begin
	if json.Unmarshal(s.log.Begin(), &b) == nil && b.Identity == s.attempt.Identity(s.rank) {
		b.By = Name
		return s.writeJSON(rundir.BeginFile, b)
	}
	started := p.CreationTimestamp.Time
	if status := p.terminated(); status != nil {
		started = status.StartedAt.Time
	}
	return s.writeJSON(rundir.BeginFile, evidence.Begin{
		Version: evidence.MarkerVersion, Identity: s.attempt.Identity(s.rank), Host: p.Name, Node: p.Spec.NodeName, StartedAt: started.UTC(), By: Name,
	})
}

// end is what Kubernetes knows of the end of a rank.
func (s *session) end(p *podView) evidence.End { return endOf(s.attempt.Identity(s.rank), p.Pod) }

func endOf(id evidence.Identity, p *corev1.Pod) evidence.End {
	return evidence.End{Version: evidence.MarkerVersion, Identity: id, Host: p.Name, Node: p.Spec.NodeName, By: Name}
}

// keepRefusal writes down why a job was given up, for every rank that it concerns,
// before the job is ended: then it is known even if this process ends.
func (t *Target) keepRefusal(j *job) {
	t.mu.Lock()
	attempt, refused := j.attempt, j.refused
	stuck := map[int]*corev1.Pod{}
	for n, pods := range j.starts() {
		if len(pods) > 0 && pods[len(pods)-1].stuck(true) != nil {
			stuck[n] = pods[len(pods)-1].Pod
		}
	}
	t.mu.Unlock()
	if attempt == nil || refused == nil {
		return
	}
	for n, p := range stuck {
		r := (&podView{Pod: p}).stuck(true)
		_ = writeRefusal(attempt.Dir, endOf(attempt.Identity(n), p), *r) // the observation says it too
	}
}

func (s *session) writeJSON(name string, v any) error {
	return durable.WriteJSON(filepath.Join(s.dir(), name), v, fileMode(s.dir()))
}

// fileMode is as private or as shared as the directory is.
func fileMode(dir string) fs.FileMode {
	if info, err := os.Stat(dir); err == nil && info.Mode()&0o070 != 0 {
		return 0o660
	}
	return 0o600
}
