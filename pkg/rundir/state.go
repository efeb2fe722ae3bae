package rundir

// Names of the files by which the ranks of a pair or group tell each other how far
// they are, in the directory of a rank.
const (
	StateFile = "state.json" // how far the rank is, for the others
	ReadyFile = "ready"      // made by the workload of rank 0 when the others may begin; $ASSAY_READY_FILE
)
