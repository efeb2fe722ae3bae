package k8s

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"assay/pkg/plan"
)

// The names of labels and annotations. A label holds what a value of a label may
// be; the annotation of the same name holds the whole.
const (
	labelNonce   = "assay/nonce"
	labelRun     = "assay/run"
	labelJob     = "assay/job"
	labelAttempt = "assay/attempt"
	labelManager = "app.kubernetes.io/managed-by"

	annotationDir  = "assay/dir"  // the attempt directory, as the submitting process saw it
	annotationHost = "assay/host" // of the submitting process
)

const manager = "assay"

// objectName is the name of a job's objects. Pods and their host names are made of
// it, so it leaves room for an index in the 63 characters of a DNS label.
func objectName(a plan.Attempt) string {
	const room, mark = 30, 7
	job := strings.Trim(dnsLabel(a.Job.ID), "-")
	if job != a.Job.ID || len(job) > room { // else another entry of the run might have the same name
		sum := sha256.Sum256([]byte(a.Job.ID))
		job = strings.Trim(job[:min(len(job), room-mark)], "-") + "-" + hex.EncodeToString(sum[:3])
	}
	name := "assay-" + a.Nonce[:min(len(a.Nonce), 10)]
	if job != "" {
		name += "-" + job
	}
	return dnsLabel(name) + "-" + strconv.Itoa(a.Submitted().Number)
}

// dnsLabel makes a text of what a DNS label may hold.
func dnsLabel(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, s)
}

// labelValue makes a text of what the value of a label may be: 63 characters of
// letters, digits, '-', '_' and '.', the first and the last a letter or a digit.
func labelValue(s string) string {
	whole := s
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, s)
	s = strings.Trim(s[:min(len(s), 63)], "-_.")
	if s != whole { // else another text might become the same label
		sum := sha256.Sum256([]byte(whole))
		s = strings.Trim(s[:min(len(s), 63-7)]+"-"+hex.EncodeToString(sum[:3]), "-_.")
	}
	return s
}

// labels are the labels of every object of a job.
func labels(a plan.Attempt) map[string]string {
	return map[string]string{
		labelManager: manager,
		labelNonce:   labelValue(a.Nonce), labelRun: labelValue(a.RunID), labelJob: labelValue(a.Job.ID),
		labelAttempt: strconv.Itoa(a.Submitted().Number),
	}
}

// annotations hold what labels cannot.
func annotations(a plan.Attempt, host string) map[string]string {
	return map[string]string{
		labelNonce: a.Nonce, labelRun: a.RunID, labelJob: a.Job.ID,
		annotationDir: a.Submitted().Dir, annotationHost: host,
	}
}
