package slurm

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/plan"
)

func TestWhereAmI(t *testing.T) {
	nodes := "SLURM_JOB_NODELIST=node[1-3]"
	for name, c := range map[string]struct {
		env   []string
		want  Here
		words string // of the error
	}{
		"batch":       {env: []string{nodes, "SLURMD_NODENAME=node1", "SLURM_PROCID=0"}, want: Here{Rank: -1, Node: "node1", Hosts: []string{"node1", "node2", "node3"}}},
		"task":        {env: []string{nodes, "SLURMD_NODENAME=node2", "SLURM_PROCID=1", "SLURM_STEP_ID=0"}, want: Here{Rank: 1, Node: "node2", Hosts: []string{"node1", "node2", "node3"}}},
		"step_nodes":  {env: []string{nodes, "SLURM_STEP_NODELIST=node3", "SLURM_PROCID=0", "SLURM_STEP_ID=2"}, want: Here{Rank: 0, Hosts: []string{"node3"}}},
		"restarted":   {env: []string{nodes, "SLURM_RESTART_COUNT=2"}, want: Here{Rank: -1, Hosts: []string{"node1", "node2", "node3"}, Restarts: 2}},
		"last_wins":   {env: []string{"SLURM_RESTART_COUNT=9", nodes, "SLURM_RESTART_COUNT=1"}, want: Here{Rank: -1, Hosts: []string{"node1", "node2", "node3"}, Restarts: 1}},
		"padding":     {env: []string{"SLURM_JOB_NODELIST=rack[0-1]_blade[01-02]"}, want: Here{Rank: -1, Hosts: []string{"rack0_blade01", "rack0_blade02", "rack1_blade01", "rack1_blade02"}}},
		"no_job":      {env: []string{"PATH=/bin"}, words: "this is no process of a SLURM job"},
		"bad_rank":    {env: []string{nodes, "SLURM_PROCID=x", "SLURM_STEP_ID=0"}, words: `SLURM_PROCID="x" is no rank`},
		"bad_count":   {env: []string{nodes, "SLURM_RESTART_COUNT=-1"}, words: `SLURM_RESTART_COUNT="-1" is no number`},
		"bad_nodes":   {env: []string{"SLURM_JOB_NODELIST=node[1-"}, words: "the list of nodes"},
		"empty_count": {env: []string{nodes, "SLURM_RESTART_COUNT="}, want: Here{Rank: -1, Hosts: []string{"node1", "node2", "node3"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := WhereAmI(c.env)
			if c.words != "" {
				if err == nil || !strings.Contains(err.Error(), c.words) {
					t.Errorf("error %v, want %q", err, c.words)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The ranks meet on the first of their nodes: by its name where that is a host, else
// at the address that SLURM has of it.
func TestMeet(t *testing.T) {
	show := `echo 'NodeName=nowhere-1 Arch=x86_64 NodeAddr=127.0.0.7 NodeHostName=host Port=17711'`
	for name, c := range map[string]struct {
		hosts    []string
		nnodes   int
		named    []string
		port     int
		scontrol string
		want     Place
		words    string
	}{
		"host":      {hosts: []string{"localhost", "nowhere-2"}, nnodes: 2, port: 29500, want: Place{MasterAddr: "localhost", MasterPort: 29500, Nodes: "localhost,nowhere-2"}},
		"address":   {hosts: []string{"nowhere-1.invalid"}, nnodes: 1, port: 29500, scontrol: show, want: Place{MasterAddr: "127.0.0.7", MasterPort: 29500, Nodes: "nowhere-1.invalid"}},
		"no_answer": {hosts: []string{"nowhere-1.invalid"}, nnodes: 1, port: 29500, scontrol: "exit 1", want: Place{MasterAddr: "nowhere-1.invalid", MasterPort: 29500, Nodes: "nowhere-1.invalid"}},
		"more":      {hosts: []string{"localhost", "n2", "n3"}, nnodes: 2, port: 29500, want: Place{MasterAddr: "localhost", MasterPort: 29500, Nodes: "localhost,n2"}},
		"named":     {hosts: []string{"n1", "localhost", "n3", "n4"}, nnodes: 2, named: []string{"n4", "localhost"}, port: 29500, want: Place{MasterAddr: "localhost", MasterPort: 29500, Nodes: "localhost,n4"}},
		"others":    {hosts: []string{"n1", "n2"}, nnodes: 2, named: []string{"n1", "n3"}, words: "of the nodes that the job needs, n3 is not among those (n[1-2]) that SLURM gave it"},
		"fewer":     {hosts: []string{"node1", "node2"}, nnodes: 3, words: "the job needs 3 nodes and SLURM gave it 2 (node[1-2])"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.scontrol == "" {
				c.scontrol = "exit 1"
			}
			tools := commands(t, map[string]string{"scontrol": c.scontrol})
			got, err := Meet(t.Context(), tools.env, Here{Hosts: c.hosts}, plan.Job{NNodes: c.nnodes, Nodes: c.named, MasterPort: c.port})
			if c.words != "" {
				if err == nil || !strings.Contains(err.Error(), c.words) {
					t.Errorf("error %v, want %q", err, c.words)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The first node of a pair is its server's, whichever is the first to SLURM: every end
// sees the same, and so does who says where they meet.
func TestRolesOfAPair(t *testing.T) {
	pair := plan.Job{Scope: "pair", NNodes: 2, RanksPerNode: 1, WorldSize: 2, Launcher: "none", Nodes: []string{"node2", "node1"}, MasterPort: 29500}
	changed := func(change func(*plan.Job)) plan.Job {
		j := pair
		change(&j)
		return j
	}
	slurms := []string{"node1", "node2"}
	for name, c := range map[string]struct {
		job   plan.Job
		hosts []string // by rank
	}{
		"reversed":        {pair, []string{"node2", "node1"}},
		"in order":        {changed(func(j *plan.Job) { j.Nodes = slurms }), slurms},
		"torchrun":        {changed(func(j *plan.Job) { j.Launcher = "torchrun" }), []string{"node2", "node1"}},
		"mpi":             {changed(func(j *plan.Job) { j.Launcher = "mpi" }), slurms},
		"srun":            {changed(func(j *plan.Job) { j.Launcher = "srun" }), slurms},
		"srun --mpi":      {changed(func(j *plan.Job) { j.Slurm = &plan.Slurm{MPI: "pmix"} }), slurms},
		"group":           {changed(func(j *plan.Job) { j.Scope = "group" }), slurms},
		"nodes not named": {changed(func(j *plan.Job) { j.Nodes = nil }), slurms},
	} {
		t.Run(name, func(t *testing.T) {
			for task, node := range slurms {
				got, err := Here{Rank: task, Node: node, Hosts: slurms}.For(c.job)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(c.hosts, got.Hosts); d != "" || got.Node != node || c.hosts[got.Rank] != node {
					t.Errorf("task %d on %s is rank %d on %s (-want +got):\n%s", task, node, got.Rank, got.Node, d)
				}
			}
			tools := commands(t, map[string]string{"scontrol": "echo NodeAddr=$4"})
			p, err := Meet(t.Context(), tools.env, Here{Rank: -1, Node: "node1", Hosts: []string{"node1", "node2", "node3"}}, c.job)
			if err != nil || p.MasterAddr != c.hosts[0] || p.Nodes != "node[1-2]" {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
	for words, h := range map[string]Here{
		`SLURMD_NODENAME="vm" is no node of the pair (node2, node1)`:                 {Rank: 0, Node: "vm", Hosts: slurms},
		"of the nodes of the pair, node2 is not among those (node[1,3]) of the step": {Rank: 0, Node: "node1", Hosts: []string{"node1", "node3"}},
	} {
		if _, err := h.For(pair); err == nil || err.Error() != words {
			t.Errorf("%v, want %s", err, words)
		}
	}
}

// A port that is taken is passed over, and jobs that share a node begin at
// different ones.
func TestFreePort(t *testing.T) {
	one, err := freePort("4711")
	if err != nil {
		t.Fatal(err)
	}
	if one < firstPort || one >= firstPort+ports {
		t.Errorf("port %d", one)
	}
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", one))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if two, err := freePort("4711"); err != nil || two == one {
		t.Errorf("port %d is taken, and was given again (%v)", two, err)
	}
	if next, err := freePort("4712"); err != nil || next == one {
		t.Errorf("another job begins at %d too (%v)", next, err)
	}
	if any, err := freePort(""); err != nil || any == 0 {
		t.Errorf("port %d, %v", any, err)
	}
}
