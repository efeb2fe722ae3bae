package plan

import (
	"path/filepath"
	"strings"

	"assay/pkg/card"
	"assay/pkg/manifest"
)

// defaultMarkerGrace is how long the records of ranks are awaited after the end
// of a job, in seconds: a little more than the attribute cache of an NFS client
// keeps a file that changes.
const defaultMarkerGrace = 10

// slurm fills what a job asks SLURM for: the model's own values over those of the
// deployment.
func (p *planner) slurm(e manifest.Entry, job *Job) {
	if p.target != "slurm" {
		return
	}
	var s card.Slurm
	if dep := p.m.Deployment.Slurm; dep != nil {
		s = *dep
	}
	if e.Slurm != nil {
		s = e.Slurm.Over(s)
	}
	at := func(field string) string { return p.slurmPointer(e, field) }
	if s.ClusterProfile != "" {
		p.warn(at("cluster_profile"), "cluster_profile is not honoured by this version: the values of profile %q are not known", s.ClusterProfile)
	}
	if s.API != "" && s.API != "cli" && s.API != "rest" {
		p.refuse(at("api"), "unknown api %q (known: cli, rest)", s.API)
	}
	if s.API == "rest" && s.RestURL == "" {
		p.refuse(at("api"), "api rest needs a rest_url")
	}
	job.Modules = s.Modules
	job.MaxPendingSeconds = p.seconds(s.MaxPending, at("max_pending"), 0)
	job.MarkerGraceSeconds = p.seconds(s.MarkerGrace, at("marker_grace"), defaultMarkerGrace)
	job.ResultsDir = p.absolute(s.ResultsDir)
	p.network(s.NetworkInterface, job)
	job.Slurm = &Slurm{
		Partition: s.Partition, Account: s.Account, QOS: s.QOS, Reservation: s.Reservation,
		Nodelist: strings.Join(s.Nodelist, ","), Exclude: strings.Join(s.Exclude, ","), Constraint: s.Constraint,
		Time: string(s.Time), Mem: string(s.Mem), Exclusive: s.Exclusive.Value,
		MailUser: s.MailUser, MailType: strings.Join(s.MailType, ","),
		OutputDir: p.absolute(s.OutputDir), KillOnBadExit: s.KillOnBadExit.Value, MPI: s.MPI,
		RestURL: s.RestURL, RestTokenFile: p.absolute(s.RestTokenFile),
	}
	if s.API == "rest" {
		job.Slurm.API = s.API
	}
	if s.Requeue.Set {
		job.Slurm.Requeue = &s.Requeue.Value
	}
	if !s.SkipGPUsDirective.Value {
		job.Slurm.GPUsPerNode = max(s.GPUsPerNode.Value, 0)
	}
}

// slurmPointer is where the value of a field of the slurm block stands.
func (p *planner) slurmPointer(e manifest.Entry, field string) string {
	if e.Slurm != nil && e.Slurm.Gives(field) {
		return e.Pointer("slurm", field)
	}
	return p.m.Deployment.Pointer("slurm", field)
}

// network makes the collectives use an interface, unless the manifest says
// otherwise.
func (p *planner) network(name string, job *Job) {
	if name == "" {
		return
	}
	for _, v := range []string{"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"} {
		if _, set := job.Env[v]; !set {
			job.Env[v] = name
		}
	}
}

// seconds reads a number of seconds.
func (p *planner) seconds(s card.Scalar, at string, def int) int {
	if s == "" {
		return def
	}
	var n card.Int
	if err := n.UnmarshalJSON([]byte(s)); err != nil || n.Value < 0 || n.Value > maxTimeout {
		p.refuse(at, "%q is no number of seconds from 0 to %d", string(s), maxTimeout)
		return def
	}
	return n.Value
}

// absolute makes a path of the manifest absolute; an empty one stays empty.
func (p *planner) absolute(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.opt.ManifestDir, path)
}
