package slurm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/pkg/environ"
	"assay/pkg/hostlist"
	"assay/pkg/plan"
)

// Here is where a process that SLURM started stands.
type Here struct {
	Rank     int      // of the task in its step, -1 outside of one
	Node     string   // SLURM's name of this node
	Hosts    []string // the nodes of the job, in the order of ranks
	Restarts int      // how often the job was started again
}

// WhereAmI reads the environment that SLURM gave this process.
func WhereAmI(env []string) (Here, error) {
	h := Here{Rank: -1, Node: environ.Get(env, "SLURMD_NODENAME")}
	if v := environ.Get(env, "SLURM_PROCID"); v != "" && environ.Get(env, "SLURM_STEP_ID") != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			return h, fmt.Errorf("SLURM_PROCID=%q is no rank", v)
		}
		h.Rank = n
	}
	if v := environ.Get(env, "SLURM_RESTART_COUNT"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return h, fmt.Errorf("SLURM_RESTART_COUNT=%q is no number of restarts", v)
		}
		h.Restarts = n
	}
	list := environ.Get(env, "SLURM_STEP_NODELIST")
	if list == "" {
		list = environ.Get(env, "SLURM_JOB_NODELIST")
	}
	if list == "" {
		return h, errors.New("neither SLURM_STEP_NODELIST nor SLURM_JOB_NODELIST is set: this is no process of a SLURM job")
	}
	hosts, err := hostlist.Expand(list)
	if err != nil {
		return h, fmt.Errorf("the list of nodes: %w", err)
	}
	h.Hosts = hosts
	return h, nil
}

// For is where the process stands in a job. The ends of a pair are told apart by the node
// that each is on: SLURM numbers its tasks in an order of its own, and the first node of
// a pair is its server's.
func (h Here) For(j plan.Job) (Here, error) {
	if h.Rank < 0 || !ordered(j) {
		return h, nil
	}
	hosts, err := nodesOf(j, h.Hosts)
	if err != nil {
		return h, fmt.Errorf("of the nodes of the pair, %w of the step", err)
	}
	hosts = byRank(j, hosts)
	h.Hosts, h.Rank = hosts, slices.Index(hosts, h.Node)
	if h.Rank < 0 {
		return h, fmt.Errorf("SLURMD_NODENAME=%q is no node of the pair (%s)", h.Node, strings.Join(hosts, ", "))
	}
	return h, nil
}

// ordered reports whether the ranks of a job are put onto its nodes in the order in which
// it names them: those of a pair, which have roles. Where MPI is started by SLURM a rank
// is the number of its task, which assay does not change.
func ordered(j plan.Job) bool {
	return j.Scope == "pair" && len(j.Nodes) == 2 && j.WorldSize == 2 && j.RanksPerNode == 1 &&
		j.Launcher != "srun" && j.Launcher != "mpi" && (j.Slurm == nil || j.Slurm.MPI == "")
}

// byRank are the nodes of a job, which are in SLURM's order, in the order of its ranks.
func byRank(j plan.Job, nodes []string) []string {
	if ordered(j) {
		return j.Nodes
	}
	return nodes
}

// Place is where the ranks of a job meet.
type Place struct {
	MasterAddr string
	MasterPort int
	Nodes      string // those that the ranks are on, as SLURM writes host lists
}

// Meet finds out where the ranks of a job meet: on the first of its nodes, at a
// port that is free where this runs: there, unless the server of a pair is on the other
// node.
func Meet(ctx context.Context, env []string, h Here, j plan.Job) (Place, error) {
	if len(h.Hosts) < j.NNodes {
		return Place{}, fmt.Errorf("the job needs %d nodes and SLURM gave it %d (%s)", j.NNodes, len(h.Hosts), hostlist.Compress(h.Hosts))
	}
	hosts, err := nodesOf(j, h.Hosts)
	if err != nil {
		return Place{}, fmt.Errorf("of the nodes that the job needs, %w that SLURM gave it", err)
	}
	port := j.MasterPort
	if port == 0 {
		if port, err = freePort(environ.Get(env, "SLURM_JOB_ID")); err != nil {
			return Place{}, err
		}
	}
	return Place{MasterAddr: address(ctx, tools{env: env, limit: 5 * time.Second}, byRank(j, hosts)[0]), MasterPort: port, Nodes: hostlist.Compress(hosts)}, nil
}

// nodesOf are the nodes that a job runs on, of those that there are, in the order of
// these: the ones that it names, or the first ones, of which there are enough.
func nodesOf(j plan.Job, hosts []string) ([]string, error) {
	if len(j.Nodes) == 0 {
		return hosts[:j.NNodes], nil
	}
	var found []string
	for _, h := range hosts {
		if slices.Contains(j.Nodes, h) {
			found = append(found, h)
		}
	}
	if len(found) < len(j.Nodes) {
		lacking := slices.DeleteFunc(slices.Clone(j.Nodes), func(n string) bool { return slices.Contains(found, n) })
		return nil, fmt.Errorf("%s not among those (%s)", are(lacking), hostlist.Compress(hosts))
	}
	return found, nil
}

// are says that some nodes are something.
func are(nodes []string) string {
	if len(nodes) == 1 {
		return nodes[0] + " is"
	}
	return hostlist.Compress(nodes) + " are"
}

// address is how the other nodes reach a node: by its name, where names of nodes
// are names of hosts, else at the address that SLURM itself uses.
func address(ctx context.Context, t tools, node string) string {
	limited, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if addrs, err := net.DefaultResolver.LookupHost(limited, node); err == nil && len(addrs) > 0 {
		return node
	}
	out, err := t.run(ctx, nil, "scontrol", "--oneliner", "show", "node", node)
	if err != nil {
		return node
	}
	if m := regexp.MustCompile(`\bNodeAddr=(\S+)`).FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return node
}

// The ports that are tried for a rendezvous: below those that Linux gives away.
const firstPort, ports = 20000, 12000

// freePort returns a port that nobody listens on. It begins at one that the id of
// the job gives, so that jobs that share a node try different ones.
func freePort(id string) (int, error) {
	n, err := strconv.Atoi(id)
	if err != nil {
		n = os.Getpid()
	}
	for i := range ports {
		port := firstPort + (n*13+i)%ports
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port)) //nolint:noctx // closed at once; it has to be the address that ranks use
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free on this node", firstPort, firstPort+ports-1)
}
