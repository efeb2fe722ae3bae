// Package perfcsv writes and reads perf.csv, the table of every result that
// analysts load: one row a result, at least one for every job that was tried,
// failures included. Rows are only ever added: an append is one write under a
// lock that holds between processes, and never touches what is there.
package perfcsv

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"reflect"
	"strings"

	"github.com/gocarina/gocsv"
)

// Row is one line of perf.csv. The fields are in column order; the first 29 are
// madengine's. An empty string is an empty cell: not known, or not applicable.
// schemas/perf_csv.schema.json describes each column, and a test holds the two
// together.
type Row struct {
	Model                      string `csv:"model"`
	NGPUs                      string `csv:"n_gpus"`
	NNodes                     int    `csv:"nnodes"`
	GPUsPerNode                int    `csv:"gpus_per_node"`
	TrainingPrecision          string `csv:"training_precision"`
	Pipeline                   string `csv:"pipeline"`
	Args                       string `csv:"args"`
	Tags                       string `csv:"tags"`
	DockerFile                 string `csv:"docker_file"`
	BaseDocker                 string `csv:"base_docker"`
	DockerSHA                  string `csv:"docker_sha"`
	DockerImage                string `csv:"docker_image"`
	GitCommit                  string `csv:"git_commit"`
	MachineName                string `csv:"machine_name"`
	DeploymentType             string `csv:"deployment_type"`
	Launcher                   string `csv:"launcher"`
	GPUArchitecture            string `csv:"gpu_architecture"`
	Performance                Number `csv:"performance"`
	Metric                     string `csv:"metric"`
	RelativeChange             Number `csv:"relative_change"`
	Status                     string `csv:"status"`
	BuildDuration              Number `csv:"build_duration"` // seconds
	TestDuration               Number `csv:"test_duration"`  // seconds
	DataName                   string `csv:"dataname"`
	DataProviderType           string `csv:"data_provider_type"`
	DataSize                   string `csv:"data_size"`
	DataDownloadDuration       Number `csv:"data_download_duration"` // seconds
	BuildNumber                string `csv:"build_number"`
	AdditionalDockerRunOptions string `csv:"additional_docker_run_options"`
	Verdict                    string `csv:"verdict"`
	Reason                     string `csv:"reason"`
	RunID                      string `csv:"run_id"`
	Attempt                    int    `csv:"attempt"`
	Scope                      string `csv:"scope"`
	Nodes                      string `csv:"nodes"`       // joined by spaces
	StartedAt                  string `csv:"started_at"`  // RFC 3339, UTC
	FinishedAt                 string `csv:"finished_at"` // RFC 3339, UTC
}

// The words of the status column.
const (
	StatusSuccess = "SUCCESS" // a number, and the job passed
	StatusFailure = "FAILURE"
	StatusSkipped = "SKIPPED"
)

// Columns returns the names of the columns in order.
func Columns() []string {
	t := reflect.TypeFor[Row]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("csv")
	}
	return names
}

// encode returns rows as CSV lines without a header. Text that no reader could
// take, invalid UTF-8 and NUL, is replaced by U+FFFD: a single such byte would
// make the whole file unreadable for pandas.
func encode(rows []Row) ([]byte, error) {
	clean := make([]Row, len(rows))
	for i, r := range rows {
		clean[i] = readable(r)
	}
	var buf bytes.Buffer
	if err := gocsv.MarshalCSVWithoutHeaders(clean, gocsv.NewSafeCSVWriter(csv.NewWriter(&buf))); err != nil {
		return nil, fmt.Errorf("encode rows: %w", err)
	}
	return buf.Bytes(), nil
}

func readable(r Row) Row {
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.String {
			continue
		}
		if s := f.String(); strings.ToValidUTF8(s, "") != s || strings.ContainsRune(s, 0) {
			f.SetString(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD"))
		}
	}
	return r
}

// header returns the first line of the file.
func header() []byte {
	return []byte(strings.Join(Columns(), ",") + "\n")
}
