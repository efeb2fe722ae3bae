package cli

import (
	"context"
	"os/signal"
	"syscall"
)

// interruptible returns a context that ends when the process is asked to stop.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		ctx = context.Background()
	}
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
}
