package verdict

import (
	"assay/pkg/metric"
	"assay/pkg/threshold"
)

// The reason codes. They are a stable interface: scripts branch on them.
const (
	CodeRankExit           = "RANK_EXIT"
	CodeRankSignal         = "RANK_SIGNAL"
	CodeRankTimeout        = "RANK_TIMEOUT"
	CodeRankLost           = "RANK_LOST"
	CodeRankNotStarted     = "RANK_NOT_STARTED"
	CodeSchedState         = "SCHED_STATE"
	CodeSchedUnknown       = "SCHED_UNKNOWN"
	CodeRestarted          = "RESTARTED"
	CodeLaunchRefused      = "LAUNCH_REFUSED"
	CodeLaunchPending      = "LAUNCH_PENDING"
	CodeLaunchUnknown      = "LAUNCH_UNKNOWN"
	CodeImage              = "IMAGE"
	CodeEnvFile            = "ENV_FILE"
	CodeModule             = "MODULE"
	CodePreScript          = "PRE_SCRIPT"
	CodePostScript         = "POST_SCRIPT"
	CodeRootEnded          = "ROOT_ENDED"
	CodeRootNotReady       = "ROOT_NOT_READY"
	CodeCancelled          = "CANCELLED"
	CodeNotRun             = "NOT_RUN"
	CodeContradiction      = "CONTRADICTION"
	CodeThreshold          = threshold.CodeThreshold
	CodeMetricAbsent       = metric.CodeAbsent
	CodeMetricNotANumber   = metric.CodeNotANumber
	CodeMetricDisagrees    = metric.CodeDisagrees
	CodeResultsNotFound    = "RESULTS_NOT_FOUND"
	CodeResultsNoColumn    = metric.CodeNoColumn
	CodeResultsEmpty       = metric.CodeEmpty
	CodeResultsUnreadable  = metric.CodeUnreadable
	CodeNothingMeasured    = "NOTHING_MEASURED"
	CodeMetricName         = metric.CodeName
	CodeSkipDeclared       = "SKIP_DECLARED"
	CodeSkipUndeclared     = "SKIP_UNDECLARED"
	CodeEvidenceStale      = "EVIDENCE_STALE"
	CodeEvidenceUnreadable = "EVIDENCE_UNREADABLE"
	CodeEvidenceThin       = "EVIDENCE_THIN"
	CodeRankNote           = "RANK_NOTE"
	CodeContract           = "CONTRACT"
	CodeInternal           = "INTERNAL"
)

// CodeRow is one line of the table of reason codes.
type CodeRow struct {
	Code    string
	Meaning string
}

// ReasonCodes returns every reason code with its meaning, in the order of the
// documentation.
func ReasonCodes() []CodeRow {
	return []CodeRow{
		{CodeRankExit, "a rank exited with a code other than 0"},
		{CodeRankSignal, "a rank was ended by a signal that assay did not send"},
		{CodeRankTimeout, "a rank ran past its time limit and was ended"},
		{CodeRankLost, "a rank began, nothing of it runs any more, and it left no end"},
		{CodeRankNotStarted, "the job is over and a rank left no record of having begun"},
		{CodeSchedState, "the target names a state that stands for a failure, such as TIMEOUT or NODE_FAIL"},
		{CodeSchedUnknown, "the target uses a state word that is not known, or has no such job any more; nothing is concluded from it"},
		{CodeRestarted, "the scheduler started the job again after a start of it had ended; only the newest start is judged"},
		{CodeLaunchRefused, "the target, or the node, refused to launch the job"},
		{CodeLaunchUnknown, "the submission had no answer, and the target knows no such job; it is never submitted again, because it may still appear"},
		{CodeLaunchPending, "the job has not been launched, or has not ended"},
		{CodeImage, "the container image cannot be had"},
		{CodeEnvFile, "the env_file failed on the node"},
		{CodeModule, "an environment module could not be loaded on the node"},
		{CodePreScript, "a pre-script failed, so that the workload was not started"},
		{CodePostScript, "a post-script failed after the workload had ended; it never decides a verdict"},
		{CodeRootEnded, "the server of a pair, or the root of a group, ended before the workload of this rank began, so that it was not started"},
		{CodeRootNotReady, "the server of a pair, or the root of a group, was not ready in time, so that the workload of this rank was not started"},
		{CodeCancelled, "a person ended the job, or dropped it before it was submitted"},
		{CodeNotRun, "the job was never run: an earlier test of its suite failed, and the suite stops there"},
		{CodeContradiction, "the job passed, and declared at another time that it does not apply here"},
		{CodeThreshold, "a measured value does not satisfy a threshold; as a warning, a threshold that is likely wrong"},
		{CodeMetricAbsent, "a metric that has to be there was not reported, not by every rank, or without a usable value"},
		{CodeMetricNotANumber, "a reported value is no finite decimal number, has no metric name, or stands in a line that is too long"},
		{CodeMetricDisagrees, "two values were reported where one was expected, or two spellings of one name"},
		{CodeResultsNotFound, "the file that multiple_results declares was not found"},
		{CodeResultsNoColumn, "a results file lacks the column performance or metric"},
		{CodeResultsEmpty, "a results file, or a row of it, has no value"},
		{CodeResultsUnreadable, "a results file or metrics.json, or a part of it, cannot be parsed"},
		{CodeNothingMeasured, "no value was measured"},
		{CodeMetricName, "under the acceptance contract, the key of a key=value line is no lowerCamelCase name, so that the line is no measurement"},
		{CodeSkipDeclared, "exit code 2 and a line that declares a skip: it does not apply to this hardware; as a warning, such a line beside exit code 0, which is no skip"},
		{CodeSkipUndeclared, "exit code 2 without a line that declares a skip"},
		{CodeEvidenceStale, "a marker or file of another run, job or attempt was found and does not count"},
		{CodeEvidenceUnreadable, "a marker or metrics.json cannot be read, says nothing or could not be written, or no rank of a job that ran left any"},
		{CodeEvidenceThin, "the ranks ran without the wrapper, so that the target's word on them and their logs are all the evidence there is; it never decides a verdict"},
		{CodeRankNote, "the wrapper of a rank noticed something, such as a process that could not be killed; it never decides a verdict"},
		{CodeContract, "the declared contract cannot be judged by this version"},
		{CodeInternal, "the wrapper of a rank failed, which is a bug of assay"},
	}
}
