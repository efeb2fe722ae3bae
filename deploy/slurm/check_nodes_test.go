package slurm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/plan"
)

const partitionsText = `PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A DefaultTime=01:00:00 MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 Nodes=node[1-4] State=UP TotalCPUs=256 TotalNodes=4 JobDefaults=(null)
PartitionName=short AllowGroups=ALL DenyAccounts=guests AllowQos=normal,high Default=NO MaxNodes=2 MaxTime=1-00:30:00 Nodes=node[1-4] State=UP TotalNodes=4
PartitionName=old AllowAccounts=ops AllowQos=ALL Default=NO MaxNodes=UNLIMITED MaxTime=30 Nodes=old[1-2] State=DRAIN TotalNodes=2
`

const groupsText = `main|idle|64000|gpu:a100:4(S:0-1),nvme:2|node[1-2]
main|drained*|64000|gpu:a100:4(S:0-1)|node3
main|mixed|128000|(null)|node4
short|idle|64000|gpu:a100:4|node[1-2]
old|down*|2000|(null)|old[1-2]
`

func TestParsePartitions(t *testing.T) {
	want := []partition{
		{name: "main", state: "UP", byDefault: true, maxTime: unlimited, maxNodes: unlimited, total: 4},
		{name: "short", state: "UP", maxTime: 88200, maxNodes: 2, total: 4, denied: []string{"guests"}, allowQOS: []string{"normal", "high"}},
		{name: "old", state: "DRAIN", maxTime: 1800, maxNodes: unlimited, total: 2, allowAccounts: []string{"ops"}},
	}
	if d := cmp.Diff(want, parsePartitions(partitionsText+"\nslurm_load: a message\n"), cmp.AllowUnexported(partition{})); d != "" {
		t.Error(d)
	}
}

func TestTimeLimit(t *testing.T) {
	for text, want := range map[string]string{
		"5": "300 true true", "1:30": "90 true true", "02:30:00": "9000 true true", "1-0": "86400 true true", "1-2:3": "93780 true true",
		"1-02:03:04": "93784 true true", "UNLIMITED": "0 false true", "infinite": "0 false true", "-1": "0 false true",
		"": "0 false false", "x": "0 false false", "1:2:3:4": "0 false false", "1d": "0 false false", "-5": "0 false false",
	} {
		n, limited, valid := timeLimit(text)
		if got := fmt.Sprint(n, limited, valid); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestCountGPUs(t *testing.T) {
	for gres, want := range map[string]int{
		"(null)": 0, "": 0, "gpu:8": 8, "gpu": 1, "gpu:a100:4(S:0-1),nvme:2": 4, "gpu:a:1,gpu:b:2": 3, "mygpu:8": 0, "nvme:2,gpu:h100:8(S:0,1)": 8, "gpu:h100": 1,
	} {
		if got := countGPUs(gres); got != want {
			t.Errorf("%q: %d, want %d", gres, got, want)
		}
	}
}

func TestAskedMemory(t *testing.T) {
	for text, want := range map[string]int{"": 0, "0": 0, "500": 500, "500M": 500, "2G": 2048, "1T": 1048576, "2048K": 2, "x": 0, "G": 0, "1.5G": 0} {
		if got := askedMemory(text); got != want {
			t.Errorf("%q: %d MB, want %d", text, got, want)
		}
	}
}

func TestUsable(t *testing.T) {
	for _, state := range []string{"idle", "mixed", "allocated", "completing", "idle~", "reserved", "planned", "allocated+"} {
		if !usable(state) {
			t.Errorf("%s is not usable", state)
		}
	}
	for _, state := range []string{"down", "down*", "idle*", "drained", "draining", "draining@", "fail", "maint", "UNKNOWN"} {
		if usable(state) {
			t.Errorf("%s is usable", state)
		}
	}
}

func TestNodeFindings(t *testing.T) {
	groups, err := parseGroups(groupsText)
	if err != nil {
		t.Fatal(err)
	}
	all := parsePartitions(partitionsText)
	for name, c := range map[string]struct {
		nodes int
		asked plan.Slurm
		want  []string
	}{
		"default":              {2, plan.Slurm{}, []string{"ok: 3 of 4 nodes can take jobs (1 drained*)"}},
		"all there is":         {4, plan.Slurm{}, []string{`warning: entry "e" asks for 4 nodes, and 3 of partition main can take jobs now (1 drained*): it would wait`}},
		"more than exist":      {5, plan.Slurm{}, []string{`problem: entry "e" asks for 5 nodes, and partition main has 4`}},
		"misspelt":             {1, plan.Slurm{Partition: "shrot"}, []string{`problem: entry "e": there is no partition "shrot"; did you mean "short"?`}},
		"unlike any":           {1, plan.Slurm{Partition: "x"}, []string{`problem: entry "e": there is no partition "x"; there are: main, short, old`}},
		"exactly as long":      {1, plan.Slurm{Partition: "short", Time: "1-00:30:00"}, []string{`ok: is UP with 4 nodes, and takes 1 node of entry "e"`}},
		"too long":             {1, plan.Slurm{Partition: "short", Time: "1-00:30:01"}, []string{`problem: entry "e" asks for a time of 1-00:30:01, and partition short allows 24h30m`}},
		"for ever":             {1, plan.Slurm{Partition: "short", Time: "UNLIMITED"}, []string{`problem: entry "e" asks for a time of UNLIMITED, and partition short allows 24h30m`}},
		"a QOS may lift it":    {1, plan.Slurm{Partition: "short", Time: "2-0", QOS: "high"}, []string{`warning: entry "e" asks for a time of 2-0, and partition short allows 24h30m, unless QOS high lifts that`}},
		"too wide":             {3, plan.Slurm{Partition: "short"}, []string{`problem: entry "e" asks for 3 nodes, and partition short allows 2 a job`}},
		"a QOS too many":       {1, plan.Slurm{Partition: "short", QOS: "low"}, []string{`problem: entry "e": partition short does not allow QOS low`}},
		"guests":               {1, plan.Slurm{Partition: "short", Account: "guests"}, []string{`problem: entry "e": partition short does not let account guests in`}},
		"closed":               {1, plan.Slurm{Partition: "old", Account: "ops"}, []string{"problem: partition old is DRAIN: it starts no jobs", "warning: "}},
		"either of two":        {3, plan.Slurm{Partition: "short,main"}, []string{`warning: entry "e" asks for 3 nodes, and partition short allows 2 a job`, "ok: "}},
		"none of two":          {3, plan.Slurm{Partition: "short,old", Account: "ops"}, []string{"problem: ", "problem: partition old is DRAIN", `problem: entry "e" asks for 3 nodes, and partition old has 2`}},
		"memory of one":        {1, plan.Slurm{Mem: "100G"}, []string{`ok: is UP`}},
		"memory of two":        {2, plan.Slurm{Mem: "100G"}, []string{`problem: entry "e" asks for 2 nodes with 100G of memory, and 1 of the 4 of partition main have that`}},
		"GPUs":                 {2, plan.Slurm{GPUsPerNode: 4}, []string{"ok: 2 of 3 nodes can take jobs"}},
		"GPUs that drain":      {3, plan.Slurm{GPUsPerNode: 4}, []string{`warning: entry "e" asks for 3 nodes, and 2 of partition main can take jobs now`}},
		"too many GPUs":        {1, plan.Slurm{GPUsPerNode: 8}, []string{`problem: entry "e" asks for 1 node with 8 GPUs, and 0 of the 4 of partition main have that; ask for less, or set slurm.skip_gpus_directive`}},
		"all but one excluded": {2, plan.Slurm{Exclude: "node[1-3]"}, []string{`problem: entry "e" asks for 2 nodes, and slurm.exclude leaves 1 of partition main`, "ok: "}},
		"excluded":             {2, plan.Slurm{Exclude: "node[1-2]"}, []string{`warning: entry "e" asks for 2 nodes, and 1 of partition main can take jobs now`, "ok: node[1-2] exist"}},
		"exclude nobody":       {1, plan.Slurm{Exclude: "node9,node1"}, []string{"ok: ", `problem: entry "e": slurm.exclude names node9, which no partition has`}},
		"list":                 {1, plan.Slurm{Nodelist: "node[1,3]"}, []string{"ok: ", `warning: entry "e": slurm.nodelist names node3 (drained), which take no jobs now`}},
		"list of nonsense":     {1, plan.Slurm{Nodelist: "node[1"}, []string{"ok: ", `problem: entry "e": slurm.nodelist: `}},
		"list in a file":       {1, plan.Slurm{Nodelist: "/etc/hosts"}, []string{"ok: "}},
	} {
		t.Run(name, func(t *testing.T) {
			w := wish{keys: []string{"e"}, nodes: c.nodes, Slurm: c.asked}
			found := nodeFindings(w, site{partitions: told[[]partition]{all, nil}, groups: told[[]nodeGroup]{groups, nil}})
			wantFindings(t, found, c.want)
		})
	}
}

// Nodes that a run names are looked at once, however many jobs are on them.
func TestNamedNodes(t *testing.T) {
	var jobs []plan.Job
	for _, nodes := range [][]string{{"node1", "node3"}, {"node1", "node9"}, {"old1", "node1"}} {
		jobs = append(jobs, plan.Job{Key: "e", NNodes: 2, RanksPerNode: 1, Nodes: nodes, Slurm: &plan.Slurm{Partition: "main", Nodelist: strings.Join(nodes, ",")}})
	}
	jobs = append(jobs, plan.Job{Key: "f", NNodes: 2, RanksPerNode: 1, Slurm: &plan.Slurm{Partition: "main"}})
	ws := wishes(jobs)
	if len(ws) != 2 || ws[0].who() != `entry "e"` || strings.Join(ws[0].named, " ") != "node1 node3 node9 old1" || ws[0].Nodelist != "" || ws[1].named != nil {
		t.Fatalf("wishes %+v", ws)
	}
	groups, err := parseGroups(groupsText)
	if err != nil {
		t.Fatal(err)
	}
	s := site{partitions: told[[]partition]{parsePartitions(partitionsText), nil}, groups: told[[]nodeGroup]{groups, nil}}
	wantFindings(t, nodeFindings(ws[0], s), []string{
		"ok: 3 of 4 nodes can take jobs (1 drained*)",
		`problem: entry "e": --nodes names node9, which no partition has; sinfo -N lists the nodes`,
		`problem: entry "e": --nodes names old1, which partition main does not have`,
		`problem: entry "e": --nodes names node3 (drained), which take no jobs now; leave them out`,
	})
	al := alloc{id: "7", nodes: "node[1-2]"}
	wantFindings(t, insideFindings(al, ws[:1], told[string]{"RUNNING", nil}), []string{
		"ok: ", `problem: entry "e": node[3,9],old1 are not in the allocation (node[1-2]); ask salloc for them with --nodelist`, "warning: slurm.partition has no effect",
	})
	ws[0].named = []string{"node2"}
	wantFindings(t, insideFindings(al, ws[:1], told[string]{"RUNNING", nil}), []string{"ok: ", `ok: entry "e": the allocation has node2`, "warning: "})
}

func TestNoDefaultPartition(t *testing.T) {
	all := parsePartitions(strings.ReplaceAll(partitionsText, "Default=YES", "Default=NO"))
	wantFindings(t, partitionFindings(wish{keys: []string{"e"}, nodes: 1}, all, nil), []string{`problem: entry "e" names no partition, and the site has no default; set slurm.partition to one of: main, short, old`})
}

func TestSiteThatDoesNotSay(t *testing.T) {
	away := errors.New("timed out")
	wantFindings(t, nodeFindings(wish{keys: []string{"e"}, nodes: 1}, site{partitions: told[[]partition]{err: away}, groups: told[[]nodeGroup]{err: away}}),
		[]string{"unknown: could not be looked at: timed out", "unknown: could not be looked at: timed out"})
}
