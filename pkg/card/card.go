// Package card holds a workload as its author declares it: an entry of a
// models.json, a file under models/, or a built model of a manifest, which has
// the same fields.
package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"assay/pkg/metric"
	"assay/pkg/threshold"
)

// Card is one workload. The field names and meanings up to Distributed are
// madengine's; the rest are assay's own. Unknown keys are ignored here and kept
// by build.
type Card struct {
	Name                       string       `json:"name"`
	URL                        string       `json:"url"`
	Dockerfile                 string       `json:"dockerfile"`
	DockerContext              string       `json:"dockercontext"` // directory that the image is built from
	Scripts                    string       `json:"scripts"`
	NGPUs                      Int          `json:"n_gpus"` // -1 means all
	Owner                      string       `json:"owner"`
	TrainingPrecision          string       `json:"training_precision"`
	MultipleResults            string       `json:"multiple_results"`
	Tags                       Tags         `json:"tags"`
	Timeout                    Int          `json:"timeout"` // seconds; -1 or absent: the default, 0: none
	Args                       Args         `json:"args"`
	AdditionalDockerRunOptions string       `json:"additional_docker_run_options"`
	EnvVars                    Env          `json:"env_vars"`
	Data                       string       `json:"data"`
	SkipGPUArch                string       `json:"skip_gpu_arch"`
	Cred                       string       `json:"cred"`
	Slurm                      *Slurm       `json:"slurm"`
	Distributed                *Distributed `json:"distributed"`

	Command     []string              `json:"command"` // argv as it stands; wins over scripts
	Contract    string                `json:"contract"`
	Scope       string                `json:"scope"`
	Metrics     []metric.Spec         `json:"metrics"`
	Thresholds  []threshold.Threshold `json:"thresholds"`
	Repeats     int                   `json:"repeats"`
	Retries     int                   `json:"retries"`
	RanksPolicy string                `json:"ranks_policy"`
	Ready       string                `json:"ready"` // what the other ranks of a pair or group wait for at its root
	// ReadyTimeout is how long they wait, in seconds.
	ReadyTimeout Int `json:"ready_timeout"`
	// Linger is for how many seconds the server of a pair may go on after its client.
	Linger Int `json:"linger"`
}

// Distributed is a distributed block.
type Distributed struct {
	Launcher     string `json:"launcher"`
	Backend      string `json:"backend"`
	Port         Int    `json:"port"`
	MasterPort   Int    `json:"master_port"` // an older spelling of port
	NNodes       Int    `json:"nnodes"`
	NProcPerNode Int    `json:"nproc_per_node"`
	Enabled      *bool  `json:"enabled"`
}

// Int is an integer that files spell as a number or as a string. Set tells an
// absent or null value from a zero.
type Int struct {
	Value int
	Set   bool
}

// Or returns the value, or def when it is not set.
func (i Int) Or(def int) int {
	if i.Set {
		return i.Value
	}
	return def
}

// UnmarshalJSON accepts 8, "8", "" and null.
func (i *Int) UnmarshalJSON(b []byte) error {
	s := strings.TrimSpace(strings.Trim(string(b), `"`))
	if s == "null" || s == "" {
		*i = Int{}
		return nil
	}
	v, err := strconv.Atoi(s)
	if err != nil {
		f, ferr := strconv.ParseFloat(s, 64)
		if ferr != nil || f != float64(int(f)) {
			return fmt.Errorf("%s is not an integer", b)
		}
		v = int(f)
	}
	*i = Int{v, true}
	return nil
}

// MarshalJSON writes the number, or null when it is not set.
func (i Int) MarshalJSON() ([]byte, error) {
	if !i.Set {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(i.Value), 10), nil
}

// Scalar is a string, number or boolean, kept as the text it was written as.
type Scalar string

// UnmarshalJSON accepts any scalar; null leaves it empty.
func (s *Scalar) UnmarshalJSON(b []byte) error {
	switch {
	case bytes.Equal(b, []byte("null")):
		*s = ""
		return nil
	case len(b) > 0 && (b[0] == '{' || b[0] == '['):
		return fmt.Errorf("a string, number or boolean is expected, not %.20s", b)
	case len(b) > 0 && b[0] == '"':
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		*s = Scalar(text)
		return nil
	}
	*s = Scalar(b)
	return nil
}

// Tags is a list of tags; a single string is a comma-separated list.
type Tags []string

// UnmarshalJSON accepts a list, a string and null.
func (t *Tags) UnmarshalJSON(b []byte) error {
	var list []string
	if len(b) > 0 && b[0] == '"' {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		for _, tag := range strings.Split(text, ",") {
			if tag = strings.TrimSpace(tag); tag != "" {
				list = append(list, tag)
			}
		}
		*t = list
		return nil
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*t = list
	return nil
}

// Args are the arguments of a script: a string, which is split as a POSIX shell
// splits words, or a list, which is taken as it stands.
type Args struct {
	Text string
	List []string // set when IsList
	// IsList tells an empty list from an empty string.
	IsList bool
}

// UnmarshalJSON accepts a string, a list of scalars, and null.
func (a *Args) UnmarshalJSON(b []byte) error {
	*a = Args{}
	if len(b) > 0 && b[0] == '[' {
		var list []Scalar
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		a.IsList = true
		for _, s := range list {
			a.List = append(a.List, string(s))
		}
		return nil
	}
	var s Scalar
	if err := s.UnmarshalJSON(b); err != nil {
		return err
	}
	a.Text = string(s)
	return nil
}

// MarshalJSON writes the form that was read.
func (a Args) MarshalJSON() ([]byte, error) {
	if a.IsList {
		return json.Marshal(a.List)
	}
	return json.Marshal(a.Text)
}
