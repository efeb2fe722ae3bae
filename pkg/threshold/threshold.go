// Package threshold compares measurements with the bounds a card declares. The
// comparison is exact, and NaN, infinities and absence never satisfy anything.
package threshold

// Threshold is one gate on one metric. One or more of the bounds are set.
type Threshold struct {
	Metric               string   `json:"metric"`
	Min                  *float64 `json:"min,omitempty"`       // value >= Min
	Max                  *float64 `json:"max,omitempty"`       // value <= Max
	Equal                *float64 `json:"equal,omitempty"`     // value == Equal
	NotEqual             *float64 `json:"not_equal,omitempty"` // value != NotEqual
	RequiredIfMeasurable bool     `json:"required_if_measurable,omitempty"`
	Note                 string   `json:"note,omitempty"`
}
