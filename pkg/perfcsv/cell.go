package perfcsv

import (
	"slices"
	"strconv"
	"time"

	"assay/pkg/verdict"
)

// cellProblem says what is wrong with a cell of a column; "" when nothing is.
func cellProblem(column, text string) string {
	switch column {
	case "model", "run_id":
		if text == "" {
			return "is empty"
		}
	case "n_gpus":
		if text != "" {
			return integerProblem(text)
		}
	case "nnodes", "gpus_per_node", "attempt":
		return integerProblem(text)
	case "performance", "relative_change", "build_duration", "test_duration", "data_download_duration":
		if _, ok := Number(text).Float(); !ok && text != "" {
			return "is not a plain decimal number"
		}
	case "status":
		if text != StatusSuccess && text != StatusFailure && text != StatusSkipped {
			return "is not SUCCESS, FAILURE or SKIPPED"
		}
	case "verdict":
		if !slices.Contains(verdicts(), text) {
			return "is not a verdict"
		}
	case "started_at", "finished_at":
		if _, err := time.Parse(time.RFC3339Nano, text); err != nil && text != "" {
			return "is not an RFC 3339 time"
		}
	}
	return ""
}

func integerProblem(text string) string {
	if _, err := strconv.Atoi(text); err != nil {
		return "is not an integer"
	}
	return ""
}

// verdicts are the words that a row can have: those of a job that was judged.
func verdicts() []string {
	return []string{
		verdict.Pass.String(), verdict.Fail.String(), verdict.NoMetric.String(),
		verdict.Error.String(), verdict.Skip.String(),
	}
}
