// Package metric knows what a measurement is: how one is read from a line of a
// log, from a results CSV or from metrics.json, and how the readings of several
// ranks become one value. It is pure: it reads only what it is handed.
package metric

import "fmt"

// Source says where a reading came from.
type Source string

// The sources a reading can have.
const (
	SourcePerformance Source = "performance"      // a `performance:` line
	SourceResults     Source = "multiple_results" // a row of the declared results CSV
	SourceKeyValue    Source = "key_value"        // a `key=value` line
	SourceMetricsJSON Source = "metrics.json"     // the workload's metrics.json
)

// Spec is a metric as a card declares it.
type Spec struct {
	Name      string `json:"name"`
	Unit      string `json:"unit,omitempty"`
	Better    string `json:"better,omitempty"`    // "higher", "lower" or empty
	Aggregate string `json:"aggregate,omitempty"` // root, min, max, sum, mean, agree; empty: rank 0 or the lowest rank that reported
	Required  bool   `json:"required,omitempty"`
	Evidence  bool   `json:"evidence,omitempty"` // it is reported to be read, and no number to judge by: a label, a version, a single sample
	Help      string `json:"help,omitempty"`
}

// Reading is one value that one rank reported.
type Reading struct {
	Name   string  `json:"name"`            // metric name
	Value  float64 `json:"value"`           // finite, unless NotApplicable or Label
	Text   string  `json:"text"`            // the value as it was written
	Unit   string  `json:"unit,omitempty"`  // as written, or empty
	Model  string  `json:"model,omitempty"` // the row's model in a results CSV
	Source Source  `json:"source"`
	Place  string  `json:"place,omitempty"` // e.g. "results.csv:3"
	// NotApplicable is the positive finding "n/a": it cannot be measured here.
	NotApplicable bool `json:"not_applicable,omitempty"`
	// Label says that Text is no number but a word, and Value means nothing.
	Label bool `json:"label,omitempty"`
	// Unended says that its line, of output or of a results CSV, has no end: when
	// its writer was ended in the middle, this is half of what it would have written.
	Unended bool `json:"unended,omitempty"`
}

// The codes of a Problem. They are reason codes of a verdict.
const (
	CodeNotANumber = "METRIC_NOT_A_NUMBER" // a value that is no finite number, or has no name
	CodeAbsent     = "METRIC_ABSENT"       // a rank that should have reported did not
	CodeDisagrees  = "METRIC_DISAGREES"    // two values where one was expected
	CodeNoColumn   = "RESULTS_NO_COLUMN"   // a results CSV without a column it needs
	CodeEmpty      = "RESULTS_EMPTY"       // a results CSV, or rows of it, without a value
	CodeUnreadable = "RESULTS_UNREADABLE"  // a results file that cannot be parsed, or a part of it
	CodeName       = "METRIC_NAME"         // a line whose key is no name of a metric
)

// Problem is a reason why something that looked like a reading is none. Code is
// one of the reason codes of the verdict (METRIC_NOT_A_NUMBER, RESULTS_…).
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Name    string `json:"name,omitempty"`   // the metric it is about, when that is known
	Text    string `json:"text,omitempty"`   // the value as it was written, when that is known
	Model   string `json:"model,omitempty"`  // the row's model, for a results CSV
	Source  Source `json:"source,omitempty"` // where it would have been read from
	// Rows are the rows of a results CSV that it is about, or what its line may
	// have been when that was cut: they are there, and have no usable value. Of
	// many that are alike the first is there.
	Rows []Row `json:"rows,omitempty"`
	// NotApplicable says of a value that is absent that it cannot be measured.
	NotApplicable bool `json:"not_applicable,omitempty"`
	// From is the one rank whose value it is about; nil: none, several, or the only one.
	From *Origin `json:"-"`
}

// Origin is the rank that a value was taken from, of several.
type Origin struct {
	Rank int
	Node string // where the rank ran; empty: that is not known
}

// String is how messages call the rank: "rank 1 (node-b)".
func (o Origin) String() string {
	if o.Node == "" {
		return fmt.Sprintf("rank %d", o.Rank)
	}
	return fmt.Sprintf("rank %d (%s)", o.Rank, o.Node)
}

// Row is a row of a results CSV, or a line, without a usable value.
type Row struct {
	Name  string `json:"name,omitempty"`
	Model string `json:"model,omitempty"`
	Place string `json:"place"`
	// Cut says that name and model may be the beginnings of what they were to be;
	// both are empty when nothing is known of them.
	Cut bool `json:"cut,omitempty"`
}

// Measurement is what a job as a whole measured: one value a metric name and
// row model, after the ranks were put together.
type Measurement struct {
	Name          string  `json:"name"`
	Value         float64 `json:"value"`
	Text          string  `json:"-"` // as written when it comes from one reading
	Unit          string  `json:"unit"`
	Model         string  `json:"model"`
	Source        Source  `json:"source"`
	NotApplicable bool    `json:"not_applicable,omitempty"`
	Label         bool    `json:"label,omitempty"` // Text is a word, and Value means nothing
	// From is the rank whose value it is; nil: of no single rank, or of the only one.
	From *Origin `json:"-"`
}
