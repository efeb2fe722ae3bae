package card

import "reflect"

// Slurm is a slurm block: of the deployment, or of one workload, whose values win.
type Slurm struct {
	Partition         string `json:"partition"`
	Account           string `json:"account"`
	QOS               string `json:"qos"`
	Reservation       string `json:"reservation"`
	Nodelist          Words  `json:"nodelist"`
	Exclude           Words  `json:"exclude"`
	Constraint        string `json:"constraint"`
	Nodes             Int    `json:"nodes"`
	GPUsPerNode       Int    `json:"gpus_per_node"`
	SkipGPUsDirective Flag   `json:"skip_gpus_directive"`
	Time              Scalar `json:"time"`
	Mem               Scalar `json:"mem"`
	OutputDir         string `json:"output_dir"`
	ResultsDir        string `json:"results_dir"`
	SharedWorkspace   string `json:"shared_workspace"`
	Exclusive         Flag   `json:"exclusive"`
	NetworkInterface  string `json:"network_interface"`
	ClusterProfile    string `json:"cluster_profile"`
	Modules           Words  `json:"modules"`
	MailUser          string `json:"mail_user"`
	MailType          Words  `json:"mail_type"`
	Requeue           Flag   `json:"requeue"`
	MPI               string `json:"mpi"`
	KillOnBadExit     Flag   `json:"kill_on_bad_exit"`
	MaxPending        Scalar `json:"max_pending"`
	MarkerGrace       Scalar `json:"marker_grace"`
	API               string `json:"api"`
	RestURL           string `json:"rest_url"`
	RestTokenFile     string `json:"rest_token_file"`
}

// Over returns the block with the values of base where it has none itself.
func (s Slurm) Over(base Slurm) Slurm {
	out, under := reflect.ValueOf(&s).Elem(), reflect.ValueOf(base)
	for i := range out.NumField() {
		if f := out.Field(i); f.IsZero() {
			f.Set(under.Field(i))
		}
	}
	return s
}

// Gives says whether the block has a value of a field, by its name in files.
func (s Slurm) Gives(field string) bool {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") == field {
			return !v.Field(i).IsZero()
		}
	}
	return false
}
