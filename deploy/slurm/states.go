package slurm

import (
	"assay/pkg/evidence"
)

// state is what a word of SLURM's stands for.
type state struct {
	phase    evidence.Phase
	bad      bool // stands for a failure
	again    bool // the job may be started again after it
	script   bool // the batch script itself failed, or could not be started, or was not to be
	draining bool // the ranks have ended
}

// states is the whole table of job states in squeue(1) and sacct(1), with those
// that later versions added.
func states() map[string]state {
	pending := state{phase: evidence.PhasePending}
	running := state{phase: evidence.PhaseRunning}
	failed := state{phase: evidence.PhaseEnded, bad: true}
	node := state{phase: evidence.PhaseEnded, bad: true, again: true}
	return map[string]state{
		"BOOT_FAIL":     {phase: evidence.PhaseEnded, bad: true, again: true, script: true},
		"CANCELLED":     failed,
		"COMPLETED":     {phase: evidence.PhaseEnded},
		"CONFIGURING":   pending,
		"COMPLETING":    {phase: evidence.PhaseRunning, draining: true},
		"DEADLINE":      {phase: evidence.PhaseEnded, bad: true, script: true},
		"EXPEDITING":    pending,
		"FAILED":        {phase: evidence.PhaseEnded, bad: true, script: true},
		"LAUNCH_FAILED": {phase: evidence.PhaseEnded, bad: true, again: true, script: true},
		"NODE_FAIL":     node,
		"OUT_OF_MEMORY": failed,
		"PENDING":       pending,
		"POWER_UP_NODE": pending,
		"PREEMPTED":     node,
		"RECONFIG_FAIL": {phase: evidence.PhaseEnded, bad: true, again: true, script: true},
		"REQUEUED":      {phase: evidence.PhasePending, again: true},
		"REQUEUE_FED":   pending,
		"REQUEUE_HOLD":  pending,
		"RESIZING":      running,
		"RESV_DEL_HOLD": pending,
		"REVOKED":       {phase: evidence.PhaseEnded, bad: true, script: true},
		"RUNNING":       running,
		"SIGNALING":     running,
		"SPECIAL_EXIT":  pending,
		"STAGE_OUT":     {phase: evidence.PhaseRunning, draining: true},
		"STOPPED":       running,
		"SUSPENDED":     running,
		"TIMEOUT":       failed,
		"UPDATE_DB":     {phase: evidence.PhaseRunning, draining: true},
	}
}

// lookup returns what a state word stands for; a word that is not known has the
// phase Unknown.
func lookup(word string) state { return states()[word] }
