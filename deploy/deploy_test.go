package deploy_test

import (
	"errors"
	"fmt"
	"testing"

	"assay/deploy"
)

func TestSaid(t *testing.T) {
	for want, err := range map[string]error{
		"no such partition":                   fmt.Errorf("%w: no such partition", deploy.ErrRefused),
		"connection refused: try again":       fmt.Errorf("%w: connection refused: try again", deploy.ErrUnavailable),
		"job a: the server is away":           fmt.Errorf("job a: %w: %w: the server is away", deploy.ErrUnavailable, deploy.ErrNoTool),
		"it was asked: and did not answer":    fmt.Errorf("it was asked: %w: and did not answer", deploy.ErrAmbiguous),
		"refused to say: unavailable for now": errors.New("refused to say: unavailable for now"),
	} {
		if got := deploy.Said(err); got != want {
			t.Errorf("%q is told as %q, want %q", err, got, want)
		}
	}
}
