package lint

import (
	"assay/pkg/document"
	"assay/pkg/perfcsv"
	"assay/pkg/suite"
	"assay/pkg/threshold"
)

// The codes of findings, beside those of package document.
const (
	ReadFailed          = "READ_FAILED"
	KindUnknown         = "KIND_UNKNOWN"
	Internal            = "INTERNAL"
	More                = "MORE"
	ModelWithoutImage   = "MODEL_WITHOUT_IMAGE"
	ImageWithoutModel   = "IMAGE_WITHOUT_MODEL"
	NodesMismatch       = "NODES_MISMATCH"
	NodesOverridden     = "NODES_OVERRIDDEN"
	ScopeNodes          = "SCOPE_NODES"
	LauncherUnknown     = "LAUNCHER_UNKNOWN"
	SlurmTimeShort      = "SLURM_TIME_SHORT"
	SlurmTimeFormat     = "SLURM_TIME_FORMAT"
	SlurmBlockMissing   = "SLURM_BLOCK_MISSING"
	K8sRunnerImage      = "K8S_RUNNER_IMAGE"
	K8sWrapper          = "K8S_WRAPPER"
	K8sQuantity         = "K8S_QUANTITY"
	K8sGPUResource      = "K8S_GPU_RESOURCE"
	K8sName             = "K8S_NAME"
	K8sToleration       = "K8S_TOLERATION"
	K8sVolume           = "K8S_VOLUME"
	K8sSecret           = "K8S_SECRET"
	BlockMoved          = "BLOCK_MOVED"
	BlockIgnored        = "BLOCK_IGNORED"
	ThresholdNoBound    = threshold.CodeNoBound
	ThresholdNotFinite  = threshold.CodeNotFinite
	ThresholdComparison = "THRESHOLD_COMPARISON"
	ThresholdInexact    = threshold.CodeInexact
	ThresholdEmpty      = threshold.CodeEmpty
	ThresholdEquality   = threshold.CodeEquality
	ThresholdGoodSide   = threshold.CodeGoodSide
	ThresholdEvidence   = threshold.CodeEvidence
	ThresholdMetric     = "THRESHOLD_METRIC"
	MetricName          = "METRIC_NAME"
	MetricUnit          = "METRIC_UNIT"
	MetricDuplicate     = "METRIC_DUPLICATE"
	NameDuplicate       = "NAME_DUPLICATE"
	NameForm            = "NAME_FORM"
	NoProgram           = "NO_PROGRAM"
	NoModels            = "NO_MODELS"
	ArgsSyntax          = "ARGS_SYNTAX"
	ReadyForm           = "READY_FORM"
	EnvName             = "ENV_NAME"
	EnvFileMissing      = "ENV_FILE_MISSING"
	EnvFileSyntax       = "ENV_FILE_SYNTAX"
	SuiteCard           = suite.CodeCard
	SuiteKey            = suite.CodeKey
	SuiteName           = suite.CodeName
	SuiteSize           = suite.CodeSize
	SuiteArgs           = suite.CodeArgs
	SuiteAxis           = suite.CodeAxis
	SuiteOptional       = suite.CodeOptional
	SuiteThresholds     = suite.CodeThresholds
	PerfHeader          = perfcsv.CodeHeader
	PerfWidth           = perfcsv.CodeWidth
	PerfQuote           = perfcsv.CodeQuote
	PerfNUL             = perfcsv.CodeNUL
	PerfValue           = perfcsv.CodeValue
	PerfTorn            = perfcsv.CodeTorn
)

// Rule explains one code.
type Rule struct {
	Code     string
	Severity Severity // what it usually is
	Text     string   // one sentence
}

// Codes returns every code that a finding can have, in the order of the docs.
func Codes() []Rule {
	return []Rule{
		{ReadFailed, Error, "The file cannot be read: it is missing, unreadable, too large, or no regular file."},
		{KindUnknown, Error, "The file is not recognised as a manifest, a card, a suite, a file of thresholds or a perf.csv."},
		{document.CodeEmpty, Error, "The file has no content."},
		{document.CodeSyntax, Error, "The file is not JSON or not YAML."},
		{document.CodeEncoding, Error, "The file is not UTF-8."},
		{document.CodeBOM, Warning, "The file begins with a byte order mark; an error in a perf.csv, whose first column it hides."},
		{document.CodeDepth, Error, "Arrays and objects are nested too deep."},
		{document.CodeDuplicate, Error, "An object has a key twice; readers disagree on which one counts."},
		{document.CodeNumberRange, Error, "A number is not finite."},
		{document.CodeYAML, Error, "The file uses YAML that has no JSON form, has several documents, or expands to more than is allowed."},
		{document.CodeType, Error, "A value has the wrong type."},
		{document.CodeEnum, Error, "A value is none of the words that are allowed."},
		{document.CodeRequired, Error, "A key that is required is missing."},
		{document.CodeRange, Error, "A value is too small, too large or empty."},
		{document.CodePattern, Error, "A text does not have the form it must have."},
		{document.CodeOther, Error, "A value violates its schema in another way."},
		{document.CodeNearMiss, Warning, "A key is unknown and looks like a known one."},
		{ModelWithoutImage, Error, "A built model has no image of the same key."},
		{ImageWithoutModel, Warning, "An image has no model of the same key and is not used."},
		{NodesMismatch, Error, "slurm.nodes and distributed.nnodes differ: sbatch and the launcher would disagree on the world size."},
		{NodesOverridden, Warning, "A model's own number of nodes differs from the deployment's other block; the model's wins."},
		{ScopeNodes, Error, "The scope needs another number of nodes: a pair exactly 2, a group at least 2."},
		{LauncherUnknown, Error, "The launcher is not known."},
		{SlurmTimeShort, Error, "slurm.time is shorter than an explicit timeout."},
		{SlurmTimeFormat, Error, "slurm.time is no time that sbatch takes."},
		{SlurmBlockMissing, Warning, "The target is slurm and there is no slurm block."},
		{K8sRunnerImage, Warning, "The target is k8s, and no image is named from which pods take the assay that wraps ranks."},
		{K8sWrapper, Error, "wrapper none runs images as they are, and something needs the wrapper."},
		{K8sQuantity, Error, "A quantity is none that Kubernetes can read."},
		{K8sGPUResource, Error, "GPUs are asked for, and nothing says what nodes call them."},
		{K8sName, Error, "A name of an object or a label is none that Kubernetes takes."},
		{K8sToleration, Error, "A toleration has a member that no toleration has."},
		{K8sVolume, Error, "A volume of the k8s block cannot be mounted."},
		{K8sSecret, Error, "An existing Secret is to be used, and none is named."},
		{BlockMoved, Warning, "A deployment block at the top level is read as if it were under deployment_config."},
		{BlockIgnored, Warning, "A deployment block is ignored because there is one that wins over it."},
		{ThresholdNoBound, Error, "A threshold has none of min, max, equal and not_equal."},
		{ThresholdNotFinite, Error, "A bound is not a finite number."},
		{ThresholdInexact, Error, "A bound is a whole number, or one close to 0, that no 64-bit floating-point number is equal to, so that it would be compared as another."},
		{ThresholdComparison, Error, "A threshold has a comparison that is not known."},
		{ThresholdEmpty, Error, "No value can satisfy a threshold, or all thresholds on one metric together."},
		{ThresholdEquality, Warning, "A threshold wants a quantity that is measured to be, or not to be, exactly equal to something, or equal to a number that is not whole."},
		{ThresholdGoodSide, Warning, "A threshold bounds a metric only on the side that is good."},
		{ThresholdEvidence, Warning, "A threshold is on a metric that is declared to be evidence."},
		{ThresholdMetric, Error, "A threshold is on a metric that nothing declares or can report."},
		{MetricName, Warning, "A metric's name is not lowerCamelCase."},
		{MetricUnit, Warning, "The unit in a metric's name is not the unit it declares."},
		{MetricDuplicate, Warning, "A card declares a metric twice."},
		{NameDuplicate, Warning, "Two cards of one file have the same name."},
		{NameForm, Error, "A card's name is blank, too long, or has control characters."},
		{NoProgram, Error, "An entry has neither scripts nor command: there is nothing to run."},
		{NoModels, Error, "The manifest has no model: nothing would run."},
		{ArgsSyntax, Error, "args is one string and cannot be split into words."},
		{ReadyForm, Error, "ready is none of tcp:PORT, line:REGEX and file."},
		{EnvName, Warning, "A name of an environment variable is not one that a shell can read."},
		{EnvFileMissing, Error, "The env_file cannot be read."},
		{EnvFileSyntax, Error, "The env_file has a syntax error; a warning where it is accepted all the same, or cannot be checked."},
		{SuiteCard, Error, "A test of a suite names a card that is not there or is malformed; a warning where the cards cannot all be read."},
		{SuiteKey, Error, "Two tests of a suite have the same name and variant."},
		{SuiteName, Error, "The name of a test, with its variant, is too long or has control characters."},
		{SuiteSize, Error, "A suite has more tests than are looked at, variants included."},
		{SuiteArgs, Error, "A test has args that nothing would read, or that cannot be split into words."},
		{SuiteAxis, Warning, "Nothing has the placeholder of an axis of variants, so that its values make a difference only where the program reads its variable; an error where two axes have one variable."},
		{SuiteOptional, Error, "No test of a suite decides its verdict."},
		{SuiteThresholds, Error, "The file of thresholds that a suite names cannot be read; a warning where it lacks the hardware or has a test that the suite has not."},
		{PerfHeader, Error, "The header of the perf.csv is not the known one."},
		{PerfWidth, Error, "A row of the perf.csv has too few or too many cells."},
		{PerfQuote, Error, "A quoted cell of the perf.csv is malformed."},
		{PerfNUL, Error, "The perf.csv has NUL bytes."},
		{PerfValue, Error, "A cell of the perf.csv is not what its column holds."},
		{PerfTorn, Error, "The last row of the perf.csv has no line end: an append was interrupted."},
		{More, Error, "The file has more findings than are listed."},
		{Internal, Error, "The check itself failed: a bug."},
	}
}
