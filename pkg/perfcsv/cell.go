package perfcsv

import (
	"fmt"
	"math"
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
			return integerProblem(text, math.MinInt)
		}
	case "nnodes", "attempt":
		return integerProblem(text, 0)
	case "gpus_per_node":
		return integerProblem(text, -1)
	case "performance", "relative_change":
		if _, ok := Number(text).Float(); !ok && text != "" {
			return "is not a plain decimal number"
		}
	case "build_duration", "test_duration", "data_download_duration":
		if v, ok := Number(text).Float(); (!ok || v < 0) && text != "" {
			return "is not a plain decimal number of at least 0"
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

func integerProblem(text string, least int) string {
	v, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return "is not an integer"
	case v < least:
		return fmt.Sprintf("is less than %d", least)
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
