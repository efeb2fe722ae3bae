package manifest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"assay/pkg/card"
	"assay/pkg/threshold"
)

// Suite is the suite that a manifest was made from, as build froze it: what its tests
// have in common, and their order.
type Suite struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	File        string      `json:"file"`   // as it was named to build
	Digest      string      `json:"digest"` // sha256:… of its bytes
	StopOnFail  bool        `json:"stop_on_fail"`
	Baseline    bool        `json:"baseline"` // measure, gate nothing
	MaxNodes    NodeLimit   `json:"max_concurrent_nodes"`
	Pairs       string      `json:"pairs"`      // default of the tests' pairs
	Hardware    string      `json:"hardware"`   // the key of Thresholds; empty: the run says
	Thresholds  *Thresholds `json:"thresholds"` // values by hardware and test; nil: there are none
	Tests       []Test      `json:"tests"`      // in the order they run
}

// Test is one test of a suite, or one variant of it.
type Test struct {
	Key        string            `json:"key"`     // of its entry in built_models
	Name       string            `json:"name"`    // in reports, the same for all variants
	Variant    map[string]string `json:"variant"` // the values of this variant by axis
	Required   *bool             `json:"required"`
	StopOnFail *bool             `json:"stop_on_fail"` // nil: as the suite
	Baseline   *bool             `json:"baseline"`     // nil: as the suite
	Pairs      string            `json:"pairs"`        // empty: as the suite
	Duration   card.Int          `json:"duration"`     // seconds
	// ExpectsThresholds refuses a run for whose hardware there are no values.
	ExpectsThresholds bool `json:"expects_thresholds"`
}

// Thresholds are values that depend on the hardware.
type Thresholds struct {
	File     string                                      `json:"file"`
	Digest   string                                      `json:"digest"` // sha256:… of its bytes
	Hardware map[string]map[string][]threshold.Threshold `json:"hardware"`
}

// AnyHardware is the key of values that hold for hardware which has none of its own.
const AnyHardware = "*"

// AllNodes is the NodeLimit that is none.
const AllNodes NodeLimit = -1

// NodeLimit is how many nodes may be under load at the same time: a number, or
// AllNodes. 0: not given.
type NodeLimit int

// UnmarshalJSON accepts a number, "all" and null.
func (n *NodeLimit) UnmarshalJSON(b []byte) error {
	if string(b) == `"all"` {
		*n = AllNodes
		return nil
	}
	var i card.Int
	if err := i.UnmarshalJSON(b); err != nil || i.Set && i.Value < 1 {
		return fmt.Errorf(`%s is no number of nodes: at least 1, or "all"`, b)
	}
	*n = NodeLimit(i.Value)
	return nil
}

// ParseSuite reads the suite of the manifest, nil when it has none that says what
// runs: other tools keep what they like there.
func (m *Manifest) ParseSuite() (*Suite, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(m.Suite), []byte("{")) {
		return nil, nil
	}
	var s Suite
	if err := json.Unmarshal(m.Suite, &s); err != nil {
		var semantic *json.SemanticError
		if errors.As(err, &semantic) {
			return nil, fmt.Errorf("manifest: /suite%s: %w", semantic.JSONPointer, errors.Join(semantic.Err))
		}
		return nil, fmt.Errorf("manifest: /suite: %w", err)
	}
	if s.Tests == nil {
		return nil, nil
	}
	return &s, nil
}

// TestPointer is the JSON pointer of a test of the suite, or of a field of it.
func TestPointer(i int, names ...string) string {
	return pointer("/suite/tests", append([]string{fmt.Sprint(i)}, names...)...)
}
