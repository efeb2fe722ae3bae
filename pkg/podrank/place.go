package podrank

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"assay/pkg/durable"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// place makes the job file that the rank reads: the one that was submitted, as it
// holds in this pod. Its variables of the env_file have come as those of the pod.
func (p *inPod) place(submitted plan.Attempt) error {
	p.attempt = submitted
	// A rank that may be started again leaves its records in the pod: what an earlier
	// start left in a shared directory would be in its way.
	p.shared = sharedWith(submitted) && (submitted.Job.K8s == nil || submitted.Job.K8s.BackoffLimit == 0)
	if !p.shared {
		p.attempt.Dir = p.o.AttemptDir
	}
	p.attempt.Job.EnvFile = nil
	if info, err := os.Stat(p.o.ModelDir); err == nil && info.IsDir() {
		p.attempt.Job.ModelDir = p.o.ModelDir
	}
	if err := os.MkdirAll(p.o.AttemptDir, 0o700); err != nil {
		return err
	}
	data, err := json.MarshalIndent(p.attempt, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(p.jobFile(), append(data, '\n'), 0o600)
}

// jobFile is the job file as it holds in this pod. It is never in a shared
// directory.
func (p *inPod) jobFile() string { return filepath.Join(p.o.AttemptDir, rundir.JobFile) }

// sharedWith reports whether the attempt directory of whoever submitted the job is
// here too: that it is no other one of the same path shows in its job file.
func sharedWith(submitted plan.Attempt) bool {
	if !filepath.IsAbs(submitted.Dir) {
		return false
	}
	there, err := rundir.ReadAttempt(submitted.Dir)
	return err == nil && there.RunID == submitted.RunID && there.Nonce == submitted.Nonce &&
		there.Job.ID == submitted.Job.ID && there.Number == submitted.Number
}

// hosts are the names of the first rank of each node. They follow from that of rank
// 0 where that is the first of an Indexed Job: base-0.service; else they are not
// known.
func hosts(masterAddr string, job plan.Job) []string {
	name, domain, _ := strings.Cut(masterAddr, ".")
	base, ok := strings.CutSuffix(name, "-0")
	if !ok || base == "" {
		return nil
	}
	if domain != "" {
		domain = "." + domain
	}
	out := make([]string, job.NNodes)
	for i := range out {
		out[i] = base + "-" + strconv.Itoa(i*max(job.RanksPerNode, 1)) + domain
	}
	return out
}
