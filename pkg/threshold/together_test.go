package threshold_test

import (
	"testing"

	"assay/pkg/threshold"
)

func TestTogether(t *testing.T) {
	at := func(v float64) *float64 { return &v }
	lo, hi := threshold.Threshold{Min: at(5)}, threshold.Threshold{Max: at(5)}
	for _, tt := range []struct {
		name string
		of   []threshold.Threshold
		want string // of the last one
	}{
		{"min over max", []threshold.Threshold{lo, {Max: at(4)}}, "min 5 is greater than max 4"},
		{"the tightest counts", []threshold.Threshold{{Min: at(1)}, lo, {Min: at(2)}, {Max: at(4)}}, "min 5 is greater than max 4"},
		{"two equals", []threshold.Threshold{{Equal: at(1)}, {Equal: at(2)}}, "equal 1 and equal 2 exclude each other"},
		{"equal below min", []threshold.Threshold{{Equal: at(4)}, lo}, "equal 4 lies outside min and max"},
		{"equal over max", []threshold.Threshold{hi, {Equal: at(6)}}, "equal 6 lies outside min and max"},
		{"equal and not", []threshold.Threshold{{NotEqual: at(1)}, {NotEqual: at(2)}, {Equal: at(1)}}, "not_equal 1 excludes the only value that the other bounds allow"},
		{"not equal, and equal", []threshold.Threshold{{Equal: at(1)}, {NotEqual: at(1)}}, "not_equal 1 excludes the only value that the other bounds allow"},
		{"the only value excluded", []threshold.Threshold{lo, hi, {NotEqual: at(5)}}, "not_equal 5 excludes the only value that the other bounds allow"},
		{"excluded before", []threshold.Threshold{{NotEqual: at(5)}, lo, hi}, "not_equal 5 excludes the only value that the other bounds allow"},
		{"a range", []threshold.Threshold{lo, {Max: at(6)}, {NotEqual: at(5)}, {Equal: at(5.5)}}, ""},
		{"one value", []threshold.Threshold{lo, hi, {Equal: at(5)}, {NotEqual: at(4)}}, ""},
		{"what is malformed by itself is left out", []threshold.Threshold{{Min: at(9), Max: at(8)}, hi}, ""},
		{"what was refused is left out", []threshold.Threshold{lo, {Max: at(4)}, {Max: at(6)}}, ""},
		{"another metric", []threshold.Threshold{lo, {Metric: "model/x", Max: at(4)}}, ""},
	} {
		together, why := threshold.Together{}, ""
		for _, one := range tt.of {
			if one.Metric == "" {
				one.Metric = "x"
			}
			why = together.Add(one)
		}
		if why != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, why, tt.want)
		}
	}
}
