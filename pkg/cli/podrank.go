package cli

import (
	"context"

	"assay/pkg/podrank"
	"assay/pkg/rank"
)

// underK8s is the value of --under in a pod of an Indexed Job.
const underK8s = "k8s"

// rankInPod runs the rank that a pod is for.
func (a *app) rankInPod(ctx context.Context, opt rank.Options, given bool) (int, error) {
	return podrank.Run(ctx, podrank.Options{Rank: opt, Given: given, Out: a.Out, Err: a.Err})
}
